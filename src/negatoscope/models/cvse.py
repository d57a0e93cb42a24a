"""Conditional Visual-Semantic Embeddings: how well a sentence fits the regions of a study's views.

Ni, Hsu, Gentili, McAuley, "Learning Visual-Semantic Embeddings for Reporting Abnormal Findings on Chest X-rays", 2020.

    v = norm(linear(sentence)),  m_j = norm(linear(region j))                            (section 3.1)
    e_j = v_a^T (W_a [m_j; v] + b_a),  a = softmax_j(e)                                  (2)
    d(v, view) = - sum_j a_j ||m_j - v||^2                                               (2)
    d(v, study) = the mean over the views that the study has                             (3)

With W_a = [W_m W_v] the energy is e_j = (W_m^T v_a)^T m_j + v_a^T (W_v v + b_a). The second term is the same for every
region, so softmax takes it away again: as printed (and as released) the attention depends on the view alone, not on the
sentence, and d is one product of v with the attended mean of the regions. That is how it is computed here, and W_v and
b_a, which get no gradient, are not there at all. `attention: conditional` is ours: e_j = m_j^T U v, which does depend
on the sentence.

B studies, V views, N regions a view, S sentences, d the joint width.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from negatoscope.settings import Settings

_FIRST_U = 3.0


class CVSESettings(Settings):
    width: int = Field(default=512, ge=1)
    """d of the joint space."""
    attention: Literal["printed", "conditional"] = "printed"
    """printed: one map a view, whatever the sentence, as equation 2 says. conditional: one map a view and sentence."""
    distance: Literal["squared", "plain"] = "squared"
    """squared: as printed. plain: ||m_j - v|| without the square, as released."""
    transform: Literal["linear", "shared"] = "linear"
    """linear: one linear map for regions, one for sentences, as printed. shared: as released, a linear map for each
    view and for sentences, then batch norm, ReLU, dropout and a last linear map that all of them share."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Before the last linear map; of `shared` alone."""


RELEASED = {"distance": "plain", "transform": "shared"}
"""The authors' code, where it differs from their paper."""


class Regions(NamedTuple):
    """A few studies in the joint space."""

    places: Tensor  # (B, V, N, d), of unit length
    present: Tensor  # (B, V) bool


class CVSE(nn.Module):
    """Scores of sentences for studies. Backbone features and sentence vectors come from outside."""

    def __init__(self, settings: CVSESettings, region_width: int, sentence_width: int, views: int = 2) -> None:
        super().__init__()
        self.settings = settings
        self.region_width, self.sentence_width, self.views = region_width, sentence_width, views
        d, of_views = settings.width, views if settings.transform == "shared" else 1
        self.region = nn.ModuleList(nn.Linear(region_width, d) for _ in range(of_views))
        self.sentence = nn.Linear(sentence_width, d)
        self.shared = _Shared(d, settings.dropout) if settings.transform == "shared" else nn.Identity()
        if settings.attention == "printed":
            self.energy = nn.Linear(d, 1, bias=False)  # W_m^T v_a, which is all that softmax leaves of equation 2
        else:
            self.energy = nn.Linear(d, d, bias=False)  # U, which begins by looking where region and sentence are alike
            with torch.no_grad():
                self.energy.weight.copy_(_FIRST_U * torch.eye(d))

    def regions(self, features: Tensor, present: Tensor) -> Regions:
        """Backbone features (B, V, N, D), and which views (B, V) there are; what stands in the others is not read."""
        if len(self.region) == 1:
            seen = _wide(self.region[0](features))  # (B, V, N, d)
        else:
            seen = torch.stack([_wide(self.region[view](features[:, view])) for view in range(features.shape[1])], 1)
        if isinstance(self.shared, _Shared):
            places = seen.new_zeros(seen.shape)
            places[present] = F.normalize(self.shared(seen[present]), dim=-1)
            return Regions(places, present)
        return Regions(F.normalize(seen, dim=-1), present)

    def sentences(self, vectors: Tensor) -> Tensor:
        """(S, e) -> v (S, d), of unit length."""
        return F.normalize(self.shared(self.sentence(vectors)), dim=-1)

    def scores(self, regions: Regions, v: Tensor) -> Tensor:
        """(B, S): d(v, study), at most 0; higher fits better. All pairs, as a few matrix products."""
        if self.settings.attention == "printed" and self.settings.distance == "squared":
            return self._by_attended_mean(regions, v)
        b, views, n, _ = regions.places.shape
        a = self._attention(regions, v)  # (B, V, N, S or 1)
        far = self._far(regions.places, v)  # (B, V, N, S)
        a = a.expand(b, views, n, len(v))
        return _over_views(-(a * far).sum(2), regions.present)

    def maps(self, regions: Regions, v: Tensor) -> Tensor:
        """(B, S, V, N): attention, which adds up to 1 over each view that is present and is 0 over the others."""
        b, views, n, _ = regions.places.shape
        a = self._attention(regions, v).expand(b, views, n, len(v))
        return (a * regions.present[:, :, None, None]).permute(0, 3, 1, 2)

    def attended(self, regions: Regions) -> Tensor:
        """(B, d): what a study looks like to the model whatever the sentence: the (attended) mean of its regions."""
        if self.settings.attention == "printed":
            means = (self.energy(regions.places).softmax(2) * regions.places).sum(2)
        else:
            means = regions.places.mean(2)
        return F.normalize(_over_views(means, regions.present), dim=-1)

    def _attention(self, regions: Regions, v: Tensor) -> Tensor:
        """(B, V, N, S), or (B, V, N, 1) where it is the same for all sentences."""
        if self.settings.attention == "printed":
            return self.energy(regions.places).softmax(2)
        return (regions.places @ self.energy(v).T).softmax(2)  # m^T U v

    def _far(self, places: Tensor, v: Tensor) -> Tensor:
        """(B, V, N, S): how far each region lies from each sentence."""
        # ||m - v||^2 = |m|^2 + |v|^2 - 2 m v, with both of unit length but where a vector is 0.
        squared = (_square(places)[..., None] + _square(v) - 2.0 * (places @ v.T)).clamp_min(0.0)
        # The root has no slope at 0.
        return squared if self.settings.distance == "squared" else (squared + 1e-12).sqrt()

    def _by_attended_mean(self, regions: Regions, v: Tensor) -> Tensor:
        """sum_j a_j ||m_j - v||^2 = sum_j a_j |m_j|^2 + |v|^2 - 2 v (sum_j a_j m_j): no (N, S) matrix at all."""
        a = self.energy(regions.places).softmax(2)  # (B, V, N, 1)
        mean = (a * regions.places).sum(2)  # (B, V, d)
        length = (a[..., 0] * _square(regions.places)).sum(2)  # (B, V)
        return _over_views(2.0 * (mean @ v.T) - length[..., None] - _square(v), regions.present)


class _Shared(nn.Module):
    """The released code's transform: the same for regions of either view and for sentences."""

    def __init__(self, d: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(d)
        self.dropout = nn.Dropout(dropout)
        self.last = nn.Linear(d, d)

    def forward(self, seen: Tensor) -> Tensor:
        """(..., d) -> (..., d)."""
        normed = self.norm(seen.flatten(0, -2)).view(seen.shape)
        return _wide(self.last(self.dropout(F.relu(normed))))


def _wide(vectors: Tensor) -> Tensor:
    """Where autocast multiplied in bf16, float32 from here on: lengths and distances need it."""
    return vectors.float() if vectors.dtype == torch.bfloat16 else vectors


def _square(vectors: Tensor) -> Tensor:
    return vectors.square().sum(-1)


def _over_views(values: Tensor, present: Tensor) -> Tensor:
    """The mean over the views (B, V, ...) that are there, (B, ...)."""
    weight = present.to(values.dtype)[..., None]  # (B, V, 1)
    return torch.where(weight > 0, values, 0.0).sum(1) / weight.sum(1).clamp_min(1.0)


def triplet_loss(scores: Tensor, positive: Tensor, sentences: Tensor, studies: Tensor, margin: float) -> Tensor:
    """Equation 4 over P matched pairs and k negatives each, summed as printed and divided by the number of terms.

    `scores` (B, S); `positive` (P, 2): study and sentence of each matched pair; `sentences` (P, k): unmatched sentences
    for its study, `studies` (P, k): unmatched studies for its sentence, -1 where there was none.
    """
    study, sentence = positive.T  # (P,) each
    matched = scores[study, sentence][:, None]  # (P, 1)
    terms, count = scores.new_zeros(()), 0
    for wrong, found in (
        (scores[study[:, None], sentences.clamp_min(0)], sentences >= 0),
        (scores[studies.clamp_min(0), sentence[:, None]], studies >= 0),
    ):
        terms = terms + torch.where(found, F.relu(wrong - matched + margin), 0.0).sum()
        count += int(found.sum())
    return terms / max(count, 1)

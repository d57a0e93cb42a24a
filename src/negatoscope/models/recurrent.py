"""What the reporters with an LSTM and attention over patches share, from Show, Attend and Tell to Up-Down.

B studies, k beams each, R = B * k rows, T words, N patches, d width, a attention width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from negatoscope.models.base import State
from negatoscope.settings import Settings
from negatoscope.vision.sight import Sight, masked_mean


class AttendingSettings(Settings):
    width: int = 512
    """Width of word embeddings and of the LSTM."""
    attention_width: int = 512
    dropout: float = 0.5


class Projection(nn.Module):
    """Raw features (B, N, D) to patches v_i (B, N, d) and the overall v (B, d).

    linear: v_i = W a_i. relu: v_i = ReLU(W a_i). v is the mean of the v_i, or, `apart`, it has weights of its own over
    the mean of the raw features.
    """

    def __init__(self, raw: int, d: int, dropout: float = 0.0, *, relu: bool = False, apart: bool = False) -> None:
        super().__init__()
        self.of_patches = _projected(raw, d, dropout, relu)
        self.of_overall = _projected(raw, d, dropout, relu) if apart else None

    def forward(self, seen: Sight) -> Sight:
        patches = self.of_patches(seen.patches)
        if self.of_overall is None:
            return seen.with_features(patches, masked_mean(patches, seen.mask))
        return seen.with_features(patches, self.of_overall(seen.overall))


def _projected(raw: int, d: int, dropout: float, relu: bool) -> nn.Sequential:
    parts: list[nn.Module] = [nn.Linear(raw, d)]
    return nn.Sequential(*parts, nn.ReLU(), nn.Dropout(dropout)) if relu else nn.Sequential(*parts)


Features = Literal["raw", "linear", "relu"]
"""Patches as the backbone gave them, through W, or through W and a ReLU."""


def patches_as(features: Features, raw: int, d: int, dropout: float, *, apart: bool = False) -> nn.Module:
    return nn.Identity() if features == "raw" else Projection(raw, d, dropout, relu=features == "relu", apart=apart)


def words_as(d: int, words: int, dropout: float, *, relu: bool = False) -> nn.Sequential:
    """Word embeddings, with dropout; through a ReLU in the field's code, not in the papers."""
    return nn.Sequential(nn.Embedding(words, d), *([nn.ReLU()] if relu else []), nn.Dropout(dropout))


@dataclass(frozen=True)
class Attended(State):
    """What is kept of a study for its words to look at. In another State it is a `per_study()` field."""

    patches: Tensor  # (B, N, d)
    keys: Tensor  # (B, N, a): what does not depend on the word
    mask: Tensor  # (B, N)


class AdditiveAttention(nn.Module):
    """e_i = w^T tanh(W v_i + U h),  alpha = softmax(e) over the patches that are there,  sum_i alpha_i v_i."""

    def __init__(self, d_patch: int, d: int, a: int) -> None:
        super().__init__()
        self.W, self.U = nn.Linear(d_patch, a, bias=False), nn.Linear(d, a)
        self.w = nn.Linear(a, 1, bias=False)  # one bias for all patches would vanish in the softmax

    def of(self, sight: Sight) -> Attended:
        return Attended(sight.patches, self.W(sight.patches), sight.mask)

    def scores(self, h: Tensor, keys: Tensor) -> Tensor:
        """Queries h (B, q, d), keys (B, N, a) -> e (B, q, N)."""
        sums = self.U(h).unsqueeze(2) + keys.unsqueeze(1)  # (B, q, N, a)
        return self.w(sums.tanh_()).squeeze(-1)

    def forward(self, h: Tensor, seen: Attended) -> tuple[Tensor, Tensor]:
        """Rows h (R, d) -> what they see (R, d_patch), alpha (R, N). A study's beams look at once."""
        by_study = h.view(len(seen.patches), -1, h.shape[-1])  # (B, k, d)
        alpha = masked_softmax(self.scores(by_study, seen.keys), seen.mask)  # (B, k, N)
        found = alpha @ seen.patches.to(alpha.dtype)  # (B, k, d_patch)
        return found.flatten(0, 1), alpha.flatten(0, 1)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """scores (B, q, N), mask (B, N) -> in float32; exactly 0 where there is no picture."""
    scores = scores.float()
    return scores.masked_fill(~mask.unsqueeze(1), torch.finfo(scores.dtype).min).softmax(-1)


class Gates(nn.Module):
    """Sums from which a recurrent cell makes its gates: `units` times d of them, from each input and from h.

    What an input known beforehand adds (`gates.of[0](words)`, all at once) is computed outside the loop over words.
    """

    units = 4

    def __init__(self, *inputs: int, d: int) -> None:
        super().__init__()
        wide = self.units * d
        self.of = nn.ModuleList(nn.Linear(width, wide, bias=number == 0) for number, width in enumerate(inputs))
        self.of_hidden = nn.Linear(d, wide, bias=False)
        for matrix in self.parameters():
            nn.init.uniform_(matrix, -(d**-0.5), d**-0.5)


class LSTM(Gates):
    """One layer, one word at a time."""

    def forward(self, given: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """given (R, 4 d): what the inputs add up to -> the next h and c, (R, d)."""
        i, f, g, o = (given + self.of_hidden(h)).chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c


def nothing(sight: Sight, d: int) -> Tensor:
    """h_0 = c_0 = 0, (B, d): in float32, so that the cell adds up in it under autocast too."""
    return torch.zeros(len(sight.overall), d, device=sight.overall.device)


def with_study(rows: Tensor, study: Tensor) -> Tensor:
    """rows (R, x) plus what their study (B, x) adds."""
    return (rows.view(len(study), -1, rows.shape[-1]) + study.unsqueeze(1)).flatten(0, 1)

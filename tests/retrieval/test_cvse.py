"""CVSE's score against loops over the printed equations; its loss; negatives that respect groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from negatoscope.models.cvse import CVSE, RELEASED, CVSESettings, Regions, triplet_loss
from negatoscope.retrieval.negatives import Negatives

FORMS: list[dict[str, Any]] = [
    {"attention": attention, "distance": distance, "transform": transform}
    for attention in ("printed", "conditional")
    for distance in ("squared", "plain")
    for transform in ("linear", "shared")
]


def _model(**said: Any) -> CVSE:
    torch.manual_seed(0)
    return CVSE(CVSESettings(width=8, **said), region_width=6, sentence_width=5).double().eval()


def _seen() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(1)
    present = torch.tensor([[True, True], [True, False], [False, True]])
    return torch.randn(3, 2, 4, 6).double(), present, torch.randn(7, 5).double()


def _unit(vector: Tensor) -> Tensor:
    return vector / vector.norm()


@pytest.mark.parametrize("said", FORMS, ids=lambda said: "-".join(said.values()))
def test_scores_and_maps_are_those_of_loops(said: dict[str, Any]) -> None:
    model = _model(**said)
    features, present, vectors = _seen()
    regions, v = model.regions(features, present), model.sentences(vectors)
    scores, maps = model.scores(regions, v), model.maps(regions, v)
    for study in range(3):
        for sentence in range(7):
            of_views = []
            for view in (view for view in range(2) if present[study, view]):
                first = model.region[view if len(model.region) == 2 else 0]
                m = [_unit(model.shared(first(features[study, view, j])[None])[0]) for j in range(4)]
                w = _unit(model.shared(model.sentence(vectors[sentence])[None])[0])
                if said["attention"] == "printed":
                    energy = torch.stack([model.energy.weight[0] @ one for one in m])
                else:
                    energy = torch.stack([one @ model.energy.weight @ w for one in m])
                a = energy.softmax(0)
                torch.testing.assert_close(maps[study, sentence, view], a)
                far = [(one - w).norm() ** (2 if said["distance"] == "squared" else 1) for one in m]
                of_views.append(-sum(float(weight.detach()) * float(one.detach()) for weight, one in zip(a, far)))
            assert float(scores[study, sentence].detach()) == pytest.approx(np.mean(of_views), rel=1e-6)
    assert not maps[1, :, 1].any()
    assert not maps[2, :, 0].any()


def test_as_printed_the_sentence_cancels_out_of_the_attention() -> None:
    """softmax_j v_a^T (W_a [m_j; v] + b_a), term by term, is the map that the model computes without v."""
    torch.manual_seed(2)
    m, v = torch.randn(4, 8).double(), torch.randn(3, 8).double()
    w_a, b_a, v_a = torch.randn(8, 16).double(), torch.randn(8).double(), torch.randn(8).double()
    model = _model()
    with torch.no_grad():
        model.energy.weight.copy_((v_a @ w_a[:, :8])[None])
    regions = Regions(m[None, None], torch.ones(1, 1, dtype=torch.bool))
    for number in range(3):
        energy = torch.stack([v_a @ (w_a @ torch.cat([one, v[number]]) + b_a) for one in m])
        torch.testing.assert_close(energy.softmax(0), model.maps(regions, v)[0, number, 0])


def test_conditional_attention_depends_on_the_sentence() -> None:
    features, present, vectors = _seen()
    for attention, same in (("printed", True), ("conditional", False)):
        model = _model(attention=attention)
        maps = model.maps(model.regions(features, present), model.sentences(vectors))
        assert torch.allclose(maps[:, 0], maps[:, 1]) is same


@pytest.mark.parametrize("said", FORMS, ids=lambda said: "-".join(said.values()))
def test_one_view_alone_is_its_own_mean_and_the_other_is_never_read(said: dict[str, Any]) -> None:
    model = _model(**said)
    features, present, vectors = _seen()
    scores = model.scores(model.regions(features, present), model.sentences(vectors))
    features[1, 1] = 1e6
    assert torch.equal(scores, model.scores(model.regions(features, present), model.sentences(vectors)))
    assert torch.isfinite(scores).all()


@pytest.mark.parametrize("said", FORMS, ids=lambda said: "-".join(said.values()))
def test_gradients_reach_every_parameter_and_are_numbers(said: dict[str, Any]) -> None:
    model = _model(**said).train()
    features, present, vectors = _seen()
    scores = model.scores(model.regions(features, present), model.sentences(vectors))
    (scores * torch.linspace(-1, 1, 21).reshape(3, 7)).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().sum() > 0 or name == "shared.last.bias", name


def test_a_sentence_of_unknown_words_fits_every_study_alike_badly() -> None:
    """Its vector is zeros; with the bias of the linear map it still has a direction, and a finite score."""
    model = _model()
    features, present, _ = _seen()
    scores = model.scores(model.regions(features, present), model.sentences(torch.zeros(1, 5).double()))
    assert torch.isfinite(scores).all()
    assert (scores <= 0).all()


def test_the_loss_by_loops_and_absent_negatives_count_for_nothing() -> None:
    torch.manual_seed(3)
    scores = -torch.rand(4, 6)
    positive = torch.tensor([[0, 1], [2, 5], [3, 0]])
    sentences = torch.tensor([[2, 3], [4, -1], [-1, -1]])
    studies = torch.tensor([[1, 2], [-1, -1], [0, 1]])
    terms = []
    for row, (study, sentence) in enumerate(positive.tolist()):
        matched = float(scores[study, sentence])
        terms += [max(0, float(scores[study, k]) - matched + 0.2) for k in sentences[row].tolist() if k >= 0]
        terms += [max(0, float(scores[k, sentence]) - matched + 0.2) for k in studies[row].tolist() if k >= 0]
    assert float(triplet_loss(scores, positive, sentences, studies, 0.2)) == pytest.approx(sum(terms) / len(terms))
    nothing = torch.full((3, 2), -1)
    assert float(triplet_loss(scores, positive, nothing, nothing, 0.2)) == 0


def test_the_released_form_is_a_setting() -> None:
    settings = CVSESettings(**RELEASED)  # pyright: ignore[reportArgumentType]
    assert (settings.distance, settings.transform, settings.dropout) == ("plain", "shared", 0.2)
    assert (CVSESettings().distance, CVSESettings().transform, CVSESettings().attention) == (
        "squared",
        "linear",
        "printed",
    )


_has = st.lists(st.frozensets(st.integers(0, 9), max_size=10), min_size=1, max_size=6)


@settings(max_examples=150, deadline=None)
@given(_has, st.integers(0, 5))
def test_no_negative_is_of_the_studys_or_the_sentences_group(has: list[frozenset[int]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    group = np.concatenate([np.arange(10), rng.integers(0, 10, 20)])
    sets = [set(one) for one in has]
    drawn = Negatives(group).sentences(sets, 8, rng)
    for groups, row in zip(sets, drawn):
        if len(groups) == 10:
            assert (row == -1).all()
        else:
            assert not groups & set(group[row].tolist())
    wanted = rng.integers(0, 10, 12)
    others = Negatives.studies(wanted, sets, 8, rng)
    for asked, row in zip(wanted.tolist(), others):
        free = [place for place, groups in enumerate(sets) if asked not in groups]
        assert set(row.tolist()) <= set(free) if free else (row == -1).all()


def test_groups_are_drawn_alike_however_large_they_are() -> None:
    group = np.array([0] * 1000 + [1] + [2] * 10)
    drawn = Negatives(group).sentences([{2}] * 200, 8, np.random.default_rng(0))
    assert abs(float((group[drawn] == 1).mean()) - 0.5) < 0.05
    assert set(drawn[group[drawn] == 0].tolist()) > set(range(0, 1000, 999)) or len(set(drawn.ravel().tolist())) > 300

"""Contrastive Attention against a reference that is written out in loops, and what it must never do."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load, save
from torch import Tensor

from negatoscope.contrast.attention import AttentionSettings, ContrastiveAttention, DifferentiateAttention
from negatoscope.contrast.scores import FORMS
from negatoscope.errors import BadInput, WrongUse
from negatoscope.vision.sight import Sight, masked_mean

D, PATCHES = 6, 4


def sight_of(studies: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Sight:
    """Two views of 2 x 1 patches; the last study lacks its lateral."""
    draw = torch.Generator().manual_seed(seed)
    patches = torch.randn(studies, PATCHES, D, generator=draw, dtype=dtype)
    mask = torch.ones(studies, PATCHES, dtype=torch.bool)
    mask[-1, 2:] = False
    return Sight(patches, masked_mean(patches, mask), mask, (2, 2, 1))


def contrast_of(
    normals: int = 9, seed: int = 3, dtype: torch.dtype = torch.float64, **said: object
) -> ContrastiveAttention:
    torch.manual_seed(seed)
    module = ContrastiveAttention(AttentionSettings.model_validate({"heads": 3, **said}), D).to(dtype)
    with torch.no_grad():
        for p in module.parameters():
            p.mul_(3)  # so that attention is anything but even
    places = 1 if module.settings.level == "overall" else 1 + PATCHES
    there = torch.ones(normals, places, dtype=torch.bool)
    there[1::3, 3:] = False
    pool = torch.randn(normals, places, D) * there.unsqueeze(-1)
    module.hold(pool, there, {"ids": [f"normal-{i}" for i in range(normals)]})
    module.pool = module.pool.to(dtype)
    return module


# The paper's equations, one number at a time


def att(score: Callable[[Tensor, Tensor], float], x: list[Tensor], y: list[Tensor]) -> list[Tensor]:
    """(4), with any score of a pair."""
    out = []
    for row in x:
        M = [math.exp(score(row, other)) for other in y]
        out.append(sum((m / sum(M) * other for m, other in zip(M, y)), torch.zeros(D, dtype=torch.float64)))
    return out


def score_of(module: torch.nn.Module, form: str, head: int) -> Callable[[Tensor, Tensor], float]:
    w = {name: p[head].detach() for name, p in module.named_parameters()}

    def score(x: Tensor, y: Tensor) -> float:
        if form == "dot":
            return sum(((x @ w["Wx"])[i] * (y @ w["Wy"])[i]).item() for i in range(D)) / math.sqrt(D)
        if form == "bilinear":
            return sum((x[i] * w["W"][i, j] * y[j]).item() for i in range(D) for j in range(D))
        return sum((math.tanh((x @ w["Wx"] + y @ w["Wy"])[i]) * w["w"][i, 0]).item() for i in range(D))

    return score


def reference(module: ContrastiveAttention, v: Tensor, pool: list[Tensor]) -> tuple[Tensor, Tensor]:
    """v^c and v^d of one vector among the vectors it may be compared with."""
    form = module.settings.form
    closest = pool
    if module.aggregate is not None:
        closest = [att(score_of(module.aggregate.scores, form, h), [v], pool)[0] for h in range(module.settings.heads)]
    rows = att(score_of(module.differentiate.scores, form, 0), [v, *closest], [v, *closest])
    common = sum(rows, torch.zeros(D, dtype=torch.float64)) / len(rows)
    return common, v - common


def updated(module: ContrastiveAttention, x: Tensor, apart: Tensor) -> Tensor:
    return (torch.cat([x, apart]) @ module.update.weight.T).clamp_min(0)  # (9), (10)


SETTINGS = [
    {},
    *({"heads": n} for n in (1, 2, 4, 8, 10)),
    {"aggregate": False},
    {"form": "bilinear"},
    {"form": "additive"},
    {"aggregate": False, "form": "bilinear"},
    {"level": "patch"},
    {"level": "patch", "form": "bilinear"},
]
NAMES = [" ".join(f"{k}={v}" for k, v in said.items()) or "paper" for said in SETTINGS]
every_setting = pytest.mark.parametrize("said", SETTINGS, ids=NAMES)


@every_setting
def test_it_is_the_equations(said: dict[str, object]) -> None:
    module, sight = contrast_of(**said), sight_of(4)
    ids = ("a", "normal-4", "b", "normal-0")  # two of the studies are in the pool themselves
    got, found = module(sight, ids), module.compare(sight, ids)
    for b, id in enumerate(ids):
        others = [row for row in range(len(module.pool)) if f"normal-{row}" != id]
        common, apart = reference(module, sight.overall[b], [module.pool[row, 0] for row in others])
        torch.testing.assert_close(found.common[b, 0], common)
        torch.testing.assert_close(got.overall[b], updated(module, sight.overall[b], apart))
        for i in sight.mask[b].nonzero().flatten().tolist():
            if module.settings.level == "patch":
                seen = [module.pool[row, 1 + i] for row in others if module.there[row, 1 + i]]
                common, apart = reference(module, sight.patches[b, i], seen)
            torch.testing.assert_close(got.patches[b, i], updated(module, sight.patches[b, i], apart))


@every_setting
def test_a_study_is_never_compared_with_itself(said: dict[str, object]) -> None:
    """Whatever stands in its own row, nothing changes; and its own share is nought."""
    module, sight = contrast_of(**said), sight_of(3)
    ids = ("normal-2", "x", "y")
    before = module(sight, ids)
    module.pool[2] = 1e3 * torch.randn(module.pool.shape[1:])
    after = module(sight, ids)
    assert torch.equal(before.overall[0], after.overall[0])
    assert torch.equal(before.patches[0], after.patches[0])
    assert not torch.allclose(before.overall[1], after.overall[1])
    shares = module.compare(sight, ids).shares
    assert (shares[0, ..., 2] == 0).all()
    if module.aggregate is not None:
        torch.testing.assert_close(shares[1].sum(-1), torch.ones_like(shares[1].sum(-1)))


@pytest.mark.parametrize("said", SETTINGS[:1] + SETTINGS[6:], ids=NAMES[:1] + NAMES[6:])
def test_gradients(said: dict[str, object]) -> None:
    module, sight = contrast_of(5, **said), sight_of(2)

    def of(patches: Tensor, overall: Tensor, *weights: Tensor) -> tuple[Tensor, Tensor]:
        named = dict(zip((name for name, _ in module.named_parameters()), weights))
        out = torch.func.functional_call(module, named, (sight.with_features(patches, overall), ("normal-1", "x")))
        return out.patches[sight.mask], out.overall

    inputs = [sight.patches, sight.overall, *(p.detach() for p in module.parameters())]
    assert torch.autograd.gradcheck(of, [t.clone().requires_grad_() for t in inputs], eps=1e-6, atol=1e-5)


@every_setting
def test_a_batch_is_its_studies(said: dict[str, object]) -> None:
    module, sight = contrast_of(**said), sight_of(4)
    ids = ("a", "b", "normal-3", "c")
    together = module(sight, ids)
    for b in range(4):
        one = slice(b, b + 1)
        alone = module(Sight(sight.patches[one], sight.overall[one], sight.mask[one], sight.grid), ids[one])
        torch.testing.assert_close(alone.overall, together.overall[one])
        torch.testing.assert_close(alone.patches[sight.mask[one]], together.patches[one][sight.mask[one]])


@every_setting
def test_saved_and_loaded_with_its_pool(said: dict[str, object]) -> None:
    """Into a module whose own pool is empty, by its state dict alone."""
    module = contrast_of(**said)
    other = ContrastiveAttention(module.settings, D).double()
    other.load_state_dict(load(save({name: t.contiguous() for name, t in module.state_dict().items()})))
    sight = sight_of(3)
    assert other.about_pool == module.about_pool
    assert torch.equal(other(sight, ("normal-1", "a", "b")).patches, module(sight, ("normal-1", "a", "b")).patches)


def test_differentiate_alone_holds_where_scores_are_large() -> None:
    """Scores of some hundreds: a plain exp would overflow."""
    torch.manual_seed(0)
    layer = DifferentiateAttention(D).double()
    v, pool = 30 * torch.randn(3, D, dtype=torch.float64), 30 * torch.randn(7, D, dtype=torch.float64)
    allowed = torch.ones(3, 7, dtype=torch.bool)
    allowed[1, 4] = False
    common, _ = layer.alone(v, pool, allowed)
    for b in range(3):
        rows = torch.cat([v[b : b + 1], pool[allowed[b]]])
        M = layer.scores(rows[None], rows[None])[0, 0]
        assert M.abs().max() > 200
        torch.testing.assert_close(common[b], (M.softmax(-1) @ rows).mean(0))


@given(
    heads=st.integers(1, 4),
    sets=st.integers(1, 3),
    x=st.integers(1, 4),
    y=st.integers(1, 5),
    form=st.sampled_from(list(FORMS)),
)
@settings(max_examples=30, deadline=None)
def test_scores_of_many_sets_are_those_of_each(heads: int, sets: int, x: int, y: int, form: str) -> None:
    torch.manual_seed(heads + sets + x + y)
    scores = FORMS[form](D, heads).double()  # pyright: ignore[reportArgumentType]
    xs, ys = torch.randn(sets, x, D, dtype=torch.float64), torch.randn(sets, y, D, dtype=torch.float64)
    M = scores(xs, ys)
    assert M.shape == (sets, heads, x, y)
    for g in range(sets):
        for h in range(heads):
            one = score_of(scores, form, h)
            assert M[g, h, 0, y - 1].item() == pytest.approx(one(xs[g, 0], ys[g, y - 1]), abs=1e-9)


def test_the_same_matrix_updates_overall_and_patches() -> None:
    module, sight = contrast_of(), sight_of(2)
    sight = sight.with_features(sight.overall.unsqueeze(1).expand(-1, PATCHES, -1), sight.overall)
    out = module(sight, ("a", "b"))
    torch.testing.assert_close(out.patches, out.overall.unsqueeze(1).expand(-1, PATCHES, -1))
    assert (out.overall >= 0).all()
    assert out.mask is sight.mask


def test_nothing_flows_into_the_pool() -> None:
    module = contrast_of()
    assert not module.pool.requires_grad
    assert {name for name, _ in module.named_parameters()} == {
        "aggregate.scores.Wx",
        "aggregate.scores.Wy",
        "differentiate.scores.Wx",
        "differentiate.scores.Wy",
        "update.weight",
    }


def test_bf16_is_near() -> None:
    for said in SETTINGS:
        module, sight = contrast_of(dtype=torch.float32, **said), sight_of(4, dtype=torch.float32)
        exact = module(sight, "abcd")
        with torch.autocast("cpu", torch.bfloat16):
            rough = module(sight, "abcd")
        assert (exact.patches - rough.patches.float())[sight.mask].abs().max() < 0.15 * exact.patches.abs().max(), said


def test_a_host_whose_width_does_not_fit() -> None:
    module, sight = contrast_of(), sight_of(2)
    with pytest.raises(WrongUse, match=r"contrastive attention is 6 wide, the features of its host 5"):
        module(sight.with_features(sight.patches[..., :5], sight.overall[..., :5]), ("a", "b"))
    with pytest.raises(WrongUse, match=r"is 6 wide, the features of its host 1 and 6"):
        module(sight.with_features(sight.patches, sight.overall[..., :1]), ("a", "b"))  # would broadcast
    with pytest.raises(WrongUse, match=r"a pool of shape \(3, 1, 5\) for 3 studies, 6 wide"):
        module.hold(torch.zeros(3, 1, 5), torch.ones(3, 1, dtype=torch.bool), {"ids": ["a", "b", "c"]})


def test_an_empty_pool() -> None:
    with pytest.raises(BadInput, match="normality pool is empty"):
        ContrastiveAttention(AttentionSettings(), D)(sight_of(1, dtype=torch.float32), ("a",))


def test_patches_that_the_pool_does_not_have() -> None:
    module, sight = contrast_of(level="patch"), sight_of(2)
    fewer = Sight(sight.patches[:, :2], sight.overall, sight.mask[:, :2], (1, 2, 1))
    with pytest.raises(BadInput, match="2 patches a study, 4 in the normality pool"):
        module(fewer, ("a", "b"))
    module.there[:, 3:] = False
    with pytest.raises(BadInput, match="study a: has a view that no normal study of the pool has"):
        module(sight, ("a", "b"))
    frontal_alone = Sight(sight.patches[1:], sight.overall[1:], sight.mask[1:], sight.grid)
    assert torch.isfinite(module(frontal_alone, ("b",)).patches).all()


@pytest.mark.parametrize(
    "said",
    [
        {"aggregate": False, "level": "patch"},
        {"aggregate": False, "form": "additive"},
        {"level": "patch", "form": "additive"},
        {"heads": 0},
        {"head": 2},
    ],
)
def test_settings_that_cannot_be(said: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        AttentionSettings.model_validate(said)

"""ITHN and MoCHi against their equations written out in loops, their slopes, the released variants, the limits."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from negatoscope.contrast.negatives import (
    HardNegatives,
    NegativesSettings,
    clip_loss,
    image_distance,
    mix,
    project,
    project_as_released,
    third_matrix,
)
from negatoscope.contrast.objective import BACKBONE, BESIDE
from negatoscope.errors import WrongUse
from tests.contrast import plain
from tests.contrast.readings import WIDTHS, mean, padded, reading_of

EPOCH = 30


def unit(seed: int, rows: int = 6, width: int = 5) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    return F.normalize(torch.randn(rows, width, generator=draw, dtype=torch.float64))


def hard(**settings: object) -> HardNegatives:
    torch.manual_seed(5)
    loss = HardNegatives(NegativesSettings.model_validate({"width": 6, **settings}))
    loss.meet(WIDTHS)
    loss.begin_epoch(EPOCH)
    return loss


def test_the_point_on_the_line() -> None:
    """Eq. 6: on the line through u- and u, and z - p at a right angle to it."""
    z, u, u_ = unit(0), unit(1), unit(2)
    p, line = project(z, u, u_), u - u_
    assert torch.allclose(((z - p) * line).sum(1), torch.zeros(6, dtype=torch.float64), atol=1e-12)
    along = ((p - u_) * line).sum(1, keepdim=True) / line.square().sum(1, keepdim=True)
    torch.testing.assert_close(p, u_ + along * line)
    for lam in (0.0, 0.3, 1.0):
        wanted = torch.tensor(plain.ithn(z.tolist(), u.tolist(), u_.tolist(), lam), dtype=torch.float64)
        torch.testing.assert_close(mix(u_, p, lam), wanted)


def test_a_batch_gives_what_its_samples_give_alone() -> None:
    z, u, u_ = unit(0), unit(1), unit(2)
    alone = torch.cat([project(z[i : i + 1], u[i : i + 1], u_[i : i + 1]) for i in range(6)])
    torch.testing.assert_close(project(z, u, u_), alone, rtol=0, atol=0)
    mixed = torch.cat([project_as_released(z[i : i + 1], u[i : i + 1], u_[i : i + 1]) for i in range(6)])
    assert not torch.allclose(project_as_released(z, u, u_), mixed), "the released code's does mix them"


def test_two_reports_that_are_one_point_have_no_line() -> None:
    z, u = unit(0).requires_grad_(), unit(1).requires_grad_()
    p = project(z, u, u.detach())
    torch.testing.assert_close(p, u)
    p.sum().backward()
    assert u.grad is not None
    assert torch.isfinite(u.grad).all()


def test_the_released_projection() -> None:
    z, u, u_ = unit(0), unit(1), unit(2)
    wanted = torch.tensor(plain.released_ithn(z.tolist(), u.tolist(), u_.tolist(), 0.4), dtype=torch.float64)
    torch.testing.assert_close(mix(u_, project_as_released(z, u, u_), 0.4), wanted)


def test_mochi() -> None:
    u, u_ = unit(1), unit(2)
    wanted = torch.tensor(plain.mochi(u_.tolist(), u.tolist(), 0.3), dtype=torch.float64)
    torch.testing.assert_close(mix(u_, u, 0.3), wanted)


@pytest.mark.parametrize("form", ["paper", "released"])
def test_the_third_matrix(form: str) -> None:
    """Eq. 10: the diagonal negated, the rest kept; h need not be of unit length."""
    z, h = unit(0), 2.5 * unit(3)
    wanted = plain.s3(z.tolist(), h.tolist(), released=form == "released")
    torch.testing.assert_close(third_matrix(z, h, form), torch.tensor(wanted, dtype=torch.float64))  # pyright: ignore[reportArgumentType]


def test_clip() -> None:
    similar = 9 * unit(0, 6, 6)
    assert clip_loss(similar).item() == pytest.approx(plain.clip(similar.tolist()), abs=1e-12)
    assert clip_loss(similar).item() == pytest.approx(clip_loss(similar.T).item(), abs=1e-12)


def test_image_distance() -> None:
    z, z_ = 3 * unit(0), unit(1)
    cosines = [plain.cosine(a, b) for a, b in zip(z.tolist(), z_.tolist())]
    assert min(cosines) < 0 < max(cosines)
    assert image_distance(z, z_).item() == pytest.approx(sum(cosines) / 6)
    assert image_distance(z, z_, "released").item() == pytest.approx(sum(map(abs, cosines)) / 6)


RELEASED = dict.fromkeys(("projection", "third", "apart", "temperatures", "schedule"), "released")
VARIANTS = [
    {},
    {"way": "mochi"},
    {"way": "prior"},
    {"way": "none"},
    {"alpha": 0.1},
    {"beta": 0.5, "gamma": 0.0},
    {"tau": 0.5},
    {"projection": "released"},
    {"third": "released"},
    {"apart": "released"},
    {"temperatures": "released"},
    {"schedule": "falling"},
    {"schedule": "released"},
    {"way": "mochi", "projection": "released", "third": "released", "apart": "released", "schedule": "falling"},
    RELEASED,
]


@pytest.mark.parametrize("settings", VARIANTS, ids=str)
def test_the_whole_loss(settings: dict[str, object]) -> None:
    """Eq. 1 to 13 but for L_CE, from two Readings, as a paper's reader would program them."""
    loss = hard(**settings)
    with torch.no_grad():
        loss.scale += torch.tensor([0.1, -0.2])[: len(loss.scale)]  # as if they had been learned
    (ours, batch), (theirs, _) = reading_of(0), reading_of(1, (3, 5, 2, 4))
    found = loss(ours, replace(batch, extra={BESIDE: theirs}))
    said = loss.settings
    z, z_ = (_through(loss.of_image, mean(one.sight.patches, one.sight.mask)) for one in (ours, theirs))
    u, u_ = (_through(loss.of_report, mean(one.hidden, one.mask)) for one in (ours, theirs))
    tau = [math.exp(-scale) for scale in loss.scale.tolist()]
    if said.way == "none":
        alone = plain.clip([[plain.cosine(x, y) / tau[0] for y in u] for x in z])
        assert found.keys() == {"contrast"}
        assert found["contrast"].item() == pytest.approx(said.beta * alone, rel=1e-5)
        return
    lam = math.exp(-said.alpha * (EPOCH + 1 if said.schedule == "released" else EPOCH))
    lam = lam if said.schedule == "falling" else 1 - lam
    assert loss.lam == pytest.approx(lam)
    line = plain.ithn if said.projection == "paper" else plain.released_ithn
    h = {"ithn": line(z, u, u_, lam), "mochi": plain.mochi(u_, u, lam), "prior": u_}[said.way]
    third = plain.s3(z, h, released=said.third == "released")
    contrast = plain.clip(plain.similar(z, u, z_, u_, third, tau[0], tau[-1]))
    cosines = [plain.cosine(a, b) for a, b in zip(z, z_)]
    apart = sum(map(abs, cosines) if said.apart == "released" else cosines) / len(z)
    assert found["contrast"].item() == pytest.approx(said.beta * contrast, rel=2e-5)
    assert found["apart"].item() == pytest.approx(said.gamma * apart, rel=2e-5, abs=1e-7)


def test_lam_rises_from_the_prior_negative() -> None:
    """lam(0) = 0: in the first epoch ithn and mochi push away the neighbour itself, as `prior` always does."""
    (ours, batch), (theirs, _) = reading_of(0), reading_of(1, (3, 5, 2, 4))
    batch = replace(batch, extra={BESIDE: theirs})
    first, later = {}, {}
    for way in ("ithn", "mochi", "prior"):
        loss = hard(way=way)
        loss.begin_epoch(0)
        assert loss.lam == 0
        first[way] = loss(ours, batch)["contrast"].item()
        loss.begin_epoch(100)
        assert loss.lam == pytest.approx(1 - math.exp(-1))
        later[way] = loss(ours, batch)["contrast"].item()
    assert len(set(first.values())) == 1
    assert first["prior"] == later["prior"]
    assert len(set(later.values())) == 3
    for schedule, wanted in (("falling", 1.0), ("released", 1 - math.exp(-0.01))):
        loss = hard(schedule=schedule)
        loss.begin_epoch(0)
        assert loss.lam == pytest.approx(wanted)


@pytest.mark.parametrize("form", ["paper", "released"])
def test_gradients(form: str) -> None:
    """Of the whole way from z, u, z-, u- to L_CP and L_CS, the projection and the third matrix in it."""

    def loss(z: Tensor, u: Tensor, z_: Tensor, u_: Tensor, scale: Tensor) -> Tensor:
        z, u, z_, u_ = (F.normalize(one) for one in (z, u, z_, u_))
        on_line = project if form == "paper" else project_as_released
        h = mix(u_, on_line(z, u, u_), 0.3)
        third = third_matrix(z, h, form)  # pyright: ignore[reportArgumentType]
        similar = scale.exp() * (z @ u.T + z_ @ u_.T + third) / 3
        return clip_loss(similar) + image_distance(z, z_, form)  # pyright: ignore[reportArgumentType]

    given = [torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(4)]
    assert torch.autograd.gradcheck(loss, (*given, torch.tensor(0.7, dtype=torch.float64, requires_grad=True)))


@pytest.mark.parametrize("way", ["ithn", "mochi", "prior", "none"])
def test_padding_changes_nothing(way: str) -> None:
    loss, (ours, batch), (theirs, other) = hard(way=way), reading_of(0), reading_of(1, (3, 5, 2, 4))
    short = loss(ours, replace(batch, extra={BESIDE: theirs}))
    more, _ = padded(ours, batch)
    much, _ = padded(theirs, other, words=1, patches=9)
    for name, value in loss(more, replace(batch, extra={BESIDE: much})).items():
        torch.testing.assert_close(value, short[name])


def test_the_temperature_and_the_heads_learn() -> None:
    loss, (ours, batch), (theirs, _) = hard(), reading_of(0), reading_of(1, (3, 5, 2, 4))
    assert loss.scale.exp().item() == pytest.approx(1 / 0.07)
    sum(loss(ours, replace(batch, extra={BESIDE: theirs})).values()).backward()
    for name, parameter in loss.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name
    assert ours.hidden.grad is not None
    assert theirs.hidden.grad is not None
    assert ours.hidden.grad[ours.mask].any()
    assert theirs.hidden.grad[theirs.mask].any()
    assert not ours.hidden.grad[~ours.mask].any()


def test_what_z_is_made_of() -> None:
    """The backbone's features where it learns, the encoder's output where nothing but the encoder could."""
    said = {name: NegativesSettings(image=name) for name in ("auto", "backbone", "encoder")}  # pyright: ignore[reportArgumentType]
    for learns, wanted in ((True, "backbone"), (False, "encoder")):
        loss = HardNegatives(said["auto"])
        loss.meet(replace(WIDTHS, learns=learns))
        assert loss.image == wanted
        assert isinstance(loss.of_image, nn.Linear)
        assert loss.of_image.in_features == (WIDTHS.backbone if learns else WIDTHS.encoder)
        assert loss.of_image.bias is None
    loss = hard(image="backbone")
    (ours, batch), (theirs, _) = reading_of(0), reading_of(1, (3, 5, 2, 4))
    with pytest.raises(WrongUse, match="features were not kept"):
        loss(ours, replace(batch, extra={BESIDE: theirs}))
    kept = [replace(one, extra={BACKBONE: torch.randn(4, WIDTHS.backbone)}) for one in (ours, theirs)]
    assert torch.isfinite(loss(kept[0], replace(batch, extra={BESIDE: kept[1]}))["contrast"])


def test_wrong_use() -> None:
    ours, batch = reading_of(0)
    with pytest.raises(WrongUse, match="neighbours in the batch"):
        hard()(ours, batch)


def test_how_many_neighbours() -> None:
    assert NegativesSettings().neighbours == 1
    assert NegativesSettings(way="mochi").neighbours == 5
    assert NegativesSettings(way="mochi", among=3).neighbours == 3


def _through(head: nn.Module, rows: list[list[float]]) -> list[list[float]]:
    """A linear layer without bias, then unit length."""
    assert isinstance(head, nn.Linear)
    out = [[plain.dot(row, one) for one in head.weight.double().tolist()] for row in rows]
    return [[value / math.sqrt(plain.dot(row, row)) for value in row] for row in out]

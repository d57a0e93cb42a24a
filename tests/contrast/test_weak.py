"""WCL against its equations written out in loops, its slopes, its readings, its limits."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from negatoscope.contrast.weak import WeakContrast, WeakSettings, imposters, weak_contrast
from negatoscope.errors import WrongUse
from negatoscope.models.base import targets
from tests.contrast import plain
from tests.contrast.readings import LENGTHS, OUT, WIDTHS, mean, padded, reading_of

CLUSTERS = torch.tensor([0, 1, 0, 2, 1, 0])


def vectors(seed: int, rows: int = 6, width: int = 5) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(rows, width, generator=draw, dtype=torch.float64)


def weak(**settings: object) -> WeakContrast:
    torch.manual_seed(5)
    loss = WeakContrast(WeakSettings.model_validate({"width": 6, **settings}))
    loss.meet(WIDTHS)
    return loss


@pytest.mark.parametrize("tau", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("reading", ["released", "printed"])
def test_the_equation(tau: float, alpha: float, reading: str) -> None:
    x, y, false = F.normalize(vectors(0)), F.normalize(vectors(1)), F.normalize(vectors(2))
    own = alpha if reading == "printed" else 1.0
    for imposter in (None, false):
        found = weak_contrast(x, y, CLUSTERS, tau, alpha, reading, imposter)  # pyright: ignore[reportArgumentType]
        told = plain.wcl(
            x.tolist(),
            y.tolist(),
            CLUSTERS.tolist(),
            tau,
            alpha,
            own,
            imposter.tolist() if imposter is not None else (),
        )
        assert found.item() == pytest.approx(told, abs=1e-12)


def test_alpha_0_leaves_out_its_own_cluster() -> None:
    x, y = F.normalize(vectors(0)), F.normalize(vectors(1))
    found = weak_contrast(x, y, CLUSTERS, 0.5, 0.0)
    assert found.item() == pytest.approx(plain.wcl(x.tolist(), y.tolist(), CLUSTERS.tolist(), 0.5, 0.0, 1.0))


@pytest.mark.parametrize("reading", ["released", "printed"])
def test_alpha_1_is_infonce(reading: str) -> None:
    x, y = F.normalize(vectors(0)), F.normalize(vectors(1))
    found = weak_contrast(x, y, CLUSTERS, 0.3, 1.0, reading)  # pyright: ignore[reportArgumentType]
    assert found.item() == pytest.approx(plain.info_nce(x.tolist(), y.tolist(), 0.3), abs=1e-12)
    assert found.item() == pytest.approx(F.cross_entropy(x @ y.T / 0.3, torch.arange(6)).item(), abs=1e-12)


def test_a_report_of_the_same_cluster_pushes_alpha_times_as_hard() -> None:
    """What the two readings differ by, and what alpha does, in the slopes: d L / d s_ij."""
    x, y = F.normalize(vectors(0)), F.normalize(vectors(1))
    slopes = {}
    for alpha in (1.0, 2.0):
        s = (x @ y.T).requires_grad_()
        weak_contrast(torch.eye(6, dtype=torch.float64), s.T, CLUSTERS, 1.0, alpha).backward()
        assert s.grad is not None
        slopes[alpha] = s.grad
    ratio = slopes[2.0] / slopes[1.0]
    same = (CLUSTERS[:, None] == CLUSTERS) & ~torch.eye(6, dtype=torch.bool)
    for row in range(6):
        if same[row].any():  # beside those of other clusters, in the same row
            other = CLUSTERS[row] != CLUSTERS
            torch.testing.assert_close(ratio[row][same[row]], 2 * ratio[row][other][: same[row].sum()])


@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("reading", ["released", "printed"])
def test_gradients(alpha: float, reading: str) -> None:
    def loss(x: Tensor, y: Tensor, false: Tensor) -> Tensor:
        held = (F.normalize(x), F.normalize(y), F.normalize(false))
        with_one = weak_contrast(held[0], held[1], CLUSTERS, 0.4, alpha, reading, held[2])  # pyright: ignore[reportArgumentType]
        return with_one + weak_contrast(held[0], held[1], CLUSTERS, 0.4, alpha, reading)  # pyright: ignore[reportArgumentType]

    given = tuple(vectors(seed).requires_grad_() for seed in range(3))
    assert torch.autograd.gradcheck(loss, given)


def test_an_image_with_nothing_to_be_pushed_from_counts_0() -> None:
    """As printed with alpha = 0, a batch of one cluster has nothing below the line."""
    x, y = vectors(0).requires_grad_(), vectors(1).requires_grad_()
    loss = weak_contrast(F.normalize(x), F.normalize(y), torch.zeros(6), 0.5, 0.0, "printed")
    loss.backward()
    assert loss.item() == 0
    assert x.grad is not None
    assert not x.grad.any()
    mixed = torch.tensor([0, 0, 0, 0, 0, 1])  # the last alone is pushed from all, the others from the last
    assert torch.isfinite(weak_contrast(F.normalize(x), F.normalize(y), mixed, 0.5, 0.0, "printed"))


def test_from_a_reading() -> None:
    """Means over real positions, two layers each, unit length, eq. 4: in loops over what the heads' weights say."""
    loss, (reading, batch) = weak(alpha=2.0, tau=0.5), reading_of()
    x = _through(loss.phi_x, mean(reading.sight.patches, reading.sight.mask))
    y = _through(loss.phi_y, mean(reading.hidden, reading.mask))
    wanted = plain.wcl(x, y, batch.extra["clusters"].tolist(), 0.5, 2.0, 1.0)
    assert loss(reading, batch)["wcl"].item() == pytest.approx(wanted, rel=1e-5)


def test_padding_changes_nothing() -> None:
    for adversarial in (0.0, 0.5):
        loss, (reading, batch) = weak(adversarial=adversarial), reading_of()
        long = padded(reading, batch)
        torch.testing.assert_close(loss(*long)["wcl"], loss(reading, batch)["wcl"])


def test_it_starts_when_it_is_told_to() -> None:
    """Before, it is 0, and yet each of its parameters takes part, which DDP counts on."""
    loss, (reading, batch) = weak(start=2), reading_of()
    for epoch, silent in ((0, True), (1, True), (2, False)):
        loss.begin_epoch(epoch)
        loss.zero_grad()
        value = loss(reading, batch)["wcl"]
        value.backward(retain_graph=True)
        assert (value.item() == 0) is silent
        assert all(p.grad is not None and p.grad.any() != silent for p in loss.phi_x.parameters() if p.dim() > 1)


def test_an_imposter_is_less_likely_and_near() -> None:
    """H' = H - epsilon g / |g|: of each study by itself as far from H as epsilon, and told with less probability."""
    reading, batch = reading_of()
    near = imposters(reading, batch, 0.1)
    moved = (near - reading.hidden).detach()
    torch.testing.assert_close(moved.flatten(1).norm(dim=1), torch.full((len(LENGTHS),), 0.1))
    assert not moved[~reading.mask].any()

    def told(hidden: Tensor) -> Tensor:
        log_p = (hidden @ OUT).log_softmax(-1).gather(-1, targets(batch).unsqueeze(-1)).squeeze(-1)
        return (log_p * reading.mask).sum(1)

    assert (told(near.detach()) < told(reading.hidden.detach())).all()


def test_an_imposter_is_one_negative_more() -> None:
    reading, batch = reading_of()
    loss = weak(adversarial=0.3, alpha=1.0, tau=0.5)
    x = _through(loss.phi_x, mean(reading.sight.patches, reading.sight.mask))
    y = _through(loss.phi_y, mean(reading.hidden, reading.mask))
    false = _through(loss.phi_y, mean(imposters(reading, batch, 0.3), reading.mask))
    wanted = plain.wcl(x, y, batch.extra["clusters"].tolist(), 0.5, 1.0, 1.0, false)
    assert loss(reading, batch)["wcl"].item() == pytest.approx(wanted, rel=1e-5)


def test_wrong_use() -> None:
    loss, (reading, batch) = weak(), reading_of()
    with pytest.raises(WrongUse, match="clusters of reports"):
        loss(reading, type(batch)(batch.ids, batch.present))


def _through(head: torch.nn.Module, rows: list[list[float]]) -> list[list[float]]:
    """Linear, ReLU, linear, in loops. The length does not matter to a cosine."""
    first, _, second = head.children()
    for layer in (first, second):
        weight, bias = layer.weight.double().tolist(), layer.bias.double().tolist()  # pyright: ignore[reportAttributeAccessIssue]
        rows = [[plain.dot(row, out) + b for out, b in zip(weight, bias, strict=True)] for row in rows]
        if layer is first:
            rows = [[max(0.0, value) for value in row] for row in rows]
    return rows

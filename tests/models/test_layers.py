"""The norm of the transformer reporters is that of their papers' code, wherever a standard deviation may lie; their
products, attention, dropout and memory are the plain ones, by whichever way they are computed."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from negatoscope.models.layers import Attention, dropout, standardise
from negatoscope.models.linear import ONEDNN, Linear
from negatoscope.models.r2gen import RelationalMemory


def written_out(x: Tensor, eps: float = 1e-6) -> Tensor:
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps)


def test_the_norm_is_the_formula() -> None:
    """eps beside the standard deviation, not under the root: at a spread of 1e-4 that is a hundredth."""
    torch.manual_seed(0)
    spread = torch.tensor([1e-6, 1e-5, 1e-4, 1e-2, 1.0, 100.0], dtype=torch.float64).unsqueeze(1)
    x = (torch.randn(6, 16, dtype=torch.float64) * spread + 0.3 * spread).requires_grad_()
    torch.testing.assert_close(standardise(x), written_out(x), rtol=1e-6, atol=1e-9)
    weight = torch.randn(6, 16, dtype=torch.float64)
    ours, theirs = (torch.autograd.grad((f(x) * weight).sum(), x)[0] for f in (standardise, written_out))
    for scale, one, other in zip(spread.flatten().tolist(), ours, theirs):
        assert (one - other).abs().max() <= 3e-6 / scale * other.abs().max(), scale


def test_nothing_to_tell_apart_is_nought() -> None:
    assert torch.equal(standardise(torch.zeros(2, 8)), torch.zeros(2, 8))
    assert torch.isfinite(standardise(torch.full((2, 8), 3.3))).all()
    assert torch.isfinite(standardise(torch.zeros(2, 8, dtype=torch.bfloat16))).all()


@pytest.mark.parametrize("rows", [(), (1,), (7,), (0,), (2, 3), (2, 3, 5)])
@pytest.mark.parametrize("bias", [True, False])
def test_a_product_is_the_product(rows: tuple[int, ...], bias: bool) -> None:
    """So are its gradients, and in bf16 it stays bf16."""
    torch.manual_seed(0)
    layer, exact = Linear(33, 20, bias=bias), nn.Linear(33, 20, bias=bias).double()
    exact.load_state_dict(layer.state_dict())
    x = torch.randn(33, *rows).movedim(0, -1).requires_grad_()  # as it may lie in memory
    slope = torch.randn(20, *rows).movedim(0, -1)
    said, told = layer(x), exact(x.double())
    torch.testing.assert_close(said, told.float(), rtol=1e-5, atol=1e-6)
    ours = torch.autograd.grad(said, (x, *layer.parameters()), slope)
    for one, other in zip(ours, torch.autograd.grad(told, (x, *exact.parameters()), slope.double())):
        torch.testing.assert_close(one, other.float(), rtol=1e-5, atol=1e-5)
    for around in (torch.inference_mode, torch.no_grad):
        with around():
            assert torch.equal(layer(x), said)
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16
    with torch.inference_mode():
        assert layer.bfloat16()(x.bfloat16()).dtype == torch.bfloat16


@pytest.mark.skipif(not ONEDNN, reason="a PyTorch without oneDNN or without MKL")
@pytest.mark.parametrize("apart", [False, True])
def test_no_product_takes_onednns_slow_way(apart: bool, capfd: pytest.CaptureFixture[str]) -> None:
    """There is one for tensors that lie as no kernel likes them, a thousand times as slow."""
    layer = Linear(64, 48)
    x = torch.randn(32, 128 if apart else 64)[:, :64].requires_grad_()
    slope = torch.randn(32, 96 if apart else 48)[:, :48]
    with torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON):
        layer(x).backward(slope)
    said = [line.split(",") for line in capfd.readouterr().out.splitlines() if "primitive,exec" in line]
    kinds = [line[line.index("inner_product") + 1] for line in said if "inner_product" in line]
    assert len(kinds) == 3, "it, and two products on the way back"
    assert not any(kind.startswith("ref") for kind in kinds), kinds


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_what_is_dropped_is_dropped_by_chance(p: float) -> None:
    torch.manual_seed(0)
    said = dropout(torch.ones(400, 1001), p, True)
    assert said.unique().tolist() == pytest.approx([0.0, 1 / (1 - p)])
    dropped = (said == 0).double()
    spread = (p * (1 - p) / dropped.numel()) ** 0.5
    assert abs(dropped.mean().item() - p) < 4 * spread
    for apart in (1, 2, 3, 4, 1001):  # four neighbours come of one number
        flat = dropped.flatten() - p
        assert abs((flat[apart:] * flat[:-apart]).mean().item()) < 4 * spread * p**0.5
    torch.manual_seed(0)
    assert torch.equal(dropout(torch.ones(400, 1001), p, True), said)
    x = torch.randn(5, 7)
    assert dropout(x, p, False) is x


def test_attention_while_learning_is_attention() -> None:
    """Without dropout it says what it says while writing, causal or masked."""
    torch.manual_seed(0)
    attention, x = Attention(16, 4, dropout=0.0), torch.randn(3, 6, 16)
    mask = torch.rand(3, 1, 1, 6) < 0.7
    mask[..., 0] = True
    for said in ({"causal": True}, {"mask": mask}, {}):
        kv = attention.keys_values(x)
        torch.testing.assert_close(attention.train()(x, kv, **said), attention.eval()(x, kv, **said), atol=1e-5, rtol=0)


def test_the_memorys_loop_learns_what_a_plain_loop_learns() -> None:
    torch.manual_seed(0)
    memory = RelationalMemory(3, 16, 2).double().eval()
    y = torch.randn(4, 7, 16, dtype=torch.float64)
    weight = torch.randn(4, 7, 3, 16, dtype=torch.float64)

    def word_by_word(y: Tensor) -> Tensor:
        steps = [memory.start(4, y)]
        for t in range(7):
            steps.append(memory(y[:, t : t + 1], steps[-1])[:, 0])
        return torch.stack(steps[1:], 1)

    slopes = []
    for read in (lambda y: memory(y, memory.start(4, y)), word_by_word):
        memory.zero_grad()
        leaf = y.clone().requires_grad_()
        (read(leaf) * weight).sum().backward()
        slopes.append([leaf.grad, *(p.grad for p in memory.parameters())])
    for ours, plain in zip(*slopes):
        torch.testing.assert_close(ours, plain)

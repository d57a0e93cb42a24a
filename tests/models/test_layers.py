"""The norm of the transformer reporters is that of their papers' code, wherever a standard deviation may lie."""

from __future__ import annotations

import torch
from torch import Tensor

from negatoscope.models.layers import standardise


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

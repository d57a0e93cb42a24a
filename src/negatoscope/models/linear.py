"""Linear layers as they are quick on a CPU: through oneDNN, and with one weight gradient for all turns of a loop."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F


class Linear(nn.Linear):
    """input W^T + b, in float32 on a CPU through oneDNN.

    PyTorch hands such products to MKL, which on other processors than Intel's leaves AVX-512 alone. oneDNN, which comes
    with PyTorch too, takes it wherever it is: about twice as fast there, in float32 all the same.
    """

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """F.linear."""
    if not _fits_onednn(x, weight):
        return F.linear(x, weight, bias)
    if not torch.is_grad_enabled():
        return _product(x, weight, bias)
    told: Any = _Product.apply(x, weight, bias)
    return told


def _fits_onednn(x: Tensor, weight: Tensor) -> bool:
    kinds = x.device.type, x.dtype, weight.dtype
    plain = kinds == ("cpu", torch.float32, torch.float32) and x.dim() > 1 and x.numel() > 0
    return ONEDNN and plain and not torch.is_autocast_enabled("cpu")


ONEDNN = (
    torch.backends.mkl.is_available()
    and torch.backends.mkldnn.is_available()
    and hasattr(torch.ops.mkldnn, "_linear_pointwise")
)
"""The operator that PyTorch's own compiler writes for a product, and that takes tensors as they are."""


def _product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if not weight.t().is_contiguous():  # rows apart from one another send oneDNN to its slow reference
        weight = weight.contiguous()
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


class _Product(torch.autograd.Function):
    """x (..., in), weight (out, in) -> (..., out). The way back is two such products more."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _product(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        (x, weight), slope = ctx.saved_tensors, slopes[0]
        rows = slope.flatten(0, -2)
        needs = ctx.needs_input_grad
        return (
            _product(slope, weight.t()) if needs[0] else None,
            _product(rows.t(), x.flatten(0, -2).t()) if needs[1] else None,
            rows.sum(0) if needs[2] else None,
        )


def autocast_dtype(like: Tensor) -> torch.dtype:
    """What autocast would make of it: cast once, where several products read the same."""
    kind = like.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else like.dtype


class _Biases(torch.autograd.Function):
    """A layer's bias, once for each turn of a loop. What the turns have to say to the layer's weight comes back this
    way, all at once: one product over all turns instead of one a turn, and of more digits in bf16."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor, read: list[Tensor], turns: int, rows: int) -> Tensor:
        ctx.learned, ctx.read = weight.dtype, read  # what the layer is given at each turn (rows, in): the loop tells
        return bias.to(autocast_dtype(weight)).repeat(turns, rows, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        slope, read = slopes[0].flatten(0, 1), torch.cat(ctx.read)  # (turns rows, out or in)
        return linear(slope.t(), read.t()).to(ctx.learned), slope.to(ctx.learned).sum(0), None, None, None


class InALoop:
    """A linear layer x W^T + b of the same number of rows at each of so many turns."""

    def __init__(self, weight: Tensor, bias: Tensor, turns: int, rows: int) -> None:
        self.read: list[Tensor] = []
        biases: Any = _Biases.apply(weight, bias, self.read, turns, rows)
        self.biases = iter(biases.unbind(0))
        self.weight = weight.detach().to(autocast_dtype(weight)).t()  # (in, out)

    def __call__(self, x: Tensor) -> Tensor:
        rows = x.flatten(0, -2).to(self.weight.dtype)
        self.read.append(rows.detach())
        return torch.addmm(next(self.biases), rows, self.weight).unflatten(0, x.shape[:-1])

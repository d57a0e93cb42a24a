"""The whole step's batch from every process, with gradient: contrast needs all the others, not a shard's."""

from __future__ import annotations

import torch
from torch import Tensor
from torch import distributed as dist


def gather(rows: Tensor) -> Tensor:
    """(B, ...) of this process -> (W B, ...) of all W processes, in their order; each must give equally many rows.

    Every process computes the same loss of the same rows. The gradient that comes back to one's own rows is the sum
    over the processes, so that DDP's mean over processes is the gradient of that one loss.
    """
    if processes() == 1:
        return rows
    if not rows.requires_grad:
        parts = [torch.empty_like(rows) for _ in range(processes())]
        dist.all_gather(parts, rows.contiguous())
        return torch.cat(parts)
    gathered: Tensor = _Gather.apply(rows)  # pyright: ignore[reportAssignmentType]
    return gathered


def processes() -> int:
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, rows: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        parts = [torch.empty_like(rows) for _ in range(processes())]
        dist.all_gather(parts, rows.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, slope: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        slope = slope.contiguous()
        dist.all_reduce(slope)  # gloo has no reduce-scatter
        return slope.chunk(processes())[dist.get_rank()]

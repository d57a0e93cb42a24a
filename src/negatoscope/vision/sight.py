"""What an encoder saw of a study."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class Sight:
    """V views of h x w patches each, N = V * h * w; a view that a study lacks is masked."""

    patches: Tensor  # (B, N, d)
    overall: Tensor  # (B, d)
    mask: Tensor  # (B, N) bool: True where there is a picture
    grid: tuple[int, int, int]  # V, h, w

    def of_view(self, number: int) -> slice:
        """Which patches are of view `number` (0 frontal, 1 lateral): `sight.patches[:, sight.of_view(0)]`."""
        _, h, w = self.grid
        return slice(number * h * w, (number + 1) * h * w)

    def with_features(self, patches: Tensor, overall: Tensor) -> Sight:
        """The same views, told by other features: a projection, or contrastive attention."""
        return replace(self, patches=patches, overall=overall)


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean over dimension 1 of (B, N, d) where mask (B, N) is True; zeros where nothing is."""
    weight = mask.to(values.dtype).unsqueeze(-1)  # (B, N, 1)
    return (values * weight).sum(1) / weight.sum(1).clamp_min(torch.finfo(values.dtype).tiny)

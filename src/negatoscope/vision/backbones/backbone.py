"""What every image encoder has in common: a picture goes in, maps of features come out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import islice

import torch
from torch import Tensor, nn

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


class Backbone(nn.Module, ABC):
    """`forward` gives the last map (B, width, h, w) of normalised pictures (B, 3, H, W); `stages` gives the earlier
    ones as well.

    The modules carry torchvision's names, so that its checkpoints load as they are. The classifier at the end is
    there only if `classes` was asked for: to go on training on findings, say; the feature maps never need it.
    """

    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD
    head = ""
    """The first word of the classifier's parameter names: what a checkpoint may hold and a backbone without
    classifier skips."""
    widths: tuple[int, ...]
    """Channels of each stage's map."""
    strides: tuple[int, ...]
    """Pixels of the picture per cell of each stage's map."""
    frozen_norms = False

    @property
    def width(self) -> int:
        return self.widths[-1]

    @property
    def stride(self) -> int:
        return self.strides[-1]

    @abstractmethod
    def each_stage(self, x: Tensor) -> Iterator[Tensor]:
        """The maps one by one, each let go of as soon as the next is there, unless the caller keeps it."""

    def stages(self, x: Tensor) -> list[Tensor]:
        """All maps, from fine to coarse: (B, widths[i], H / strides[i], W / strides[i])."""
        return list(self.each_stage(x))

    def forward(self, x: Tensor) -> Tensor:
        for stage in self.each_stage(x):
            x = stage
        return x

    def logits(self, x: Tensor) -> Tensor:
        """(B, 3, H, W) -> (B, classes), for a backbone that was built with `classes`."""
        pooled = nn.functional.adaptive_avg_pool2d(self(x), 1).flatten(1)  # (B, width)
        return self.get_submodule(self.head)(pooled)

    def freeze_norms(self) -> Backbone:
        """Batch norm keeps the statistics and the affine weights it was loaded with, through `train()` as well.

        The batches of a small study set, two views of a few patients each, are too few to estimate them from.
        """
        self.frozen_norms = True
        for norm in self.modules():
            if isinstance(norm, _NORMS):
                norm.requires_grad_(False)
        return self.train(self.training)

    def freeze_stages(self, first: int) -> Backbone:
        """The `first` stages keep the weights they came with: edges and textures are worth more from a million pictures
        than from two thousand studies, and two thirds of a step's time are saved."""
        if first:
            learning = [parameter for parameter in self.parameters() if parameter.requires_grad]
            mode = self.training
            self.eval()  # a look at nothing must not move batch norm's statistics
            side = 2 * self.stride
            maps = self.each_stage(next(self.parameters()).new_zeros(1, 3, side, side))
            last = list(islice(maps, first))[-1]
            used = torch.autograd.grad(last.sum(), learning, allow_unused=True)
            for parameter, gradient in zip(learning, used):
                parameter.requires_grad_(gradient is None)
            self.train(mode)
        return self

    def train(self, mode: bool = True) -> Backbone:
        super().train(mode)
        if self.frozen_norms:
            for norm in self.modules():
                if isinstance(norm, _NORMS):
                    norm.eval()
        return self


def start_as_he(module: nn.Module) -> None:
    """He et al. 2015 (fan out) for convolutions, one and zero for batch norm: how all four families start untrained."""
    for part in module.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")
            if part.bias is not None:
                nn.init.zeros_(part.bias)
        elif isinstance(part, nn.Linear):
            nn.init.normal_(part.weight, std=0.01)
            nn.init.zeros_(part.bias)


@torch.no_grad()
def parameter_count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())

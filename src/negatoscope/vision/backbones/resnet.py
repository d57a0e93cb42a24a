"""ResNet. He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition. CVPR 2016.

v1, the paper's: a stage's first bottleneck halves the map in its first 1x1 convolution. v1.5, everybody's since 2017
and torchvision's: in its 3x3 convolution. The parameters have the same names and shapes, so a checkpoint cannot tell
them apart.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from negatoscope.vision.backbones.backbone import Backbone, start_as_he


def _conv(inner: int, outer: int, size: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inner, outer, size, stride, padding=size // 2, bias=False)


class Basic(nn.Module):
    """Two 3x3 convolutions: ResNet-18 and -34."""

    widening = 1

    def __init__(self, inner: int, narrow: int, stride: int, *, v1: bool) -> None:
        super().__init__()
        self.conv1, self.bn1 = _conv(inner, narrow, 3, stride), nn.BatchNorm2d(narrow)
        self.conv2, self.bn2 = _conv(narrow, narrow, 3), nn.BatchNorm2d(narrow)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = _shortcut(inner, narrow, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    """1x1 down to a quarter, 3x3, 1x1 up again: ResNet-50, -101 and -152."""

    widening = 4

    def __init__(self, inner: int, narrow: int, stride: int, *, v1: bool) -> None:
        super().__init__()
        outer = narrow * self.widening
        self.conv1, self.bn1 = _conv(inner, narrow, 1, stride if v1 else 1), nn.BatchNorm2d(narrow)
        self.conv2, self.bn2 = _conv(narrow, narrow, 3, 1 if v1 else stride), nn.BatchNorm2d(narrow)
        self.conv3, self.bn3 = _conv(narrow, outer, 1), nn.BatchNorm2d(outer)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = _shortcut(inner, outer, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


def _shortcut(inner: int, outer: int, stride: int) -> nn.Sequential | None:
    if stride == 1 and inner == outer:
        return None
    return nn.Sequential(_conv(inner, outer, 1, stride), nn.BatchNorm2d(outer))


class ResNet(Backbone):
    head = "fc"
    strides = (4, 8, 16, 32)

    def __init__(
        self,
        block: type[Basic] | type[Bottleneck],
        depths: tuple[int, ...],
        *,
        v1: bool = False,
        narrowest: int = 64,
        classes: int | None = None,
    ) -> None:
        super().__init__()
        self.conv1, self.bn1 = _conv(3, narrowest, 7, 2), nn.BatchNorm2d(narrowest)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        self.widths = tuple(
            narrow * block.widening for narrow in (narrowest, 2 * narrowest, 4 * narrowest, 8 * narrowest)
        )
        inner = narrowest
        for number, (depth, outer) in enumerate(zip(depths, self.widths), start=1):
            blocks = []
            for place in range(depth):
                stride = 2 if place == 0 and number > 1 else 1
                blocks.append(block(inner, outer // block.widening, stride, v1=v1))
                inner = outer
            self.add_module(f"layer{number}", nn.Sequential(*blocks))
        if classes is not None:
            self.fc = nn.Linear(inner, classes)
        start_as_he(self)

    def each_stage(self, x: Tensor) -> Iterator[Tensor]:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))  # (B, 64, H/4, W/4)
        for number in range(1, 5):
            x = self.get_submodule(f"layer{number}")(x)
            yield x

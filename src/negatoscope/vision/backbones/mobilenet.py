"""MobileNetV2. Sandler, Howard, Zhu, Zhmoginov, Chen: Inverted Residuals and Linear Bottlenecks. CVPR 2018."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from negatoscope.vision.backbones.backbone import Backbone, start_as_he

# Table 2 of the paper: expansion t, channels c, repeats n, stride s of the first of them.
TABLE_2 = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def _conv_norm_relu6(inner: int, outer: int, size: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(inner, outer, size, stride, padding=size // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outer), nn.ReLU6(inplace=True))


class InvertedResidual(nn.Module):
    """Wide in the middle, narrow at both ends, and no ReLU at the narrow end."""

    def __init__(self, inner: int, outer: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = inner * expansion
        widen = [_conv_norm_relu6(inner, wide, 1)] if expansion != 1 else []
        self.conv = nn.Sequential(
            *widen,
            _conv_norm_relu6(wide, wide, 3, stride, groups=wide),
            nn.Conv2d(wide, outer, 1, bias=False),
            nn.BatchNorm2d(outer),
        )
        self.residual = stride == 1 and inner == outer

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.residual else self.conv(x)


class MobileNetV2(Backbone):
    head = "classifier"
    widths = (16, 24, 32, 96, 1280)
    strides = (2, 4, 8, 16, 32)

    def __init__(self, *, classes: int | None = None) -> None:
        super().__init__()
        layers: list[nn.Module] = [_conv_norm_relu6(3, 32, 3, 2)]
        inner = 32
        last_of_stage = set()
        for expansion, outer, repeats, first_stride in TABLE_2:
            if first_stride == 2:
                last_of_stage.add(len(layers) - 1)
            for place in range(repeats):
                layers.append(InvertedResidual(inner, outer, first_stride if place == 0 else 1, expansion))
                inner = outer
        layers.append(_conv_norm_relu6(inner, self.widths[-1], 1))
        last_of_stage.add(len(layers) - 1)
        self.last_of_stage = frozenset(last_of_stage)
        self.features = nn.Sequential(*layers)
        if classes is not None:
            self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(self.widths[-1], classes))
        start_as_he(self)

    def each_stage(self, x: Tensor) -> Iterator[Tensor]:
        for number, layer in enumerate(self.features):
            x = layer(x)
            if number in self.last_of_stage:
                yield x

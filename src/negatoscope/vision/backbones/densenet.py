"""DenseNet-121. Huang, Liu, van der Maaten, Weinberger: Densely Connected Convolutional Networks. CVPR 2017."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from negatoscope.vision.backbones.backbone import Backbone, start_as_he


class DenseLayer(nn.Module):
    """Adds `growth` channels to what all layers before it made: BN, ReLU, 1x1 to 4 x growth, BN, ReLU, 3x3."""

    def __init__(self, inner: int, growth: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(inner), nn.Conv2d(inner, 4 * growth, 1, bias=False)
        self.norm2, self.conv2 = nn.BatchNorm2d(4 * growth), nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv1(relu(self.norm1(x)))
        return torch.cat([x, self.conv2(relu(self.norm2(y)))], dim=1)  # (B, inner + growth, h, w)


class DenseNet(Backbone):
    """A stage's map is what its closing norm and ReLU let through: of the transition after it, or of `norm5` after
    the last."""

    head = "classifier"
    strides = (4, 8, 16, 32)

    def __init__(
        self, depths: tuple[int, ...] = (6, 12, 24, 16), *, growth: int = 32, stem: int = 64, classes: int | None = None
    ) -> None:
        super().__init__()
        parts: OrderedDict[str, nn.Module] = OrderedDict(
            conv0=nn.Conv2d(3, stem, 7, 2, padding=3, bias=False),
            norm0=nn.BatchNorm2d(stem),
            relu0=nn.ReLU(inplace=True),
            pool0=nn.MaxPool2d(3, 2, padding=1),
        )
        inner, widths = stem, []
        for number, depth in enumerate(depths, start=1):
            layers: OrderedDict[str, nn.Module] = OrderedDict()
            for place in range(depth):
                layers[f"denselayer{place + 1}"] = DenseLayer(inner + place * growth, growth)
            parts[f"denseblock{number}"] = nn.Sequential(layers)
            inner += depth * growth
            widths.append(inner)
            if number < len(depths):
                half: OrderedDict[str, nn.Module] = OrderedDict(
                    norm=nn.BatchNorm2d(inner), conv=nn.Conv2d(inner, inner // 2, 1, bias=False)
                )
                parts[f"transition{number}"] = nn.Sequential(half)
                inner //= 2
        parts["norm5"] = nn.BatchNorm2d(inner)
        self.features = nn.Sequential(parts)
        self.widths, self.depths = tuple(widths), depths
        if classes is not None:
            self.classifier = nn.Linear(inner, classes)
        start_as_he(self)

    def each_stage(self, x: Tensor) -> Iterator[Tensor]:
        for name in ("conv0", "norm0", "relu0", "pool0"):
            x = self.features.get_submodule(name)(x)  # in the end (B, stem, H/4, W/4)
        for number in range(1, len(self.depths) + 1):
            x = self.features.get_submodule(f"denseblock{number}")(x)
            if number == len(self.depths):
                yield relu(self.features.get_submodule("norm5")(x))
                return
            x = relu(self.features.get_submodule(f"transition{number}.norm")(x))
            yield x
            # Pooling before the 1x1 convolution would be the same sum with a quarter of the products; the order here
            # keeps the published rounding.
            x = nn.functional.avg_pool2d(self.features.get_submodule(f"transition{number}.conv")(x), 2)

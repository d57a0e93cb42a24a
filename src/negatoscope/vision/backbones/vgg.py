"""VGG-19. Simonyan, Zisserman: Very Deep Convolutional Networks for Large-Scale Image Recognition. ICLR 2015."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from negatoscope.vision.backbones.backbone import Backbone, start_as_he


class VGG(Backbone):
    """Five blocks of 3x3 convolutions, each followed by a pooling that halves the map.

    The maps of `stages` are the five blocks' before their pooling (the fifth is the 14 x 14 map of conv5 that visual
    attention over VGG uses), and the fifth after it, which is also what `forward` gives.
    """

    head = "classifier"
    widths = (64, 128, 256, 512, 512, 512)
    strides = (1, 2, 4, 8, 16, 32)

    def __init__(
        self, depths: tuple[int, ...] = (2, 2, 4, 4, 4), *, norms: bool = False, classes: int | None = None
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        inner = 3
        for depth, width in zip(depths, self.widths):
            for _ in range(depth):
                layers.append(nn.Conv2d(inner, width, 3, padding=1))
                if norms:
                    layers.append(nn.BatchNorm2d(width))
                layers.append(nn.ReLU(inplace=True))
                inner = width
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        if classes is not None:
            self.classifier = nn.Sequential(
                *(nn.Linear(inner * 7 * 7, 4096), nn.ReLU(inplace=True), nn.Dropout()),
                *(nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Dropout()),
                nn.Linear(4096, classes),
            )
        start_as_he(self)

    def each_stage(self, x: Tensor) -> Iterator[Tensor]:
        for layer in self.features:
            if isinstance(layer, nn.MaxPool2d):
                yield x
            x = layer(x)
        yield x

    def logits(self, x: Tensor) -> Tensor:
        # The paper's fully connected layers read a 7 x 7 map, place by place, in place of its mean.
        places = nn.functional.adaptive_avg_pool2d(self(x), 7)  # (B, 512, 7, 7)
        return self.classifier(places.flatten(1))

"""The image encoder of every reporter: a Batch of images, or of features cached from them, to the raw Sight."""

from __future__ import annotations

import math
from contextlib import ExitStack
from pathlib import Path

import torch
from torch import Tensor, nn

from negatoscope.errors import BadInput, WrongUse
from negatoscope.settings import Settings
from negatoscope.studies.batch import Batch
from negatoscope.vision.backbones import Backbone, build
from negatoscope.vision.precision import Precision
from negatoscope.vision.prepare import Fit
from negatoscope.vision.sight import Sight, masked_mean
from negatoscope.vision.weights import load_backbone

CACHED = "cached:"


class EncoderSettings(Settings):
    """Which backbone looks at the images, and how."""

    backbone: str = "resnet50"
    """A registered name (resnet50, resnet50-v1, densenet121, vgg19, mobilenetv2 ...), hub:FOLDER_OR_ID for a vision
    model of transformers, or cached:2048 for none: a reporter that knows nothing but cached features of that width,
    whose checkpoints are small and cannot look at an image."""
    weights: Path | None = None
    """safetensors or a torchvision .pth; none starts untrained (a hub backbone brings its own)."""
    stages: tuple[int, ...] = ()
    """Also maps of earlier stages, numbered from 1: [3, 4] averages the third's down to the fourth's grid and puts them
    side by side, as Contrastive Attention's authors propose for the future. Empty: the last stage alone."""
    image_size: int = 224
    """Side of the square that the backbone is given."""
    fit: Fit = "squash"
    """How a picture becomes that square when nothing is left to chance: squash, crop or letterbox."""
    frozen: bool = False
    """No gradient, no dropout, no change of batch norm: what cached features need."""
    frozen_norms: bool = False
    """The weights learn, batch norm keeps the statistics it came with: for small batches."""
    channels_last: bool = True
    """Memory order of the maps; the same numbers, faster convolutions."""
    precision: Precision | None = None
    """Of the backbone alone; none: as the training loop around it says."""


class Encoder(nn.Module):
    """Only views that are present pass through the backbone. `width` is D of the features."""

    def __init__(
        self,
        backbone: Backbone | None,
        *,
        width: int | None = None,
        stages: tuple[int, ...] = (),
        frozen: bool = False,
        channels_last: bool = True,
        precision: Precision | None = None,
    ) -> None:
        """Without a backbone, an encoder of `width` takes cached features alone."""
        super().__init__()
        if backbone is None and width is None:
            raise WrongUse("an encoder without backbone needs the width of the features that it will get")
        self.backbone = backbone
        self.width: int = width_of(backbone, stages) if backbone is not None else width or 0
        self.stages = stages
        self.frozen, self.precision = frozen, precision
        self.memory_format = torch.channels_last if channels_last else torch.contiguous_format
        self.scale: Tensor
        self.shift: Tensor
        if backbone is not None:
            backbone.to(memory_format=self.memory_format)  # pyright: ignore[reportCallIssue]
            mean, std = torch.tensor(backbone.mean), torch.tensor(backbone.std)
            # (x - mean) / std as one product and one sum; not learned, not saved: they belong to the backbone's name.
            self.register_buffer("scale", (1 / std).view(1, 3, 1, 1), persistent=False)
            self.register_buffer("shift", (-mean / std).view(1, 3, 1, 1), persistent=False)
            if frozen:
                backbone.requires_grad_(False)
                backbone.eval()

    def train(self, mode: bool = True) -> Encoder:
        super().train(mode)
        if self.frozen and self.backbone is not None:
            self.backbone.eval()
        return self

    def forward(self, batch: Batch) -> Sight:
        """Images (B, V, C, H, W) or features (B, V, N, D) -> raw features, masked where a study lacks a view."""
        b, v = batch.present.shape
        if batch.features is not None:
            features = batch.features.float()  # (B, V, N, D)
            self._check_width(features, batch)
            grid = _square(features.shape[2])
        elif batch.images is not None:
            maps = self.maps(batch.images[batch.present])  # (n, D, h, w)
            grid = (maps.shape[2], maps.shape[3])
            seen = maps.flatten(2).transpose(1, 2).float()  # (n, N, D)
            features = seen.new_zeros(b, v, *seen.shape[1:])
            features[batch.present] = seen
        else:
            raise BadInput("neither images nor features", where=f"batch of {batch.ids[0]}")
        n = features.shape[2]
        patches = features.flatten(1, 2)  # (B, V * N, D)
        mask = batch.present.repeat_interleave(n, dim=1)  # (B, V * N)
        return Sight(patches, masked_mean(patches, mask), mask, (v, *grid))

    def maps(self, images: Tensor) -> Tensor:
        """Grey images (n, 1, H, W) from 0 to 1, or normalised colour ones (n, 3, H, W) -> maps (n, D, h, w)."""
        if self.backbone is None:
            raise WrongUse("this encoder takes cached features, and was given images")
        if not len(images):
            raise BadInput("no view of any study of the batch is present")
        with self._surroundings():
            if images.shape[1] == 1:
                images = torch.addcmul(self.shift, images, self.scale)  # (n, 3, H, W)
            images = images.contiguous(memory_format=self.memory_format)
            return self._several(self.backbone, images) if self.stages else self.backbone(images)

    def _several(self, backbone: Backbone, images: Tensor) -> Tensor:
        """(n, sum of the stages' widths, h, w) on the last stage's grid."""
        kept, last = {}, images
        for number, last in enumerate(backbone.each_stage(images), start=1):
            if number in self.stages:
                kept[number] = last
        h, w = last.shape[-2:]
        return torch.cat([nn.functional.adaptive_avg_pool2d(kept[one], (h, w)) for one in self.stages], 1)

    def _surroundings(self) -> ExitStack:
        """No gradient where the backbone is frozen, its own precision where it has one."""
        around = ExitStack()
        if self.frozen:
            around.enter_context(torch.no_grad())
        if self.precision is not None:
            device, low = self.scale.device.type, self.precision == "bf16"
            around.enter_context(torch.autocast(device, torch.bfloat16, enabled=low))
        return around

    def _check_width(self, features: Tensor, batch: Batch) -> None:
        if features.shape[-1] != self.width:
            raise BadInput(
                f"cached features are {features.shape[-1]} wide, the encoder's {self.width}",
                where=f"batch of {batch.ids[0]}",
                remedy="run `negatoscope features` with this encoder's backbone",
            )


def width_of(backbone: Backbone, stages: tuple[int, ...]) -> int:
    """D of features taken from these stages, of the last where none is named; raises WrongUse for one that is not."""
    widths = backbone.widths
    wrong = [one for one in stages if not 1 <= one <= len(widths)]
    if wrong or len(set(stages)) < len(stages):
        said = f"no stage {wrong[0]}" if wrong else "a stage is named twice"
        raise WrongUse(said, where="encoder.stages", remedy=f"this backbone has stages 1 to {len(widths)}")
    return sum(widths[one - 1] for one in stages) if stages else backbone.width


def build_encoder(settings: EncoderSettings, *, pretrained: bool = True) -> Encoder:
    """Untrained parts are drawn from torch's generator; `pretrained=False` leaves the weights to a checkpoint.

    Raises WrongUse for an unknown backbone, BadInput for weights that do not fit it.
    """
    if settings.backbone.startswith(CACHED):
        return Encoder(None, width=cached_width(settings.backbone))
    if pretrained:
        backbone = load_backbone(settings.backbone, settings.weights)
    else:
        backbone = build(settings.backbone, pretrained=False)
    if settings.frozen_norms:
        backbone.freeze_norms()
    return Encoder(
        backbone,
        stages=settings.stages,
        frozen=settings.frozen,
        channels_last=settings.channels_last,
        precision=settings.precision,
    )


def cached_width(backbone: str) -> int:
    """Of 'cached:2048'; raises WrongUse where no width follows."""
    said = backbone.removeprefix(CACHED)
    if not said.isdecimal() or int(said) < 1:
        raise WrongUse(f"{backbone!r} names no width", where="encoder.backbone", remedy=f"for example {CACHED}2048")
    return int(said)


def _square(n: int) -> tuple[int, int]:
    """N cached patches a view lie in a square: the pictures that they were made of were square."""
    side = math.isqrt(n)
    return (side, side) if side * side == n else (1, n)

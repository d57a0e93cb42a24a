"""One pass over images: the maps that answers are read off, and the means of each stage that doubt is read off."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from negatoscope.errors import WrongUse
from negatoscope.models.recogniser import Recogniser
from negatoscope.vision.precision import fast_precision


@dataclass(frozen=True)
class Looked:
    """At n images."""

    maps: Tensor  # (n, D, h, w) as the backbone gave them
    stages: tuple[Tensor, ...]
    """(n, widths[i]) float32, the mean of each stage's map, from fine to coarse; the last is what answers come from."""

    @property
    def pooled(self) -> Tensor:
        return self.stages[-1]


@torch.no_grad()
def look(recogniser: Recogniser, images: Tensor, *, low_precision: bool | None = None) -> Looked:
    """Grey images (n, 1, S, S) from 0 to 1; bf16 where the device has it, unless said. Raises WrongUse for an encoder
    whose stages are joined."""
    encoder = recogniser.encoder
    if encoder.backbone is None or encoder.stages:
        raise WrongUse("a recogniser that drafts reads the last stage of a backbone", where="encoder.stages")
    low = fast_precision(images.device) == "bf16" if low_precision is None else low_precision
    with torch.autocast(images.device.type, torch.bfloat16, enabled=low):
        x = torch.addcmul(encoder.shift, images, encoder.scale).contiguous(memory_format=encoder.memory_format)
        means = []
        maps = x
        for maps in encoder.backbone.each_stage(x):
            means.append(maps.float().mean((2, 3)))
    return Looked(maps, tuple(means))

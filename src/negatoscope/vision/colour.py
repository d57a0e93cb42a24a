"""Colour photographs as a training sees them: COCO's, for captions. Radiographs are grey, and go by `augment.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from negatoscope.errors import BadInput
from negatoscope.studies.loader import Seen
from negatoscope.studies.store import Store
from negatoscope.studies.study import Picture, Study
from negatoscope.vision.augment import AugmentSettings, chances
from negatoscope.vision.backbones.backbone import IMAGENET_MEAN, IMAGENET_STD
from negatoscope.vision.prepare import Fit, short_side_to


@dataclass(frozen=True)
class LookAtColours:
    """Like `LookAtFiles`, but (3, H, W), normalised as ImageNet's weights want it. Of the random changes there are the
    margin and mirroring, which leaves a caption as it is: photographs are not told by sides."""

    size: int = 224
    fit: Fit = "squash"
    change: AugmentSettings | None = None
    seed: int = 0

    def __call__(self, store: Store, study: Study, pictures: Sequence[Picture | None], epoch: int) -> Seen:
        """A slot without picture is grey. Raises BadInput for a picture that cannot be read, naming file and study."""
        if not any(pictures):
            raise BadInput("none of its pictures can be shown", where=study.id, remedy="leave the study out")
        rng = None if self.change is None else chances(self.seed, epoch, study.id)
        nothing = torch.zeros(3, self.size, self.size)
        shown = [
            nothing if picture is None else self._shown(store.picture_path(picture), study, rng) for picture in pictures
        ]
        return Seen(study.report, torch.stack(shown))

    def _shown(self, path: Path, study: Study, rng: np.random.Generator | None) -> Tensor:
        try:
            with Image.open(path) as opened:
                image = opened.convert("RGB")
        except (OSError, ValueError, Image.DecompressionBombError) as error:
            raise BadInput(f"cannot be read ({error})", where=f"study {study.id}: {path}") from error
        return normalised(self._square(image, rng))

    def _square(self, image: Image.Image, rng: np.random.Generator | None) -> Image.Image:
        if rng is None or self.change is None:
            if self.fit == "squash":
                return image.resize((self.size, self.size), Image.Resampling.BILINEAR)
            if self.fit == "crop":
                return _cut(short_side_to(image, self.size), self.size, 0.5, 0.5)
            image.thumbnail((self.size, self.size), Image.Resampling.BILINEAR)
            square = Image.new("RGB", (self.size, self.size))
            square.paste(image, ((self.size - image.width) // 2, (self.size - image.height) // 2))
            return square
        mirrored = rng.random() < self.change.mirror
        image = short_side_to(image, max(self.size, round(self.size * self.change.margin)))
        image = _cut(image, self.size, *rng.random(2))
        return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else image


def _cut(image: Image.Image, size: int, down: float, right: float) -> Image.Image:
    left, top = int(right * (image.width - size + 1)), int(down * (image.height - size + 1))
    return image.crop((left, top, left + size, top + size))


def normalised(image: Image.Image) -> Tensor:
    """(3, H, W)."""
    values = torch.from_numpy(np.asarray(image, dtype=np.float32) / np.float32(255)).permute(2, 0, 1)
    mean, std = torch.tensor(IMAGENET_MEAN).view(3, 1, 1), torch.tensor(IMAGENET_STD).view(3, 1, 1)
    return (values - mean) / std

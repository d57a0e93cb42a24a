"""Random changes of training images, the same for the same seed, epoch and study, whoever loads them and in what order.

The default is what R2Gen and its heirs do (short side to 256, a random 224 x 224 of it) without their mirroring: a
report says left and right. Where mirroring is asked for, the report is changed with the image.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from pydantic import Field
from torch import Tensor

from negatoscope.errors import BadInput
from negatoscope.settings import Settings
from negatoscope.studies.loader import Seen
from negatoscope.studies.store import Store
from negatoscope.studies.study import Picture, Study, View
from negatoscope.vision.prepare import Fit, as_image, as_tensor, prepare, read_grey, short_side_to, white
from negatoscope.vision.sides import swap_sides


class AugmentSettings(Settings):
    """How far training images may be changed."""

    margin: float = Field(default=256 / 224, ge=1, le=2)
    """The short side becomes this times the size, then a random square of the size is cut out."""
    rotate: float = Field(default=0.0, ge=0, le=45)
    """Up to so many degrees either way."""
    brightness: float = Field(default=0.0, ge=0, le=0.5)
    """Up to so much is added or taken, where black is 0 and white 1."""
    contrast: float = Field(default=0.0, ge=0, lt=1)
    """Distances from the mean grey grow or shrink by up to this share."""
    mirror: float = Field(default=0.0, ge=0, le=1)
    """The chance that left and right change places, in the images of a study and in its report alike."""


@dataclass(frozen=True)
class LookAtFiles:
    """How the loader sees a study: its pictures read, made square, and, given a `change`, changed at random."""

    size: int = 224
    fit: Fit = "squash"
    change: AugmentSettings | None = None
    """None, for every split but the one that is learned from, looks at each picture whole and as it is."""
    seed: int = 0

    def __call__(self, store: Store, study: Study, pictures: Sequence[Picture | None], epoch: int) -> Seen:
        """A slot without picture stays black. Raises BadInput for a picture that cannot be read, naming file and
        study."""
        if not any(pictures):
            raise BadInput("none of its pictures can be shown", where=study.id, remedy="leave the study out")
        black = torch.zeros(1, self.size, self.size)
        greys = [None if picture is None else self._grey(store, study, picture) for picture in pictures]
        if self.change is None:
            images = [black if grey is None else prepare(grey, self.size, fit=self.fit) for grey in greys]
            return Seen(study.report, torch.stack(images))
        views: list[View] = ["unknown" if picture is None else picture.view for picture in pictures]
        rng = chances(self.seed, epoch, study.id)
        changed, report = augment(greys, views, study.report, self.change, self.size, rng)
        return Seen(report, torch.stack([black if image is None else image for image in changed]))  # (V, 1, H, W)

    @staticmethod
    def _grey(store: Store, study: Study, picture: Picture) -> np.ndarray:
        return read_grey(store.picture_path(picture), where=f"study {study.id}")


def chances(seed: int, epoch: int, study: str) -> np.random.Generator:
    """The random numbers of one study in one epoch. No other study's, worker's or process's drawing moves them."""
    of_study = np.frombuffer(hashlib.sha256(study.encode()).digest(), dtype="<u4")
    return np.random.default_rng([seed, epoch, *of_study.tolist()])


def augment(
    greys: Sequence[np.ndarray | None],
    views: Sequence[View],
    report: str,
    settings: AugmentSettings,
    size: int,
    rng: np.random.Generator,
) -> tuple[list[Tensor | None], str]:
    """Pictures (H, W) and report of one study -> a float32 (1, size, size) from 0 to 1 each, and the report that fits
    them.

    Each picture is cut and turned for itself; mirrored is the patient, so all of them or none.
    """
    mirrored = bool(rng.random() < settings.mirror)
    images: list[Tensor | None] = []
    for grey, view in zip(greys, views):
        # Seen from the side, a patient and the mirrored patient cast the same shadow.
        flip = mirrored and view != "lateral"
        images.append(None if grey is None else _changed(grey, settings, size, rng, flip))
    return images, swap_sides(report) if mirrored else report


def _changed(grey: np.ndarray, settings: AugmentSettings, size: int, rng: np.random.Generator, flip: bool) -> Tensor:
    # All five are drawn whether used or not, so that one more kind of change leaves the others as they were.
    down, right = rng.random(2)
    angle, lighter, steeper = rng.uniform(-1, 1, 3)
    image = short_side_to(as_image(grey), max(size, round(size * settings.margin)))
    if settings.rotate:
        image = image.rotate(angle * settings.rotate, Image.Resampling.BILINEAR)
    left, top = int(right * (image.width - size + 1)), int(down * (image.height - size + 1))
    image = image.crop((left, top, left + size, top + size))
    if flip:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    values = as_tensor(image, white(grey))  # (1, size, size)
    if settings.contrast:
        mean = values.mean()
        values = mean + (values - mean) * (1 + steeper * settings.contrast)
    if settings.brightness:
        values = values + lighter * settings.brightness
    return values.clamp(0, 1)

"""From attenuation to grey values: the film's curve, grain, collimation borders, and the marker of the side."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from negatoscope.studies.phantom.anatomy import Pose
from negatoscope.studies.phantom.film import Field, Film, grain, step


def develop(film: Film, attenuation: Field, pose: Pose) -> NDArray[np.uint8]:
    """White where much is absorbed. A curve with a toe and a shoulder, as films and detectors are processed."""
    grey = attenuation - (0.6 + pose.exposure)
    grey *= -4.4 * pose.contrast
    # Fewer quanta pass through dense parts: there the grain is coarser.
    rough = 0.05 * attenuation
    rough += 0.035
    rough *= grain(film, 0, pose.places[0:2])
    rough *= 0.7 * pose.noise
    grey -= rough
    np.clip(grey, -30, 30, out=grey)
    np.exp(grey, out=grey)
    grey += 1
    np.divide(266, grey, out=grey)
    grey -= 14
    _collimate(film, grey, pose)
    _mark(film, grey, pose)
    return np.clip(grey, 0, 255, out=grey).astype(np.uint8)


def _collimate(film: Film, grey: Field, pose: Pose) -> None:
    """Beyond the borders of the beam only scatter arrives."""
    left, top, right, bottom = (border * film.width for border in pose.collimation)
    u, z = film.u - film.u0, film.z - film.z0
    for inside in (u - left if left else None, film.width - right - u if right else None):
        if inside is not None:
            grey *= (0.06 + 0.94 * step(inside, 4))[None]
    for inside in (z - top if top else None, film.width - bottom - z if bottom else None):
        if inside is not None:
            grey *= (0.06 + 0.94 * step(inside, 4))[:, None]


def _mark(film: Film, grey: Field, pose: Pose) -> None:
    text, across, down, turn = pose.marker
    stamp = _stamp(text, max(9, round(0.062 * film.size)), round(turn))
    high, wide = stamp.shape
    top, left = min(int(down * film.size), film.size - high), min(int(across * film.size), film.size - wide)
    window = grey[top : top + high, left : left + wide]
    window += stamp * (250 - window)


@lru_cache(maxsize=256)
def _stamp(text: str, high: int, turn: int) -> Field:
    """A lead letter, 0 to 1."""
    font = ImageFont.load_default(2 * high)
    left, top, right, bottom = font.getbbox(text)
    letter = Image.new("L", (int(right - left) + 8, int(bottom - top) + 8))
    ImageDraw.Draw(letter).text((4 - left, 4 - top), text, fill=255, font=font, stroke_width=1, stroke_fill=255)
    letter = letter.rotate(turn, expand=True, resample=Image.Resampling.BILINEAR).reduce(2)
    return np.asarray(letter, dtype=np.float32) / 255

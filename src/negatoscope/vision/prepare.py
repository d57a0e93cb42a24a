"""From grey values as decoded to the square a backbone takes: resized with antialiasing, 0 to 1, one channel.

The three colour channels that ImageNet's weights want come later, in the encoder: three equal channels in memory
would be two too many.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from negatoscope.errors import BadInput
from negatoscope.studies.pixels import Pixels, read_pixels, to_8bit

Fit = Literal["squash", "crop", "letterbox"]
"""squash: both sides to `size`, as R2Gen and its heirs evaluate. crop: short side to `size`, the middle square of it.
letterbox: long side to `size`, black beside it."""


def read_grey(path: Path | str, *, where: object = None) -> np.ndarray:
    """A picture file (DICOM too) as a screen shows it, (H, W) uint8: 12 or 16 bits through their window first.

    Raises BadInput that names the file, and `where` besides.
    """
    try:
        pixels = read_pixels(path)
    except BadInput as error:
        raise BadInput(error.what, where=f"{where}: {path}" if where else path, remedy=error.remedy) from error
    return as_shown(pixels)


def as_shown(pixels: Pixels) -> np.ndarray:
    """(H, W) uint8. Eight bits that nothing is to be done to are passed on as they are."""
    if pixels.bits == 8 and not pixels.shown_by and pixels.padding is None:
        return pixels.grey
    return to_8bit(pixels)


def prepare(grey: np.ndarray, size: int, *, fit: Fit = "squash", bits: int | None = None) -> Tensor:
    """Grey values (H, W), uint8 or uint16 of which `bits` are used (all, unless said) -> (1, size, size) float32, 0
    to 1."""
    image = as_image(grey)
    if fit == "squash":
        image = image.resize((size, size), Image.Resampling.BILINEAR)
    elif fit == "crop":
        image = short_side_to(image, size)
        left, top = round((image.width - size) / 2), round((image.height - size) / 2)
        image = image.crop((left, top, left + size, top + size))
    else:
        image = _letterboxed(image, size)
    return as_tensor(image, white(grey, bits))


def white(grey: np.ndarray, bits: int | None = None) -> int:
    """The largest value that an array of this kind can hold."""
    return 2 ** (bits or 8 * grey.dtype.itemsize) - 1


def as_image(grey: np.ndarray) -> Image.Image:
    """Eight bit as they are; more as floats, because Pillow filters 16-bit integers only roughly."""
    if grey.ndim != 2 or grey.dtype not in (np.uint8, np.uint16) or 0 in grey.shape:
        raise BadInput(f"expected grey values (height, width) of 8 or 16 bit, got {grey.dtype} {grey.shape}")
    return Image.fromarray(grey if grey.dtype == np.uint8 else grey.astype(np.float32))


def as_tensor(image: Image.Image, white: int) -> Tensor:
    values = np.asarray(image, dtype=np.float32) / np.float32(white)
    return torch.from_numpy(values).unsqueeze(0)  # (1, H, W)


def short_side_to(image: Image.Image, size: int) -> Image.Image:
    """The long side follows, rounded down as torchvision does."""
    width, height = image.size
    if width <= height:
        new = (size, int(size * height / width))
    else:
        new = (int(size * width / height), size)
    return image if new == image.size else image.resize(new, Image.Resampling.BILINEAR)


def _letterboxed(image: Image.Image, size: int) -> Image.Image:
    scale = size / max(image.size)
    width, height = (max(1, round(side * scale)) for side in image.size)
    square = Image.new(image.mode, (size, size))
    square.paste(image.resize((width, height), Image.Resampling.BILINEAR), ((size - width) // 2, (size - height) // 2))
    return square

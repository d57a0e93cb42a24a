"""The image files of a store: what they are called, and how a picture comes into one."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from negatoscope.errors import BadInput, Trouble
from negatoscope.studies.pixels import Pixels, read_pixels, shown, to_8bit
from negatoscope.studies.study import Picture

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_VERBATIM = {b"\x89PNG": ".png", b"\xff\xd8\xff": ".jpg"}  # what every reader of a store can open


@dataclass(frozen=True, slots=True)
class Keeping:
    """How pictures are kept."""

    images: Literal["copy", "reference"] = "copy"
    """Copied into the store, or left where they are and named by their absolute path."""
    short_side: int | None = None
    """Larger pictures are made smaller until their short side is this; smaller ones stay as they are."""
    form: Literal["png", "jpeg"] = "png"
    """Of pictures that are not copied as they are: PNG keeps every grey value, JPEG (quality 95, 8 bits) is small."""
    bits: Literal[8, 16] = 16
    """Of pictures that have more than 8: kept as they are, or as a screen shows them (window, look-up table)."""
    colour: bool = False


def image_name(study_id: str, what: str, ending: str) -> str:
    """`images/3f/<study>-<what>.png`: always the same, one for each study and `what`, never outside the store."""
    digest = hashlib.sha256(study_id.encode("utf-8", "surrogatepass")).hexdigest()
    safe = study_id
    if len(study_id) > 100 or not _SAFE.fullmatch(study_id):
        safe = f"{_UNSAFE.sub('_', study_id)[:60]}~{digest[:16]}"
    return f"images/{digest[:2]}/{safe}-{_UNSAFE.sub('_', what)}{ending}"


def keep_picture(store: Path, study_id: str, number: int, picture: Picture, keeping: Keeping) -> Picture:
    """Decodes one picture of a source and keeps it. Raises `BadInput` where it cannot be read."""
    path = Path(picture.path)
    pixels = read_pixels(path)
    if keeping.images == "reference":
        try:
            return _described(picture, os.fsencode(path.resolve()).decode(), pixels)
        except UnicodeDecodeError as error:
            raise BadInput("its name is not UTF-8", where=path, remedy="copy the images: --images copy") from error
    ending = _ending_of_bytes(path)
    if ending and (keeping.short_side is None or min(pixels.grey.shape) <= keeping.short_side):
        name = image_name(study_id, str(number), ending)
        _copy(path, store / name)
        return _described(picture, name, pixels)
    if keeping.colour and ending:
        return _keep_encoded(store, study_id, number, picture, _small_colour(path, keeping), keeping.form)
    return keep_grey(store, study_id, number, picture, pixels, keeping)


def keep_grey(store: Path, study_id: str, number: int, picture: Picture, pixels: Pixels, keeping: Keeping) -> Picture:
    """Keeps grey values as a file of the store, whatever they were read from or drawn by."""
    if keeping.form == "jpeg" or keeping.bits == 8:
        pixels = Pixels(to_8bit(pixels), 8)
    elif pixels.shown_by:  # a PNG has no place for a DICOM file's window: what it shows is what is kept
        pixels = Pixels(shown(pixels, 16), 16)
    if keeping.short_side is not None:
        pixels = Pixels(made_smaller(pixels.grey, keeping.short_side), pixels.bits)
    if keeping.form == "jpeg":
        return _keep_encoded(store, study_id, number, picture, _encoded(pixels.grey, "jpeg"), "jpeg")
    name = image_name(study_id, str(number), ".png")
    _write(_encoded(pixels.grey, "png"), store / name)
    return _described(picture, name, pixels)


def keep_masks(store: Path, study_id: str, masks: Mapping[str, np.ndarray], keeping: Keeping) -> dict[str, str]:
    """Keeps masks (h, w) bool as 1-bit PNG: '<finding>@<picture number>' -> path in the store."""
    from PIL import Image

    names = {}
    for what, mask in masks.items():
        names[what] = image_name(study_id, f"mask-{what}", ".png")
        if keeping.short_side is not None:
            mask = made_smaller(mask.astype(np.uint8) * 255, keeping.short_side) >= 128
        _write(_saved(Image.fromarray(mask), "PNG"), store / names[what])
    return names


def made_smaller(grey: np.ndarray, short_side: int) -> np.ndarray:
    """(h, w) uint8 or uint16 by Lanczos until the short side is `short_side`; smaller pictures as they are."""
    from PIL import Image

    size = _small_size(grey.shape[1], grey.shape[0], short_side)
    if size is None:
        return grey
    if grey.dtype == np.uint8:
        return np.asarray(Image.fromarray(grey).resize(size, Image.Resampling.LANCZOS))
    resized = Image.fromarray(grey.astype(np.float32)).resize(
        size, Image.Resampling.LANCZOS
    )  # Pillow has none for 16 bit
    return np.clip(np.rint(np.asarray(resized)), 0, 65535).astype(np.uint16)


def _small_size(width: int, height: int, short_side: int) -> tuple[int, int] | None:
    short = min(width, height)
    if short <= short_side:
        return None
    return max(1, round(width * short_side / short)), max(1, round(height * short_side / short))


def _small_colour(path: Path, keeping: Keeping) -> bytes:
    from PIL import Image

    with Image.open(path) as opened:
        image = opened.convert("L" if opened.mode in ("1", "L") else "RGB")
    assert keeping.short_side is not None
    size = _small_size(*image.size, keeping.short_side)
    return _encoded(image.resize(size, Image.Resampling.LANCZOS) if size else image, keeping.form)


def _keep_encoded(store: Path, study_id: str, number: int, picture: Picture, data: bytes, form: str) -> Picture:
    name = image_name(study_id, str(number), ".jpg" if form == "jpeg" else ".png")
    _write(data, store / name)
    return _described(picture, name, read_pixels(data))  # what JPEG made of it, not what went in


def _encoded(picture, form: str) -> bytes:
    from PIL import Image

    image = Image.fromarray(picture) if isinstance(picture, np.ndarray) else picture
    return _saved(image, "JPEG", quality=95) if form == "jpeg" else _saved(image, "PNG")


def _saved(image, form: str, **how) -> bytes:
    data = io.BytesIO()
    image.save(data, form, **how)
    return data.getvalue()


def _ending_of_bytes(path: Path) -> str:
    """The ending of a file that any reader of the store can open as it is, else nothing."""
    with path.open("rb") as file:
        head = file.read(8)
    return next((ending for start, ending in _VERBATIM.items() if head.startswith(start)), "")


def _described(picture: Picture, path: str, pixels: Pixels) -> Picture:
    size = {"width": pixels.width, "height": pixels.height, "bits": pixels.bits}
    return replace(picture, path=path, sha256=pixels.sha256(), **size)


def _write(data: bytes, path: Path) -> None:
    """A killed import run again finds most of its files there and the same: those are left alone.

    Whole or not there like every file, but not flushed one by one: the import does that once for all files of a part.
    """
    if path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data:
        return
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            remedy = "free some space and run the same command again"
            raise Trouble("the disk is full", where=path, remedy=remedy) from error
        raise
    finally:
        part.unlink(missing_ok=True)


def _copy(path: Path, copy: Path) -> None:
    _write(path.read_bytes(), copy)

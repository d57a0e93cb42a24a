"""Where CVSE looked, beside where the finding is: phantoms with their masks outlined, then the attention over each."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from math import isqrt
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from negatoscope.reading_room.explanation import overlay
from negatoscope.retrieval.pointing import MaskedMap
from negatoscope.retrieval.retriever import Retriever
from negatoscope.studies.pixels import read_pixels
from negatoscope.studies.store import Store
from negatoscope.studies.views import ARRANGE
from negatoscope.whole_files import whole_file

_SIDE, _GAP, _LINE, _ACROSS = 168, 4, 14, 2
_OUTLINE, _GROUND, _INK = (80, 200, 255), (24, 24, 24), (230, 230, 230)


def finding_sheet(retriever: Retriever, store: Store, maps: Sequence[MaskedMap], path: Path | str) -> Path:
    """The first study of each finding, whichever it is; each view twice, the second time under its attention, which is
    scaled to its own highest value."""
    first = {one.finding: one.study.id for one in reversed(maps)}
    shown: dict[str, dict[int, MaskedMap]] = {}
    for one in maps:
        if first[one.finding] == one.study.id:
            shown.setdefault(one.finding, {}).setdefault(one.slot, one)
    cells = [_cell(retriever, store, of_views) for _, of_views in sorted(shown.items())]
    wide, high = cells[0].size
    rows = -(-len(cells) // _ACROSS)
    sheet = Image.new("RGB", (_ACROSS * (wide + 2 * _GAP), rows * (high + _GAP)), _GROUND)
    for number, cell in enumerate(cells):
        sheet.paste(cell, ((number % _ACROSS) * (wide + 2 * _GAP), (number // _ACROSS) * (high + _GAP)))
    with whole_file(path) as part:
        sheet.quantize(192).save(part, "PNG", optimize=True)
    return Path(path)


def _cell(retriever: Retriever, store: Store, of_views: dict[int, MaskedMap]) -> Image.Image:
    cell = Image.new("RGB", (4 * (_SIDE + _GAP), _SIDE + 2 * _LINE + 2), _GROUND)
    for slot, one in of_views.items():
        grey, mask = _view(retriever, store, one)
        side = isqrt(len(one.attention))
        heat = torch.from_numpy(one.attention.reshape(side, side))
        pair = (np.repeat(grey[..., None], 3, 2), overlay(grey, heat, float(heat.max())))
        for number, picture in enumerate(pair):
            small = Image.fromarray(_outlined(picture, mask)).resize((_SIDE, _SIDE), Image.Resampling.BILINEAR)
            cell.paste(small, ((2 * slot + number) * (_SIDE + _GAP), 0))
    told = next(iter(of_views.values()))
    shares = ", ".join(f"{one.inside:.0%} of {one.mask.mean():.0%}" for _, one in sorted(of_views.items()))
    lines = [f"{told.finding}: {shares}", textwrap.shorten(told.sentence, 110, placeholder=" ...")]
    for number, line in enumerate(lines):
        ink = ImageDraw.Draw(cell)
        ink.text((2, _SIDE + 1 + number * _LINE), line, fill=_INK, font=ImageFont.load_default(11))
    return cell


def _view(retriever: Retriever, store: Store, one: MaskedMap) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    picture = ARRANGE[retriever.recipe.arrange](one.study, 2)[one.slot]
    assert picture is not None
    grey = read_pixels(store.picture_path(picture)).grey.astype(np.uint8)
    name = f"{one.finding}@{one.study.pictures.index(picture)}"
    return grey, read_pixels(store.picture_path(one.study.masks[name])).grey > 0


def _outlined(picture: NDArray[np.uint8], mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """A line of two pixels around the mask, outside it."""
    inner = _grown(mask)
    drawn = picture.copy()
    drawn[_grown(_grown(inner)) & ~inner] = _OUTLINE
    return drawn


def _grown(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    padded = np.pad(mask, 1)
    return mask | padded[2:, 1:-1] | padded[:-2, 1:-1] | padded[1:-1, 2:] | padded[1:-1, :-2]

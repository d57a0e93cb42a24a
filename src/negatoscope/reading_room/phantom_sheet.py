"""Held-out phantoms of the bench beside what each way of looking made of them: one picture for a page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from negatoscope.papers.phantom_bench.bench import Benched, Pictured
from negatoscope.papers.phantom_bench.heat import VIEWS
from negatoscope.reading_room.explanation import overlay
from negatoscope.studies.pixels import read_pixels
from negatoscope.studies.store import Store
from negatoscope.studies.study import Study
from negatoscope.studies.views import by_view
from negatoscope.whole_files import whole_file

SHOWN = {
    "attention": "attention, host alone",
    "contrast": "contrastive information",
    "contrast of patches": "contrast of patches",
    "distance": "distance from normal",
}
_SIDE, _CAPTION, _GAP = 176, 16, 4
_OUTLINE = (80, 200, 255)
_GROUND = (24, 24, 24)


def bench_sheet(done: Benched, path: Path) -> Path:
    """One line a study: the picture with its mask outlined, then each map, scaled to its own highest value."""
    store = Store.open(done.held_out)
    lines = [_line(store, one) for one in done.pictured]
    wide = max(line.width for line in lines)
    sheet = Image.new("RGB", (wide, sum(line.height + _GAP for line in lines)), _GROUND)
    top = 0
    for line in lines:
        sheet.paste(line, (0, top))
        top += line.height + _GAP
    with whole_file(path) as part:
        sheet.save(part, "PNG", optimize=True)
    return path


def _line(store: Store, one: Pictured) -> Image.Image:
    """The view in which more of the finding can be seen."""
    study = store.at(one.place)
    slot, grey, mask = _view(store, study)
    side = round(np.sqrt(next(iter(one.maps.values())).shape[1]))
    cells = [(f"{study.id[-6:]} {one.finding}", _outlined(np.repeat(grey[..., None], 3, 2), mask))]
    for way, said in SHOWN.items():
        heat = torch.from_numpy(one.maps[way][slot].reshape(side, side))
        cells.append((said, _outlined(overlay(grey, heat, float(heat.max())), mask)))
    line = Image.new("RGB", (len(cells) * (_SIDE + _GAP), _SIDE + _CAPTION), _GROUND)
    for number, (said, picture) in enumerate(cells):
        left = number * (_SIDE + _GAP)
        line.paste(Image.fromarray(picture).resize((_SIDE, _SIDE), Image.Resampling.BILINEAR), (left, 0))
        ImageDraw.Draw(line).text((left + 2, _SIDE + 1), said, fill=(230, 230, 230), font=ImageFont.load_default(11))
    return line


def _view(store: Store, study: Study) -> tuple[int, NDArray[np.uint8], NDArray[np.bool_]]:
    shown, best = by_view(study, VIEWS), None
    for name, path in study.masks.items():
        picture = study.pictures[int(name.rsplit("@", 1)[1])]
        mask = read_pixels(store.picture_path(path)).grey > 0
        if picture in shown and (best is None or mask.sum() > best[2].sum()):
            grey = read_pixels(store.picture_path(picture)).grey.astype(np.uint8)
            best = (shown.index(picture), grey, mask)
    assert best is not None
    return best


def _outlined(picture: NDArray[np.uint8], mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    padded = np.pad(mask, 1)
    grown = mask | padded[2:, 1:-1] | padded[:-2, 1:-1] | padded[1:-1, 2:] | padded[1:-1, :-2]
    drawn = picture.copy()
    drawn[grown & ~mask] = _OUTLINE
    return drawn

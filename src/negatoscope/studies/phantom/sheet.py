"""A sheet of phantoms: normal chests, then one of each finding with its mask outlined.

`python -m negatoscope.studies.phantom.sheet docs/pictures/phantom-sheet.png`
"""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from negatoscope.studies.phantom.film import Mask
from negatoscope.studies.phantom.findings import Finding
from negatoscope.studies.phantom.settings import FINDINGS, PhantomSettings
from negatoscope.studies.phantom.studying import DrawnStudy, draw_study
from negatoscope.whole_files import write_bytes

_COLUMNS = 3
_OUTLINE = (255, 190, 60)
_CAPTION = 18
_GROUND = 24
# Findings that come in forms unlike each other are shown in each.
_KINDS = {
    "atelectasis": ("linear", "lobar"),
    "fracture": ("rib", "clavicle"),
    "central line": ("jugular", "port"),
    "surgical clips": ("sternotomy", "axilla"),
}


def phantom_sheet(size: int = 224, seed: int = 1) -> Image.Image:
    """Frontal and lateral pictures side by side, each study with a caption."""
    normal = PhantomSettings(size=size, seed=seed, normal_share=1, missing_lateral=0, collimated=0.2, noise=0.6)
    cells = [_cell(draw_study(seed, index, normal), f"normal {index + 1}") for index in range(2 * _COLUMNS)]
    for number, name in enumerate(FINDINGS):
        for kind in _KINDS.get(name, ("",)):
            study, finding = _study_with(name, kind, size, seed + 7 * number)
            cells.append(_cell(study, _caption(finding), study.masks[name]))
    high, wide = size + _CAPTION + 4, 2 * size + 8
    rows = -(-len(cells) // _COLUMNS)
    sheet = Image.new("P", (_COLUMNS * wide, rows * high), _GROUND)
    sheet.putpalette([level for grey in range(255) for level in (grey, grey, grey)] + list(_OUTLINE))
    for number, cell in enumerate(cells):
        sheet.paste(cell, ((number % _COLUMNS) * wide + 2, (number // _COLUMNS) * high + 2))
    return sheet


def _study_with(name: str, kind: str, size: int, seed: int) -> tuple[DrawnStudy, Finding]:
    """The first study with this finding alone, of this kind, neither slight nor extreme."""
    alone = dict.fromkeys(FINDINGS, 0.0) | {name: 1.0}
    settings = PhantomSettings(
        size=size, seed=seed, normal_share=0, frequencies=alone, more_findings=(0, 0, 0), missing_lateral=0, noise=0.6,
        collimated=0.2, returning=0,
    )  # fmt: skip
    index = 0
    while True:
        study = draw_study(seed, index, settings)
        finding = study.plan.findings[0]
        if 0.45 < finding.amount < 0.8 and finding.kind.startswith(kind):
            return study, finding
        index += 1


def _caption(finding: Finding) -> str:
    size = f"{finding.millimetres:.0f} mm" if finding.name in ("nodule", "mass") else ""
    where = finding.where if finding.where != finding.kind else ""
    side = finding.side if finding.side not in where else ""
    kind = finding.kind if finding.kind not in where else ""
    return " ".join(part for part in (f"{finding.name}:", finding.severity, size, side, kind, where) if part)


def _cell(study: DrawnStudy, caption: str, masks: dict[str, Mask] | None = None) -> Image.Image:
    views = [_outlined(grey, (masks or {}).get(view)) for view, grey in study.views.items()]
    pair = Image.fromarray(np.hstack(views))
    cell = Image.new("L", (pair.width, pair.height + _CAPTION), _GROUND)
    cell.paste(pair, (0, 0))
    ImageDraw.Draw(cell).text((4, pair.height + 2), caption, fill=230, font=ImageFont.load_default(12))
    return cell


def _outlined(grey: NDArray[np.uint8], mask: Mask | None) -> NDArray[np.uint8]:
    """Greys up to 254 in steps of 3, which compresses better, and 255 along the mask, two pixels outside it."""
    picture = np.minimum(grey // 3 * 3, 254)
    if mask is not None:
        around = _grown(_grown(mask))
        picture[_grown(around) & ~around] = 255
    return picture


def _grown(mask: Mask) -> Mask:
    padded = np.pad(mask, 1)
    return mask | padded[2:, 1:-1] | padded[:-2, 1:-1] | padded[1:-1, 2:] | padded[1:-1, :-2]


def main() -> None:
    """Writes the sheet to the path given."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "phantom-sheet.png")
    held = BytesIO()
    phantom_sheet().save(held, "PNG", optimize=True)
    write_bytes(path, held.getvalue())


if __name__ == "__main__":
    main()

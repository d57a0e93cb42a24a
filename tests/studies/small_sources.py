"""Sources of the same shape as the real ones, a few drawn pictures large."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
from PIL import Image


def drawn(seed: int, height: int = 12, width: int = 10, dtype: type = np.uint8) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, np.iinfo(dtype).max, (height, width), dtype=dtype, endpoint=True)


def as_png(grey: np.ndarray) -> bytes:
    data = io.BytesIO()
    Image.fromarray(grey).save(data, "PNG")
    return data.getvalue()


def r2gen_row(number: int, split: str = "train", **changes: Any) -> dict[str, Any]:
    id = f"CXR{number}_IM-{number:04d}"
    paths = [f"{id}/0.png", f"{id}/1.png"]
    row = {"id": id, "report": f"the heart is normal . number {number} .", "image_path": paths, "split": split}
    return row | changes


def write_r2gen(folder: Path, rows: Mapping[str, Sequence[dict[str, Any]]], pictures: bool = True) -> Path:
    """annotation.json and, for each path that stays in the folder, its drawn picture."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "annotation.json").write_text(json.dumps(rows), encoding="utf-8")
    for number, row in enumerate(row for split in rows.values() for row in split):
        for nth, path in enumerate(row.get("image_path", []) if pictures else []):
            if ".." not in path:
                file = folder / "images" / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(as_png(drawn(10 * number + nth)))
    return folder


def write_tgz(path: Path, members: Mapping[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def open_i_xml(
    number: int,
    images: Sequence[str],
    findings: str = "The heart is normal.",
    caption: str = "PA and lateral views",
    major: Sequence[str] = ("normal",),
    automatic: Sequence[str] = (),
) -> bytes:
    parents = "".join(
        f'<parentImage id="{id}"><figureId>F{n}</figureId><caption>{escape(caption)}</caption></parentImage>'
        for n, id in enumerate(images, start=1)
    )
    terms = "".join(f"<major>{escape(t)}</major>" for t in major)
    terms += "".join(f"<automatic>{escape(t)}</automatic>" for t in automatic)
    return f"""<?xml version="1.0" encoding="utf-8"?>
<eCitation><uId id="CXR{number}"/><MedlineCitation><Article><Abstract>
 <AbstractText Label="COMPARISON">None.</AbstractText>
 <AbstractText Label="INDICATION">Cough</AbstractText>
 <AbstractText Label="FINDINGS">{escape(findings)}</AbstractText>
 <AbstractText Label="IMPRESSION">No acute disease.</AbstractText>
</Abstract></Article></MedlineCitation><MeSH>{terms}</MeSH>{parents}</eCitation>""".encode()


def tree(folder: Path) -> dict[str, bytes]:
    """Every file of a folder and its bytes, for comparing two stores."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}

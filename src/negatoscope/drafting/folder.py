"""Hundreds of studies at once: one subfolder a study, its name the id, its images in any order and under any name."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from negatoscope.drafting.drafter import Drafter
from negatoscope.errors import BadInput
from negatoscope.watch import Watch, quiet
from negatoscope.whole_files import whole_file

IMAGES = frozenset((".png", ".jpg", ".jpeg", ".dcm", ".dicom", ".bmp", ".tif", ".tiff", ".pgm", ".webp", ".jp2", ""))


@dataclass(frozen=True)
class Folder:
    out: Path
    studies: int
    images: int
    warned: int
    """Studies with a warning."""
    seconds: float
    left_out: tuple[str, ...]
    """Studies with an image that cannot be read, and why."""


def studies_in(folder: Path | str) -> list[tuple[str, list[Path]]]:
    """Each subfolder with its images, sorted by name; files that are no images by their names are passed over. Raises
    BadInput for a folder without studies, or a study without images."""
    folder = Path(folder)
    if not folder.is_dir():
        raise BadInput("no such folder", where=folder)
    found: list[tuple[str, list[Path]]] = []
    for below in sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")):
        images = sorted(
            path
            for path in below.iterdir()
            if path.is_file() and path.suffix.lower() in IMAGES and not path.name.startswith(".")
        )
        if not images:
            raise BadInput("a study without images", where=below, remedy="take the folder away, or put images into it")
        found.append((below.name, images))
    if not found:
        raise BadInput("no studies: one subfolder a study is expected", where=folder)
    return found


def draft_folder(
    drafter: Drafter, folder: Path | str, out: Path | str, *, skip_bad: bool = False, watch: Watch = quiet
) -> Folder:
    """One line a study: `id`, `report`, `text`, probabilities, views, warnings."""
    began = time.perf_counter()
    studies = studies_in(folder)
    left_out: list[str] = []

    def tell(study: str, bad: BadInput) -> None:
        if not skip_bad:
            raise bad
        left_out.append(f"{study}: {bad}")

    def watched() -> Iterator[dict[str, object]]:
        for draft in watch(drafter.draft_many(studies, on_bad=tell), "drafting reports", len(studies)):
            yield draft.as_row()

    drafted, warned = 0, 0
    with whole_file(out) as part, part.open("w", encoding="utf-8") as file:
        for row in watched():
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            drafted += 1
            warned += bool(row["warnings"])
    images = sum(len(paths) for _, paths in studies)
    return Folder(Path(out), drafted, images, warned, time.perf_counter() - began, tuple(left_out))

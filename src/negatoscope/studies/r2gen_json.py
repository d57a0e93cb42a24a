"""annotation.json beside a folder of images: the form in which R2Gen and all who followed it hand data around.

IU X-Ray's form has two images a study; MIMIC-CXR's has one or more, `study_id` and `subject_id`. Where a `studies.csv`
lies beside it (id, view_0, view_1, mesh, indication, impression, CheXpert labels), views, tags, sections and labels
come from it.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from negatoscope.errors import BadInput
from negatoscope.settings import Settings
from negatoscope.studies.inside import file_inside
from negatoscope.studies.sources import Damaged, Found, Source
from negatoscope.studies.splits import split_named
from negatoscope.studies.study import OBSERVATIONS, Picture, Study, View

_VIEWS: dict[str, View] = {"frontal": "frontal", "lateral": "lateral", "": "unknown"}


class R2GenSettings(Settings):
    annotation: str = "annotation.json"
    """The annotation file, inside the folder."""
    images: str = "images"
    """The folder that the annotation's image paths count from."""


class R2GenJson(Source):
    name: ClassVar[str] = "r2gen-json"
    Settings: ClassVar = R2GenSettings

    def __init__(self, path: Path, settings: Any = None) -> None:
        super().__init__(path, settings)
        self.folder = path if path.is_dir() else path.parent
        self.annotation = path / self.settings.annotation if path.is_dir() else path
        self._rows: list[tuple[str, int, Any]] | None = None

    def __len__(self) -> int:
        return len(self._studies())

    def examinations(self) -> Iterator[Found | Damaged]:
        beside = _read_studies_csv(self.folder / "studies.csv")
        images = self.folder / self.settings.images
        for split, number, row in self._studies():
            where = f"{self.annotation}, {split} {number}"
            id = str(row.get("id", "")) if isinstance(row, dict) else ""
            try:
                yield Found(_study(row, id, split, beside.get(id, {}), images), where=where)
            except BadInput as error:
                yield Damaged(id or where, error.what, where, error.remedy or "")

    def _studies(self) -> list[tuple[str, int, Any]]:
        if self._rows is None:
            self._rows = list(_read_annotation(self.annotation))
        return self._rows


def _read_annotation(path: Path) -> Iterator[tuple[str, int, Any]]:
    """(split, number, row) of every study. Bytes that are no UTF-8 stay in the one report that they damage."""
    remedy = "give a folder with annotation.json and images/ as R2Gen has it"
    try:
        splits = json.loads(path.read_bytes().decode("utf-8-sig", "surrogateescape"))
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", where=path, remedy=remedy) from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"is no JSON ({error})", where=path, remedy=remedy) from error
    if not isinstance(splits, dict) or not all(isinstance(rows, list) for rows in splits.values()):
        raise BadInput("has no lists of studies by split", where=path, remedy=remedy)
    for split, rows in splits.items():
        if split_named(split) is None:
            raise BadInput(f"has a split {split!r}", where=path, remedy="known: train, val, test")
        for number, row in enumerate(rows):
            yield split, number, row


def _study(row: Any, id: str, split: str, beside: dict[str, str], images: Path) -> Study:
    """One row as a Study. Raises `BadInput` where it is not what such a row has to be."""
    remedy = "give it `id`, `report` (text) and `image_path` (a list)"
    if not isinstance(row, dict) or "id" not in row:
        raise BadInput("a row without an id", remedy=remedy)
    paths, report = row.get("image_path", []), row.get("report", "")
    paths = [paths] if isinstance(paths, str) else paths
    if not isinstance(report, str) or not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise BadInput("its report or its image_path is not what it should be", remedy=remedy)
    pictures = []
    for number, path in enumerate(paths):
        said = beside.get(f"view_{number}", "").strip()
        pictures.append(Picture(str(file_inside(images, path)), view=_VIEWS.get(said.lower(), "other"), position=said))
    sections = {"findings": report} | {name: beside[name] for name in ("indication", "impression") if beside.get(name)}
    named = split_named(split)
    assert named is not None
    return Study(
        id,
        tuple(pictures),
        report,
        named,
        patient=str(row.get("subject_id", "")),
        sections=sections,
        labels=_labels(beside, id),
        tags=tuple(tag.strip() for tag in beside.get("mesh", "").split(";") if tag.strip()),
    )


def _labels(beside: dict[str, str], id: str) -> dict[str, int]:
    labels = {}
    for observation in OBSERVATIONS:
        if said := (beside.get(observation) or "").strip():
            if said not in ("1", "0", "-1", "1.0", "0.0", "-1.0"):
                raise BadInput(
                    f"its label {observation!r} is {said!r}", where="studies.csv", remedy="1, 0, -1 or nothing"
                )
            labels[observation] = int(float(said))
    return labels


def _read_studies_csv(path: Path) -> dict[str, dict[str, str]]:
    if not path.is_file():
        return {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return {row["id"]: {key: value or "" for key, value in row.items() if key} for row in csv.DictReader(file)}
    except (OSError, UnicodeDecodeError, KeyError, csv.Error) as error:
        remedy = "mend it or take it away: it is not needed"
        raise BadInput(f"cannot be read ({type(error).__name__}: {error})", where=path, remedy=remedy) from error

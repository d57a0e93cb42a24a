"""MIMIC-CXR as PhysioNet ships it: the JPG release (2.0.0, 2.1.0) or the DICOM release, and the reports.

    mimic-cxr-2.0.0-split.csv.gz                             the official split, one row an image
    mimic-cxr-2.0.0-metadata.csv.gz                          View Position, one row an image
    mimic-cxr-2.0.0-chexpert.csv.gz                          CheXpert labels, one row a study
    files/p10/p10000032/s50414267/<dicom_id>.jpg (or .dcm)   images
    files/p10/p10000032/s50414267.txt                        reports: as files, or in mimic-cxr-reports.zip

Read in one of three ways: `single-image`, R2Gen's: each image is an example, with its study's findings; `two-view`: one
frontal and one lateral of each study that has both; `study`: every image of a study together. Studies without
findings have nothing to learn from: they are left out and counted.
"""

from __future__ import annotations

import csv
import gzip
import re
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict

from negatoscope.errors import BadInput
from negatoscope.studies.sections import parse_sections
from negatoscope.studies.sources import Damaged, Found, Settings, Source
from negatoscope.studies.study import OBSERVATIONS, Picture, Split, Study, View
from negatoscope.studies.view_words import view_from_words
from negatoscope.studies.zip_texts import ZipTexts
from negatoscope.watch import Watch, quiet

_SPLITS: dict[str, Split] = {"train": "train", "validate": "val", "val": "val", "test": "test"}
_ORDER: dict[View, int] = {"frontal": 0, "lateral": 1, "other": 2, "unknown": 3}
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z.-]*")
_GET_IT = "it is part of MIMIC-CXR-JPG on PhysioNet; where it lies elsewhere, set tables=FOLDER"


class MimicCxrSettings(Settings):
    model_config = ConfigDict(extra="forbid", frozen=True)

    reading: Literal["single-image", "two-view", "study"] = "single-image"
    """An example is one image with its study's report (R2Gen's), a study's frontal and lateral, or all its images."""
    sections: tuple[str, ...] = ("findings",)
    """What a report is made of, in this order. R2Gen and those who followed it: findings."""
    otherwise: tuple[str, ...] = ()
    """Sections of which the first that is there serves where those are empty: impression, last_paragraph."""
    views: tuple[View, ...] = ("frontal", "lateral", "other", "unknown")
    """Images of other views are left out and counted."""
    tables: Path | None = None
    """The folder of the split, metadata and chexpert tables; the DICOM release has none of its own."""
    reports: Path | None = None
    """mimic-cxr-reports.zip, or the folder above the reports' `files`."""
    folder: str = "files"
    """Where the images lie, inside the path."""
    images: Literal["auto", "jpg", "png", "dcm"] = "auto"
    """What the image files end in; that of the first one found if nothing is said."""
    present_only: bool = False
    """A part of the images was fetched: leave out and count those that are not there."""


class MimicCxr(Source):
    name: ClassVar[str] = "mimic-cxr"
    Settings: ClassVar = MimicCxrSettings

    def __init__(self, path: Path, settings: Any = None) -> None:
        super().__init__(path, settings)
        self.root = path
        self.report_sections = self.settings.sections
        self._index: sqlite3.Connection | None = None
        self._reports = Reports(path, self.settings.reports)

    def prepare(self, watch: Watch = quiet) -> None:
        """Brings the three tables together in a temporary database: memory does not grow with them."""
        if self._index is not None:
            return
        folder = self.settings.tables or self.root
        split, metadata = _table_path(folder, "split"), _table_path(folder, "metadata")
        labels = _table_path(folder, "chexpert")
        if split is None or metadata is None:
            lacking = "split" if split is None else "metadata"
            raise BadInput(f"no mimic-cxr-2.x-{lacking}.csv.gz", where=folder, remedy=_GET_IT)
        index = sqlite3.connect("", check_same_thread=False)
        index.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            "CREATE TABLE images (dicom PRIMARY KEY, study, subject, split) WITHOUT ROWID;"
            "CREATE TABLE views (dicom PRIMARY KEY, position, code, step) WITHOUT ROWID;"
            "CREATE TABLE labels (study PRIMARY KEY, labels) WITHOUT ROWID;"
        )
        with index:
            rows = watch(_rows(split, ("dicom_id", "study_id", "subject_id", "split")), "reading the split")
            index.executemany("INSERT OR REPLACE INTO images VALUES (?, ?, ?, ?)", rows)
            columns = (
                "dicom_id",
                "ViewPosition",
                "?ViewCodeSequence_CodeMeaning",
                "?PerformedProcedureStepDescription",
            )
            rows = watch(_rows(metadata, columns), "reading the metadata")
            index.executemany("INSERT OR REPLACE INTO views VALUES (?, ?, ?, ?)", rows)
            if labels is not None:
                rows = _rows(labels, ("study_id", *(f"?{name}" for name in OBSERVATIONS)))
                told = ((study, ",".join(values)) for study, *values in watch(rows, "reading the labels"))
                index.executemany("INSERT OR REPLACE INTO labels VALUES (?, ?)", told)
            index.execute("CREATE INDEX by_study ON images (subject, study, dicom)")
        self._index = index

    def __len__(self) -> int:
        if self._index is None:
            return 0
        what = "*" if self.settings.reading == "single-image" else "DISTINCT study"
        return self._index.execute(f"SELECT count({what}) FROM images").fetchone()[0]

    def examinations(self) -> Iterator[Found | Damaged]:
        self.prepare()
        self._reports.find()
        ending = self._ending()
        for rows in self._studies():
            yield from self._examination(rows, ending)

    def _studies(self) -> Iterator[list[tuple]]:
        """The rows of one study after the other."""
        assert self._index is not None
        rows = self._index.execute(
            "SELECT subject, study, dicom, split, position, code, step FROM images LEFT JOIN views USING (dicom) "
            "ORDER BY subject, study, dicom"
        )
        study: list[tuple] = []
        for row in rows:
            if study and study[0][1] != row[1]:
                yield study
                study = []
            study.append(row)
        if study:
            yield study

    def _ending(self) -> str:
        """Of the image files: that of the first one found, unless set."""
        if self.settings.images != "auto":
            return self.settings.images
        for rows in self._studies():
            for subject, study, dicom, *_ in rows:
                for ending in ("jpg", "dcm", "png"):
                    if _well_named(subject, study, dicom) and self._file(subject, study, dicom, ending).is_file():
                        return ending
        where = self.root / self.settings.folder
        raise BadInput(
            "none of the images that the split names", where=where, remedy="is this the folder above files/?"
        )

    def _file(self, subject: str, study: str, dicom: str, ending: str) -> Path:
        return self.root / self.settings.folder / _report_name(subject, study)[:-4] / f"{dicom}.{ending}"

    def _examination(self, rows: Sequence[tuple], ending: str) -> Iterator[Found | Damaged]:
        subject, study = rows[0][:2]
        id = f"s{study}"
        if not all(_well_named(*row[:3]) for row in rows):
            yield Damaged(id, "an id of the split table is none", str(self.root), "fetch the table again")
            return
        if len({row[3] for row in rows}) > 1 or rows[0][3] not in _SPLITS:
            what = f"its images are of the splits {sorted({row[3] for row in rows})}"
            yield Damaged(id, what, str(self.root), "known: train, validate, test")
            return
        try:
            where, text = self._reports.read(subject, study)
            told = None if text is None else self._report(parse_sections(text))
            labels = self._labels(study)
        except BadInput as error:
            yield Damaged.of(id, error)
            return
        if text is None or told is None or not told[1]:
            lacking = f"no {' or '.join((*self.settings.sections, *self.settings.otherwise))} in its report"
            yield Damaged(id, "no report" if text is None else lacking, where, known=True)
            return
        sections, report = told
        split = _SPLITS[rows[0][3]]
        for example, pictures in self._pictures(id, rows, ending):
            if isinstance(pictures, str):
                yield Damaged(example, pictures, str(self.root), known=True)
            else:
                yield Found(Study(example, pictures, report, split, subject, sections, labels), where=where)

    def _pictures(self, id: str, rows: Sequence[tuple], ending: str) -> Iterator[tuple[str, tuple[Picture, ...] | str]]:
        """(id of the example, its pictures or why it has none), by the reading."""
        pictures: list[tuple[str, Picture]] = []
        for subject, study, dicom, _, position, code, step in rows:
            path = self._file(subject, study, dicom, ending)
            view = view_from_words(position or "", code or "", step or "")
            if view not in self.settings.views:
                yield dicom, f"its view is {view}"
            elif self.settings.present_only and not path.is_file():
                yield dicom, "its image was not fetched"
            else:
                pictures.append((dicom, Picture(str(path), view=view, position=position or "")))
        if self.settings.reading == "single-image":
            yield from ((dicom, (picture,)) for dicom, picture in pictures)
            return
        # A patient who can stand is imaged from the back (PA): the better picture of two frontal ones.
        ordered = sorted(pictures, key=lambda one: (_ORDER[one[1].view], one[1].position != "PA", one[0]))
        if self.settings.reading == "study":
            yield id, tuple(picture for _, picture in ordered) or "none of its images is wanted"
            return
        pair = [next((one for _, one in ordered if one.view == view), None) for view in ("frontal", "lateral")]
        whole = tuple(picture for picture in pair if picture is not None)
        yield id, whole if len(whole) == 2 else "not seen from both sides"

    def _report(self, sections: dict[str, str]) -> tuple[dict[str, str], str]:
        wanted = [sections[name] for name in self.settings.sections if name in sections]
        wanted = wanted or [sections[name] for name in self.settings.otherwise if name in sections][:1]
        return sections, " ".join(" ".join(wanted).split())

    def _labels(self, study: str) -> dict[str, int]:
        assert self._index is not None
        row = self._index.execute("SELECT labels FROM labels WHERE study = ?", (study,)).fetchone()
        if row is None:
            return {}
        try:
            told = {name: float(value) for name, value in zip(OBSERVATIONS, row[0].split(",")) if value.strip()}
        except ValueError as error:
            raise BadInput(f"a CheXpert label is no number ({error})", remedy="fetch the table again") from error
        if wrong := set(told.values()) - {1.0, 0.0, -1.0}:
            raise BadInput(f"a CheXpert label is {wrong.pop()}", remedy="known: 1, 0, -1 or nothing")
        return {name: int(value) for name, value in told.items()}


class Reports:
    """The reports' texts, one at a time, from mimic-cxr-reports.zip or from a folder."""

    def __init__(self, root: Path, given: Path | None) -> None:
        self.given, self.root = given, root
        self._zip: ZipTexts | None = None
        self._folder: Path | None = None

    def read(self, subject: str, study: str) -> tuple[str, str | None]:
        """(where it lies, the text or None where there is none)."""
        self.find()
        name = f"files/{_report_name(subject, study)}"
        if self._zip is not None:
            where, data = f"{self._zip.path}, {name}", self._zip.read(name)
        else:
            assert self._folder is not None
            where, data = str(self._folder / name), _read_if_there(self._folder / name)
        return where, None if data is None else data.decode("utf-8", "surrogateescape")

    def find(self) -> None:
        """Raises BadInput where the reports cannot be read at all."""
        if self._zip is not None or self._folder is not None:
            return
        places = (self.given,) if self.given else (self.root / "mimic-cxr-reports.zip", self.root / "mimic-cxr-reports")
        place = next((place for place in places if place.exists()), None if self.given else self.root)
        if place is None:
            raise BadInput("no such zip or folder of reports", where=self.given, remedy="correct reports=PATH")
        if place.is_dir():
            self._folder = place if (place / "files").is_dir() or place.name != "files" else place.parent
        else:
            self._zip = ZipTexts(place)


def _read_if_there(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", where=path, remedy="check the file") from error


def _report_name(subject: str, study: str) -> str:
    return f"p{subject[:2]}/p{subject}/s{study}.txt"


def _well_named(subject: str, study: str, dicom: str) -> bool:
    """Whether the ids can be parts of a path: a table from elsewhere could hold '../..'."""
    return subject.isalnum() and study.isalnum() and bool(_ID.fullmatch(dicom))


def _table_path(folder: Path, what: str) -> Path | None:
    """The newest mimic-cxr-2.x-WHAT.csv.gz, or the same unpacked."""
    found = [*folder.glob(f"mimic-cxr-2.*-{what}.csv.gz"), *folder.glob(f"mimic-cxr-2.*-{what}.csv")]
    return max(found, default=None)


def _rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The columns of a CSV file, gzipped or not, row by row; a column named with '?' may be missing."""
    opened: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file)
            head = next(rows, [])
            for name in columns:
                if not name.startswith("?") and name not in head:
                    raise BadInput(f"has no column {name!r}", where=path, remedy="fetch the table again")
            places = [head.index(name.lstrip("?")) if name.lstrip("?") in head else None for name in columns]
            for row in rows:
                if len(row) < len(head):
                    raise BadInput("a row is too short", where=f"{path}, line {rows.line_num}", remedy="fetch it again")
                yield tuple("" if place is None else row[place] for place in places)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"is damaged or cut off ({error})", where=path, remedy="fetch the table again") from error

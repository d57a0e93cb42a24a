"""A folder of DICOM files, however nested and whatever they are called: one study for each Study Instance UID.

Every file's header is read once into a small database in a temporary file, so that a million files need no more memory
than ten. Names and birth dates are never read; patient ids leave as pseudonyms unless a setting says otherwise.

Reports, where there are any: structured reports among the files, `<Study Instance UID>.txt` beside the images, or a
CSV file or folder of such texts named by the setting `reports`.
"""

from __future__ import annotations

import csv
import hashlib
import hmac
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict

from negatoscope.errors import BadInput
from negatoscope.studies.pixels import DicomFacts, looks_like_dicom
from negatoscope.studies.sections import parse_sections, section_name
from negatoscope.studies.sources import Damaged, Found, Settings, Source
from negatoscope.studies.study import Picture, Study, View
from negatoscope.studies.view_words import view_from_words
from negatoscope.watch import Watch, quiet

_CHEST = ("CHEST", "THORAX", "LUNG", "RIB", "HEART", "STERNUM", "CLAVICLE", "PORT", "BABYGRAM", "WHOLEBODY")
_ORDER: dict[View, int] = {"frontal": 0, "lateral": 1, "other": 2, "unknown": 3}
_ID_COLUMNS = ("study_instance_uid", "studyinstanceuid", "study_uid", "study_id", "study", "id")


class DicomSettings(Settings):
    model_config = ConfigDict(extra="forbid", frozen=True)

    modalities: tuple[str, ...] = ("CR", "DX", "RG")
    """Radiographs; what else lies in the folder is left out and counted."""
    other_modalities: Literal["leave-out", "keep"] = "leave-out"
    """`keep`: taken in with the view 'other'."""
    patient_ids: Literal["pseudonym", "as-is", "none"] = "pseudonym"
    """How patients are told apart in the store: by a keyed hash of their id, by the id itself, or not at all."""
    pseudonym_key: Path | None = None
    """A file with a secret. Without one, who has a list of patient ids can find out which pseudonym is whose."""
    reports: Path | None = None
    """A CSV file with a column of Study Instance UIDs and `report` or `findings` and `impression`, or a folder of
    `<Study Instance UID>.txt`."""
    report_sections: tuple[str, ...] = ("findings",)
    """What a study's report is made of. A report without headings is taken whole."""


class DicomFolder(Source):
    name: ClassVar[str] = "dicom"
    Settings: ClassVar = DicomSettings
    has_reports: ClassVar[bool] = False

    def __init__(self, path: Path, settings: Any = None) -> None:
        super().__init__(path, settings)
        self.folder = path
        self.report_sections = self.settings.report_sections
        self._index: sqlite3.Connection | None = None
        self._pseudonym = _pseudonyms(self.settings)

    def prepare(self, watch: Watch = quiet) -> None:
        """Reads every file's header."""
        if self._index is not None:
            return
        if not self.folder.is_dir():
            raise BadInput("no such folder", where=self.folder, remedy="give the folder that holds the DICOM files")
        index = _new_index()
        with index:
            for path in watch(_files(self.folder), "reading DICOM headers"):
                _enter(index, path, self.folder)
            if self.settings.reports is not None:
                index.executemany("INSERT OR REPLACE INTO reports VALUES (?, ?, ?)", _reports(self.settings.reports))
        self._index = index

    def __len__(self) -> int:
        if self._index is None:
            return 0
        return self._index.execute("SELECT count(DISTINCT study) FROM images").fetchone()[0]

    def examinations(self) -> Iterator[Found | Damaged]:
        self.prepare()
        assert self._index is not None
        for path, what, known in self._index.execute("SELECT path, what, known FROM strays ORDER BY path"):
            yield Damaged(path, what, str(self.folder / path), "mend or remove the file", known=bool(known))
        rows = self._index.execute(
            "SELECT study, series, number, instance, path, patient, modality, view, position, frames FROM images "
            "ORDER BY study, series, number, instance, path"
        )
        study: list[tuple] = []
        for row in rows:
            if study and study[0][0] != row[0]:
                yield from self._study(study)
                study = []
            study.append(row)
        if study:
            yield from self._study(study)

    def _study(self, rows: list[tuple]) -> Iterator[Found | Damaged]:
        """One study's images, in the order of their series and numbers, frontal views first."""
        uid, patient = rows[0][0], rows[0][5]
        pictures: dict[str, Picture] = {}
        for _, _, _, instance, inside, _, modality, view, position, frames in rows:
            path = os.fsdecode(inside)
            where = str(self.folder / path)
            wanted = modality in self.settings.modalities
            if not wanted and self.settings.other_modalities == "leave-out":
                yield Damaged(path, f"modality {modality or 'not given'} is no radiograph", where, known=True)
            elif instance and instance in pictures:
                yield Damaged(path, "the same image a second time (SOP Instance UID)", where, known=True)
            elif frames > 1:
                yield Damaged(path, f"holds {frames} frames", where, "split the file, or leave it out")
            else:
                pictures[instance or path] = Picture(where, view=view if wanted else "other", position=position)
        if any(row[5] != patient for row in rows):
            yield Damaged(uid, "its images name different patients", str(self.folder), "correct the Patient IDs")
        elif pictures:
            ordered = sorted(pictures.values(), key=lambda picture: _ORDER[picture.view])
            sections = self._sections(uid, Path(ordered[0].path).parent)
            report = " ".join(" ".join(sections.get(name, "") for name in self.report_sections).split())
            if not report and "full report" in sections:
                report = " ".join(sections["full report"].split())
            study = Study(uid, tuple(ordered), report, patient=self._pseudonym(patient), sections=sections)
            yield Found(study, where=str(self.folder))

    def _sections(self, uid: str, beside: Path) -> dict[str, str]:
        assert self._index is not None
        told = self._index.execute("SELECT name, text FROM reports WHERE study = ? ORDER BY rowid", (uid,)).fetchall()
        sections: dict[str, str] = {}
        for name, text in told:
            sections |= {name: text} if name else parse_sections(text)
        text_beside = beside / f"{uid}.txt"
        if not sections and text_beside.is_file():
            sections = parse_sections(_text_of(text_beside))
        return sections


def view_of(facts: DicomFacts) -> View:
    """By View Position, the view's code, the series' description, in this order. A leg from the front is no frontal."""
    if facts.body_part and not any(part in facts.body_part.upper().replace(" ", "") for part in _CHEST):
        return "other"
    return view_from_words(facts.position, facts.view_code, facts.series_description)


def _new_index() -> sqlite3.Connection:
    """In a file without a name, gone when the process is."""
    index = sqlite3.connect("", check_same_thread=False)
    index.executescript(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
        "CREATE TABLE images"
        " (study, series, number INTEGER, instance, path, patient, modality, view, position, frames INTEGER);"
        "CREATE TABLE strays (path, what, known);"
        "CREATE TABLE reports (study, name, text, UNIQUE (study, name));"
    )
    return index


def _files(folder: Path) -> Iterator[Path]:
    """Every file below the folder, always in the same order, without following links to folders."""
    for here, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            yield Path(here) / name


def _enter(index: sqlite3.Connection, path: Path, folder: Path) -> None:
    from negatoscope.studies import dicom_file

    inside = os.fsencode(path.relative_to(folder))  # file names need not be Unicode
    name = inside.decode("utf-8", "backslashreplace")
    stray = "INSERT INTO strays VALUES (?, ?, ?)"
    try:
        if not _is_dicom(path):
            called_dicom = path.suffix.lower() in (".dcm", ".dicom")
            what = "is no DICOM file, though its name says so" if called_dicom else "is no DICOM file"
            index.execute(stray, (name, what, not called_dicom))
            return
        facts = dicom_file.read_facts(path)
        if facts.modality == "SR":
            for section, text in dicom_file.read_report(path).items():
                index.execute("INSERT OR REPLACE INTO reports VALUES (?, ?, ?)", (facts.study, section, text))
        elif not facts.rows:
            index.execute(stray, (name, f"is DICOM without an image ({facts.modality or 'no modality'})", True))
        elif not facts.study:
            index.execute(stray, (name, "has no Study Instance UID", False))
        else:
            of_series = (facts.study, facts.series, facts.number, facts.instance, inside, facts.patient, facts.modality)
            row = (*of_series, view_of(facts), facts.position, facts.frames)
            index.execute(f"INSERT INTO images VALUES ({', '.join('?' * len(row))})", row)
    except BadInput as error:
        index.execute(stray, (name, error.what, False))


def _is_dicom(path: Path) -> bool:
    try:
        if not path.is_file():
            return False  # a pipe, a broken link
        with path.open("rb") as file:
            return looks_like_dicom(file.read(132))
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", where=path) from error


def _pseudonyms(settings: DicomSettings):
    """The function that gives a patient id its pseudonym: the same one each time."""
    if settings.patient_ids != "pseudonym":
        return (lambda patient: patient) if settings.patient_ids == "as-is" else (lambda patient: "")
    key = b"negatoscope"
    if settings.pseudonym_key is not None:
        try:
            key = settings.pseudonym_key.read_bytes()
        except OSError as error:
            raise BadInput(
                "cannot be read", where=settings.pseudonym_key, remedy="give a file with a secret"
            ) from error
    return lambda patient: hmac.new(key, patient.encode(), hashlib.sha256).hexdigest()[:16] if patient else ""


def _reports(path: Path) -> Iterator[tuple[str, str, str]]:
    """(study, section or '' for a whole report, text) of a CSV file or a folder of texts."""
    if path.is_dir():
        for file in sorted(path.glob("*.txt")):
            yield file.stem, "", _text_of(file)
        return
    with _opened_csv(path) as rows:
        columns = {name.strip().lower().replace(" ", "_"): name for name in rows.fieldnames or ()}
        study = next((columns[name] for name in _ID_COLUMNS if name in columns), None)
        texts = {"" if name in ("report", "text") else section_name(name): column for name, column in columns.items()}
        texts = {
            name: texts[name] for name in ("", "findings", "impression", "indication", "comparison") if name in texts
        }
        if study is None or not texts:
            remedy = "name them study_instance_uid and report, or findings and impression"
            raise BadInput("has no column of study ids or none of reports", where=path, remedy=remedy)
        for row in rows:
            for name, column in texts.items():
                if row[study] and (row[column] or "").strip():
                    yield row[study].strip(), name, row[column]


@contextmanager
def _opened_csv(path: Path) -> Iterator[csv.DictReader]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield csv.DictReader(file)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"cannot be read ({error})", where=path, remedy="give a CSV file in UTF-8") from error


def _text_of(path: Path) -> str:
    """UTF-8, or Latin-1 as older systems write it."""
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")

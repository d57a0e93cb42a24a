"""Reports in the forms that the field writes: JSONL, three kinds of CSV, ReXrank's JSON, lines of text, R2Gen's JSON.

`read_reports` guesses the form and says which it took; it can be told. Nothing is dropped on the way: a row that
cannot be read is an error with file and line, an empty report is an empty string. Pairing predictions with references
is `pairs.py`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from negatoscope.errors import BadInput, WrongUse, nearest_names
from negatoscope.metrics.form_readers import (
    ID_FIELDS,
    NAMES,
    READERS,
    TEXT_FIELDS,
    Role,
    Row,
    csv_rows,
    delimiter_of,
    first_of,
    no_column,
    parsed,
)

Form = Literal["jsonl", "csv", "chexpert", "chexbert", "rexrank", "lines", "json", "annotation", "karpathy"]

FORMS: Mapping[str, str] = {
    "jsonl": "one JSON object a line: id, report",
    "csv": "CSV with a header: study_id, report",
    "chexpert": "one-column CSV without a header, as chexpert-labeler and R2Gen's res.csv",
    "chexbert": "CSV with a column 'Report Impression', as CheXbert",
    "rexrank": "ReXrank's JSON: study id -> model_prediction and the reference's findings and impression",
    "lines": "plain text, one report a line, as ViLMedic",
    "json": "JSON lists or objects of reports, as R2Gen's descendants write",
    "annotation": "R2Gen's annotation.json; one of its splits",
    "karpathy": "dataset_coco.json in Karpathy's split; all captions of each image",
}


@dataclass(frozen=True)
class Reports:
    """One file of reports, in the file's order."""

    path: Path
    form: Form
    """The form that was taken, guessed or told."""
    ids: tuple[str, ...]
    """Study ids; '1', '2' ... where the form has none (`numbered`)."""
    wordings: tuple[tuple[str, ...], ...]
    """The texts of each study: one, or several where a study has several references."""
    lines: tuple[int, ...]
    """Where each stands in the file, 0 where the form has no lines."""
    numbered: bool
    sha256: str
    """Of the file's bytes."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The first wording of each."""
        return tuple(wording[0] for wording in self.wordings)

    def __len__(self) -> int:
        return len(self.ids)

    def where(self, position: int) -> str:
        return f"{self.path}:{self.lines[position]}" if self.lines[position] else f"{self.path}, report {position + 1}"


def read_reports(path: Path | str, form: str = "auto", *, role: Role = "prediction", split: str = "test") -> Reports:
    """Reads a file in any of `FORMS`. `role` tells which text to take where a file holds predictions and references;
    `split` is for annotation.json. Raises BadInput with file and line, WrongUse for a form or a split that does not
    exist."""
    path = Path(path)
    if form != "auto" and form not in FORMS:
        raise WrongUse(f"unknown form {form!r}", where=path, remedy=nearest_names(form, ("auto", *FORMS)))
    raw = bytes_of(path)
    text = decoded(raw, path)
    taken: Form = _guess(text, path) if form == "auto" else form  # pyright: ignore[reportAssignmentType]
    rows = list(READERS[taken](text, path, role, split))
    if not rows:
        raise BadInput("holds no reports", where=path, remedy=f"read as {taken}: {FORMS[taken]}; --form says otherwise")
    numbered = all(row.id is None for row in rows)
    if not numbered:
        _check_ids(rows, path)
    return Reports(
        path=path,
        form=taken,
        ids=tuple(str(n) if row.id is None else row.id for n, row in enumerate(rows, start=1)),
        wordings=tuple(row.wording for row in rows),
        lines=tuple(row.line for row in rows),
        numbered=numbered,
        sha256=hashlib.sha256(raw).hexdigest(),
    )


def bytes_of(path: Path) -> bytes:
    if path.is_dir():
        raise BadInput("is a folder, not a file of reports", where=path)
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise BadInput("no such file", where=path) from error


def decoded(raw: bytes, path: Path) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        written_as = "UTF-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "WINDOWS-1252"
        raise BadInput(
            f"byte {error.start} (0x{raw[error.start]:02x}) is not UTF-8",
            where=f"{path}:{line}",
            remedy=f"save the file as UTF-8: iconv -f {written_as} -t UTF-8",
        ) from error


def _check_ids(rows: Sequence[Row], path: Path) -> None:
    first: dict[str, Row] = {}
    for position, row in enumerate(rows, start=1):
        where = f"{path}:{row.line}" if row.line else f"{path}, report {position}"
        if not row.id:
            raise BadInput("has no id, though others in this file do", where=where)
        if row.id in first:
            before = f"line {first[row.id].line}" if row.line else "above"
            raise BadInput(
                f"study {row.id!r} stands twice, first {before}", where=where, remedy="keep one report a study"
            )
        first[row.id] = row


# ---- which form ----


def _guess(text: str, path: Path) -> Form:
    start = text.lstrip()[:1]
    suffix = path.suffix.lower()
    if suffix in (".jsonl", ".ndjson"):
        return "jsonl"
    if suffix == ".json" or (start in ("{", "[") and suffix not in (".csv", ".txt")):
        return _guess_json(text, path)
    if suffix in (".csv", ".tsv") or _is_table(text, path):
        return _guess_csv(text, path)
    return "lines"


def _guess_json(text: str, path: Path) -> Form:
    try:
        value = parsed(text, path, whole_file=True)
    except BadInput:
        first, more = text.lstrip().split("\n", 1)[0], "\n" in text.strip()
        if more and _is_json(first):
            return "jsonl"
        raise
    if isinstance(value, dict) and value:
        inside = list(value.values())
        if all(isinstance(part, list) for part in inside) and value.keys() & {"train", "val", "test"}:
            return "annotation"
        if isinstance(value.get("images"), list) and any("sentences" in one for one in value["images"][:1]):
            return "karpathy"
        if all(isinstance(part, dict) for part in inside) and any("model_prediction" in part for part in inside):
            return "rexrank"
        if first_of(ID_FIELDS, value) and first_of((*TEXT_FIELDS["prediction"], *TEXT_FIELDS["reference"]), value):
            return "jsonl"
    return "json"


# A header that a person gave to a single column of reports: "findings", "report_text", "Clean_Impression".
_HEADER = re.compile(r"\w*(report|finding|impression|text|caption|predict|reference)\w*", re.I)


def _guess_csv(text: str, path: Path) -> Form:
    first = next(csv_rows(text, path, delimiter_of(text, path)), (1, []))[1]
    names = [cell.strip() for cell in first]
    if "Report Impression" in names:
        return "chexbert"
    if any(name.lower() in NAMES for name in names) or (len(names) == 1 and _HEADER.fullmatch(names[0])):
        return "csv"
    if len(names) > 1:
        raise no_column(path, names, "prediction")
    return "chexpert"


def _is_table(text: str, path: Path) -> bool:
    """Whether a file of another name than .csv starts with a header that names ids and reports."""
    first = text.split("\n", 1)[0].removesuffix("\r")
    names = [name.strip(' "').lower() for name in first.split(delimiter_of(first, path))]
    return len(names) > 1 and any(name in NAMES for name in names) and first_of(ID_FIELDS, names) is not None


def _is_json(line: str) -> bool:
    try:
        parsed(line, "")
    except BadInput:
        return False
    return True

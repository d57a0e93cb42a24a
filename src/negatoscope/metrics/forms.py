"""Reports in the forms that the field writes: JSONL, three kinds of CSV, ReXrank's JSON, lines of text, R2Gen's JSON.

`read_reports` guesses the form and says which it took; it can be told. Nothing is dropped on the way: a row that
cannot be read is an error with file and line, an empty report is an empty string. Pairing predictions with references
is `pairs.py`."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from negatoscope.errors import BadInput, WrongUse, nearest_names

Form = Literal["jsonl", "csv", "chexpert", "chexbert", "rexrank", "lines", "json", "annotation"]
Role = Literal["prediction", "reference"]

FORMS: Mapping[str, str] = {
    "jsonl": "one JSON object a line: id, report",
    "csv": "CSV with a header: study_id, report",
    "chexpert": "one-column CSV without a header, as chexpert-labeler and R2Gen's res.csv",
    "chexbert": "CSV with a column 'Report Impression', as CheXbert",
    "rexrank": "ReXrank's JSON: study id -> model_prediction and the reference's findings and impression",
    "lines": "plain text, one report a line, as ViLMedic",
    "json": "JSON lists or objects of reports, as R2Gen's descendants write",
    "annotation": "R2Gen's annotation.json; one of its splits",
}

ID_FIELDS = ("id", "study_id", "uid", "image_id", "img_id", "study", "dicom_id", "filename", "name")
_REPORT_FIELDS = ("report", "Report Impression", "reports", "text", "caption")
TEXT_FIELDS: Mapping[str, tuple[str, ...]] = {
    "prediction": (
        *(
            "prediction",
            "pred",
            "model_prediction",
            "generated_report",
            "generated",
            "hypothesis",
            "hyp",
            "result",
            "res",
        ),
        *_REPORT_FIELDS,
    ),
    "reference": (
        *("reference", "references", "ref", "ground_truth", "gt", "gts", "target", "original_report"),
        *_REPORT_FIELDS,
    ),
}
# A file of two lists: {"res": [...], "gts": [...]}.
LIST_FIELDS: Mapping[str, tuple[str, ...]] = {
    "prediction": ("res", "results", "predictions", "preds", "hypotheses", "hyps", "generated"),
    "reference": ("gts", "ground_truths", "references", "refs", "targets"),
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


@dataclass(frozen=True, slots=True)
class _Row:
    id: str | None
    wording: tuple[str, ...]
    line: int = 0


def read_reports(path: Path | str, form: str = "auto", *, role: Role = "prediction", split: str = "test") -> Reports:
    """Reads a file in any of `FORMS`. `role` tells which text to take where a file holds predictions and references;
    `split` is for annotation.json. Raises BadInput with file and line, WrongUse for a form or a split that does not
    exist."""
    path = Path(path)
    if form != "auto" and form not in FORMS:
        raise WrongUse(f"unknown form {form!r}", where=path, remedy=nearest_names(form, ("auto", *FORMS)))
    raw = _bytes_of(path)
    text = _decoded(raw, path)
    taken: Form = _guess(text, path) if form == "auto" else form  # pyright: ignore[reportAssignmentType]
    rows = list(_READERS[taken](text, path, role, split))
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


def _bytes_of(path: Path) -> bytes:
    if path.is_dir():
        raise BadInput("is a folder, not a file of reports", where=path)
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise BadInput("no such file", where=path) from error


def _decoded(raw: bytes, path: Path) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise BadInput(
            f"byte {error.start} (0x{raw[error.start]:02x}) is not UTF-8",
            where=f"{path}:{line}",
            remedy="save the file as UTF-8: iconv -f WINDOWS-1252 -t UTF-8",
        ) from error


def _check_ids(rows: Sequence[_Row], path: Path) -> None:
    first: dict[str, _Row] = {}
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
    if suffix == ".csv":
        return _guess_csv(text, path)
    return "lines"


def _guess_json(text: str, path: Path) -> Form:
    try:
        value = json.loads(text)
    except ValueError as error:
        first = text.lstrip().split("\n", 1)[0]
        if _is_json(first):
            return "jsonl"
        raise _not_json(error, path) from error
    if isinstance(value, dict) and value:
        inside = list(value.values())
        if all(isinstance(part, list) for part in inside) and value.keys() & {"train", "val", "test"}:
            return "annotation"
        if all(isinstance(part, dict) for part in inside) and any("model_prediction" in part for part in inside):
            return "rexrank"
        if _first_of(ID_FIELDS, value) and _first_of((*TEXT_FIELDS["prediction"], *TEXT_FIELDS["reference"]), value):
            return "jsonl"
    return "json"


def _guess_csv(text: str, path: Path) -> Form:
    first = next(_csv_rows(text, path), (1, []))[1]
    names = [cell.strip() for cell in first]
    if "Report Impression" in names:
        return "chexbert"
    known = {name.lower() for role in get_args(Role) for name in TEXT_FIELDS[role]}
    if any(name.lower() in known for name in names):
        return "csv"
    if len(names) > 1:
        raise _no_column(path, names, ("study_id", "report"))
    return "chexpert"


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


# ---- the readers, one a form ----


def _read_jsonl(text: str, path: Path, role: Role, split: str) -> Iterator[_Row]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            value = json.loads(line)
        except ValueError as error:
            raise BadInput(f"not JSON ({error})", where=where) from error
        if not isinstance(value, dict):
            raise BadInput(f"a {_kind(value)}, not an object with id and report", where=where)
        yield _row_of(value, role, where, number)


def _read_csv(text: str, path: Path, role: Role, split: str) -> Iterator[_Row]:
    rows = _csv_rows(text, path)
    _, header = next(rows, (1, []))
    names = [name.strip() for name in header]
    column = _first_of(TEXT_FIELDS[role], names)
    if column is None:
        raise _no_column(path, names, ("study_id", "report"))
    if names.count(column) > 1:
        raise BadInput(f"two columns are called {column!r}", where=f"{path}:1")
    id_column = _first_of(ID_FIELDS, names)
    for line, cells in rows:
        if not cells:
            continue
        if len(cells) != len(names):
            raise BadInput(
                f"{len(cells)} columns where the header has {len(names)}",
                where=f"{path}:{line}",
                remedy="quote a report that holds commas or line breaks",
            )
        row = dict(zip(names, cells))
        yield _Row(row[id_column].strip() if id_column else None, (row[column],), line)


def _read_chexbert(text: str, path: Path, role: Role, split: str) -> Iterator[_Row]:
    header = next(_csv_rows(text, path), (1, []))[1]
    if "Report Impression" not in [name.strip() for name in header]:
        raise _no_column(path, header, ("Report Impression",))
    yield from _read_csv(text, path, role, split)


def _read_one_column(text: str, path: Path, role: Role, split: str) -> Iterator[_Row]:
    for line, cells in _csv_rows(text, path):
        if len(cells) > 1:
            raise BadInput(
                f"{len(cells)} columns where a headerless CSV has one",
                where=f"{path}:{line}",
                remedy="quote reports that hold commas, or give the columns a header: study_id,report",
            )
        yield _Row(None, (cells[0] if cells else "",), line)


def _read_lines(text: str, path: Path, role: Role, split: str) -> Iterator[_Row]:
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, start=1):
        yield _Row(None, (line.removesuffix("\r"),), number)


def _read_rexrank(text: str, path: Path, role: Role, split: str) -> Iterator[_Row]:
    value = _json_of(text, path)
    if not isinstance(value, dict):
        raise BadInput(f"a {_kind(value)}, not an object of studies", where=path, remedy="--form json reads lists")
    for study, entry in value.items():
        where = f"{path}, study {study!r}"
        if not isinstance(entry, dict):
            raise BadInput(f"a {_kind(entry)}, not an object", where=where)
        if role == "reference" and not _first_of(TEXT_FIELDS["reference"], entry):
            yield _Row(study, (_sections(entry, where),))
        else:
            yield _Row(study, _row_of({**entry, "id": study}, role, where, 0).wording)


def _sections(entry: Mapping[str, Any], where: str) -> str:
    """ReXrank scores findings and impression together; either may be missing."""
    names = [_first_of((name, f"section_{name}"), entry) for name in ("findings", "impression")]
    if not any(names):
        raise BadInput("no report, findings or impression to compare with", where=where)
    return " ".join(text for name in names if name and (text := _text_of(entry[name], f"{where}, {name}")))


def _read_json(text: str, path: Path, role: Role, split: str) -> Iterator[_Row]:
    value = _json_of(text, path)
    if isinstance(value, dict):
        both = _first_of(LIST_FIELDS[role], value)
        if both and isinstance(value[both], list | dict):
            value = value[both]
        elif _first_of(LIST_FIELDS["prediction"] + LIST_FIELDS["reference"], value):
            raise _no_column(path, list(value), LIST_FIELDS[role])
    if isinstance(value, dict):
        for study, report in value.items():
            where = f"{path}, study {study!r}"
            if isinstance(report, dict):
                yield _row_of({**report, "id": study}, role, where, 0)
            else:
                yield _Row(study, _wording_of(report, where))
        return
    if not isinstance(value, list):
        raise BadInput(f"a {_kind(value)}, not a list of reports", where=path)
    for position, entry in enumerate(value):
        where = f"{path}, entry {position + 1}"
        if isinstance(entry, dict):
            # XProNet's caption_data.json starts with the figures it measured: no text in it, and no id.
            if position == 0 and _is_figures(entry):
                continue
            yield _row_of(entry, role, where, 0)
        else:
            yield _Row(None, _wording_of(entry, where))


def _is_figures(entry: Mapping[str, Any]) -> bool:
    return (
        bool(entry)
        and all(isinstance(figure, int | float) for figure in entry.values())
        and not _first_of(ID_FIELDS, entry)
    )


def _read_annotation(text: str, path: Path, role: Role, split: str) -> Iterator[_Row]:
    value = _json_of(text, path)
    if not isinstance(value, dict):
        raise BadInput(f"a {_kind(value)}, not an object of splits", where=path)
    if split not in value:
        raise WrongUse(f"no split {split!r}", where=path, remedy=nearest_names(split, value))
    for position, entry in enumerate(value[split]):
        yield _row_of(entry, role, f"{path}, {split} {position + 1}", 0)


_READERS: Mapping[str, Callable[[str, Path, Role, str], Iterable[_Row]]] = {
    "jsonl": _read_jsonl,
    "csv": _read_csv,
    "chexpert": _read_one_column,
    "chexbert": _read_chexbert,
    "rexrank": _read_rexrank,
    "lines": _read_lines,
    "json": _read_json,
    "annotation": _read_annotation,
}


# ---- what they share ----


def _csv_rows(text: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """(line on which the row starts, cells). The csv module's own limit of 128 KiB a cell is lifted meanwhile:
    a 100,000-word report is longer."""
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    limit = csv.field_size_limit()
    line = 1
    while True:
        csv.field_size_limit(max(limit, len(text) + 1))
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise BadInput(
                f"not CSV ({error})", where=f"{path}:{line}", remedy="is a quotation mark left open?"
            ) from error
        finally:
            csv.field_size_limit(limit)
        yield line, cells
        line = rows.line_num + 1


def _row_of(entry: Any, role: Role, where: str, line: int) -> _Row:
    if not isinstance(entry, dict):
        raise BadInput(f"a {_kind(entry)}, not an object", where=where)
    field = _first_of(TEXT_FIELDS[role], entry)
    if field is None:
        raise _no_column(where, list(entry), TEXT_FIELDS[role][-len(_REPORT_FIELDS) :][:1] + TEXT_FIELDS[role][:1])
    id_field = _first_of(ID_FIELDS, entry)
    return _Row(_id_of(entry[id_field], where) if id_field else None, _wording_of(entry[field], where), line)


def _id_of(value: Any, where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise BadInput(f"the id is a {_kind(value)}", where=where)
    return str(value).strip()


def _wording_of(value: Any, where: str) -> tuple[str, ...]:
    if isinstance(value, list):
        if not value:
            raise BadInput("an empty list where a report should be", where=where)
        return tuple(_text_of(text, where) for text in value)
    return (_text_of(value, where),)


def _text_of(value: Any, where: str) -> str:
    """A report that is null or NaN, as pandas writes a missing one, is an empty report."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if not isinstance(value, str):
        raise BadInput(f"the report is a {_kind(value)}, not text", where=where)
    return value


def _first_of(names: Iterable[str], there: Iterable[str]) -> str | None:
    """The first of `names` that is there, in the file's own spelling of capitals."""
    spelt = {name.lower(): name for name in there}
    return next((spelt[name.lower()] for name in names if name.lower() in spelt), None)


def _json_of(text: str, path: Path) -> Any:
    twice: list[str] = []

    def unique(items: list[tuple[str, Any]]) -> dict[str, Any]:
        twice.extend(name for name, count in Counter(name for name, _ in items).items() if count > 1)
        return dict(items)

    try:
        value = json.loads(text, object_pairs_hook=unique)
    except ValueError as error:
        raise _not_json(error, path) from error
    if twice:
        raise BadInput(f"{twice[0]!r} stands twice in one object", where=path, remedy="keep one report a study")
    return value


def _not_json(error: ValueError, path: Path) -> BadInput:
    line = getattr(error, "lineno", 0)
    return BadInput(f"not JSON ({error})", where=f"{path}:{line}" if line else path)


def _no_column(where: object, there: Sequence[str], wanted: Sequence[str]) -> BadInput:
    shown = ", ".join(repr(name[:40]) for name in there[:8]) or "nothing"
    return BadInput(f"has {shown}; needs {' or '.join(repr(name) for name in wanted)}", where=where)


def _kind(value: Any) -> str:
    kinds = {dict: "object", list: "list", str: "string", bool: "truth value", type(None): "null"}
    return kinds.get(type(value), "number")

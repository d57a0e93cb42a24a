"""One reader for each form of a file of reports: text in, rows out, or an error that says where."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from negatoscope.errors import BadInput, WrongUse, nearest_names

Role = Literal["prediction", "reference"]

ID_FIELDS = ("id", "study_id", "uid", "image_id", "img_id", "study", "dicom_id", "filename", "name")
_REPORT_FIELDS = ("report", "Report Impression", "reports", "text", "caption")
TEXT_FIELDS: Mapping[str, tuple[str, ...]] = {
    "prediction": (
        *("prediction", "pred", "model_prediction", "generated_report", "generated"),
        *("hypothesis", "hyp", "result", "res"),
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


@dataclass(frozen=True, slots=True)
class Row:
    id: str | None
    wording: tuple[str, ...]
    line: int = 0


# ---- the readers, one a form ----


def _read_jsonl(text: str, path: Path, role: Role, split: str) -> Iterator[Row]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        value = parsed(line, where)
        if not isinstance(value, dict):
            raise BadInput(f"a {_kind(value)}, not an object with id and report", where=where)
        yield _row_of(value, role, where, number)


def _read_csv(text: str, path: Path, role: Role, split: str) -> Iterator[Row]:
    rows = csv_rows(text, path, delimiter_of(text, path))
    _, header = next(rows, (1, []))
    names = [name.strip() for name in header]
    column = names[0] if len(names) == 1 else first_of(TEXT_FIELDS[role], names)
    if column is None:
        raise no_column(path, names, role)
    if names.count(column) > 1:
        raise BadInput(f"two columns are called {column!r}", where=f"{path}:1")
    id_column = first_of(ID_FIELDS, names)
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
        yield Row(row[id_column].strip() if id_column else None, (row[column],), line)


def _read_chexbert(text: str, path: Path, role: Role, split: str) -> Iterator[Row]:
    header = next(csv_rows(text, path, delimiter_of(text, path)), (1, []))[1]
    if "Report Impression" not in [name.strip() for name in header]:
        raise BadInput("no column 'Report Impression'", where=path, remedy=f"--form csv reads {', '.join(header[:8])}")
    yield from _read_csv(text, path, role, split)


def _read_one_column(text: str, path: Path, role: Role, split: str) -> Iterator[Row]:
    for line, cells in csv_rows(text, path):
        if len(cells) > 1:
            raise BadInput(
                f"{len(cells)} columns where a headerless CSV has one",
                where=f"{path}:{line}",
                remedy="quote reports that hold commas, or give the columns a header: study_id,report",
            )
        yield Row(None, (cells[0] if cells else "",), line)


def _read_lines(text: str, path: Path, role: Role, split: str) -> Iterator[Row]:
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, start=1):
        yield Row(None, (line.removesuffix("\r"),), number)


def _read_rexrank(text: str, path: Path, role: Role, split: str) -> Iterator[Row]:
    value = parsed(text, path, whole_file=True)
    if not isinstance(value, dict):
        raise BadInput(f"a {_kind(value)}, not an object of studies", where=path, remedy="--form json reads lists")
    for study, entry in value.items():
        where = f"{path}, study {study!r}"
        if not isinstance(entry, dict):
            raise BadInput(f"a {_kind(entry)}, not an object", where=where)
        if role == "reference" and not first_of(TEXT_FIELDS["reference"], entry):
            yield Row(study, (_sections(entry, where),))
        else:
            yield Row(study, _row_of({**entry, "id": study}, role, where, 0).wording)


def _sections(entry: Mapping[str, Any], where: str) -> str:
    """ReXrank scores findings and impression together; either may be missing."""
    names = [first_of((name, f"section_{name}"), entry) for name in ("findings", "impression")]
    if not any(names):
        raise BadInput("no report, findings or impression to compare with", where=where)
    return " ".join(text for name in names if name and (text := text_of(entry[name], f"{where}, {name}")))


def _read_json(text: str, path: Path, role: Role, split: str) -> Iterator[Row]:
    value = parsed(text, path, whole_file=True)
    if isinstance(value, dict):
        both = first_of(LIST_FIELDS[role], value)
        if both and isinstance(value[both], list | dict):
            value = value[both]
        elif first_of(LIST_FIELDS["prediction"] + LIST_FIELDS["reference"], value):
            raise BadInput(
                f"has {', '.join(map(repr, list(value)[:8]))}; a list of {role}s is called {LIST_FIELDS[role][0]!r}",
                where=path,
            )
    if isinstance(value, dict):
        for study, report in value.items():
            where = f"{path}, study {study!r}"
            if isinstance(report, dict):
                yield _row_of({**report, "id": study}, role, where, 0)
            else:
                yield Row(study, _wording_of(report, where))
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
            yield Row(None, _wording_of(entry, where))


def _is_figures(entry: Mapping[str, Any]) -> bool:
    return (
        bool(entry)
        and all(isinstance(figure, int | float) for figure in entry.values())
        and not first_of(ID_FIELDS, entry)
    )


def _read_annotation(text: str, path: Path, role: Role, split: str) -> Iterator[Row]:
    value = parsed(text, path, whole_file=True)
    if not isinstance(value, dict):
        raise BadInput(f"a {_kind(value)}, not an object of splits", where=path)
    if split not in value:
        raise WrongUse(f"no split {split!r}", where=path, remedy=nearest_names(split, value))
    for position, entry in enumerate(value[split]):
        yield _row_of(entry, role, f"{path}, {split} {position + 1}", 0)


def _read_karpathy(text: str, path: Path, role: Role, split: str) -> Iterator[Row]:
    value = parsed(text, path, whole_file=True)
    if not isinstance(value, dict) or not isinstance(value.get("images"), list):
        raise BadInput("has no list of images", where=path)
    splits = {str(row.get("split")) for row in value["images"] if isinstance(row, dict)}
    if split not in splits:
        raise WrongUse(f"no split {split!r}", where=path, remedy=nearest_names(split, splits))
    for position, row in enumerate(value["images"]):
        if not isinstance(row, dict) or row.get("split") != split:
            continue
        where = f"{path}, image {position + 1}"
        try:
            captions = tuple(" ".join(sentence["raw"].split()) for sentence in row["sentences"])
            yield Row(str(row["cocoid"]), tuple(filter(None, captions)) or ("",))
        except (KeyError, TypeError, AttributeError) as error:
            raise BadInput("has no cocoid or no sentences", where=where) from error


READERS: Mapping[str, Callable[[str, Path, Role, str], Iterable[Row]]] = {
    "jsonl": _read_jsonl,
    "csv": _read_csv,
    "chexpert": _read_one_column,
    "chexbert": _read_chexbert,
    "rexrank": _read_rexrank,
    "lines": _read_lines,
    "json": _read_json,
    "annotation": _read_annotation,
    "karpathy": _read_karpathy,
}


# ---- what they share ----


def csv_rows(text: str, path: Path, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """(line on which the row starts, cells). The csv module's own limit of 128 KiB a cell is lifted meanwhile:
    a 100,000-word report is longer."""
    rows = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
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


NAMES = frozenset(name.lower() for fields in TEXT_FIELDS.values() for name in fields)


def delimiter_of(text: str, path: Path, column: str | None = None) -> str:
    """Comma, semicolon or tab: the one that parts a header in which a text column (or `column`) is named. Comma where
    none does."""
    wanted = NAMES if column is None else {column.lower()}
    start = text[: text.find("\n", 65_536)] if len(text) > 65_536 else text
    for delimiter in (",", ";", "\t"):
        try:
            header = next(csv_rows(start, path, delimiter), (1, []))[1]
        except BadInput:
            continue
        if wanted & {name.strip().lower() for name in header}:
            return delimiter
    return ","


def _row_of(entry: Any, role: Role, where: str, line: int) -> Row:
    if not isinstance(entry, dict):
        raise BadInput(f"a {_kind(entry)}, not an object", where=where)
    field = first_of(TEXT_FIELDS[role], entry)
    if field is None:
        raise no_column(where, list(entry), role)
    id_field = first_of(ID_FIELDS, entry)
    return Row(_id_of(entry[id_field], where) if id_field else None, _wording_of(entry[field], where), line)


def _id_of(value: Any, where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise BadInput(f"the id is a {_kind(value)}", where=where)
    return _whole(str(value), where).strip()


def _wording_of(value: Any, where: str) -> tuple[str, ...]:
    if isinstance(value, list):
        if not value:
            raise BadInput("an empty list where a report should be", where=where)
        return tuple(text_of(text, where) for text in value)
    return (text_of(value, where),)


def text_of(value: Any, where: str) -> str:
    """A report that is null or NaN, as pandas writes a missing one, is an empty report."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if not isinstance(value, str):
        raise BadInput(f"the report is a {_kind(value)}, not text", where=where)
    return _whole(value, where)


_HALF = re.compile("[\ud800-\udfff]")


def _whole(text: str, where: str) -> str:
    """JSON can spell half of a character, which no file can hold."""
    if not text.isascii() and _HALF.search(text):
        raise BadInput("holds half of a character (a lone surrogate, \\ud800 to \\udfff)", where=where)
    return text


def first_of(names: Iterable[str], there: Iterable[str]) -> str | None:
    """The first of `names` that is there, in the file's own spelling of capitals."""
    spelt = {name.lower(): name for name in there}
    return next((spelt[name.lower()] for name in names if name.lower() in spelt), None)


def parsed(text: str, where: object, *, whole_file: bool = False) -> Any:
    """JSON, and nothing lost: Python's own reader keeps the last of two entries of one name."""
    twice: list[str] = []

    def unique(items: list[tuple[str, Any]]) -> dict[str, Any]:
        whole = dict(items)
        if len(whole) < len(items):
            twice.extend(name for name, count in Counter(name for name, _ in items).items() if count > 1)
        return whole

    try:
        value = json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 0) if whole_file else 0
        raise BadInput(f"not JSON ({error})", where=f"{where}:{line}" if line else where) from error
    if twice:
        raise BadInput(f"{twice[0]!r} stands twice in one object", where=where, remedy="keep one report a study")
    return value


def no_column(where: object, there: Sequence[str], role: Role) -> BadInput:
    shown = ", ".join(repr(name[:40]) for name in there[:8]) or "nothing"
    return BadInput(f"has {shown}; the {role} should be called 'report' or {TEXT_FIELDS[role][0]!r}", where=where)


def _kind(value: Any) -> str:
    kinds = {dict: "object", list: "list", str: "string", bool: "truth value", type(None): "null"}
    return kinds.get(type(value), "number")

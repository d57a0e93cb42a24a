"""Files of reports in, the original labeler's CSV out: the report and 14 columns of 1.0, 0.0, -1.0 or nothing."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from negatoscope.errors import BadInput, WrongUse, nearest_names
from negatoscope.metrics.chexpert.labeler import STATUS, Labeler
from negatoscope.metrics.form_readers import csv_rows, delimiter_of, parsed, text_of
from negatoscope.metrics.forms import bytes_of, decoded, read_reports
from negatoscope.studies.study import OBSERVATIONS
from negatoscope.watch import Watch, quiet
from negatoscope.whole_files import whole_file

REPORTS = "Reports"
"""The name of the original's first column."""


@dataclass(frozen=True, slots=True)
class LabelSummary:
    """What was labelled, and how often each observation is what."""

    reports: int
    empty: int
    """Reports without a word: they are labelled No Finding, as the original does."""
    form: str
    """How the file was read: a form of `metrics/forms.py`, or 'column <name>'."""
    out: str | None
    labels: Mapping[str, Mapping[str, int]]
    """Observation -> present, absent, uncertain, blank -> number of reports."""
    labeler: str

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def label_file(
    path: Path | str,
    out: Path | str | None = None,
    *,
    column: str | None = None,
    form: str = "auto",
    processes: int = 1,
    labeler: Labeler | None = None,
    watch: Watch = quiet,
) -> LabelSummary:
    """Labels every report of a file and writes them to `out`, if given, as the original labeler does.

    Raises BadInput for a file that cannot be read, WrongUse for a column that is not there.
    """
    if out is not None and Path(out).exists() and Path(out).samefile(path):
        raise WrongUse("the labels would overwrite the reports", where=out, remedy="name another file with --out")
    labeler = labeler or Labeler()
    reports, form = reports_of(path, column=column, form=form)
    labels = labeler.label_many(reports, processes, watch)
    if out is not None:
        write_labels(out, reports, labels)
    return LabelSummary(
        reports=len(reports),
        empty=sum(not report.strip() for report in reports),
        form=form,
        out=str(out) if out is not None else None,
        labels=count_labels(labels),
        labeler=labeler.version,
    )


def reports_of(path: Path | str, *, column: str | None = None, form: str = "auto") -> tuple[Sequence[str], str]:
    """The reports of a file in its order, and how it was read. `column`: of a CSV, or field of JSONL."""
    if column is None:
        read = read_reports(path, form)
        return read.texts, read.form
    path = Path(path)
    text = decoded(bytes_of(path), path)
    fields = _jsonl_fields if path.suffix.lower() in (".jsonl", ".ndjson") else _csv_column
    reports = list(fields(text, column, path))
    if not reports:
        raise BadInput("holds no reports", where=path)
    return reports, f"column {column}"


def write_labels(path: Path | str, reports: Sequence[str], labels: Sequence[Mapping[str, int]]) -> None:
    """The original's CSV: a header, then a row a report in the order given."""
    with whole_file(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow((REPORTS, *OBSERVATIONS))
        rows.writerows(
            (report, *(f"{of_one[name]:.1f}" if name in of_one else "" for name in OBSERVATIONS))
            for report, of_one in zip(reports, labels, strict=True)
        )


def count_labels(labels: Iterable[Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Observation -> present, absent, uncertain, blank -> number of reports."""
    counts = {name: dict.fromkeys((*STATUS.values(), "blank"), 0) for name in OBSERVATIONS}
    for of_one in labels:
        for name in OBSERVATIONS:
            counts[name][STATUS[of_one[name]] if name in of_one else "blank"] += 1
    return counts


def _csv_column(text: str, column: str, path: Path) -> Iterator[str]:
    rows = csv_rows(text, path, delimiter_of(text, path, column))
    names = [name.strip() for name in next(rows, (1, []))[1]]
    if column not in names:
        raise WrongUse(f"no column {column!r}", where=path, remedy=nearest_names(column, names))
    if names.count(column) > 1:
        raise BadInput(f"two columns are called {column!r}", where=f"{path}:1")
    at = names.index(column)
    for line, cells in rows:
        if cells and len(cells) != len(names):
            what = f"{len(cells)} columns where the header has {len(names)}"
            remedy = "quote a report that holds commas or line breaks"
            raise BadInput(what, where=f"{path}:{line}", remedy=remedy)
        if cells:
            yield cells[at]


def _jsonl_fields(text: str, field: str, path: Path) -> Iterator[str]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        entry = parsed(line, where)
        if not isinstance(entry, dict) or field not in entry:
            known = nearest_names(field, entry) if isinstance(entry, dict) else "an object a line is wanted"
            raise WrongUse(f"no field {field!r}", where=where, remedy=known)
        yield text_of(entry[field], where)

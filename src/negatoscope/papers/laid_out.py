"""A reproduced table as Markdown, CSV and JSON: ours beside theirs, and what keeps the two apart."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any

from negatoscope.papers.scoring import Result, plain
from negatoscope.whole_files import write_json, write_text

_MOST_COLUMNS = 14
CSV_COLUMNS = (
    *("row", "label", "kind", "seeds", "figure", "ours", "half_width_over_seeds", "low_over_studies"),
    *("high_over_studies", "against", "p", "difference_low", "difference_high", "theirs", "theirs_on"),
)


@dataclass(frozen=True)
class Reproduced:
    """One table, as it came out here."""

    paper: str
    """The name of its file."""
    cited: str
    table: str
    title: str
    data: str
    studies: int
    columns: tuple[str, ...]
    results: tuple[Result, ...]
    footnotes: tuple[str, ...]
    """What differs from the paper's setting."""
    signature: str
    draws: int
    command: str

    @property
    def stem(self) -> str:
        return f"{self.paper}-{self.table}"

    @property
    def wide(self) -> bool:
        """Too many columns for a page: one line a figure then."""
        return len(self.columns) > _MOST_COLUMNS

    @property
    def shown(self) -> list[str]:
        """Columns of which anybody has a figure."""
        have = {figure for result in self.results for figure in (*result.figures, *result.theirs)}
        return [column for column in self.columns if column in have]


def digits(figure: str, value: float) -> str:
    if isnan(value):
        return "-"
    return f"{value:,.0f}" if figure == "distinct reports" else f"{value:.3f}"


def ours(result: Result, column: str, *, studies: bool = True) -> str:
    """'.131 ±.004 [.120, .142]*': mean, over seeds, over studies, against the other row."""
    one = result.figures.get(column)
    if one is None:
        return ""
    said = digits(column, one.value) + one.mark
    if one.seeds is not None:
        said += f" ±{digits(column, one.seeds)}"
    if studies:
        said += f" [{digits(column, one.low)}, {digits(column, one.high)}]"
    return said


def theirs(result: Result, column: str) -> str:
    value = result.theirs.get(column)
    return "" if value is None else digits(column, value)


def whose(result: Result) -> str:
    if result.kind == "quoted":
        return "quoted"
    seeds = len(result.seeds)
    return "no model" if result.kind == "no model" else f"ours, {seeds} seed{'' if seeds == 1 else 's'}"


def legend(done: Reproduced) -> list[str]:
    lines = [
        f"{done.studies:,} validation studies of {done.data}. Ours: the mean over seeds, ± the 95 % interval over "
        f"seeds (Student), [95 % interval over studies from {done.draws:,} bootstrap draws].",
        "* p < 0.05, ** p < 0.01, *** p < 0.001 against the row that is named: paired permutation of studies, all "
        "seeds together; no correction for the number of tests.",
        *done.footnotes,
        *(f"{result.label}: {note}" for result in done.results for note in result.notes),
    ]
    return [*lines, f"signature: {done.signature}", f"command: {done.command}"]


def as_markdown(done: Reproduced) -> str:
    lines = [f"# {done.cited}: table {done.table}", "", f"{done.title}, on {done.data}.", ""]
    lines += _transposed(done) if done.wide else _lines(done)
    return "\n".join([*lines, "", *(f"- {line}" for line in legend(done)), ""])


def _lines(done: Reproduced) -> list[str]:
    shown = done.shown
    lines = ["| row | whose | " + " | ".join(shown) + " |", "|---|---|" + "---|" * len(shown)]
    for result in done.results:
        label = result.label + (f" (against {result.against})" if result.against and result.figures else "")
        if result.kind != "quoted":
            cells = [_escaped(ours(result, column)) or "-" for column in shown]
            lines.append(f"| {label} | {whose(result)} | " + " | ".join(cells) + " |")
        if result.theirs:
            who = "quoted" if result.kind == "quoted" else "theirs"
            cells = [theirs(result, column) or "-" for column in shown]
            lines.append(f"| {label} | {who}, {result.theirs_on} | " + " | ".join(cells) + " |")
    return lines


def _transposed(done: Reproduced) -> list[str]:
    heads: list[str] = []
    for result in done.results:
        heads += [f"{result.label}, {whose(result)}"] if result.kind != "quoted" else []
        heads += [f"{result.label}, {result.theirs_on}"] if result.theirs else []
    lines = ["| | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    for column in done.shown:
        cells: list[str] = []
        for result in done.results:
            cells += [_escaped(ours(result, column)) or "-"] if result.kind != "quoted" else []
            cells += [theirs(result, column) or "-"] if result.theirs else []
        lines.append(f"| {column} | " + " | ".join(cells) + " |")
    return lines


def as_csv(done: Reproduced) -> str:
    held = io.StringIO()
    rows = csv.writer(held, lineterminator="\n")
    rows.writerow(CSV_COLUMNS)
    for result in done.results:
        for column in done.shown:
            one, their = result.figures.get(column), result.theirs.get(column)
            if one is None and their is None:
                continue
            numbers: Sequence[float | None] = (None,) * 4
            tested: Sequence[float | None] = (None,) * 3
            if one is not None:
                numbers = (one.value, one.seeds, one.low, one.high)
                tested = (one.p, *(one.difference or (None, None)))
            seeds = " ".join(map(str, result.seeds))
            said = (result.name, result.label, result.kind, seeds, column)
            rows.writerow(
                (*said, *map(_number, numbers), result.against, *map(_number, tested), _number(their), result.theirs_on)
            )
    return held.getvalue()


def as_json(done: Reproduced) -> dict[str, Any]:
    return {
        **{key: value for key, value in vars(done).items() if key not in ("results", "columns", "footnotes")},
        "columns": done.shown,
        "footnotes": list(done.footnotes),
        "rows": [plain(result) for result in done.results],
    }


def save(done: Reproduced, folder: Path) -> list[Path]:
    paths = [folder / f"{done.stem}.{ending}" for ending in ("md", "csv", "json")]
    write_text(paths[0], as_markdown(done))
    write_text(paths[1], as_csv(done))
    write_json(paths[2], json.loads(json.dumps(as_json(done))))
    return paths


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _escaped(text: str) -> str:
    return text.replace("*", r"\*").replace("|", r"\|")

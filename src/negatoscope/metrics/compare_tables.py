"""A comparison as CSV (every figure), and as LaTeX and Markdown (the short table, for a paper or an issue)."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from math import isnan

from negatoscope.metrics.compare import Cell, Comparison

COLUMNS = ("part", "n", "row", "kind", "figure", "value", "low", "high", "p", "difference_low", "difference_high")
_LATEX = str.maketrans(
    {
        **{c: f"\\{c}" for c in "%_&#${}"},
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "\\": r"\textbackslash{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
    }
)


def digits(figure: str, value: float) -> str:
    """As many as mean something: three behind the point for shares, none for counts of reports."""
    if isnan(value):
        return "-"
    if figure.startswith("distinct reports"):
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


def cell_text(figure: str, cell: Cell | None, *, between: str = " to ") -> tuple[str, str]:
    """The value with its mark, and the interval."""
    if cell is None:
        return "-", ""
    low, high = (
        ("", "") if cell.low is None or cell.high is None else (digits(figure, x) for x in (cell.low, cell.high))
    )
    return digits(figure, cell.value) + cell.mark, f"{low}{between}{high}" if low else ""


def as_csv(done: Comparison) -> str:
    held = io.StringIO()
    rows = csv.writer(held, lineterminator="\n")
    rows.writerow(COLUMNS)
    for part in done.parts:
        for row, cells in part.rows.items():
            for figure, cell in cells.items():
                numbers = (cell.value, cell.low, cell.high, cell.p, *(cell.difference or (None, None)))
                said = ("" if number is None else f"{number:.6g}" for number in numbers)
                rows.writerow((part.name, part.n, row, done.kinds[row], figure, *said))
    return held.getvalue()


def as_markdown(done: Comparison, figures: Sequence[str] | None = None) -> str:
    """One row a figure, one column a model."""
    lines = []
    for part in done.parts:
        names = list(part.rows)
        shown = [figure for figure in done.headline(figures) if any(figure in cells for cells in part.rows.values())]
        lines += [f"**{part.name}**, {part.n:,} studies", ""]
        lines.append("| " + " | ".join(["", *(name.replace("|", r"\|") for name in names)]) + " |")
        lines.append("|" + "---|" * (len(names) + 1))
        for figure in shown:
            texts = (cell_text(figure, part.rows[name].get(figure)) for name in names)
            cells = (
                f"{value.replace('*', chr(92) + '*')} ({low_high})" if low_high else value for value, low_high in texts
            )
            lines.append("| " + " | ".join([figure, *cells]) + " |")
        lines.append("")
    return "\n".join([*lines, *(f"- {line}" for line in legend(done)), ""])


def as_latex(done: Comparison, figures: Sequence[str] | None = None) -> str:
    """A table of all studies for `booktabs`: one row a model, the interval in small print below each value."""
    shown = done.headline(figures)
    part = done.parts[0]
    lines = [r"% needs \usepackage{booktabs} and \usepackage{graphicx}", r"\begin{table}", r"\centering"]
    said = legend(done)
    lines[:0] = [f"% {line}" for line in said]
    caption = " ".join(f"{line[0].upper()}{line[1:]}." for line in said[:2])
    lines += [
        rf"\caption{{{_tex(caption)}}}",
        r"\resizebox{\linewidth}{!}{%",
        rf"\begin{{tabular}}{{l{'r' * len(shown)}}}",
    ]
    lines += [r"\toprule", " & ".join(["", *map(_tex, shown)]) + r" \\", r"\midrule"]
    for row, cells in part.rows.items():
        texts = [cell_text(figure, cells.get(figure), between="--") for figure in shown]
        values = [
            value.rstrip("*") + (f"$^{{{'*' * value.count('*')}}}$" if "*" in value else "") for value, _ in texts
        ]
        lines.append(" & ".join([_tex(row), *values]) + r" \\")
        if any(low_high for _, low_high in texts):
            lines.append(
                " & ".join(["", *(rf"{{\scriptsize {low_high}}}" if low_high else "" for _, low_high in texts)])
                + r" \\"
            )
    lines += [r"\bottomrule", r"\end{tabular}}", r"\end{table}", ""]
    return "\n".join(lines)


def legend(done: Comparison) -> list[str]:
    """What every table must say of itself."""
    said = [
        f"{done.n:,} studies; 95 % intervals from {done.draws:,} bootstrap draws of studies, seed {done.seed}",
        f"* p < 0.05, ** p < 0.01, *** p < 0.001 against {done.against}: paired permutation test, {done.draws:,} swaps",
    ]
    if done.constant is not None:
        said.append(
            f"constant report, for everybody, of {done.constant.candidates:,} candidates: {done.constant.report!r}"
        )
    return [*said, *done.notes, f"signature: {done.signature}"]


def _tex(text: str) -> str:
    return text.translate(_LATEX)

"""`negatoscope label`: the 14 CheXpert observations of each report of a file."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from negatoscope.cli.options import Json, print_json

if TYPE_CHECKING:
    from negatoscope.metrics.chexpert.labeler import Labeler
    from negatoscope.metrics.chexpert.tables import LabelSummary


def label(
    reports: Annotated[
        Path, typer.Argument(metavar="REPORTS", help="CSV (with or without a header), JSONL, JSON, or lines of text.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The labels, in the original labeler's CSV form.")
    ] = None,
    column: Annotated[
        str | None, typer.Option(help="The column (of CSV) or field (of JSONL) that holds the report.")
    ] = None,
    form: Annotated[str, typer.Option(help="How REPORTS is written; guessed if not said.")] = "auto",
    processes: Annotated[int, typer.Option(min=1, help="More than one pays from some ten thousand reports on.")] = 1,
    rules: Annotated[
        Path | None, typer.Option(help="A folder with your own rule files in place of the package's.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Print every mention with the rule that decided.")] = False,
    as_json: Json = False,
) -> None:
    """Label reports with the 14 CheXpert observations: 1.0 present, 0.0 absent, -1.0 uncertain, blank not mentioned.

    The rules of Stanford's labeler, without NegBio, a parser or Java: thousands of reports a second.

    Examples:

        negatoscope label reports.csv --out labels.csv

        negatoscope label mimic.csv --column findings --processes 2 --out labels.csv

        negatoscope label one_report.txt --explain
    """
    from negatoscope.cli.progress import watch_on
    from negatoscope.errors import WrongUse
    from negatoscope.metrics.chexpert.labeler import Labeler
    from negatoscope.metrics.chexpert.tables import label_file

    if out is None and not explain and not as_json:
        raise WrongUse("nothing to do with the labels", remedy="give --out labels.csv, --explain or --json")
    labeler = Labeler(rules)
    if explain:
        _explain(labeler, reports, column, form, as_json)
        if out is None:
            return
    summary = label_file(
        reports, out, column=column, form=form, processes=processes, labeler=labeler, watch=watch_on(silent=as_json)
    )
    if as_json and not explain:
        print_json(summary.as_json())
    elif not as_json:
        _show(summary)


def _explain(labeler: Labeler, path: Path, column: str | None, form: str, as_json: bool) -> None:
    from negatoscope.metrics.chexpert.tables import reports_of

    texts, _ = reports_of(path, column=column, form=form)
    explained = [labeler.explain(text) for text in texts]
    if as_json:
        print_json([[asdict(mention) for mention in of_one] for of_one in explained])
        return
    for number, of_one in enumerate(explained, start=1):
        print(f"report {number}")
        for mention in of_one:
            rule = f" ({mention.rule})" if mention.rule else ""
            print(f"  {mention.observation}: {mention.status}, {mention.because}{rule}")
            print(f"    {mention.phrase!r} in: {mention.sentence}")


def _show(summary: LabelSummary) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("observation", *("present", "absent", "uncertain", "blank"))
    for name, counts in summary.labels.items():
        table.add_row(name, *(f"{count:,}" for count in counts.values()))
    Console().print(table)
    print(
        f"{summary.reports:,} reports ({summary.empty:,} empty), read as {summary.form}; {summary.out}", file=sys.stderr
    )

"""`negatoscope label`: the 14 CheXpert observations of each report of a file or a store."""

from __future__ import annotations

import sys
from collections.abc import Mapping
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
        Path,
        typer.Argument(
            metavar="REPORTS", help="CSV (with or without a header), JSONL, JSON, lines of text, or a store."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The labels, in the original labeler's CSV form.")
    ] = None,
    into: Annotated[
        Path | None, typer.Option(help="Of a store: the folder of a store with the same pictures, and these labels.")
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

        negatoscope label data/iu-xray --into data/iu-xray-labelled
    """
    from negatoscope.cli.progress import watch_on
    from negatoscope.errors import WrongUse
    from negatoscope.metrics.chexpert.labeler import Labeler
    from negatoscope.metrics.chexpert.tables import label_file

    if into is not None:
        if out is not None or explain or column is not None or form != "auto":
            remedy = "give --into alone, or with --rules and --processes"
            raise WrongUse("--into labels a whole store", where="--into", remedy=remedy)
        _label_store(reports, into, rules, processes, as_json)
        return
    if (reports / "store.json").is_file():
        raise WrongUse(
            "is a store", where=reports, remedy="name a folder for its labelled sibling: --into data/iu-xray-labelled"
        )
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


def _label_store(store: Path, into: Path, rules: Path | None, processes: int, as_json: bool) -> None:
    from negatoscope.cli.progress import watch_on
    from negatoscope.metrics.chexpert.label_store import label_store
    from negatoscope.metrics.chexpert.labeler import Labeler
    from negatoscope.studies.store import Store

    watch = watch_on(silent=as_json)
    done = label_store(Store.open(store), into, labeler=Labeler(rules), processes=processes, watch=watch)
    if as_json:
        print_json(vars(done))
        return
    _show_counts(done.labels)
    print(f"{done.studies:,} studies; {done.store}", file=sys.stderr)


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


def _show_counts(labels: Mapping[str, Mapping[str, int]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("observation", *("present", "absent", "uncertain", "blank"))
    for name, counts in labels.items():
        table.add_row(name, *(f"{count:,}" for count in counts.values()))
    Console().print(table)


def _show(summary: LabelSummary) -> None:
    _show_counts(summary.labels)
    print(
        f"{summary.reports:,} reports ({summary.empty:,} empty), read as {summary.form}; {summary.out}", file=sys.stderr
    )

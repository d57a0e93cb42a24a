"""`negatoscope evaluate`: predictions against references, every figure with the line that says how it was made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from negatoscope.cli.options import Json, print_json

if TYPE_CHECKING:
    from negatoscope.metrics.evaluate import Evaluation


def evaluate(
    predictions: Annotated[
        Path,
        typer.Argument(metavar="PREDICTIONS", help="JSONL (id, report), CSV, JSON or lines of text; see --form."),
    ],
    references: Annotated[
        Path, typer.Argument(metavar="REFERENCES", help="In any of the same forms, or R2Gen's annotation.json.")
    ],
    protocol: Annotated[
        str, typer.Option(help="full: whole reports. r2gen: cleaned, cut, rare words unknown.")
    ] = "full",
    vocabulary: Annotated[
        str | None, typer.Option(help="For r2gen: iu-xray, a run folder, a checkpoint, or a JSON file of words.")
    ] = None,
    max_words: Annotated[int | None, typer.Option(help="For r2gen: cut here, not where the vocabulary says.")] = None,
    tokens: Annotated[str | None, typer.Option(help="spaces or ptb; full takes ptb, r2gen spaces if not said.")] = None,
    metrics: Annotated[
        str | None,
        typer.Option(help="Comma between names: bleu,meteor,rouge,cider,... All that can be had if not said."),
    ] = None,
    clinical: Annotated[
        str | None,
        typer.Option(
            help="Settings of clinical efficacy, comma between: r2gen, wcl, cvse, chexbert, findings, example, ca, any "
            "AVERAGE-SET-UNCERTAIN as macro-5-ignore, usual, or all."
        ),
    ] = None,
    table: Annotated[
        str | None, typer.Option(help="Print the columns of one paper's table: r2gen, ca, wcl, cvse, ithn, chexbert.")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="CSV of the 14 observations of the predictions, in place of the labeler.")
    ] = None,
    reference_labels: Annotated[Path | None, typer.Option(help="The same of the references.")] = None,
    train: Annotated[Path | None, typer.Option(help="Training reports: tells what share was copied from them.")] = None,
    form: Annotated[
        str,
        typer.Option(
            help="How PREDICTIONS is written: jsonl, csv, chexpert, chexbert, rexrank, lines, json, annotation or "
            "karpathy; guessed if not said."
        ),
    ] = "auto",
    references_form: Annotated[str, typer.Option(help="How REFERENCES is written.")] = "auto",
    split: Annotated[str, typer.Option(help="Which split of an annotation.json.")] = "test",
    missing: Annotated[
        str, typer.Option(help="A reference without a prediction: error, or empty (a report without words).")
    ] = "error",
    unasked: Annotated[str, typer.Option(help="A prediction without a reference: error, or leave-out.")] = "error",
    against: Annotated[
        Path | None, typer.Option(help="An earlier --out file: shows the differences beside it.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Also write the JSON object here.")] = None,
    as_json: Json = False,
) -> None:
    """Score anybody's generated reports: language metrics, diversity, lengths, clinical figures.

    Examples:

        negatoscope evaluate predictions.jsonl references.jsonl

        negatoscope evaluate res.csv gts.csv --protocol r2gen --vocabulary iu-xray

        negatoscope evaluate mine.jsonl references.jsonl --table wcl

        negatoscope evaluate mine.jsonl references.jsonl --metrics clinical --clinical cvse,micro-5-ignore

        negatoscope evaluate mine.jsonl annotation.json --split test --train annotation.json --json
    """
    from negatoscope.cli.progress import watch_on
    from negatoscope.metrics.evaluate import evaluate, read_earlier
    from negatoscope.metrics.paper_tables import table_named
    from negatoscope.metrics.protocol import protocol_named
    from negatoscope.whole_files import write_json

    columns = None if table is None else table_named(table)
    if columns is not None:
        metrics = metrics or ",".join(columns.metrics)
        clinical = f"{columns.clinical},{clinical}" if clinical else columns.clinical
    done = evaluate(
        predictions,
        references,
        protocol=protocol_named(protocol, vocabulary=vocabulary, tokens=tokens, max_words=max_words),
        metrics=None if metrics is None else [name.strip() for name in metrics.split(",") if name.strip()],
        training=train,
        form=form,
        references_form=references_form,
        split=split,
        missing=missing,
        unasked=unasked,
        clinical=clinical,
        labels=labels,
        reference_labels=reference_labels,
        watch=watch_on(silent=as_json),
    )
    earlier = None if against is None else read_earlier(against, done)
    if out is not None:
        write_json(out, done.as_json())
    if as_json:
        print_json(done.as_json() | ({} if earlier is None else {"earlier": earlier}))
    else:
        _show(done, earlier, None if columns is None else columns.figures)
        if clinical is not None:
            _show_observations(done)


def _show(done: Evaluation, earlier: dict[str, float] | None, only: Sequence[str] | None = None) -> None:
    from rich.console import Console
    from rich.table import Table

    from negatoscope.studies.study import OBSERVATIONS

    console = Console(soft_wrap=True)
    for role, source in done.sources.items():
        console.print(
            f"{role}: {source.path}, {source.reports:,} reports, read as {source.form}", style="dim", highlight=False
        )
    table = Table("figure", title=f"{done.n:,} studies scored{_counted(done)}", title_justify="left")
    table.add_column("value", justify="right")
    if earlier is not None:
        table.add_column("earlier", justify="right")
        table.add_column("difference", justify="right")
    metric = None
    # Those of single observations stand in a table of their own.
    for figure in only or [name for name in done.figures if name.partition(",")[0] not in OBSERVATIONS]:
        value = done.figures[figure]
        if metric not in (None, done.metric_of[figure]):
            table.add_section()
        metric = done.metric_of[figure]
        row = [figure, _digits(figure, value)]
        if earlier is not None:
            before = earlier.get(figure)
            row += ["", ""] if before is None else [_digits(figure, before), f"{value - before:+.4f}"]
        table.add_row(*row)
    console.print(table)
    for name, why in done.left_out.items():
        console.print(f"left out: {name} ({why})", style="yellow", highlight=False)
    console.print(f"signature: {done.signature}", style="dim", highlight=False)


def _show_observations(done: Evaluation) -> None:
    """The 14 observations, uncertain as the first setting has it."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from negatoscope.metrics.clinical import Clinical, each_observation
    from negatoscope.studies.study import OBSERVATIONS

    metric = done.metrics.get("clinical")
    if not isinstance(metric, Clinical):
        return
    first = metric.settings[0]
    policy = first.ways[0].uncertain if first.ways else first.asks or "positive"
    figures = each_observation(done.rows["clinical"].sum(axis=0), policy)
    said = "ignored" if policy == "ignore" else policy
    # Without frames and with short heads it fits a terminal of 80 columns.
    title = f"{done.n:,} studies, uncertain {said} ({first.name})"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("observation", no_wrap=True)
    for name in figures:
        table.add_column(_HEADS.get(name, name), justify="right")
    for k, name in enumerate(OBSERVATIONS):
        table.add_row(
            name, *(f"{v[k]:,.0f}" if what.startswith("in ") else f"{v[k]:.3f}" for what, v in figures.items())
        )
    Console(soft_wrap=True).print(table)


_HEADS = {"in references": "refs", "in predictions": "preds"}


def _counted(done: Evaluation) -> str:
    """What was scored without a word in it, or not scored: never silently."""
    counts = {
        "missing predictions, scored as empty": len(done.pairs.missing),
        "empty predictions": len(done.pairs.empty),
        "empty references": len(done.pairs.empty_references),
        "predictions without a reference, left out": len(done.pairs.unasked),
    }
    by = ", paired by position" if done.pairs.by == "position" else ""
    return by + "".join(f", {count:,} {what}" for what, count in counts.items() if count)


def _digits(figure: str, value: float) -> str:
    if figure.startswith("distinct reports"):
        return f"{value:,.0f}"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.2f}"

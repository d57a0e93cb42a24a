"""`negatoscope compare`: several models over the same studies, with intervals, tests and rows that need no image."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from negatoscope.cli.options import Json, print_json

if TYPE_CHECKING:
    from negatoscope.metrics.compare import Comparison


def compare(
    predictions: Annotated[
        list[Path],
        typer.Argument(metavar="PREDICTIONS...", help="One file a model, in any form; or what `evaluate --out` wrote."),
    ],
    references: Annotated[Path, typer.Option("--references", "-r", help="The references, in any form.")],
    train: Annotated[
        Path | None, typer.Option(help="Training reports: adds the best constant report, and the split by training.")
    ] = None,
    val: Annotated[Path | None, typer.Option(help="Validation reports: the constant report is chosen on them.")] = None,
    images: Annotated[Path | None, typer.Option(help="A store: its pictures stand in the page.")] = None,
    features: Annotated[
        Path | None, typer.Option(help="A feature cache of that store: adds the nearest training study's report.")
    ] = None,
    nearest: Annotated[
        Path | None,
        typer.Option(help="In place of --features: a file with the nearest training study's report of each."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(help="Test the others against this row: a file's name, constant or nearest. The first."),
    ] = None,
    protocol: Annotated[str, typer.Option(help="full or r2gen, as in `evaluate`.")] = "full",
    vocabulary: Annotated[str | None, typer.Option(help="For r2gen: iu-xray, a run folder, a JSON file.")] = None,
    max_words: Annotated[int | None, typer.Option(help="For r2gen: cut here.")] = None,
    tokens: Annotated[str | None, typer.Option(help="spaces or ptb.")] = None,
    metrics: Annotated[str | None, typer.Option(help="Comma between names; the usual ones if not said.")] = None,
    clinical: Annotated[str, typer.Option(help="Settings of clinical efficacy, as in `evaluate`.")] = "usual",
    table: Annotated[
        str | None, typer.Option(help="Show the columns of one paper: r2gen, ca, wcl, cvse, ithn, chexbert.")
    ] = None,
    form: Annotated[
        str, typer.Option(help="How PREDICTIONS are written, as in `evaluate`; guessed if not said.")
    ] = "auto",
    references_form: Annotated[str, typer.Option(help="How the references are written.")] = "auto",
    split: Annotated[str, typer.Option(help="Which split of an annotation.json the references are.")] = "test",
    missing: Annotated[str, typer.Option(help="A reference without a prediction: error or empty.")] = "error",
    unasked: Annotated[str, typer.Option(help="A prediction without a reference: error or leave-out.")] = "error",
    draws: Annotated[int, typer.Option(min=1, help="Bootstrap draws, and swaps of the permutation test.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of both.")] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for compare.csv, .tex, .md, .json and compare.html.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare models so that nobody is fooled: intervals, paired tests, and the rows that need no image.

    Examples:

        negatoscope compare a.jsonl b.jsonl --references test.jsonl --train train.jsonl --val val.jsonl --out page

        negatoscope compare a.jsonl b.jsonl -r annotation.json --train annotation.json --val annotation.json --against b

        negatoscope compare a.jsonl b.jsonl -r test.jsonl --train train.jsonl --images store --features cache -o page
    """
    from negatoscope.cli.progress import watch_on
    from negatoscope.errors import WrongUse
    from negatoscope.metrics.compare import compare
    from negatoscope.metrics.compare_page import write_comparison
    from negatoscope.metrics.paper_tables import table_named
    from negatoscope.metrics.protocol import protocol_named

    if features is not None and images is None:
        raise WrongUse("--features without the store that they are of", remedy="--images STORE")
    if features is not None and nearest is not None:
        raise WrongUse("--features and --nearest both say which training study is nearest", remedy="give one of them")
    store = None
    if images is not None:
        from negatoscope.studies.store import Store

        store = Store.open(images)
    looked_up = None
    if features is not None:
        from negatoscope.vision.features import FeatureCache

        looked_up = (store, FeatureCache.open(features))
    columns = None if table is None else table_named(table)
    if columns is not None and columns.clinical is not None:
        clinical = clinical if columns.clinical in clinical.split(",") else f"{clinical},{columns.clinical}"
    done = compare(
        predictions,
        references,
        training=train,
        validation=val,
        nearest=looked_up or nearest,
        against=against,
        protocol=protocol_named(protocol, vocabulary=vocabulary, tokens=tokens, max_words=max_words),
        metrics=None if metrics is None else [name.strip() for name in metrics.split(",") if name.strip()],
        clinical=clinical,
        form=form,
        references_form=references_form,
        split=split,
        missing=missing,
        unasked=unasked,
        draws=draws,
        seed=seed,
        watch=watch_on(silent=as_json),
    )
    figures = None if columns is None else columns.figures
    written = [] if out is None else write_comparison(done, out, figures=figures, store=store)
    if as_json:
        print_json(done.as_json() | {"written": [str(path) for path in written]})
    else:
        _show(done, figures)
        for path in written:
            print(f"wrote {path}")


def _show(done: Comparison, figures: tuple[str, ...] | None) -> None:
    from rich.console import Console
    from rich.table import Table

    from negatoscope.metrics.compare_tables import cell_text, legend

    console = Console(soft_wrap=True, highlight=False)
    wide = console.width >= 34 + 25 * len(done.parts[0].rows)
    gap = " " if wide else "\n"
    for role, source in done.sources.items():
        console.print(
            f"{role}: {source.path}, {source.reports:,} reports, read as {source.form}", style="dim", markup=False
        )
    for part in done.parts:
        whole = part is done.parts[0]
        table = Table(title=f"{part.name}: {part.n:,} studies", title_justify="left")
        table.add_column("figure", no_wrap=True)
        for name in part.rows:
            table.add_column(name, justify="right", min_width=11, overflow="fold")
        for figure in done.headline(figures):
            cells = [part.rows[name].get(figure) for name in part.rows]
            if all(cell is None for cell in cells):
                continue
            texts = [cell_text(figure, cell, between="-") for cell in cells]
            table.add_row(figure, *(f"{value}{gap}[dim]{low_high}[/]" if whole else value for value, low_high in texts))
        console.print(table)
    for line in legend(done):
        console.print(line, style="dim", markup=False)

"""`negatoscope drafter`: make what `negatoscope report` writes with, and measure it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from negatoscope.cli.options import Json, Set, changes_of, print_json

app = typer.Typer(
    help="The model behind `negatoscope report`: teach one on studies of your own, and measure it.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@app.command()
def train(
    store: Annotated[Path, typer.Argument(help="A store of studies with a training and a validation split.")],
    into: Annotated[Path, typer.Option(help="Folder for drafter.safetensors and what is kept on the way.")],
    weights: Annotated[
        Path | None, typer.Option(help="Of the backbone (ImageNet's, say); without, it starts untrained.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda ...")] = "cpu",
    note: Annotated[str, typer.Option(help="Kept in the file: what it learned from, under which licence.")] = "",
    set_: Set = None,
    json: Json = False,
) -> None:
    """Teach a drafter: recogniser, writer, calibration, doubt. The same command goes on where it was stopped.

    About an hour on two cores for IU X-Ray's 2,069 training studies, a minute on a large GPU. With `--set folds=5` five
    more recognisers tell how far probabilities are to be believed, in place of the validation split.

    Example: `negatoscope drafter train data/iu-xray --into runs/drafter --weights resnet50.safetensors`
    """
    from negatoscope.cli.progress import watch_on
    from negatoscope.drafting.training import drafter_settings, train_drafter
    from negatoscope.studies.store import Store

    changes = changes_of(set_)
    settings = drafter_settings({**changes, **({"encoder.weights": str(weights)} if weights else {})})
    done = train_drafter(
        Store.open(store),
        into,
        settings,
        device=device,
        about={"note": note},
        watch=watch_on(silent=json),
        say=lambda line: typer.echo(line, err=True),
    )
    if json:
        print_json({"drafter": str(done.drafter), "training": done.training, "held_out": done.held_out})
    else:
        print(
            f"{done.drafter}: learned from {done.training:,} studies, calibrated on the answers for {done.held_out:,}"
        )


@app.command()
def write(
    store: Annotated[Path, typer.Argument(help="A store of studies.")],
    out: Annotated[Path, typer.Option(help="JSONL of reports, as `negatoscope evaluate` reads it.")],
    split: Annotated[str, typer.Option(help="train, val or test.")] = "val",
    model: Annotated[Path | None, typer.Option(help="A drafter; the one that ships if unsaid.")] = None,
    references: Annotated[Path | None, typer.Option(help="Also write the studies' own reports, to score with.")] = None,
    json: Json = False,
) -> None:
    """Draft reports for a split of a store, from the image files alone: neither labels nor views of the store are read.

    Example: `negatoscope drafter write data/iu-xray --split val --out drafts.jsonl --references references.jsonl`
    """
    from negatoscope.cli.progress import watch_on
    from negatoscope.drafting.kept import load_drafter
    from negatoscope.drafting.measure import write_split
    from negatoscope.studies.store import Store

    done = write_split(
        load_drafter(model), Store.open(store), split, out, references=references, watch=watch_on(silent=json)
    )
    print_json({"out": str(out), "reports": done}) if json else print(f"{out}: {done:,} reports")


@app.command()
def measure(
    store: Annotated[Path, typer.Argument(help="A store of studies; its validation split is measured on.")],
    model: Annotated[Path | None, typer.Option(help="A drafter; the one that ships if unsaid.")] = None,
    strangers: Annotated[int, typer.Option(min=1, help="Drawn pictures of each kind that is no radiograph.")] = 50,
    json: Json = False,
) -> None:
    """How far probabilities are to be believed, and how often the warning is raised: on the store's own images (a false
    alarm), on the same turned or inverted, on phantoms, noise, and drawn pictures of other things.

    Example: `negatoscope drafter measure data/iu-xray`
    """
    from rich.console import Console
    from rich.table import Table

    from negatoscope.cli.progress import watch_on
    from negatoscope.drafting.kept import load_drafter
    from negatoscope.drafting.measure import measure as measured
    from negatoscope.studies.store import Store

    found = measured(load_drafter(model), Store.open(store), strangers=strangers, watch=watch_on(silent=json))
    if json:
        print_json(found.as_json())
        return
    table = Table("images", "how many", "warned", title="share with a warning")
    for name, (many, share) in found.warned.items():
        table.add_row(name, f"{many:,}", f"{share:.3f}")
    Console().print(table)
    print(found.summary)

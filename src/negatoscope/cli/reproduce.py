"""`negatoscope reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from negatoscope.cli.options import Json, Set, changes_of, print_json, seeds_of

if TYPE_CHECKING:
    from negatoscope.papers.laid_out import Reproduced


def reproduce(
    paper: Annotated[
        str, typer.Argument(help="contrastive-attention, wcl, cvse, ithn, grid; several with commas between, or all.")
    ] = "",
    table: Annotated[str, typer.Option(help="Of the paper; several with commas between, or all.")] = "1",
    data: Annotated[str, typer.Option(help="iu-xray, or phantom: drawn on the spot, in minutes.")] = "iu-xray",
    rows: Annotated[str, typer.Option(help="Only these rows, commas between, and those they are tested against.")] = "",
    seeds: Annotated[str, typer.Option(help="One run of each row for each of these.")] = "1,2,3",
    budget: Annotated[
        str, typer.Option(help="Time for training: 2h, 90m, 540s. No run begins after it, those that run end an epoch.")
    ] = "",
    set_: Set = None,
    store: Annotated[
        Path | None, typer.Option(help="The store; data/iu-xray or data/phantom-tables if unsaid.")
    ] = None,
    features: Annotated[
        Path | None, typer.Option(help="A cache of features; made beside the store where there is none.")
    ] = None,
    weights: Annotated[Path | None, typer.Option(help="Of ResNet-50 (v1), to make features of IU X-Ray with.")] = None,
    into: Annotated[Path | None, typer.Option(help="Folder of runs and tables; runs/reproduce/DATA if unsaid.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at a time, each in its own process.")] = 1,
    device: Annotated[str, typer.Option(help="cpu, cuda ...")] = "cpu",
    tier: Annotated[str, typer.Option(help="full, or quick: small models, few epochs. Phantoms are quick.")] = "",
    check: Annotated[bool, typer.Option("--check", help="Fail where a run leaves its row's band.")] = False,
    bands: Annotated[Path | None, typer.Option(help="Read or write bands here in place of those that ship.")] = None,
    write_bands: Annotated[
        bool, typer.Option("--write-bands", help="Make bands of finished runs of three seeds or more.")
    ] = False,
    no_train: Annotated[bool, typer.Option("--no-train", help="Only score what is there.")] = False,
    runs_only: Annotated[bool, typer.Option("--runs-only", help="Only train; score later with the same command.")] = (
        False
    ),
    keep_weights: Annotated[bool, typer.Option("--keep-weights", help="Of each run's best epoch.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="Name papers, tables and rows, and leave.")] = False,
    json: Json = False,
) -> None:
    """Train the rows of a paper's table, and print ours beside theirs, with intervals.

    What is missing is trained, what was interrupted goes on, what is finished stays. Three rows that need no model come
    with it. Markdown, CSV and JSON go to INTO/tables.

    Examples:

        negatoscope reproduce contrastive-attention --table 1 --data iu-xray --rows hlstm+ca,nic+ca --budget 2h

        negatoscope reproduce wcl --data phantom --jobs 2

        negatoscope reproduce ithn --table 1 --data iu-xray --check
    """
    from negatoscope.cli.progress import watch_on
    from negatoscope.errors import WrongUse, nearest_names
    from negatoscope.papers import reproduce as room
    from negatoscope.papers.laid_out import as_json
    from negatoscope.papers.rows import TIERS
    from negatoscope.papers.running import seconds_of

    if list_ or not paper:
        _list(json)
        return
    if data not in ("iu-xray", "phantom"):
        raise WrongUse(f"no data {data!r}", where="--data", remedy=nearest_names(data, ("iu-xray", "phantom")))
    tier = tier or ("quick" if data == "phantom" else "full")
    if tier not in TIERS:
        raise WrongUse(f"no tier {tier!r}", where="--tier", remedy=nearest_names(tier, TIERS))
    changes = changes_of(set_)
    said = [f"negatoscope reproduce {paper} --table {table} --data {data} --seeds {seeds} --tier {tier}"]
    said += [f"--rows {rows}"] if rows else []
    said += [f"--set {one}" for one in set_ or ()]
    request = room.Request(
        papers=_split(paper),
        tables=_split(table),
        data=data,
        rows=_split(rows),
        seeds=seeds_of(seeds),
        tier=tier,
        changes=changes,
        store=store,
        features=features,
        weights=weights,
        into=into,
        budget=seconds_of(budget) if budget else None,
        jobs=jobs,
        device=device,
        train=not no_train,
        scores=not runs_only,
        keep_weights=keep_weights,
        command=" ".join(said),
    )
    done = room.reproduce(request, watch=watch_on(silent=json), say=_tell)
    if json:
        print_json({"tables": [as_json(one) for one in done.tables], "failed": list(done.ran.failed)})
    else:
        for one in done.tables:
            _show(one)
        for path in done.files:
            print(path)
    for failed in done.ran.failed:
        _tell(f"failed: {failed}")
    if write_bands:
        for one in done.tables:
            _tell(f"bands: {room.new_bands(one, done.folder / 'runs', ' '.join(said[1:]) or 'nothing set', bands)}")
    if check:
        _check(done.tables, bands)


def _check(tables: tuple[Reproduced, ...], bands: Path | None) -> None:
    from negatoscope.papers import reproduce as room

    left: list[str] = []
    for one in tables:
        found = room.checked(one, bands)
        for line in found.without:
            _tell(f"not checked: {line}")
        for line in found.left:
            _tell(f"left its band: {line}")
        _tell(f"{one.stem}: {found.figures:,} figures held against bands, {len(found.left)} left theirs")
        left += found.left
        if not found.figures and not found.left:
            left.append("nothing could be checked")
            _tell(f"{one.stem}: nothing could be checked")
    if left:
        raise typer.Exit(1)


def _show(done: Reproduced) -> None:
    from rich.console import Console
    from rich.table import Table

    from negatoscope.papers.laid_out import legend, ours, theirs, whose

    console = Console(soft_wrap=True)
    console.print(f"{done.cited}: table {done.table}, {done.title}", style="bold", highlight=False)
    table = Table()
    columns = done.shown
    if done.wide:
        table.add_column("figure")
        for result in done.results:
            table.add_column(result.label, justify="right")
        for column in columns:
            cells = [
                " / ".join(filter(None, (ours(one, column, studies=False), theirs(one, column))))
                for one in done.results
            ]
            table.add_row(column, *cells)
    else:
        for column in ("row", "whose", *columns):
            table.add_column(column, justify="left" if column in ("row", "whose") else "right")
        for result in done.results:
            if result.kind != "quoted":
                table.add_row(result.label, whose(result), *(ours(result, one, studies=False) for one in columns))
            if result.theirs:
                who = f"{'quoted' if result.kind == 'quoted' else 'theirs'}, {result.theirs_on}"
                table.add_row(result.label, who, *(theirs(result, one) for one in columns), style="dim")
    # A terminal that is too narrow breaks lines; cells that were cut would tell nothing.
    Console(width=max(console.width, console.measure(table, options=console.options.update(width=1000)).maximum)).print(
        table, crop=False
    )
    for line in legend(done):
        console.print(line, style="dim", markup=False, highlight=False)


def _list(json: bool) -> None:
    from negatoscope.papers.paper import paper_named, paper_names

    found = {
        name: {number: [row.name for row in table.rows] for number, table in paper_named(name).tables.items()}
        for name in paper_names()
    }
    if json:
        print_json(found)
        return
    for name, tables in found.items():
        for number, rows in tables.items():
            print(f"{name} --table {number}: {', '.join(rows)}")


def _tell(line: str) -> None:
    typer.echo(line, err=True)


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())

"""`negatoscope phantom-bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from negatoscope.cli.options import Json, Set, changes_of, print_json, seeds_of


def phantom_bench(
    into: Annotated[Path, typer.Option(help="Folder of phantoms, runs, tables and the picture.")] = Path(
        "runs/phantom-bench"
    ),
    seeds: Annotated[str, typer.Option(help="An encoder and one run of each reporter for each of these.")] = "1,2,3",
    jobs: Annotated[int, typer.Option(min=1, help="Runs at a time, each in its own process.")] = 1,
    threads: Annotated[int, typer.Option(min=1, help="Of each process.")] = 1,
    budget: Annotated[str, typer.Option(help="Time for training: 2h, 90m, 540s; the same command goes on.")] = "",
    set_: Set = None,
    json: Json = False,
) -> None:
    """Ask the papers' claims where the truth is known: on phantoms with masks.

    Does contrastive information fall on the finding, more than attention does? Are the normals near that Contrastive
    Attention weighs highest? Do WCL and ITHN raise the recall of rare findings? What is missing is drawn and trained,
    what was interrupted goes on. Tables, JSON and a picture go to INTO.

    Examples:

        negatoscope phantom-bench --into runs/phantom-bench --jobs 2

        negatoscope phantom-bench --into runs/bench-tiny --seeds 1 --set studies=120 --set held_out=60 --set epochs=2
    """
    import torch
    from rich.console import Console
    from rich.markdown import Markdown

    from negatoscope.cli.progress import watch_on
    from negatoscope.papers.phantom_bench.bench import bench
    from negatoscope.papers.phantom_bench.laid_out import as_dict, as_markdown, save
    from negatoscope.papers.phantom_bench.settings import BenchSettings
    from negatoscope.papers.running import seconds_of
    from negatoscope.reading_room.phantom_sheet import bench_sheet
    from negatoscope.settings import read_settings

    torch.set_num_threads(threads)
    settings = read_settings(BenchSettings, changes_of(set_), where="--set")
    done = bench(
        into,
        settings=settings,
        seeds=seeds_of(seeds),
        jobs=jobs,
        threads=threads,
        budget=seconds_of(budget) if budget else None,
        say=_tell,
        watch=watch_on(silent=json),
    )
    files = [*save(done, into), bench_sheet(done, into / "phantom-bench.png")]
    if json:
        print_json(as_dict(done))
        return
    console = Console()
    if console.is_terminal:
        console.print(Markdown(as_markdown(done)))
    else:
        print(as_markdown(done))
    for path in files:
        print(path)


def _tell(line: str) -> None:
    typer.echo(line, err=True)

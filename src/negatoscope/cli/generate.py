"""`negatoscope generate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from negatoscope.cli.options import Json, Set, changes_of, print_json


def generate(
    checkpoint: Annotated[
        Path, typer.Argument(help="A run's folder (its best epoch is taken) or a .safetensors file.")
    ],
    out: Annotated[Path, typer.Option(help="The JSONL to write: one object a study with `id`, `report`, `score`.")],
    store: Annotated[Path | None, typer.Option(help="Another store than the one the run learned from.")] = None,
    split: Annotated[str, typer.Option(help="train, val, test or none.")] = "test",
    set_: Set = None,
    batch: Annotated[int, typer.Option(min=1, help="Studies at a time.")] = 32,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many studies.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda ...")] = "cpu",
    json: Json = False,
) -> None:
    """Write a report for each study of a split.

    `--set` changes the decoding: beam, best, max_words, min_words, length_penalty, block_trigrams, method, top_p ...

    Example: `negatoscope generate runs/first --split test --out reports.jsonl --set beam=5`
    """
    from negatoscope.cli.progress import watch_on
    from negatoscope.studies.store import known_split
    from negatoscope.training import generate as room

    done = room.generate(
        checkpoint,
        out,
        store=store,
        split=known_split(split),
        decode=changes_of(set_),
        batch=batch,
        limit=limit,
        device=device,
        watch=watch_on(silent=json),
    )
    if json:
        print_json(vars(done))
    else:
        print(f"{done.reports} reports, {done.distinct} distinct: {done.path}")

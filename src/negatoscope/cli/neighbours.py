"""`negatoscope neighbours`: the hard negatives of ITHN and MoCHi, found once before training."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from negatoscope.cli.clusters import EMBEDDER, KEEP
from negatoscope.cli.options import Json, print_json


def neighbours(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="A folder that `negatoscope data import` made.")],
    k: Annotated[int, typer.Option("-k", min=1, help="Neighbours of each study that are kept.")] = 10,
    embedder: Annotated[str, typer.Option(help=EMBEDDER)] = "tfidf",
    search: Annotated[
        str, typer.Option(help="exact, index (approximate; extra cluster), or auto: index from 20,000 reports on.")
    ] = "auto",
    keep: Annotated[str, typer.Option(help=KEEP)] = "complete",
    show: Annotated[int, typer.Option(min=0, help="Print the reports of so many studies and of their nearest.")] = 0,
    anew: Annotated[bool, typer.Option("--anew", help="Make the table again where the store has it.")] = False,
    as_json: Json = False,
) -> None:
    """Find, for each training study, those whose reports say nearly the same: the negatives of `hard-negatives`.

    Never a study with the very same words. A training finds them itself where the store has them not yet.

    Example:

        negatoscope neighbours data/iu-xray --show 3
    """
    from negatoscope.cli.progress import watch_on
    from negatoscope.studies.store import Store
    from negatoscope.training.contrasts import corpus_of, form_of, neighbours_for, neighbours_path, search_of

    opened = Store.open(store)
    corpus = corpus_of(opened, form_of(keep))
    path = neighbours_path(opened, corpus, embedder, k)
    if anew:
        path.unlink(missing_ok=True)
    watch = watch_on(silent=as_json)
    found = neighbours_for(opened, corpus, embedder, k, search=search_of(search), watch=watch)
    cosine = found.cosine[:, 0]
    shown: list[dict[str, Any]] = []
    for place in range(min(show, len(found.ids))):
        near = int(found.nearest[place, 0])
        shown.append(
            {"id": found.ids[place], "report": corpus.texts[place], "neighbour": found.ids[near],
             "says": corpus.texts[near], "cosine": float(cosine[place])}
        )  # fmt: skip
    if as_json:
        print_json({**found.about, "mean_cosine": float(cosine.mean()), "table": str(path), "shown": shown})
        return
    for one in shown:
        print(f"{one['id']}\n  {one['report']}\n{one['neighbour']}, cosine {one['cosine']:.3f}\n  {one['says']}\n")
    about = found.about
    print(
        f"{about['studies']:,} studies, {about['distinct']:,} different reports, searched by {about['search']}; "
        f"mean cosine of the nearest {cosine.mean():.3f}; {path}",
        file=sys.stderr,
    )

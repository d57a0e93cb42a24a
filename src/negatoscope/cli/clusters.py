"""`negatoscope clusters`: the weak labels of WCL, made once before training, and a page to judge them by."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from negatoscope.cli.options import Json, print_json

if TYPE_CHECKING:
    from negatoscope.contrast.clusters import Clusters

EMBEDDER = (
    "tfidf, labels (the 14 observations), or an encoder's folder or hub id (extra hub); cls: before it: its [CLS]."
)
KEEP = "complete reports, or the abnormal sentences alone, as data.reports.keep of a recipe."


def clusters(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="A folder that `negatoscope data import` made.")],
    clusters: Annotated[int, typer.Option("--clusters", "-k", min=1, help="K of K-Means.")] = 14,
    embedder: Annotated[str, typer.Option(help=EMBEDDER)] = "tfidf",
    seed: Annotated[int, typer.Option(help="Of K-Means.")] = 0,
    keep: Annotated[str, typer.Option(help=KEEP)] = "complete",
    page: Annotated[Path | None, typer.Option(help="Also write an HTML page with each cluster's reports.")] = None,
    anew: Annotated[bool, typer.Option("--anew", help="Make the table again where the store has it.")] = False,
    as_json: Json = False,
) -> None:
    """Cluster the training reports by what they mean: the weak labels of the loss `wcl`, kept in the store.

    A training makes them itself where they are not there yet; the settings of the loss decide which.

    Example:

        negatoscope clusters data/iu-xray --clusters 14 --page clusters.html
    """
    from negatoscope.cli.progress import watch_on
    from negatoscope.contrast.cluster_page import write_cluster_page
    from negatoscope.studies.store import Store
    from negatoscope.training.contrasts import clusters_for, clusters_path, corpus_of, form_of

    opened = Store.open(store)
    corpus = corpus_of(opened, form_of(keep))
    path = clusters_path(opened, corpus, embedder, clusters, seed)
    if anew:
        path.unlink(missing_ok=True)
    made = clusters_for(opened, corpus, embedder, clusters, seed=seed, watch=watch_on(silent=as_json))
    if page is not None:
        write_cluster_page(made, corpus, page)
    if as_json:
        print_json({**made.about, "table": str(path), "page": str(page) if page else None})
        return
    _show(made)
    print(f"silhouette {made.silhouette:.3f}; {path}{f'; {page}' if page else ''}", file=sys.stderr)


def _show(made: Clusters) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("cluster", "reports", "share")
    total = sum(made.sizes)
    for number, size in enumerate(made.sizes):
        table.add_row(str(number), f"{size:,}", f"{size / total:.1%}")
    Console().print(table)

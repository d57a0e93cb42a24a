"""The training loader with what a recipe's contrastive losses ask for: each study's cluster and its neighbour."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from torch import nn

from negatoscope.contrast.clusters import Clusters
from negatoscope.contrast.negatives import HardNegatives
from negatoscope.contrast.neighbours import Neighbours
from negatoscope.contrast.weak import WeakContrast
from negatoscope.studies.loader import StudyLoader
from negatoscope.text.report_forms import ReportForm
from negatoscope.training.companions import with_neighbours
from negatoscope.training.contrasts import ClusterOf, clusters_for, corpus_of, neighbours_for
from negatoscope.training.data import Extras
from negatoscope.watch import Watch, quiet

KEPT = 10
"""Neighbours that a store keeps of each study: as many as MoCHi is likely to ask for."""


def with_contrasts(
    loader: StudyLoader, losses: Iterable[nn.Module], form: ReportForm, *, watch: Watch = quiet
) -> tuple[StudyLoader, list[str]]:
    """The loader, and a line for the run's log about each table that the losses read; tables are made where there are
    none yet, and kept in the store."""
    losses = list(losses)
    weak = [loss.settings for loss in losses if isinstance(loss, WeakContrast)]
    hard = [loss.settings for loss in losses if isinstance(loss, HardNegatives) and loss.needs_neighbours]
    if not weak and not hard:
        return loader, []
    store, notes = loader.store, []
    corpus = corpus_of(store, form)
    for said in weak:
        clusters = clusters_for(store, corpus, said.embedder, said.clusters, seed=said.seed, watch=watch)
        loader = replace(loader, extra=Extras((loader.extra, ClusterOf.made_of(clusters))))
        notes.append(_of_clusters(clusters))
    for said in hard:  # last: the loader of neighbours copies what the loader is by then
        found = neighbours_for(store, corpus, said.embedder, max(KEPT, said.neighbours), watch=watch)
        loader = with_neighbours(loader, found, said.neighbours)
        notes.append(_of_neighbours(found, said.neighbours))
    return loader, notes


def _of_clusters(made: Clusters) -> str:
    about = made.about
    return (
        f"clusters: K = {about['clusters']} by {about['embedder']}, seed {about['seed']}, "
        f"silhouette {made.silhouette:.3f}, sizes {', '.join(map(str, made.sizes))}"
    )


def _of_neighbours(found: Neighbours, among: int) -> str:
    about = found.about
    drawn = "the nearest" if among == 1 else f"one of the {among} nearest"
    return (
        f"hard negatives: {drawn} by {about['embedder']}, of {about['distinct']} different reports of "
        f"{about['studies']} studies; mean cosine of the nearest {found.cosine[:, 0].mean():.3f}"
    )

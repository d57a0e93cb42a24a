"""Batches whose studies bring a neighbour each: who is whose depends on (seed, epoch, study) alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from negatoscope.contrast.neighbours import Neighbours
from negatoscope.contrast.objective import NEIGHBOURS
from negatoscope.errors import BadInput
from negatoscope.studies.batch import Batch
from negatoscope.studies.loader import StudyLoader, nothing_extra
from negatoscope.training.contrasts import places_in


@dataclass
class Companions(StudyLoader):
    """Loads, for each batch of another loader, one neighbour of each of its studies."""

    beside: StudyLoader = field(kw_only=True)
    places: dict[int, Sequence[int]] = field(kw_only=True)
    """A study's place in the store -> its neighbours' places, nearest first."""

    def batches(self, epoch: int) -> list[list[int]]:
        return [[self._drawn(place, epoch) for place in batch] for batch in self.beside.batches(epoch)]

    def _drawn(self, place: int, epoch: int) -> int:
        near = self.places[place]
        if len(near) == 1:
            return near[0]
        return near[int(np.random.default_rng((self.seed, epoch, place)).integers(len(near)))]


@dataclass
class LoaderWithNeighbours(StudyLoader):
    """A loader whose batches hold the batch of their neighbours."""

    companions: Companions = field(kw_only=True)

    def epoch(self, number: int = 0, *, skip: int = 0) -> Iterator[Batch]:
        pairs = zip(super().epoch(number, skip=skip), self.companions.epoch(number, skip=skip), strict=True)
        for batch, beside in pairs:
            yield replace(batch, extra={**batch.extra, NEIGHBOURS: beside})


def with_neighbours(loader: StudyLoader, neighbours: Neighbours, among: int) -> LoaderWithNeighbours:
    """Raises BadInput where a study that is learned from has no neighbour among the others."""
    learned = set(np.concatenate([np.array(batch, int) for batch in _all(loader)]).tolist())
    at = places_in(loader.store, neighbours.ids)
    places: dict[int, Sequence[int]] = {
        at[study]: [at[other] for other in row if other >= 0 and at[other] in learned][:among]
        for study, row in enumerate(neighbours.nearest.tolist())
        if at[study] in learned
    }
    lonely = [place for place in learned if not places.get(place)]
    if lonely:
        study = loader.store.at(min(lonely)).id
        raise BadInput(f"no neighbour of study {study} is learned from", where=loader.store.path)
    said: dict[str, Any] = {f.name: getattr(loader, f.name) for f in fields(StudyLoader) if f.init}
    companions = Companions(**{**said, "extra": nothing_extra}, beside=loader, places=places)
    return LoaderWithNeighbours(**said, companions=companions)


def _all(loader: StudyLoader) -> list[list[int]]:
    """Every batch of an epoch, also those of other processes."""
    return replace(loader, rank=0, world=1).batches(0)

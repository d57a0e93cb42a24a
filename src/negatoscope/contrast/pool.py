"""The normality pool: which normal training studies a reporter compares with, and what it sees of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from negatoscope.contrast.attention import AttentionSettings, places_of
from negatoscope.errors import BadInput
from negatoscope.models.base import Reporter
from negatoscope.studies.batch import Batch
from negatoscope.studies.store import Store

RULES = {
    "tag": "its only tag is 'normal'",
    "label": "its label 'No Finding' is 1",
}
_REMEDY = {
    "tag": "import the studies with their tags, or set contrast.attention.normal to label",
    "label": "import the studies with their labels, or set contrast.attention.normal to tag",
}
Rule = Literal["tag", "label"]


@dataclass(frozen=True)
class Normals:
    """The normal studies that were drawn, in the store's order."""

    ids: tuple[str, ...]
    places: tuple[int, ...]
    """Where in the store each stands."""
    rule: Rule
    asked: int
    available: int
    """Normal studies of the training split."""
    seed: int

    @property
    def note(self) -> str:
        """One line for the run's log."""
        few = f"fewer than the {self.asked} asked for, so all of them" if self.available < self.asked else "drawn"
        return (
            f"normality pool: {len(self.ids)} of {self.available} normal training studies, {few} "
            f"(normal: {RULES[self.rule]}; seed {self.seed})"
        )

    def as_json(self) -> dict[str, Any]:
        rule = {"normal": self.rule, "asked": self.asked, "available": self.available, "seed": self.seed}
        return {**rule, "split": "train", "ids": list(self.ids)}


def choose_normals(store: Store, settings: AttentionSettings) -> Normals:
    """Normal studies of the training split, `settings.pool` of them or all there are.

    Raises BadInput where there are not even two: one study could be compared with itself alone.
    """
    table = store.table(["id", "split", "tags", "labels"])
    learning = np.asarray(table["split"].to_numpy(zero_copy_only=False) == "train")
    tagged = _tagged_normal(table["tags"])
    rule: Rule = settings.normal if settings.normal != "auto" else "tag" if (tagged[0] & learning).any() else "label"
    normal = tagged[1] if rule == "tag" else _labelled_normal(table["labels"])
    places = np.flatnonzero(normal & learning)
    if len(places) < 2:
        raise BadInput(
            f"{'only one normal study' if len(places) else 'no normal studies'} in the training split to compare with "
            f"(a study is normal where {RULES[rule]})",
            where=store.path,
            remedy=_REMEDY[rule],
        )
    drawn = places
    if len(places) > settings.pool:
        drawn = np.sort(np.random.default_rng(settings.seed).choice(places, settings.pool, replace=False))
    ids = tuple(table["id"].take(pa.array(drawn)).to_pylist())
    return Normals(ids, tuple(drawn.tolist()), rule, settings.pool, len(places), settings.seed)


def _tagged_normal(tags: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """Of each study: whether it has tags, and whether 'normal' is all that they say."""
    said = [{tag.strip().lower() for tag in row or ()} for row in _each(tags)]
    return np.array([bool(row) for row in said]), np.array([row == {"normal"} for row in said])


def _labelled_normal(labels: pa.ChunkedArray) -> np.ndarray:
    return np.array([dict(row or ()).get("No Finding") == 1 for row in _each(labels)])


def _each(column: pa.ChunkedArray) -> Iterator[Any]:
    """A chunk at a time: all labels of MIMIC-CXR as Python values at once would take half a gigabyte."""
    for chunk in column.chunks:
        yield from chunk.to_pylist()


@dataclass(frozen=True)
class Vectors:
    pool: Tensor  # (N_P, K, d)
    there: Tensor  # (N_P, K) bool


@torch.no_grad()  # not inference_mode: training reads the pool, and gradients pass by it
def look_at_normals(reporter: Reporter, settings: AttentionSettings, batches: Iterable[Batch]) -> Vectors:
    """What the reporter's `look` makes of each normal study, as it stands now, without dropout."""
    was_training = reporter.training
    reporter.eval()
    pool, there = [], []
    try:
        for batch in batches:
            sight = reporter.look(batch)
            seen = torch.cat([torch.ones_like(sight.mask[:, :1]), sight.mask], 1)  # (B, 1 + N)
            places = places_of(sight, settings.level)  # (B, K, d)
            pool.append(places.float().cpu())
            there.append(seen[:, : places.shape[1]].cpu())
    finally:
        reporter.train(was_training)
    return Vectors(torch.cat(pool), torch.cat(there))

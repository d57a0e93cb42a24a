"""Does CVSE look where the finding is? The share of its attention that falls inside the finding's mask.

For studies whose masks all belong to one finding, so that every abnormal sentence of the report tells of it. A map over
a view gives each cell of the backbone's grid a share of the attention; of a cell that a mask covers by half, half its
share counts as inside. Held against it:

    uniform   the same attention on every cell: the part of the picture that the mask covers
    chance    the map of another study on this mask, the mean over all other studies with a mask in that view
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from negatoscope.errors import BadInput, WrongUse
from negatoscope.retrieval.corpus import findings_told
from negatoscope.retrieval.findings import SLOTS
from negatoscope.retrieval.retriever import Retriever, seen_by
from negatoscope.studies.pixels import read_pixels
from negatoscope.studies.store import Store
from negatoscope.studies.study import Split, Study
from negatoscope.studies.views import ARRANGE
from negatoscope.text.abnormal import SentenceClassifier
from negatoscope.vision.features import FeatureCache
from negatoscope.watch import Watch, quiet


@dataclass(frozen=True)
class Share:
    """Means over maps."""

    maps: int
    inside: float
    low: float
    """95% of bootstrap means over maps lie between this"""
    high: float
    """and this."""
    uniform: float
    chance: float | None
    """None where no other study has a mask in the same view."""
    hit: float
    """How often the cell with the most attention touches the mask, and"""
    hit_by_any: float
    """how often a cell drawn at random would."""


class MaskedMap(NamedTuple):
    """Where CVSE looked in one view for one sentence of a study with one finding."""

    finding: str
    study: Study
    slot: int
    """Of SLOTS."""
    sentence: str
    attention: NDArray[np.float64]  # (N,)
    mask: NDArray[np.float64]  # (N,) the part of each cell that the finding covers

    @property
    def inside(self) -> float:
        return float(self.attention @ self.mask)


@dataclass(frozen=True)
class Pointing:
    every: Share
    by_finding: Mapping[str, Share]
    studies: int
    unknown: int
    """Sentences that are in no group of the training studies, and were passed over."""


def pointing(
    retriever: Retriever,
    group_of: Mapping[str, int],
    store: Store,
    cache: FeatureCache,
    classifier: SentenceClassifier,
    *,
    split: Split = "val",
    seed: int = 1,
    watch: Watch = quiet,
) -> Pointing:
    """`group_of`: sentence -> group, as the run's folder keeps them (`load_groups(...).of_sentence()`).

    Raises WrongUse where pictures were cropped before the backbone saw them, BadInput where no study has a mask.
    """
    found, unknown = masked_maps(retriever, group_of, store, cache, classifier, split=split, watch=watch)
    return summary(found, unknown, seed)


def masked_maps(
    retriever: Retriever,
    group_of: Mapping[str, int],
    store: Store,
    cache: FeatureCache,
    classifier: SentenceClassifier,
    *,
    split: Split = "val",
    watch: Watch = quiet,
) -> tuple[list[MaskedMap], int]:
    """One for each sentence and masked view, in the store's order; how many sentences are in no group. Raises as
    `pointing` does."""
    retriever.must_fit(cache)
    side = isqrt(cache.key.patches)
    if cache.key.fit != "squash" or side * side != cache.key.patches:
        raise WrongUse("masks fit maps over whole pictures only", where=cache.path, remedy="features with --fit squash")
    studies = [study for study in store.studies(split) if len(_findings(study)) == 1]
    told = findings_told(studies, classifier)
    known = [[said for said in one.sentences if said in group_of] for one in told]
    unknown = sum(said not in group_of for one in told for said in one.sentences)
    kept = [row for row, sentences in enumerate(known) if sentences]
    if not kept:
        remedy = "phantom studies have masks: negatoscope data import phantom"
        raise BadInput("no study with a masked finding that the groups know", where=store.path, remedy=remedy)
    v = retriever.sentences()
    found: list[MaskedMap] = []
    rows = iter(kept)
    for regions in seen_by(retriever, [studies[row] for row in kept], cache, watch):
        asked = [next(rows) for _ in range(len(regions.places))]
        wanted = sorted({group_of[said] for row in asked for said in known[row]})
        with torch.inference_mode():
            maps = retriever.model.maps(regions, v[wanted]).numpy().astype(np.float64)  # (B, k, V, N)
        for place, row in enumerate(asked):
            name = next(iter(_findings(studies[row])))
            for slot, mask in _masks(studies[row], store, retriever, side).items():
                for said in known[row]:
                    seen = maps[place, wanted.index(group_of[said]), slot]
                    found.append(MaskedMap(name, studies[row], slot, said, seen, mask))
    return found, unknown


def _findings(study: Study) -> set[str]:
    return {name.rsplit("@", 1)[0] for name in study.masks}


def _masks(study: Study, store: Store, retriever: Retriever, side: int) -> dict[int, NDArray[np.float64]]:
    """View slot -> (N,) the part of each cell that the finding covers."""
    arranged = ARRANGE[retriever.recipe.arrange](study, len(SLOTS))
    masks = {}
    for name, path in study.masks.items():
        picture = study.pictures[int(name.rsplit("@", 1)[1])]
        if picture in arranged:
            grey = read_pixels(store.picture_path(path)).grey > 0
            masks[arranged.index(picture)] = cells(grey, side).ravel()
    return masks


def cells(mask: NDArray[np.bool_], side: int) -> NDArray[np.float64]:
    """(side, side): the part of each cell that is covered, whatever the picture's size."""

    def along(length: int) -> NDArray[np.float64]:
        """(side, length): how much of each pixel lies in each cell, in cells."""
        edges, pixels = np.arange(side + 1) * length / side, np.arange(length)
        low = np.maximum(edges[:-1, None], pixels)
        high = np.minimum(edges[1:, None], pixels + 1)
        return np.maximum(high - low, 0) * side / length

    height, width = mask.shape
    return along(height) @ mask.astype(np.float64) @ along(width).T


def summary(found: Sequence[MaskedMap], unknown: int, seed: int = 1) -> Pointing:
    figures = np.zeros((len(found), 5))
    for slot in {one.slot for one in found}:
        rows = [row for row, one in enumerate(found) if one.slot == slot]
        attention = np.stack([found[row].attention for row in rows])  # (n, N)
        masks = np.stack([found[row].mask for row in rows])
        inside = (attention * masks).sum(1)
        whose = np.array([found[row].study.id for row in rows])
        others = np.stack([attention[whose != study].sum(0) for study in whose])  # (n, N)
        count = np.array([(whose != study).sum() for study in whose])
        # A study that is alone in its view has no other's map to be held against.
        chance = np.where(count > 0, (others * masks).sum(1) / np.maximum(count, 1), np.nan)
        best = masks[np.arange(len(rows)), attention.argmax(1)] > 0
        figures[rows] = np.stack([inside, masks.mean(1), chance, best, (masks > 0).mean(1)], 1)
    of_finding: dict[str, list[int]] = defaultdict(list)
    for row, one in enumerate(found):
        of_finding[one.finding].append(row)
    rng = np.random.default_rng(seed)
    return Pointing(
        _share(figures, rng),
        {name: _share(figures[rows], rng) for name, rows in sorted(of_finding.items())},
        len({one.study.id for one in found}),
        unknown,
    )


def _share(figures: NDArray[np.float64], rng: np.random.Generator) -> Share:
    inside = figures[:, 0]
    drawn = inside[rng.integers(0, len(inside), (1000, len(inside)))].mean(1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    inside, uniform, chance, hit, hit_by_any = (column[~np.isnan(column)] for column in figures.T)
    by_chance = float(chance.mean()) if len(chance) else None
    means = (float(column.mean()) for column in (hit, hit_by_any))
    return Share(len(figures), float(inside.mean()), float(low), float(high), float(uniform.mean()), by_chance, *means)

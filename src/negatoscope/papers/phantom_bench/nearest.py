"""Does Contrastive Attention find the nearest normal studies, by view, side, rotation and what else is known of them?

Each head shares its attention out over the pool of normal training studies. Of every study it is known how it was
taken and of whom, so it can be asked how far those normals are that get the attention, in units of how far all normals
of the pool are on average: 1 is a normal drawn at random, 0 the same.

    numbers   sum_p share_p |x - x_p|   /  mean_p |x - x_p|
    kinds     sum_p share_p [x != x_p]  /  mean_p [x != x_p]

Beside all heads' shares stand the one normal that each head likes best, and, as what needs no learning, the six normals
that are nearest by the cosine of the encoder's pooled features.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from negatoscope.contrast.attention import ContrastiveAttention
from negatoscope.papers.phantom_bench.ready import Ready, place_of
from negatoscope.studies.phantom.planning import Plan
from negatoscope.studies.store import Store
from negatoscope.training.checkpoint import load_reporter
from negatoscope.training.data import loader_for

Array = NDArray[np.float64]
NUMBERS: Mapping[str, Callable[[Plan], float]] = {
    "rotation, frontal": lambda plan: plan.poses["frontal"].rotation,
    "tilt, frontal": lambda plan: plan.poses["frontal"].tilt,
    "exposure, frontal": lambda plan: plan.poses["frontal"].exposure,
    "contrast of the film, frontal": lambda plan: plan.poses["frontal"].contrast,
    "breath": lambda plan: plan.poses["frontal"].inspiration,
    "size on the film": lambda plan: plan.anatomy.half_width / plan.poses["frontal"].width,
    "rotation, lateral": lambda plan: plan.poses["lateral"].rotation if "lateral" in plan.poses else np.nan,
}
KINDS: Mapping[str, Callable[[Plan], str]] = {
    "views there are": lambda plan: "+".join(plan.poses),
    "projection (PA or AP)": lambda plan: plan.poses["frontal"].projection,
    "side of the marker": lambda plan: plan.poses["frontal"].marker[0],
    "sex": lambda plan: "woman" if plan.anatomy.woman else "man",
}
PROPERTIES = (*KINDS, *NUMBERS)
ALL_HEADS, BEST, BY_FEATURES = "all heads", "each head's first", "nearest by features"
CHOICES = (ALL_HEADS, BEST, BY_FEATURES)
_NEAREST = 6
"""As many as there are heads."""


@torch.inference_mode()
def shares_of_normals(ready: Ready, run: Path) -> tuple[Array, list[int], dict[str, Array]]:
    """Of all held-out studies the shares (n, heads, N_P), the numbers of the pool's studies (N_P), and which of them
    each choice takes, (n, N_P) that add up to 1."""
    reporter, loaded = load_reporter(run)
    contrast = reporter.contrast
    assert isinstance(contrast, ContrastiveAttention)
    names = list(contrast.rows)
    studies = len(Store.open(ready.held_out))
    shares = np.zeros((studies, contrast.settings.heads, len(names)))
    pooled = np.zeros((studies, reporter.encoder.width))
    for batch in ready.batches(loaded.recipe):
        rows = [place_of(id) for id in batch.ids]
        shares[rows] = contrast.compare(reporter.look(batch), batch.ids).shares[:, 0].double().numpy()
        pooled[rows] = reporter.encoder(batch).overall.double().numpy()
    learned = Store.open(ready.learned)
    place = {id: number for number, id in enumerate(learned.ids())}
    of_pool = np.zeros((len(names), pooled.shape[1]))
    row = {id: number for number, id in enumerate(names)}
    loader = loader_for(loaded.recipe, None, learned, "train", chosen=[place[name] for name in names])
    for batch in loader.epoch():
        of_pool[[row[id] for id in batch.ids]] = reporter.encoder(batch).overall.double().numpy()
    chosen = {ALL_HEADS: shares.mean(1), BEST: firsts(shares), BY_FEATURES: nearest(pooled, of_pool)}
    return shares, [place[name] for name in names], chosen


def firsts(shares: Array) -> Array:
    """(n, heads, N_P) -> (n, N_P): an equal share for the normal that each head likes best."""
    n, heads, pool = shares.shape
    chosen = np.zeros((n, pool))
    for head in range(heads):
        chosen[np.arange(n), shares[:, head].argmax(1)] += 1 / heads
    return chosen


def nearest(vectors: Array, pool: Array, k: int = _NEAREST) -> Array:
    """(n, N_P): an equal share for the k normals of the largest cosine."""
    k = min(k, len(pool))
    unit, of_pool = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (vectors, pool))
    order = np.argsort(-(unit @ of_pool.T), axis=1, kind="stable")[:, :k]
    chosen = np.zeros((len(vectors), len(pool)))
    np.put_along_axis(chosen, order, 1 / k, axis=1)
    return chosen


def how_far(chosen: Array, ours: Sequence[Plan], normals: Sequence[Plan]) -> dict[str, Array]:
    """Property -> (n,): how far the chosen normals are, where one drawn at random is 1; NaN where a study or all
    normals lack the property, or no normal differs in it."""
    found: dict[str, Array] = {}
    for name in PROPERTIES:
        if name in KINDS:
            x, p = ([KINDS[name](plan) for plan in plans] for plans in (ours, normals))
            apart = np.array([[float(one != other) for other in p] for one in x])
        else:
            x, p = (np.array([NUMBERS[name](plan) for plan in plans]) for plans in (ours, normals))
            apart = np.abs(x[:, None] - p[None])
        found[name] = _relative(chosen, apart)
    return found


def _relative(chosen: Array, apart: Array) -> Array:
    """Normals without the property count neither for the shares nor for the mean."""
    told = ~np.isnan(apart)
    filled = np.where(told, apart, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        weighted = (chosen * filled).sum(1) / (chosen * told).sum(1)
        all_alike = filled.sum(1) / told.sum(1)
        relative = weighted / all_alike
    return np.where(np.isfinite(relative), relative, np.nan)


def spread(shares: Array) -> Array:
    """(n, heads, N_P) -> (n,): over how many normals a head spreads its attention, the exponential of its entropy, as
    a part of the pool: 1 is all alike."""
    logs = np.log(np.where(shares > 0, shares, 1.0))
    return np.exp(-(shares * logs).sum(-1)).mean(1) / shares.shape[-1]

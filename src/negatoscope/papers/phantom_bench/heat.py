"""Does contrastive information fall on the finding, more than plain attention does?

Asked of held-out studies with one finding, whose mask says where it is. Every way of looking gives each patch of a view
a number; of a patch that the mask covers by half, half its share counts as inside.

    share   what part of the map lies inside the mask; below 0 counts as 0, a map of zeros as the same everywhere
    chance  the same with the map of another study: what always looking at the same place would reach
    hit     whether the patch with the highest number touches the mask (the pointing game)
    order   how often a place inside the mask ranks above one outside, ties half: it does not ask how sharp a map is

Ways of looking, each over the patches of one view:

    attention   the mean over the words of the reference, which the host is fed: the sentence that tells the finding
    contrast    (v_i - v^c) . v^d / |v^d|, as `negatoscope explain` draws it; each patch's own |v_i^d| where every patch
                is contrasted with its like
    distance    |f_i - mean f_i of the normal training studies|, f the encoder's features: nothing is learned
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from negatoscope.contrast.attention import ContrastiveAttention
from negatoscope.contrast.explain import heat_of
from negatoscope.models.base import Reporter
from negatoscope.papers.phantom_bench.ready import Ready, place_of
from negatoscope.papers.phantom_bench.sampling import mean_told
from negatoscope.papers.phantom_bench.settings import CA, CA_PATCH, PLAIN
from negatoscope.papers.phantom_bench.short import short_report
from negatoscope.retrieval.pointing import cells
from negatoscope.studies.batch import Batch
from negatoscope.studies.phantom.planning import Plan
from negatoscope.studies.pixels import read_pixels
from negatoscope.studies.store import Store
from negatoscope.studies.views import by_view
from negatoscope.text.words import Vocabulary
from negatoscope.training.checkpoint import load_reporter
from negatoscope.vision.features import FeatureCache

Array = NDArray[np.float64]
VIEWS = 2
WAYS = {
    "attention": "attention, host alone",
    "attention with CA": "attention, host with CA",
    "contrast": "contrastive information",
    "contrast of patches": "contrastive information, each patch with its like",
    "distance": "distance from the mean normal patch, nothing learned",
}
COMPARED = "attention"
"""The way that the others are held against."""
FIGURES = ("share", "chance", "hit", "order")


@dataclass(frozen=True)
class Masked:
    """Held-out studies with one finding that can be seen."""

    places: NDArray[np.int64]  # (n,) in the store
    findings: tuple[str, ...]
    covers: Array  # (n, V, N): the part of each patch that the mask covers; 0 where there is none in that view


def masked_studies(store: Store, side: int) -> Masked:
    """With patches in a square of `side` by `side` a view."""
    places, findings, covers = [], [], []
    for place, study in enumerate(store.studies()):
        names = {name.rsplit("@", 1)[0] for name in study.masks}
        if len(names) != 1 or study.tags == ("normal",):
            continue
        shown = by_view(study, VIEWS)
        cover = np.zeros((VIEWS, side * side))
        for name, path in study.masks.items():
            picture = study.pictures[int(name.rsplit("@", 1)[1])]
            if picture in shown:
                grey = read_pixels(store.picture_path(path)).grey > 0
                cover[shown.index(picture)] = cells(grey, side).ravel()
        places.append(place)
        findings.append(next(iter(names)))
        covers.append(cover)
    return Masked(np.array(places), tuple(findings), np.stack(covers))


def maps_of(ready: Ready, runs: Mapping[str, Path], plans: list[Plan], chosen: NDArray[np.int64]) -> dict[str, Array]:
    """Way of looking -> (n, V, N) maps of the chosen held-out studies, NaN where a study lacks the view."""
    patches = FeatureCache.open(ready.features).key.patches
    row = {int(place): number for number, place in enumerate(chosen)}
    found = {way: np.full((len(chosen), VIEWS, patches), np.nan) for way in WAYS}
    mean = _mean_normal(ready, runs[CA])
    for run in (PLAIN, CA, CA_PATCH):
        reporter, loaded = load_reporter(runs[run])
        for batch in ready.batches(loaded.recipe):
            kept = [number for number, id in enumerate(batch.ids) if place_of(id) in row]
            if not kept:
                continue
            batch = batch.rows(kept)
            told = with_reports(batch, [short_report(plans[place_of(id)]) for id in batch.ids], loaded.vocabulary)
            if run == PLAIN:
                away = (reporter.encoder(batch).patches - mean).norm(dim=-1)
                seen = {"attention": attention_of(reporter, told), "distance": away}
            elif run == CA:
                seen = {"attention with CA": attention_of(reporter, told), "contrast": contrast_of(reporter, batch)}
            else:
                seen = {"contrast of patches": contrast_of(reporter, batch)}
            there = batch.present.repeat_interleave(patches, dim=1)  # (B, V N)
            for way, values in seen.items():
                laid = values.masked_fill(~there, torch.nan).view(len(batch), VIEWS, patches)
                found[way][[row[place_of(id)] for id in batch.ids]] = laid.double().numpy()
    return found


def with_reports(batch: Batch, reports: Sequence[str], vocabulary: Vocabulary) -> Batch:
    """The same studies, to be read with these reports."""
    words = [torch.tensor(vocabulary.encode(report)) for report in reports]
    padded = pad_sequence(words, batch_first=True)  # 0 is padding, start and end
    mask = torch.arange(padded.shape[1]) < torch.tensor([len(one) for one in words]).unsqueeze(1)
    return replace(batch, words=padded, word_mask=mask)


@torch.inference_mode()
def attention_of(reporter: Reporter, batch: Batch) -> Tensor:
    """(B, N): the mean over the words of each study's report."""
    alpha = reporter(batch).extra["attention"].float()  # (B, T, N)
    assert batch.word_mask is not None
    real = batch.word_mask[:, 1:].to(alpha).unsqueeze(-1)  # (B, T, 1)
    return (real * alpha).sum(1) / real.sum(1)


@torch.inference_mode()
def contrast_of(reporter: Reporter, batch: Batch) -> Tensor:
    """(B, N)."""
    contrast = reporter.contrast
    assert isinstance(contrast, ContrastiveAttention)
    sight = reporter.look(batch)
    return heat_of(sight, contrast.compare(sight, batch.ids))


def _mean_normal(ready: Ready, run: Path) -> Tensor:
    """(V N, D): of each place the mean feature of the normal studies in a run's pool that have the view."""
    contrast = load_reporter(run)[0].contrast
    assert isinstance(contrast, ContrastiveAttention)
    store, cache = Store.open(ready.learned), FeatureCache.open(ready.features)
    total: list[Array] = [np.zeros((cache.key.patches, cache.key.width)) for _ in range(VIEWS)]
    often = [0] * VIEWS
    for study in (one for one in store.studies("train") if one.id in contrast.rows):
        for slot, picture in enumerate(by_view(study, VIEWS)):
            if picture is not None:
                total[slot] += cache.get(picture.sha256)
                often[slot] += 1
    means = [of_view / max(count, 1) for of_view, count in zip(total, often)]
    return torch.from_numpy(np.concatenate(means)).float()


def measured(maps: Array, covers: Array) -> dict[str, Array]:
    """maps (n, V, N) and what the mask covers (n, V, N) -> each figure, and `uniform` and `hit_by_any`, (n,): the mean
    over the views in which the finding can be seen, NaN where there is none."""
    figures = {name: np.full(covers.shape[:2], np.nan) for name in (*FIGURES, "uniform", "hit_by_any")}
    for slot in range(covers.shape[1]):
        told = ~np.isnan(maps[:, slot]).any(1) & (covers[:, slot].sum(1) > 0)
        rows = np.flatnonzero(told)
        if not len(rows):
            continue
        values, cover = maps[rows, slot], covers[rows, slot]
        shares = shares_of(values)
        all_shares = shares @ cover.T  # (n, n): the map of one study on the mask of another
        own = all_shares.diagonal()
        figures["share"][rows, slot] = own
        if len(rows) > 1:
            figures["chance"][rows, slot] = (all_shares.sum(0) - own) / (len(rows) - 1)
        figures["hit"][rows, slot] = cover[np.arange(len(rows)), values.argmax(1)] > 0
        figures["order"][rows, slot] = [ranked(one, covered) for one, covered in zip(values, cover)]
        figures["uniform"][rows, slot] = cover.mean(1)
        figures["hit_by_any"][rows, slot] = (cover > 0).mean(1)
    return {name: mean_told(values, 1) for name, values in figures.items()}


def shares_of(values: Array) -> Array:
    """(n, N) of any numbers -> (n, N) that add up to 1."""
    above = np.maximum(values, 0)
    total = above.sum(1, keepdims=True)
    return np.where(total > 0, above / np.where(total > 0, total, 1), 1 / values.shape[1])


def ranked(values: Array, cover: Array) -> float:
    """How often a place inside ranks above one outside, weighted by how much of each patch lies inside; ties half."""
    above = (values[:, None] > values[None]) + 0.5 * (values[:, None] == values[None])
    inside, outside = cover, 1 - cover
    whole = inside.sum() * outside.sum()
    return float(inside @ above @ outside / whole) if whole > 0 else np.nan

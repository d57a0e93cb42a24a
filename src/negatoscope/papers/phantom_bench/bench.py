"""The bench from end to end: what is missing is drawn, taught and trained, then measured; nothing is done twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from negatoscope.errors import Trouble
from negatoscope.papers.intervals import Figure
from negatoscope.papers.phantom_bench import heat, nearest, rare
from negatoscope.papers.phantom_bench.ready import Ready, make_ready
from negatoscope.papers.phantom_bench.sampling import Array, Sample
from negatoscope.papers.phantom_bench.settings import CA, ROWS, BenchSettings
from negatoscope.papers.rows import Conditions, RowRun, run_of
from negatoscope.papers.running import run_all
from negatoscope.papers.scoring import run_folder
from negatoscope.papers.work import Job, state_of
from negatoscope.studies.phantom.settings import FINDINGS
from negatoscope.studies.store import Store
from negatoscope.vision.features import FeatureCache
from negatoscope.watch import Watch, quiet

Figures = dict[str, Figure]


@dataclass(frozen=True)
class Pictured:
    """One held-out study and what each way of looking made of it, of the first seed."""

    place: int
    finding: str
    maps: Mapping[str, Array]
    """Way -> (V, N)."""


@dataclass(frozen=True)
class Benched:
    settings: BenchSettings
    seeds: tuple[int, ...]
    looking: dict[str, Figures]
    """Way of looking -> figure; differences are to attention of the finding's sentence."""
    by_finding: dict[str, dict[str, Figure]]
    """Finding -> way -> order."""
    masked: int
    uniform: Figures
    normals: dict[str, Figures]
    """Property -> choice of normals -> how far they are, a random one being 1."""
    spread: Figure
    pool: int
    recall: dict[str, Figures]
    """Row -> rare, frequent, false alarms (rare), and each rare finding."""
    rare: dict[str, float]
    """Finding -> share of the training studies that have it."""
    asked: dict[str, int]
    """Finding -> held-out studies that have it."""
    distinct: dict[str, float]
    """Row -> different reports of the held-out studies, mean over seeds."""
    seconds: float
    """Of training, all runs together; the encoders not."""
    pictured: tuple[Pictured, ...] = field(repr=False)
    held_out: Path


def bench(
    folder: Path,
    *,
    settings: BenchSettings,
    seeds: Sequence[int] = (1, 2, 3),
    jobs: int = 1,
    threads: int = 1,
    budget: float | None = None,
    pictures: int = 6,
    say: Callable[[str], None] = print,
    watch: Watch = quiet,
) -> Benched:
    """`budget`: seconds for training. Raises Trouble where a run failed, or runs are left when the time is over."""
    deadline = None if budget is None else time.time() + budget
    ready = make_ready(folder, settings, jobs * threads, say, watch)
    runs: dict[int, dict[str, Path]] = {}
    todo: list[Job] = []
    for seed in seeds:
        planned = _runs_of(ready, seed)
        runs[seed] = {name: run_folder(ready.grounds, run) for name, run in planned.items()}
        todo += [Job(str(runs[seed][name]), run.recipe, run.kind, keep_weights=True) for name, run in planned.items()]
    say(f"{len(todo)} runs, {jobs} at a time, into {folder}")
    ran = run_all(todo, jobs, deadline=deadline, threads=threads, say=say)
    if ran.failed:
        raise Trouble(f"{len(ran.failed)} runs failed, the first: {ran.failed[0]}", where=folder)
    left = ran.stopped + ran.not_begun
    if left:
        raise Trouble(f"out of time: {left} runs are left", where=folder, remedy="the same command goes on from here")
    sample = Sample(settings.held_out, settings.draws)
    each = list(runs.values())
    looked, found, told = (
        _looking(ready, each, sample, pictures),
        _normals(ready, each, sample),
        _recall(ready, each, sample),
    )
    seconds = sum(state_of(Path(job.folder)).seconds for job in todo)
    return Benched(settings, tuple(seeds), **looked, **found, **told, seconds=seconds, held_out=ready.held_out)


def _runs_of(ready: Ready, seed: int) -> dict[str, RowRun]:
    """Small models; the last epoch is kept, as it is the only one that is validated."""
    epochs = ready.settings.epochs
    conditions = Conditions(ready.grounds, "quick", {"train.epochs": epochs, "train.validate_every": epochs})
    return {row.name: run_of(row, "complete", conditions, seed) for row in ROWS}


Runs = Sequence[Mapping[str, Path]]
"""Of each seed, row -> folder."""


def _looking(ready: Ready, runs: Runs, sample: Sample, pictures: int) -> dict[str, Any]:
    store = Store.open(ready.held_out)
    plans = ready.plans()[1]
    masked = heat.masked_studies(store, isqrt(FeatureCache.open(ready.features).key.patches))
    each: list[dict[str, dict[str, Array]]] = []
    first: dict[str, Array] = {}
    for of_seed in runs:
        maps = heat.maps_of(ready, of_seed, plans, masked.places)
        first = first or maps
        each.append({way: heat.measured(values, masked.covers) for way, values in maps.items()})

    def values(way: str, figure: str, keep: NDArray[np.bool_] | None = None) -> Array:
        """(S, held-out studies)."""
        laid = np.full((len(each), len(store)), np.nan)
        for number, of_seed in enumerate(each):
            told = of_seed[way][figure]
            laid[number, masked.places] = told if keep is None else np.where(keep, told, np.nan)
        return laid

    looking: dict[str, Figures] = {}
    for way in heat.WAYS:
        looking[way] = {}
        for figure in heat.FIGURES:
            against = None if way == heat.COMPARED else values(heat.COMPARED, figure)
            looking[way][figure] = sample.mean(values(way, figure), against)
        looking[way]["share over chance"] = sample.mean(values(way, "share") - values(way, "chance"))
    by_finding: dict[str, Figures] = {}
    for finding in sorted(set(masked.findings)):
        keep = np.array([one == finding for one in masked.findings])
        by_finding[finding] = {way: sample.mean(values(way, "order", keep)) for way in heat.WAYS}
    uniform = {name: sample.mean(values(heat.COMPARED, name)) for name in ("uniform", "hit_by_any")}
    return {
        "looking": looking,
        "by_finding": by_finding,
        "masked": len(masked.places),
        "uniform": uniform,
        "pictured": _pictured(masked, first, pictures),
    }


def _pictured(masked: heat.Masked, maps: Mapping[str, Array], pictures: int) -> tuple[Pictured, ...]:
    """The first study of each of so many findings, in the order of the store: none is picked for its map."""
    shown: dict[str, int] = {}
    for number, finding in enumerate(masked.findings):
        if len(shown) < pictures and finding not in shown:
            shown[finding] = number
    return tuple(
        Pictured(int(masked.places[number]), finding, {way: values[number] for way, values in maps.items()})
        for finding, number in shown.items()
    )


def _normals(ready: Ready, runs: Runs, sample: Sample) -> dict[str, Any]:
    learned, ours = ready.plans()
    far: dict[str, list[dict[str, Array]]] = {choice: [] for choice in nearest.CHOICES}
    spread, pool = [], 0
    for of_seed in runs:
        shares, places, chosen = nearest.shares_of_normals(ready, of_seed[CA])
        normals, pool = [learned[place] for place in places], len(places)
        spread.append(nearest.spread(shares))
        for choice, weights in chosen.items():
            far[choice].append(nearest.how_far(weights, ours, normals))
    return {
        "normals": {
            name: {choice: sample.mean(np.stack([one[name] for one in far[choice]])) for choice in nearest.CHOICES}
            for name in nearest.PROPERTIES
        },
        "spread": sample.mean(np.stack(spread)),
        "pool": pool,
    }


def _recall(ready: Ready, runs: Runs, sample: Sample) -> dict[str, Any]:
    learned, ours = ready.plans()
    training = Store.open(ready.learned).table(["split"])["split"].to_numpy(zero_copy_only=False) == "train"
    true, frequency = rare.drawn_in(ours), rare.drawn_in(learned)[training].mean(0)  # (n, F), (F,)
    seldom, often = rare.split_by_frequency(frequency, true, ready.settings.rare)
    written = {row.name: [rare.reports_of(ready, of_seed[row.name]) for of_seed in runs] for row in ROWS}
    told = {name: np.stack([rare.told_in(one) for one in of_row]) for name, of_row in written.items()}  # (S, n, F)
    recall: dict[str, Figures] = {}
    for row in ROWS:
        said, other = told[row.name], None if row.against is None else told[row.against]

        def rate(which: list[int], there: bool, said: Array = said, other: Array | None = other) -> Figure:
            asked = true[:, which] if there else 1 - true[:, which]
            return sample.rates(said[:, :, which], asked, None if other is None else other[:, :, which])

        recall[row.name] = {}
        for name, which in (("rare", seldom), ("frequent", often)):
            if which:
                recall[row.name][f"recall, {name}"] = rate(which, True)
                recall[row.name][f"false alarms, {name}"] = rate(which, False)
        recall[row.name] |= {FINDINGS[place]: rate([place], True) for place in seldom}
    return {
        "recall": recall,
        "rare": {FINDINGS[place]: float(frequency[place]) for place in seldom},
        "asked": {FINDINGS[place]: int(true[:, place].sum()) for place in (*seldom, *often)},
        "distinct": {name: float(np.mean([len(set(one)) for one in of_row])) for name, of_row in written.items()},
    }

"""Figures of a row that was trained with several seeds: their mean, and two intervals that must not be mixed up.

over seeds    mean +- t s / sqrt(S)            what another choice of seeds would have given (Student)
over studies  the middle 95 % of 1,000 draws of studies, each scored as the mean over the seeds: what other studies
              would have given

Against another row the same studies are swapped in all seeds of both (approximate randomisation, as in
`metrics/resampling.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from negatoscope.metrics.resampling import Counts, Figures, bootstrap, interval

DRAWS = 1000


@dataclass(frozen=True)
class Figure:
    value: float
    """The mean over seeds."""
    each: tuple[float, ...]
    """Of each seed."""
    seeds: float | None
    """Half of the 95 % interval over seeds; None for one seed."""
    low: float
    high: float
    """The 95 % interval over studies."""
    p: float | None = None
    """Of the paired test against another row."""
    difference: tuple[float, float] | None = None
    """The 95 % interval over studies of the difference to that row."""

    @property
    def mark(self) -> str:
        return "" if self.p is None else "*" * sum(self.p < limit for limit in (0.05, 0.01, 0.001))


def half_width(each: Sequence[float], level: float = 0.95) -> float | None:
    """Of Student's interval for the mean of these."""
    n = len(each)
    if n < 2:
        return None
    return float(student.ppf((1 + level) / 2, n - 1) * np.std(each, ddof=1) / np.sqrt(n))


def figures_of_rows(
    rows: Mapping[str, Sequence[Counts]],
    against: Mapping[str, str],
    wanted: Sequence[str],
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> dict[str, dict[str, Figure]]:
    """Row -> the wanted figures that it has; `rows` holds one Counts a seed, `against` whom a row is tested against."""
    places = [(row, number) for row, runs in rows.items() for number in range(len(runs))]
    drawn_each = bootstrap([rows[row][number] for row, number in places], draws, seed) if places else []
    drawn: dict[str, Figures] = {
        row: _mean([figures for (name, _), figures in zip(places, drawn_each, strict=True) if name == row])
        for row in rows
    }
    done: dict[str, dict[str, Figure]] = {}
    for row, runs in rows.items():
        each = [run.figures() for run in runs]
        other = against.get(row)
        tested = other if other in rows else None
        p = {} if tested is None else paired(runs, rows[tested], draws, seed)
        done[row] = {}
        for figure in wanted:
            if figure not in each[0]:
                continue
            values = tuple(float(one[figure]) for one in each)
            low, high = interval(drawn[row][figure])
            apart = None if tested is None else interval(drawn[row][figure] - drawn[tested][figure])
            done[row][figure] = Figure(
                float(np.mean(values)), values, half_width(values), low, high, p.get(figure), apart
            )
    return done


def paired(a: Sequence[Counts], b: Sequence[Counts], draws: int = DRAWS, seed: int = 0) -> dict[str, float]:
    """Figure -> two-sided p of the difference of two rows' means over seeds, (1 + as large) / (1 + draws).

    With unlike numbers of seeds, the first ones of each are taken.
    """
    pairs = min(len(a), len(b))
    a, b = a[:pairs], b[:pairs]
    observed = _apart([one.figures() for one in a], [one.figures() for one in b])
    sums = [(one.rows.sum(0), other.rows.sum(0), other.rows - one.rows) for one, other in zip(a, b, strict=True)]
    rng = np.random.default_rng(seed)
    n = len(a[0])
    swap = rng.integers(0, 2, (draws, n)).astype(float)
    drawn_a, drawn_b = [], []
    for one, other, (sum_a, sum_b, apart) in zip(a, b, sums, strict=True):
        moved = swap @ apart
        drawn_a.append(one.figures(sum_a + moved))
        drawn_b.append(other.figures(sum_b - moved))
    found = _apart(drawn_a, drawn_b)
    p = {}
    for figure, difference in observed.items():
        limit = abs(float(difference)) * (1 - 1e-9) - 1e-12
        p[figure] = float((1 + (np.abs(found[figure]) >= limit).sum()) / (1 + draws))
    return p


def _apart(a: Sequence[Figures], b: Sequence[Figures]) -> Figures:
    mean_a, mean_b = _mean(a), _mean(b)
    return {figure: mean_a[figure] - mean_b[figure] for figure in mean_a if figure in mean_b}


def _mean(runs: Sequence[Figures]) -> Figures:
    return {figure: np.mean([run[figure] for run in runs], axis=0) for figure in runs[0]}

"""Intervals and tests for every figure of every metric, drawn from one row of counts a study.

A bootstrap draw (Efron, 1979) takes n studies with replacement: a row of counts, and its figures are those of the
weighted sum of rows. Approximate randomisation (Noreen, 1989) swaps two models' rows in a random half of the studies:
had the models no difference, it would not matter which wrote which report. Both are matrix products: nothing is scored
again.

What a row holds beyond its own study stays as it was: CIDEr's document frequencies, and how many equal reports there
are among all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from negatoscope.errors import WrongUse
from negatoscope.metrics.evaluate import Evaluation
from negatoscope.metrics.metric import Metric
from negatoscope.metrics.signature import refuse_unlike

DRAWS, LEVEL = 1000, 0.95
# Weights of this many (draw, study) cells are held at once: 64 MB.
_CELLS_AT_ONCE = 8_000_000


@dataclass(frozen=True)
class Counts:
    """The rows of all metrics side by side, so that one product serves all of them."""

    rows: np.ndarray
    """(n, k)"""
    parts: tuple[tuple[Metric, slice], ...]

    @classmethod
    def of(cls, evaluation: Evaluation) -> Counts:
        parts, start = [], 0
        for name, metric in evaluation.metrics.items():
            stop = start + evaluation.rows[name].shape[1]
            parts.append((metric, slice(start, stop)))
            start = stop
        rows = [evaluation.rows[metric.name] for metric, _ in parts]
        return cls(np.concatenate([np.zeros((evaluation.n, 0)), *rows], axis=1), tuple(parts))

    def __len__(self) -> int:
        return len(self.rows)

    def only(self, studies: np.ndarray) -> Counts:
        """Of some studies: places, or a mask."""
        return Counts(self.rows[studies], self.parts)

    def figures(self, totals: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Of all studies, or of sums (..., k)."""
        sums = self.rows.sum(axis=0) if totals is None else totals
        shown: dict[str, np.ndarray] = {}
        # A draw may hold nothing that a figure divides by; its figure is then not a number and counts in no interval.
        with np.errstate(divide="ignore", invalid="ignore"):
            for metric, columns in self.parts:
                shown |= metric.figures(sums[..., columns])
        return shown


Figures = dict[str, np.ndarray]


def bootstrap(counts: Sequence[Counts], draws: int = DRAWS, seed: int = 0) -> list[Figures]:
    """Of each of several models over the same studies: figure -> (draws,). All models are given the same draws, so that
    differences can be taken draw by draw."""
    n = _common(counts)
    made: list[list[Figures]] = [[] for _ in counts]
    for weights in _resampled(n, draws, np.random.default_rng(seed)):
        for one, figures in zip(counts, made):
            figures.append(one.figures(weights @ one.rows))
    return [_joined(figures) for figures in made]


def paired_permutation(a: Counts, b: Counts, draws: int = DRAWS, seed: int = 0) -> dict[str, float]:
    """Figure -> two-sided p of the difference between two models over the same studies: (1 + draws whose difference is
    as large) / (1 + draws)."""
    n = _common((a, b))
    whole_a, whole_b = a.figures(), b.figures()
    shared = [figure for figure in whole_a if figure in whole_b]
    observed = {figure: abs(float(whole_a[figure] - whole_b[figure])) for figure in shared}
    as_large = dict.fromkeys(shared, 0)
    sum_a, sum_b, apart = a.rows.sum(axis=0), b.rows.sum(axis=0), b.rows - a.rows
    rng = np.random.default_rng(seed)
    for size in _blocks(n, draws):
        swapped = rng.integers(0, 2, (size, n)).astype(float) @ apart
        drawn_a, drawn_b = a.figures(sum_a + swapped), b.figures(sum_b - swapped)
        for figure in shared:
            # Sums in another order differ in the last digits: equal differences must count as equal.
            limit = observed[figure] * (1 - 1e-9) - 1e-12
            as_large[figure] += int((np.abs(drawn_a[figure] - drawn_b[figure]) >= limit).sum())
    return {figure: (1 + as_large[figure]) / (1 + draws) for figure in shared}


def interval(drawn: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """The middle `level` of draws; not a number where no draw has the figure."""
    finite = drawn[np.isfinite(drawn)]
    if not len(finite):
        return float("nan"), float("nan")
    low, high = np.quantile(finite, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def bootstrap_intervals(evaluation: Evaluation, draws: int = DRAWS, seed: int = 0) -> dict[str, tuple[float, float]]:
    """Figure -> 95 % interval of one model."""
    return {figure: interval(drawn) for figure, drawn in bootstrap([Counts.of(evaluation)], draws, seed)[0].items()}


def permutation_test(a: Evaluation, b: Evaluation, draws: int = DRAWS, seed: int = 0) -> dict[str, float]:
    """Figure -> p of the difference of two evaluations. Raises WrongUse where their signatures differ."""
    refuse_unlike(a.signature, b.signature)
    if a.pairs.ids != b.pairs.ids:
        raise WrongUse("the two evaluations hold their studies in another order", remedy="score both from one file")
    return paired_permutation(Counts.of(a), Counts.of(b), draws, seed)


def _resampled(n: int, draws: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Blocks of draws (b, n): how often each study was drawn."""
    for size in _blocks(n, draws):
        drawn = rng.integers(0, n, (size, n)) + np.arange(size)[:, None] * n
        yield np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n).astype(float)


def _blocks(n: int, draws: int) -> Iterator[int]:
    """Sizes that add up to `draws`."""
    if draws < 1:
        raise WrongUse(f"{draws} draws", remedy="1,000 are usual")
    size = max(1, _CELLS_AT_ONCE // max(n, 1))
    for start in range(0, draws, size):
        yield min(size, draws - start)


def _joined(blocks: list[Figures]) -> Figures:
    return {figure: np.concatenate([block[figure] for block in blocks]) for figure in blocks[0]}


def _common(counts: Sequence[Counts]) -> int:
    sizes = {len(one) for one in counts}
    if len(sizes) != 1:
        raise WrongUse("models over different numbers of studies cannot be drawn together: " + str(sorted(sizes)))
    if sizes == {0}:
        raise WrongUse("no studies to draw from")
    return sizes.pop()

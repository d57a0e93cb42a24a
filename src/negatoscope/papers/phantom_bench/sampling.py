"""Means over held-out studies and seeds, with the two intervals of `papers/intervals.py`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from negatoscope.metrics.resampling import interval
from negatoscope.papers.intervals import Figure, half_width

Array = NDArray[np.float64]


class Sample:
    """How often each of n studies is drawn, the same draws for everything that is compared."""

    def __init__(self, studies: int, draws: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.weights: Array = rng.multinomial(studies, np.full(studies, 1 / studies), draws).astype(float)  # (D, n)

    def mean(self, values: Array, against: Array | None = None) -> Figure:
        """values (S, n), NaN where a study tells nothing: the mean over seeds of the means over studies."""
        each, drawn = self._means(values)
        difference = None
        if against is not None:
            difference = interval(drawn - self._means(against)[1])
        low, high = interval(drawn)
        return Figure(float(each.mean()), tuple(each.tolist()), half_width(each.tolist()), low, high, None, difference)

    def _means(self, values: Array) -> tuple[Array, Array]:
        """Of each seed (S,); of each draw, the mean over seeds (D,)."""
        told = ~np.isnan(values)
        filled = np.where(told, values, 0.0)
        each = filled.sum(1) / told.sum(1)
        with np.errstate(invalid="ignore"):
            drawn = (self.weights @ filled.T) / (self.weights @ told.T)  # (D, S)
        return each, mean_told(drawn, 1)

    def rates(self, hits: Array, asked: Array, against: Array | None = None) -> Figure:
        """hits (S, n, O) of asked (n, O): the rate of each of O kinds, averaged over kinds, then over seeds."""
        each, drawn = self._rates(hits, asked)
        difference = None if against is None else interval(drawn - self._rates(against, asked)[1])
        low, high = interval(drawn)
        return Figure(float(each.mean()), tuple(each.tolist()), half_width(each.tolist()), low, high, None, difference)

    def _rates(self, hits: Array, asked: Array) -> tuple[Array, Array]:
        each = ((hits * asked).sum(1) / asked.sum(0)).mean(1)  # (S,)
        totals = self.weights @ asked  # (D, O)
        with np.errstate(invalid="ignore"):
            drawn = np.stack([(self.weights @ (one * asked)) / totals for one in hits])  # (S, D, O)
        return each, mean_told(drawn, (0, 2))


def mean_told(values: Array, axis: int | tuple[int, ...]) -> Array:
    """The mean of what is told, NaN where nothing is: a draw that leaves out every study that tells."""
    told = ~np.isnan(values)
    count = told.sum(axis)
    return np.where(count > 0, np.nansum(values, axis) / np.maximum(count, 1), np.nan)

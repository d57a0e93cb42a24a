"""From an observation's logit to a probability that means what it says, and how sure that probability is.

Platt's scaling, one slope and one shift an observation, fitted on studies that were not learned from:

    P(o | study) = sigmoid(a_o logit_o + b_o)

Some observations occur ten times in three hundred studies. So a_o is drawn towards the slope that all observations
share, a_o ~ N(a, 0.3^2), and b_o weakly towards the shift that all share. The interval of a probability comes from the
curvature of the posterior at its top (Laplace): wide where few studies were there to fit it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SLOPES_APART = 0.3
_SHIFTS_APART = 1.5
_NORMAL_95 = 1.959964

WORDS = ((0.9, "very likely"), (0.65, "likely"), (0.35, "possible"), (0.1, "unlikely"), (0.0, "very unlikely"))


@dataclass(frozen=True)
class Calibration:
    """Of K observations."""

    names: tuple[str, ...]
    slope: Floats  # (K,)
    shift: Floats  # (K,)
    spread: Floats  # (K, 3) variance of the slope, their covariance, variance of the shift
    studies: int
    """From how many studies it was fitted."""

    def probability(self, logits: NDArray[np.floating]) -> tuple[Floats, Floats, Floats]:
        """(n, K) -> probabilities, and the lower and upper end of their 95 % interval, each (n, K)."""
        x = np.asarray(logits, np.float64)
        z = self.slope * x + self.shift
        variance = self.spread[:, 0] * x**2 + 2 * self.spread[:, 1] * x + self.spread[:, 2]
        reach = _NORMAL_95 * np.sqrt(np.maximum(variance, 0))
        return sigmoid(z), sigmoid(z - reach), sigmoid(z + reach)


def fit(logits: NDArray[np.floating], truth: NDArray[np.bool_], names: Sequence[str]) -> Calibration:
    """From logits (n, K) of held-out studies and what they have (n, K)."""
    x, y = np.asarray(logits, np.float64), np.asarray(truth, np.float64)
    shared = _posterior(x.ravel(), y.ravel(), np.array([1.0, 0.0]), np.array([1.0, 1e4]))[0]
    each = [
        _posterior(x[:, k], y[:, k], shared, np.array([_SLOPES_APART**2, _SHIFTS_APART**2])) for k in range(len(names))
    ]
    top = np.array([one for one, _ in each])
    spread = np.array([[one[0, 0], one[0, 1], one[1, 1]] for _, one in each])
    return Calibration(tuple(names), top[:, 0], top[:, 1], spread, len(x))


def in_words(probability: float) -> str:
    return next(word for least, word in WORDS if probability >= least)


@dataclass(frozen=True)
class Reliability:
    """How far probabilities are from how often the thing is there."""

    brier: float
    brier_of_rates: float
    """What the training rates alone would score: the figure to beat."""
    error: float
    """Expected calibration error over all (study, observation): mean |said - found| in bins of equal count."""
    bins: tuple[tuple[float, float, int], ...]
    """Mean probability said, share that was there, how many."""


def reliability(probability: Floats, truth: NDArray[np.bool_], *, bins: int = 10) -> Reliability:
    """(n, K) and (n, K)."""
    said, found = probability.ravel(), truth.ravel().astype(np.float64)
    order = np.argsort(said, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    table = tuple((float(said[part].mean()), float(found[part].mean()), len(part)) for part in parts)
    error = sum(abs(mean - share) * count for mean, share, count in table) / len(said)
    rates = truth.mean(0)
    return Reliability(
        float(np.mean((said - found) ** 2)),
        float(np.mean((np.broadcast_to(rates, truth.shape) - truth) ** 2)),
        float(error),
        table,
    )


def held_out_probability(
    logits: NDArray[np.floating], truth: NDArray[np.bool_], names: Sequence[str], *, folds: int = 5, seed: int = 1
) -> Floats:
    """(n, K) each study's probabilities from a calibration that did not see it: what `reliability` may be told of."""
    fold = np.random.default_rng(seed).permutation(len(logits)) % folds
    said = np.empty(np.shape(logits))
    for one in range(folds):
        said[fold == one] = fit(logits[fold != one], truth[fold != one], names).probability(logits[fold == one])[0]
    return said


def sigmoid(x: Floats) -> Floats:
    return 1.0 / (1.0 + np.exp(-np.clip(x, -60, 60)))


def _posterior(x: Floats, y: Floats, centre: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """The top (2,) of slope and shift's posterior by Newton's method, and its covariance (2, 2) there."""
    columns = np.stack([x, np.ones_like(x)], 1)
    precision = np.diag(1 / variance)
    weights = centre.copy()
    curvature = precision
    for _ in range(100):
        p = sigmoid(columns @ weights)
        gradient = columns.T @ (p - y) + precision @ (weights - centre)
        curvature = columns.T @ (columns * (p * (1 - p))[:, None]) + precision
        step = np.linalg.solve(curvature, gradient)
        step *= min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-12))
        weights = weights - step
        if np.abs(step).max() < 1e-9:
            break
    return weights, np.asarray(np.linalg.inv(curvature), np.float64)

"""From scores to probabilities, so that a study gets as many findings as fit it: none, or five.

Scores of different groups are not on one scale, and most groups are too rare for a threshold of their own. So a score
is read relative to what studies in general get for that group, and with how often the group occurs:

    z = (score - mean of the group) / spread of the group
    P(group | study) = sigmoid(slope z + weight log(share of studies that have the group) + shift)

The three numbers and the least probability that is told come from studies that were not learned from. As the
probability rises with the score, that least probability is one threshold on the score for each group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Calibration:
    mean: Floats  # (G,)
    spread: Floats  # (G,)
    prior: Floats  # (G,) log share
    slope: float
    weight: float
    shift: float
    least: float
    """The probability from which on a group is told."""

    def probability(self, scores: NDArray[np.floating]) -> Floats:
        """(n, G) -> (n, G)."""
        z = (scores - self.mean) / self.spread
        return _sigmoid(self.slope * z + self.weight * self.prior + self.shift)

    @property
    def threshold(self) -> Floats:
        """(G,) the score from which on each group is told; infinite where a score says nothing."""
        if self.slope <= 0:
            return np.full(len(self.mean), np.inf)
        wanted = np.log(self.least / (1 - self.least))
        return self.mean + self.spread * (wanted - self.weight * self.prior - self.shift) / self.slope


def calibrate(scores: NDArray[np.floating], truth: NDArray[np.bool_], sizes: Floats) -> Calibration:
    """From scores (n, G) of held-out studies, what they have (n, G), and how many training studies have each group.

    `least` is the middle of the range of probabilities whose F1 over all (study, group) is within 0.005 of the best.
    """
    scores = np.asarray(scores, np.float64)
    mean, spread = scores.mean(0), np.maximum(scores.std(0), 1e-6)
    prior = np.log((sizes + 1) / (sizes.sum() + len(sizes)))
    z = (scores - mean) / spread
    columns = np.stack([z.ravel(), np.broadcast_to(prior, z.shape).ravel(), np.ones(z.size)], 1)
    slope, weight, shift = _logistic(columns, truth.ravel().astype(np.float64)).tolist()
    fitted = Calibration(mean, spread, prior, slope, weight, shift, 0.5)
    return Calibration(mean, spread, prior, slope, weight, shift, _best_least(fitted.probability(scores), truth))


def _best_least(probability: Floats, truth: NDArray[np.bool_]) -> float:
    order = np.argsort(-probability.ravel(), kind="stable")
    sorted_probability = probability.ravel()[order]
    hits = np.cumsum(truth.ravel()[order])
    told = np.arange(1, len(hits) + 1)
    f1 = 2 * hits / (told + truth.sum())
    good = np.flatnonzero(f1 >= f1.max() - 0.005)
    middle = float(np.sqrt(sorted_probability[good[0]] * sorted_probability[good[-1]]))  # probabilities span decades
    return min(max(middle, 1e-6), 1 - 1e-6)


def _logistic(columns: Floats, target: Floats) -> Floats:
    """Weights of a logistic regression by Newton's method, with a whiff of ridge."""
    weights = np.zeros(columns.shape[1])
    rate = np.clip(target.mean(), 1e-9, 1 - 1e-9)
    weights[-1] = np.log(rate / (1 - rate))
    ridge = 1e-3 * np.eye(len(weights))
    for _ in range(60):
        p = _sigmoid(columns @ weights)
        gradient = columns.T @ (p - target) + ridge @ weights
        curvature = columns.T @ (columns * (p * (1 - p))[:, None]) + ridge
        step = np.linalg.solve(curvature, gradient)
        step *= min(1.0, 3.0 / max(np.abs(step).max(), 1e-12))  # rare groups make the first steps too long
        weights = weights - step
        if np.abs(step).max() < 1e-8:
            break
    return weights


def _sigmoid(x: Floats) -> Floats:
    return 1.0 / (1.0 + np.exp(-np.clip(x, -60, 60)))

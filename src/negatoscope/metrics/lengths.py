"""How long the reports are: WCL's histogram, 20 bins of 5 words over [0, 100], beside the references'.

Yan et al., 2021, figure 2. A length of exactly 100 or above is in the last bin. Two distances to the references'
histogram: total variation, half the sum of the differences (0 equal, 1 nothing in common), and the earth mover's
distance in words, which also knows how far apart two bins are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

BINS, WIDTH = 20, 5


class Lengths:
    """A row: the bin of the prediction, the bin of the (first) reference, words of both, and 1."""

    name = "lengths"
    version = "wcl-20x5"

    def rows(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
        """(n, 43)"""
        said = np.array([len(text.split()) for text in predictions])
        asked = np.array([len(wordings[0].split()) for wordings in references])
        return np.column_stack([_one_hot(said), _one_hot(asked), said, asked, np.ones(len(said))])

    def figures(self, totals: np.ndarray) -> dict[str, np.ndarray]:
        n = totals[..., -1]
        said, asked = histograms(totals)
        apart = np.abs(np.cumsum(said - asked, axis=-1)).sum(axis=-1) * WIDTH
        return {
            "words": totals[..., 2 * BINS] / n,
            "words, references": totals[..., 2 * BINS + 1] / n,
            "length, total variation": np.abs(said - asked).sum(axis=-1) / 2,
            "length, earth mover's": apart,
        }


def histograms(totals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(..., 20) each, summing to 1: predictions and references. For plots."""
    n = totals[..., -1:]
    return totals[..., :BINS] / n, totals[..., BINS : 2 * BINS] / n


def _one_hot(words: np.ndarray) -> np.ndarray:
    return np.eye(BINS)[np.minimum(words // WIDTH, BINS - 1)]

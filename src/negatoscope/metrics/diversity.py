"""How much a model repeats: itself within a report, itself from report to report, and its training reports.

Su et al., 2022 (SimCTG): diversity of a report = prod_{n=2..4} (1 - rep_n / 100), rep_n = 100 (1 - |unique n-grams| /
|n-grams|). A report too short to have an n-gram repeats none: rep_n = 0.

Distinct reports and distinct n-grams (Li et al., 2016) belong to the corpus. Each report among m equal ones counts
1/m, each n-gram among m equal ones 1/m: the sums over all studies are the exact numbers, and a draw or a part of the
studies is given its share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from negatoscope.metrics.ngrams import Grams, count_ngrams


class Diversity:
    """A row: diversity, rep-2 to rep-4, whether a 4-gram comes twice, shares of distinct reports (predicted and
    referred to), distinct 1- and 2-grams beside all 1- and 2-grams, and 1."""

    name = "diversity"
    version = "simctg-1"

    def rows(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
        """(n, 12)"""
        n = len(predictions)
        repeated, distinct = [], []
        for grams in count_ngrams(predictions, 4):
            if grams.n >= 2:
                repeated.append(_repeated(grams, n))
            if grams.n <= 2:
                distinct += [_distinct(grams, n), grams.totals(n)]
        rep = np.stack(repeated, axis=1)
        return np.column_stack(
            [
                np.prod(1 - rep, axis=1),
                100 * rep,
                rep[:, 2] > 0,
                _shares(predictions),
                _shares([wordings[0] for wordings in references]),
                *distinct,
                np.ones(n),
            ]
        )

    def figures(self, totals: np.ndarray) -> dict[str, np.ndarray]:
        part = np.moveaxis(totals, -1, 0)
        n = part[11]
        return {
            "diversity": part[0] / n,
            "rep-2": part[1] / n,
            "rep-3": part[2] / n,
            "rep-4": part[3] / n,
            "reports with repetition": part[4] / n,
            "distinct reports": part[5],
            "distinct reports, references": part[6],
            "distinct-1": part[7] / np.maximum(part[8], 1),
            "distinct-2": part[9] / np.maximum(part[10], 1),
        }


class Copied:
    """A row: whether the prediction stands word for word in training, whether the reference does, and 1."""

    name = "copied"
    version = "1"

    def __init__(self, training: Sequence[str]) -> None:
        """`training`: reports prepared as the predictions are."""
        self._training = frozenset(training) - {""}

    def rows(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
        """(n, 3)"""
        said = [text in self._training for text in predictions]
        asked = [any(text in self._training for text in wordings) for wordings in references]
        return np.column_stack([said, asked, np.ones(len(said))]).astype(float)

    def figures(self, totals: np.ndarray) -> dict[str, np.ndarray]:
        return {"copied": totals[..., 0] / totals[..., 2], "copied, references": totals[..., 1] / totals[..., 2]}


def _repeated(grams: Grams, n: int) -> np.ndarray:
    """(n,) rep_n / 100 of each report."""
    unique = np.bincount(grams.text, minlength=n)
    return 1 - np.divide(unique, grams.totals(n), out=np.ones(n), where=unique > 0)


def _distinct(grams: Grams, n: int) -> np.ndarray:
    """(n,) n-grams of each report, each counted as one over its number in the corpus."""
    in_all = np.bincount(grams.gram, weights=grams.count, minlength=grams.kinds)
    return np.bincount(grams.text, weights=grams.count / in_all[grams.gram], minlength=n)


def _shares(texts: Sequence[str]) -> np.ndarray:
    equal = Counter(texts)
    return np.array([1 / equal[text] for text in texts])

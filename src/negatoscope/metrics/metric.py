"""What a metric is: per-study rows of counts that add up, and figures made of their sums.

BLEU, METEOR and clinical F1 are not means over studies, but all are functions of sums over studies. So a metric hands
out one row of sufficient statistics a study; a bootstrap draw or a permutation is then a weighted sum of rows, and
1,000 draws one matrix product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np


class Metric(Protocol):
    name: str
    """'bleu', 'cider' ...: stands in the signature of every figure."""
    version: str
    """Changes when a figure could: '1', or the reference program it equals, 'pycocoevalcap-1.2'."""

    def rows(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
        """(n, k) float64: one row of counts for each study; each study may have several references."""
        ...

    def figures(self, totals: np.ndarray) -> dict[str, np.ndarray]:
        """Figures by name from sums of rows (..., k), for any leading shape: one corpus, or 1,000 draws at once."""
        ...


@runtime_checkable
class Detailed(Protocol):
    """A metric that has more to say of one corpus than its figures: tables, for `--json` and pages."""

    def details(self, totals: np.ndarray) -> dict[str, Any]: ...

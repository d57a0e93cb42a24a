"""Which sentences do not belong to a study, and which studies not to a sentence: what CVSE's triplets are made of.

A negative sentence never comes from a group that the study has; a negative study never has the sentence's group.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_DRAWS = 8
"""Groups drawn for each one wanted: a study seldom has more than a few of hundreds."""


class Negatives:
    """Draws for a corpus of S sentences in G groups."""

    def __init__(self, group: NDArray[np.int64]) -> None:
        """`group` (S,): the group of each sentence."""
        self.group = group
        self.groups = int(group.max()) + 1
        order = np.argsort(group, kind="stable")
        self._members = order
        self._first = np.searchsorted(group[order], np.arange(self.groups + 1))

    def sentences(self, has: Sequence[set[int]], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """(P, count) sentences: groups alike likely, then one of its sentences; -1 where a study has all groups.

        `has` names P times the groups of the pair's study.
        """
        chosen = np.full((len(has), count), -1, np.int64)
        for row, groups in enumerate(has):
            taken = np.fromiter(groups, np.int64, len(groups))
            drawn = rng.integers(0, self.groups, count * _DRAWS)
            drawn = drawn[~np.isin(drawn, taken)][:count]
            if len(drawn) < count:  # few groups, and the study has most of them
                free = np.setdiff1d(np.arange(self.groups), taken)
                if not len(free):
                    continue
                drawn = rng.choice(free, count)
            first, size = self._first[drawn], self._first[drawn + 1] - self._first[drawn]
            chosen[row] = self._members[first + (rng.random(count) * size).astype(np.int64)]
        return chosen

    @staticmethod
    def studies(
        wanted: NDArray[np.int64], has: Sequence[set[int]], count: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """(P, count) places in a batch of B studies; -1 where all of them have the group.

        `wanted` (P,) is the group of each pair's sentence; `has` names B times the groups of a study.
        """
        chosen = np.full((len(wanted), count), -1, np.int64)
        for group in set(wanted.tolist()):
            free = np.array([place for place, groups in enumerate(has) if group not in groups], np.int64)
            rows = np.flatnonzero(wanted == group)
            if len(free):
                chosen[rows] = rng.choice(free, (len(rows), count))
        return chosen

"""Whole reports that are found, not written: the nearest training study's, or the most typical of the k nearest.

A study is a vector: pooled backbone features (`study_vectors`), what CVSE sees, or any other rows that the caller has.

    library = Library.of(studies, vectors)    # the training split
    library.nearest(queries)                  # for each query the report of the nearest study
    library.consensus(queries, k=50)          # of the k nearest the one that agrees best with the others

Consensus is Devlin et al. 2015, "Exploring Nearest Neighbor Approaches for Image Captioning": among the k nearest the
report that maximises the sum of its overlaps with the others. Overlap here is of runs of two words, as Dice: twice what
two reports share over what they have.

n queries, m training studies, d features.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from negatoscope.errors import BadInput, WrongUse
from negatoscope.studies.study import Study
from negatoscope.studies.views import ARRANGE, Arranging
from negatoscope.text.embed import unit_rows
from negatoscope.vision.features import FeatureCache
from negatoscope.watch import Watch, quiet

Vectors = NDArray[np.float32]
_CELLS_AT_ONCE = 32_000_000  # of the (n, m) matrix of products: 128 MB
_WORD = re.compile(r"\w+|\.")


@dataclass(frozen=True)
class Found:
    """A report for one study, and where it comes from."""

    report: str
    study: str
    """The training study that it was written for."""
    closeness: float
    """The cosine of that study."""
    among: tuple[str, ...]
    """The k nearest training studies, nearest first."""


@dataclass(frozen=True)
class Library:
    """Training studies that reports are taken from."""

    ids: tuple[str, ...]
    reports: tuple[str, ...]
    vectors: Vectors
    """(m, d), rows of unit length, or of zeros where nothing was seen."""

    @classmethod
    def of(cls, studies: Sequence[Study], vectors: NDArray[np.floating]) -> Library:
        """Studies without a report are left out. Raises BadInput where none has one."""
        if len(studies) != len(vectors):
            raise WrongUse(f"{len(studies)} studies with {len(vectors)} vectors")
        kept = [row for row, study in enumerate(studies) if study.report.strip()]
        if not kept:
            raise BadInput("no training study has a report to take", remedy="take a split that has reports")
        return cls(
            tuple(studies[row].id for row in kept),
            tuple(studies[row].report for row in kept),
            unit_rows(np.asarray(vectors, np.float32)[kept]),
        )

    def closest(
        self, queries: NDArray[np.floating], k: int, ids: Sequence[str] = ()
    ) -> tuple[NDArray[np.int64], Vectors]:
        """(n, k) rows of the library, nearest first, of equals the earlier row; (n, k) cosines.

        With `ids` of the queries, none is its own neighbour.
        """
        k = self._checked(queries, k, ids)
        rows, cosines = np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32)
        number = {study: row for row, study in enumerate(self.ids)}
        step = max(1, _CELLS_AT_ONCE // len(self.ids))
        for at in range(0, len(queries), step):
            products = unit_rows(np.asarray(queries[at : at + step], np.float32)) @ self.vectors.T
            for row, study in enumerate(ids[at : at + step]):
                if study in number:
                    products[row, number[study]] = -np.inf
            rows[at : at + step] = order = _largest(products, k)
            cosines[at : at + step] = np.take_along_axis(products, order, 1)
        return rows, cosines

    def nearest(self, queries: NDArray[np.floating], ids: Sequence[str] = ()) -> list[Found]:
        """For each query the report of the nearest study."""
        rows, cosines = self.closest(queries, 1, ids)
        return [self._found(row, int(row[0]), float(close[0])) for row, close in zip(rows, cosines, strict=True)]

    def consensus(self, queries: NDArray[np.floating], k: int, ids: Sequence[str] = ()) -> list[Found]:
        """For each query the most typical report of its `k` nearest; of equally typical ones the nearest's."""
        rows, cosines = self.closest(queries, k, ids)
        found = []
        for row, close in zip(rows, cosines, strict=True):
            best = most_typical(self._runs[row])
            found.append(self._found(row, int(row[best]), float(close[best])))
        return found

    @cached_property
    def _runs(self) -> csr_matrix:
        return runs_of_words(self.reports)

    def _found(self, among: NDArray[np.int64], row: int, closeness: float) -> Found:
        return Found(self.reports[row], self.ids[row], closeness, tuple(self.ids[one] for one in among))

    def _checked(self, queries: NDArray[np.floating], k: int, ids: Sequence[str]) -> int:
        if queries.ndim != 2 or queries.shape[1] != self.vectors.shape[1]:
            raise WrongUse(f"queries of shape {queries.shape} for training vectors of {self.vectors.shape[1]}")
        if ids and len(ids) != len(queries):
            raise WrongUse(f"{len(queries)} queries with {len(ids)} ids")
        if k < 1:
            raise WrongUse(f"{k} nearest studies", remedy="at least 1")
        left = len(self.ids) - bool(set(ids) & set(self.ids))
        if not left:
            raise BadInput("the only training study is the query itself", remedy="take more training studies")
        return min(k, left)


def study_vectors(
    studies: Sequence[Study], cache: FeatureCache, arrange: Arranging = "by-view", watch: Watch = quiet
) -> Vectors:
    """(n, 2 D): the mean over the patches of the frontal view, then of the lateral, each of unit length, zeros for a
    view that is missing: a product of two rows is the sum of the cosines over the views that both have.

    Raises BadInput for a study without pictures, or with one that the cache does not hold.
    """
    width = cache.key.width
    vectors = np.zeros((len(studies), 2 * width), np.float32)
    for row, study in enumerate(watch(studies, "looking at studies", len(studies))):
        pictures = ARRANGE[arrange](study, 2)
        if not any(pictures):
            raise BadInput("none of its pictures can be shown", where=f"study {study.id}", remedy="leave it out")
        for view, picture in enumerate(pictures):
            if picture is not None:
                seen = np.asarray(cache.get(picture.sha256), np.float32).mean(0, keepdims=True)  # (1, D)
                vectors[row, view * width : (view + 1) * width] = unit_rows(seen)[0]
    return vectors


def runs_of_words(reports: Sequence[str], length: int = 2) -> csr_matrix:
    """(m, F) 0/1: a column says that a run of `length` words occurs, another that it occurs twice, and so on, so that
    the product of two rows is the sum over runs of the smaller of their counts."""
    columns: dict[tuple[tuple[str, ...], int], int] = {}
    inside, ends = [], [0]
    for report in reports:
        words = _WORD.findall(report.lower())
        counts = Counter(tuple(words[at : at + length]) for at in range(len(words) - length + 1))
        for run, count in counts.items():
            inside += [columns.setdefault((run, time), len(columns)) for time in range(count)]
        ends.append(len(inside))
    ones = np.ones(len(inside), np.float32)
    return csr_matrix((ones, inside, ends), shape=(len(reports), max(len(columns), 1)))


def most_typical(runs: csr_matrix) -> int:
    """Which row overlaps the others most, as Dice; of equals the first."""
    shared = np.asarray((runs @ runs.T).todense())  # (k, k)
    own = np.diag(shared)
    both = own[:, None] + own
    overlap = np.divide(2 * shared, both, out=np.zeros_like(shared), where=both > 0)
    np.fill_diagonal(overlap, 0.0)
    return int(overlap.sum(1).round(5).argmax())


def _largest(products: Vectors, k: int) -> NDArray[np.int64]:
    """(n, k) columns with the largest products, largest first, equals by their number."""
    m = products.shape[1]
    if k < m // 4:
        some = np.sort(np.argpartition(-products, k - 1, axis=1)[:, :k], axis=1)
    else:
        some = np.broadcast_to(np.arange(m), products.shape)
    order = np.argsort(-np.take_along_axis(products, some, 1), axis=1, kind="stable")[:, :k]
    return np.take_along_axis(some, order, 1)

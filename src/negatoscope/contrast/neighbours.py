"""Whose report says nearly the same as whose: the hard negatives of ITHN and MoCHi, found once before training.

Reports become vectors (`text/embed.py`); the nearest by cosine are found among the corpus's distinct texts, exactly
where they are few, by an index of small worlds (usearch) where they are many. Two studies with the very same words are
no negatives of each other, nor are two that show the same picture (captions of one photograph). Where several studies
share a neighbouring text, they take turns.

The table lies beside the studies in their store, one row a study: its id, its neighbours' ids, nearest first, and their
cosines.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from negatoscope.errors import BadInput, WrongUse
from negatoscope.text.embed import Embedder
from negatoscope.watch import Watch, quiet
from negatoscope.whole_files import whole_file

FORMAT = 1
MANY = 20_000
"""Distinct texts from which on `auto` takes an index, where one can be had."""
_MARGIN = 8
"""Texts looked at beyond those asked for, as some will show the study's own picture."""

Search = Literal["auto", "exact", "index"]
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Corpus:
    """The reports of the studies that are learned from."""

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    pictures: tuple[str, ...] = ()
    """The hash of each study's first picture, where it is known."""
    wordings: tuple[tuple[str, ...], ...] = ()
    """Of each study its single captions, where it has several: `texts` are all of them. Two studies that share one are
    no negatives of each other either."""

    def fingerprint(self) -> str:
        """SHA-256 of the ids, the texts and the pictures, in order."""
        total = hashlib.sha256()
        for part in (self.ids, self.texts, self.pictures):
            for said in part:
                total.update(said.encode("utf-8", "surrogatepass") + b"\0")
            total.update(b"\1")
        return total.hexdigest()


@dataclass(frozen=True)
class Neighbours:
    ids: tuple[str, ...]
    nearest: NDArray[np.int32]  # (n, k) places among `ids`, nearest first; -1 where there are no more
    cosine: NDArray[np.float32]  # (n, k)
    about: dict[str, Any]
    """Embedder, its fingerprint, the corpus's, how it was searched."""

    def of(self, study: str) -> list[str]:
        return [self.ids[at] for at in self.nearest[self.ids.index(study)] if at >= 0]

    def save(self, path: Path | str) -> None:
        told = [[self.ids[at] for at in row if at >= 0] for row in self.nearest]
        cosines = [row[: len(ids)].tolist() for row, ids in zip(self.cosine, told)]
        table = pa.table(
            {"id": pa.array(self.ids), "neighbours": pa.array(told, pa.list_(pa.string())),
             "cosine": pa.array(cosines, pa.list_(pa.float32()))}
        )  # fmt: skip
        header = json.dumps({"format": FORMAT, **self.about})
        with whole_file(path) as part:
            pq.write_table(table.replace_schema_metadata({"neighbours": header}), part, compression="zstd")

    @classmethod
    def load(cls, path: Path | str) -> Neighbours:
        """Raises BadInput for a file that is no table of neighbours."""
        remedy = "make it anew with `negatoscope neighbours`"
        try:
            table = pq.read_table(path)
            about = json.loads((table.schema.metadata or {})[b"neighbours"])
            ids = table["id"].to_pylist()
            told, cosines = table["neighbours"].to_pylist(), table["cosine"].to_pylist()
            place = {study: at for at, study in enumerate(ids)}
            k = max((len(row) for row in told), default=0)
            nearest, cosine = np.full((len(ids), k), -1, np.int32), np.zeros((len(ids), k), np.float32)
            for at, (row, close) in enumerate(zip(told, cosines, strict=True)):
                nearest[at, : len(row)] = [place[study] for study in row]
                cosine[at, : len(row)] = close
        except FileNotFoundError as error:
            raise BadInput("no such file", where=path, remedy=remedy) from error
        except (OSError, pa.ArrowException, KeyError, ValueError) as error:
            raise BadInput("is no table of neighbours", where=path, remedy=remedy) from error
        if about.pop("format", None) != FORMAT:
            raise BadInput("is a table of neighbours of another format", where=path, remedy=remedy)
        return cls(tuple(ids), nearest, cosine, about)


def find_neighbours(
    corpus: Corpus, embedder: Embedder, k: int = 1, *, search: Search = "auto", watch: Watch = quiet
) -> Neighbours:
    """The `k` nearest studies of each.

    Raises BadInput where there are not two reports of different words.
    """
    if k < 1:
        raise WrongUse(f"{k} neighbours", remedy="at least 1")
    keys = [_words_of(text) for text in corpus.texts]
    distinct, of_text = np.unique(np.array(keys, dtype=object), return_inverse=True)  # (m,), (n,)
    if len(distinct) < 2:
        raise BadInput("all reports say the same: no negatives among them", remedy="take another corpus")
    first = np.unique(of_text, return_index=True)[1]  # (m,) a study of each text
    vectors = embedder.fit(corpus.texts).embed([corpus.texts[at] for at in first])  # (m, d)
    wanted = min(k + _MARGIN, len(distinct) - 1)
    way = _way(search, len(distinct))
    texts, cosine = (nearest_by_index if way == "index" else nearest_exactly)(vectors, wanted, watch)
    nearest, close = _studies(corpus, of_text, texts, cosine, k, vectors)
    about = {
        "embedder": embedder.name,
        "embedder_fingerprint": embedder.fingerprint(),
        "corpus": corpus.fingerprint(),
        "studies": len(corpus.ids),
        "distinct": len(distinct),
        "search": way,
        "k": k,
    }
    return Neighbours(corpus.ids, nearest, close, about)


def _words_of(text: str) -> str:
    """What makes two reports the same: their words in order, however they are spelt."""
    return " ".join(_WORD.findall(text.lower()))


def nearest_exactly(
    vectors: NDArray[np.float32], k: int, watch: Watch = quiet, *, rows: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """(n, k) nearest other rows of unit vectors, and their cosines; of some `rows` alone where named.

    Equal cosines stand in the order of the rows.
    """
    asked = np.arange(len(vectors)) if rows is None else rows
    nearest = np.empty((len(asked), k), np.int64)
    cosine = np.empty((len(asked), k), np.float32)
    step = max(1, 1 << 24 >> max(1, len(vectors).bit_length()))
    starts = range(0, len(asked), step)
    for at in watch(starts, "nearest reports", len(starts)):
        chosen = asked[at : at + step]
        products = vectors[chosen] @ vectors.T  # (s, n)
        products[np.arange(len(chosen)), chosen] = -np.inf
        best = np.argpartition(-products, k - 1, axis=1)[:, :k]
        close = np.take_along_axis(products, best, 1)
        order = np.lexsort((best, -close), axis=1)
        nearest[at : at + step] = np.take_along_axis(best, order, 1)
        cosine[at : at + step] = np.take_along_axis(close, order, 1)
    return nearest, cosine


def nearest_by_index(
    vectors: NDArray[np.float32], k: int, watch: Watch = quiet
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """As `nearest_exactly`, but for those that the index overlooks (benchmarks/neighbours.py measures how many)."""
    try:
        from usearch.index import Index
    except ImportError as error:
        remedy = "pip install 'negatoscope[cluster]'"
        raise WrongUse("an index of neighbours needs usearch", where="search", remedy=remedy) from error
    index = Index(ndim=vectors.shape[1], metric="cos", dtype="f16", connectivity=16, expansion_add=96,
                  expansion_search=max(96, 4 * (k + 1)))  # fmt: skip
    step = 16_384
    starts = range(0, len(vectors), step)
    for at in watch(starts, "building the index", len(starts)):
        index.add(np.arange(at, min(at + step, len(vectors))), vectors[at : at + step])
    nearest = np.full((len(vectors), k), -1, np.int64)
    for at in watch(starts, "nearest reports", len(starts)):
        found: Any = index.search(vectors[at : at + step], k + 1)
        keys = np.atleast_2d(found.keys).astype(np.int64)  # (s, k + 1), one of them the row itself as a rule
        counts = np.atleast_1d(found.counts) if hasattr(found, "counts") else np.full(len(keys), k + 1)
        for row, (keyed, count) in enumerate(zip(keys, counts)):
            others = keyed[: int(count)]
            others = others[others != at + row][:k]
            nearest[at + row, : len(others)] = others
    cosine = np.empty((len(vectors), k), np.float32)
    for at in starts:  # once more with all digits of the vectors
        rows = nearest[at : at + step]
        close = np.einsum("sd,skd->sk", vectors[at : at + step], vectors[rows])
        close[rows < 0] = -np.inf
        order = np.lexsort((rows, -close), axis=1)
        nearest[at : at + step] = np.take_along_axis(rows, order, 1)
        cosine[at : at + step] = np.take_along_axis(close, order, 1)
    return nearest, cosine


def _way(search: Search, count: int) -> Literal["exact", "index"]:
    if search != "auto":
        return search
    from importlib.util import find_spec

    return "index" if count > MANY and find_spec("usearch") else "exact"


def _studies(
    corpus: Corpus,
    of_text: NDArray[np.int64],
    texts: NDArray[np.int64],
    cosine: NDArray[np.float32],
    k: int,
    vectors: NDArray[np.float32],
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """From neighbouring texts to studies that have them: those of one text take turns.

    Where every text that was found shows the study's picture or shares a caption with it, all texts are gone through.
    """
    order = np.argsort(of_text, kind="stable")
    starts = np.searchsorted(of_text[order], np.arange(len(texts) + 1))
    turn = np.empty(len(of_text), np.int64)
    turn[order] = np.arange(len(of_text)) - starts[of_text[order]]
    pictures = corpus.pictures or corpus.ids
    said = [frozenset(map(_words_of, captions)) for captions in corpus.wordings]
    nearest = np.full((len(of_text), k), -1, np.int32)
    close = np.zeros((len(of_text), k), np.float32)

    def of(study: int, among: NDArray[np.int64], near: NDArray[np.float32]) -> int:
        found = 0
        for other, cosine_of in zip(among, near):
            if other < 0 or found == k:
                break
            members = order[starts[other] : starts[other + 1]]
            chosen = _another(members, int(turn[study]), pictures, said, study)
            if chosen is not None:
                nearest[study, found], close[study, found] = chosen, cosine_of
                found += 1
        return found

    for study, text in enumerate(of_text):
        if of(study, texts[text], cosine[text]):
            continue
        all_texts, all_cosines = nearest_exactly(vectors, len(vectors) - 1, rows=np.array([text]))
        if not of(study, all_texts[0], all_cosines[0]):
            raise BadInput("no other report is a negative of this study's", where=corpus.ids[study])
    return nearest, close


def _another(
    members: NDArray[np.int64], turn: int, pictures: Sequence[str], said: Sequence[frozenset[str]], study: int
) -> int | None:
    """The member whose turn it is, of those that show another picture and share no caption."""
    for step in range(len(members)):
        member = int(members[(turn + step) % len(members)])
        another = not pictures[study] or pictures[member] != pictures[study]
        if another and (not said or said[member].isdisjoint(said[study])):
            return member
    return None

"""Sentences and reports as vectors of unit length, so that what is said alike lies close.

`TfidfSvd`, the default, needs nothing but the corpus; `LabelEmbedder` sees of a report only what a labeler finds in it;
`encoder.py` takes any encoder, by folder or hub id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from negatoscope.errors import BadInput, WrongUse
from negatoscope.studies.study import OBSERVATIONS
from negatoscope.text.abnormal import words
from negatoscope.watch import Watch, quiet

Vectors = NDArray[np.float32]
LabelReports = Callable[[Sequence[str]], Sequence[Mapping[str, int]]]
"""Reports to their CheXpert labels: 1 positive, 0 negative, -1 uncertain, left out where not mentioned."""


class Embedder(Protocol):
    """Anything that makes vectors of sentences."""

    name: str

    def fit(self, texts: Sequence[str]) -> Self:
        """Learns from a corpus what it needs; an encoder that is trained already learns nothing."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """(n, d), rows of unit length; a row of zeros where nothing of a text is known."""
        ...

    def fingerprint(self) -> str:
        """SHA-256 of everything that decides the vectors."""
        ...


def _words_and_pairs(text: str) -> list[str]:
    said = words(text)
    return said + [f"{first} {second}" for first, second in pairwise(said)]


def unit_rows(vectors: NDArray[Any]) -> Vectors:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(length > 1e-8, length, 1.0)).astype(np.float32)


class TfidfSvd:
    """Words and pairs of words by TF-IDF, then their main directions (latent semantic analysis)."""

    def __init__(self, width: int = 128, *, seed: int = 0) -> None:
        if width < 1:
            raise WrongUse(f"a width of {width}", remedy="at least 1")
        self.width, self.seed = width, seed
        self.name = f"tfidf-svd-{width}"
        self._tfidf: Any = None
        self._directions: Vectors | None = None  # (features, d); none where the corpus has fewer features than that

    def fit(self, texts: Sequence[str]) -> Self:
        """Raises BadInput where no text has a word."""
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.utils.extmath import randomized_svd

        distinct = sorted(set(texts))
        often = (
            2 if len(distinct) > 1000 else 1
        )  # what occurs once in a large corpus says nothing of what goes together
        options: dict[str, Any] = {"analyzer": _words_and_pairs, "sublinear_tf": True, "dtype": np.float32}
        self._tfidf = TfidfVectorizer(min_df=often, max_features=60_000, **options)
        try:
            seen = self._tfidf.fit_transform(distinct)
        except ValueError as error:
            raise BadInput("no sentence of the corpus has a word") from error
        self._directions = None
        if self.width < min(seen.shape):
            # Two refinements are enough for clustering; the signs are fixed so that runs agree.
            refinements: Any = 2
            _, _, directions = randomized_svd(seen, self.width, n_iter=refinements, random_state=self.seed)
            signs = np.sign(directions[np.arange(self.width), np.abs(directions).argmax(1)])
            self._directions = np.ascontiguousarray((directions * signs[:, None]).T, dtype=np.float32)
        return self

    def embed(self, texts: Sequence[str]) -> Vectors:
        if self._tfidf is None:
            raise WrongUse("this embedder has seen no corpus", remedy="call fit first")
        seen = self._tfidf.transform(texts)
        return unit_rows(seen.toarray() if self._directions is None else seen @ self._directions)

    def fingerprint(self) -> str:
        if self._tfidf is None:
            raise WrongUse("this embedder has seen no corpus", remedy="call fit first")
        names = "\n".join(self._tfidf.get_feature_names_out())
        return sha256_of(
            [
                names.encode(),
                self._tfidf.idf_.tobytes(),
                b"" if self._directions is None else self._directions.tobytes(),
            ]
        )


class LabelEmbedder:
    """What a labeler finds: a place each for every observation present, uncertain and absent.

    An absent observation weighs less than a present one: normal reports differ by what they happen to deny.
    """

    _WEIGHT: ClassVar[dict[int, float]] = {1: 1.0, -1: 0.5, 0: 0.25}

    def __init__(self, label: LabelReports, version: str = "") -> None:
        self.name, self._label, self._version = "labels", label, version

    def fit(self, texts: Sequence[str]) -> Self:
        return self

    def embed(self, texts: Sequence[str]) -> Vectors:
        """(n, 42)."""
        vectors = np.zeros((len(texts), 3, len(OBSERVATIONS)), np.float32)
        for row, labels in zip(vectors, self._label(texts), strict=True):
            for name, mark in labels.items():
                row[mark, OBSERVATIONS.index(name)] = self._WEIGHT[mark]  # -1 is the last of the three
        return unit_rows(vectors.reshape(len(texts), -1))

    def fingerprint(self) -> str:
        return sha256_of([f"labels {self._WEIGHT} {self._version}".encode()])


def embedder_named(
    source: str | None,
    *,
    seed: int = 0,
    watch: Watch = quiet,
    labeller: LabelReports | None = None,
    labels_version: str = "",
) -> Embedder:
    """None or `tfidf`: the default. `labels`: what `labeller` finds. Anything else: an encoder's folder or hub id,
    after `cls:` where its [CLS] is wanted, not the mean (CheXbert, as WCL has it)."""
    if source in (None, "tfidf"):
        return TfidfSvd(seed=seed)
    if source == "labels":
        if labeller is None:
            raise WrongUse("no labeler at hand for the embedder 'labels'", where="embedder", remedy="use tfidf")
        return LabelEmbedder(labeller, labels_version)
    from negatoscope.text.encoder import EncoderEmbedder

    if source.startswith("cls:"):
        return EncoderEmbedder(source.removeprefix("cls:"), pooling="cls", watch=watch)
    return EncoderEmbedder(source, watch=watch)


def sha256_of(parts: Iterable[bytes]) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(part)
    return total.hexdigest()

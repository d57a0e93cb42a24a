"""Reports that mean nearly the same, by K-Means over their vectors: the weak labels of WCL, made once before training.

The table lies beside the studies in their store: id and cluster, the clusters numbered from 0, largest first.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from negatoscope.contrast.neighbours import Corpus
from negatoscope.errors import BadInput, WrongUse
from negatoscope.text.embed import Embedder
from negatoscope.whole_files import whole_file

FORMAT = 1
_STARTS = 4
"""K-Means keeps the best of so many."""
_LOOKED_AT = 5_000
"""Reports by which the silhouette is estimated where there are more."""


@dataclass(frozen=True)
class Clusters:
    ids: tuple[str, ...]
    number: NDArray[np.int32]  # (n,)
    about: dict[str, Any]
    """Embedder, its fingerprint, the corpus's, K, seed, silhouette, sizes."""
    typical: tuple[tuple[int, ...], ...] = ()
    """Of each cluster the places of its most central reports, nearest its centre first."""

    @property
    def sizes(self) -> list[int]:
        return list(self.about["sizes"])

    @property
    def silhouette(self) -> float:
        return float(self.about["silhouette"])

    def save(self, path: Path | str) -> None:
        table = pa.table({"id": pa.array(self.ids), "cluster": pa.array(self.number)})
        header = json.dumps({"format": FORMAT, **self.about, "typical": self.typical})
        with whole_file(path) as part:
            pq.write_table(table.replace_schema_metadata({"clusters": header}), part, compression="zstd")

    @classmethod
    def load(cls, path: Path | str) -> Clusters:
        """Raises BadInput for a file that is no table of clusters."""
        remedy = "make it anew with `negatoscope clusters`"
        try:
            table = pq.read_table(path)
            about = json.loads((table.schema.metadata or {})[b"clusters"])
            ids = tuple(table["id"].to_pylist())
            number = table["cluster"].to_numpy().astype(np.int32)
            typical = tuple(tuple(row) for row in about.pop("typical"))
        except FileNotFoundError as error:
            raise BadInput("no such file", where=path, remedy=remedy) from error
        except (OSError, pa.ArrowException, KeyError, ValueError) as error:
            raise BadInput("is no table of clusters", where=path, remedy=remedy) from error
        if about.pop("format", None) != FORMAT:
            raise BadInput("is a table of clusters of another format", where=path, remedy=remedy)
        return cls(ids, number, about, typical)


def cluster_reports(
    corpus: Corpus, embedder: Embedder, clusters: int = 14, *, seed: int = 0, typical: int = 6
) -> Clusters:
    """K-Means over the reports' vectors. Raises WrongUse for more clusters than there are different reports."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    vectors = embedder.fit(corpus.texts).embed(corpus.texts)  # (n, d)
    distinct = len(np.unique(vectors, axis=0))
    if not 1 <= clusters <= distinct:
        raise WrongUse(f"{clusters} clusters of {distinct} different reports", remedy="ask for fewer")
    starts: Any = _STARTS  # scikit-learn's annotations know only 'auto'
    found = KMeans(clusters, n_init=starts, random_state=seed).fit(vectors)
    labels = np.asarray(found.labels_)
    ranked = np.argsort(-np.bincount(labels, minlength=clusters), kind="stable")
    number = np.argsort(ranked)[labels].astype(np.int32)
    centres = np.asarray(found.cluster_centers_)[ranked]
    silhouette = 0.0
    if 1 < clusters < len(vectors):
        sample = _LOOKED_AT if len(vectors) > _LOOKED_AT else None
        silhouette = float(silhouette_score(vectors, number, sample_size=sample, random_state=seed))
    about = {
        "embedder": embedder.name,
        "embedder_fingerprint": embedder.fingerprint(),
        "corpus": corpus.fingerprint(),
        "clusters": clusters,
        "seed": seed,
        "silhouette": silhouette,
        "sizes": np.bincount(number, minlength=clusters).tolist(),
    }
    return Clusters(corpus.ids, number, about, _typical(corpus, vectors, number, centres, typical))


def _typical(
    corpus: Corpus, vectors: NDArray[np.float32], number: NDArray[np.int32], centres: NDArray[np.float32], most: int
) -> tuple[tuple[int, ...], ...]:
    """Nearest the centre first, none with the words of one before it."""
    kept: list[tuple[int, ...]] = []
    distance = np.linalg.norm(vectors - centres[number], axis=1)
    for cluster in range(len(centres)):
        members = np.flatnonzero(number == cluster)
        said: dict[str, int] = {}
        for member in members[np.argsort(distance[members], kind="stable")].tolist():
            said.setdefault(corpus.texts[member], member)
            if len(said) == most:
                break
        kept.append(tuple(said.values()))
    return tuple(kept)


def check_corpus(made: dict[str, Any], corpus: Corpus, where: object) -> None:
    """Raises BadInput where a table was made of other reports."""
    if made.get("corpus") != corpus.fingerprint():
        raise BadInput("was made of other reports", where=where, remedy="make it anew")

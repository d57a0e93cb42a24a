"""What the contrastive losses need of a corpus, made once and kept in the store's folder: clusters and neighbours.

STORE/clusters-tfidf-14-0-3f2a9c1b.parquet      embedder, K, seed, the start of the corpus's hash
STORE/neighbours-tfidf-10-3f2a9c1b.parquet      embedder, k, the start of the corpus's hash
"""

from __future__ import annotations

import errno
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar, get_args

from negatoscope.contrast.clusters import Clusters, check_corpus, cluster_reports
from negatoscope.contrast.neighbours import Corpus, Neighbours, Search, find_neighbours
from negatoscope.contrast.objective import CLUSTERS
from negatoscope.errors import BadInput, WrongUse, nearest_names
from negatoscope.settings import read_settings
from negatoscope.studies.store import Store
from negatoscope.studies.study import Study
from negatoscope.text.embed import Embedder, embedder_named
from negatoscope.text.report_forms import ReportForm
from negatoscope.watch import Watch, quiet


def corpus_of(store: Store, form: ReportForm | None = None) -> Corpus:
    """The training split's reports as they are learned, empty ones left out."""
    form = form or ReportForm()
    columns = ["id", "report", "pictures", *(["sections"] if form.wordings == "drawn" else [])]
    ids, pictures, wordings = [], [], []
    for row in store.table(columns, split="train").to_pylist(maps_as_pydicts="strict"):
        study = Study(row["id"], report=row["report"], sections=row.get("sections") or {})
        said = tuple(kept for one in form.wordings_of(study) if (kept := form.kept(one)))
        if said:
            ids.append(study.id)
            pictures.append((row["pictures"] or [{}])[0].get("sha256") or "")
            wordings.append(said)
    if not ids:
        raise BadInput("no reports to learn from", where=store.path, remedy="see `negatoscope data show`")
    texts = tuple(" ".join(said) for said in wordings)
    return Corpus(tuple(ids), texts, tuple(pictures), tuple(wordings) if form.wordings == "drawn" else ())


def embedder_of(source: str, *, seed: int = 0, watch: Watch = quiet) -> Embedder:
    """`labels` needs the labeler, which lives further right than `text` may look."""
    from negatoscope.metrics.chexpert.labeler import Labeler

    def label(texts: Sequence[str]) -> list[dict[str, int]]:
        return Labeler().label_many(texts, watch=watch)

    return embedder_named(source, seed=seed, watch=watch, labeller=label, labels_version=str(Labeler.version))


def form_of(keep: str) -> ReportForm:
    """The reports' form as a command line says it; raises WrongUse for another word."""
    return read_settings(ReportForm, {"keep": keep})


def search_of(said: str) -> Search:
    for known in get_args(Search):
        if said == known:
            return known
    raise WrongUse(f"no search {said!r}", where="--search", remedy=nearest_names(said, get_args(Search)))


def clusters_path(store: Store, corpus: Corpus, embedder: str, clusters: int, seed: int) -> Path:
    return store.path / f"clusters-{_slug(embedder)}-{clusters}-{seed}-{corpus.fingerprint()[:8]}.parquet"


def neighbours_path(store: Store, corpus: Corpus, embedder: str, k: int) -> Path:
    return store.path / f"neighbours-{_slug(embedder)}-{k}-{corpus.fingerprint()[:8]}.parquet"


def clusters_for(
    store: Store, corpus: Corpus, embedder: str, clusters: int, *, seed: int = 0, watch: Watch = quiet
) -> Clusters:
    """Those kept in the store, made now where there are none."""
    path = clusters_path(store, corpus, embedder, clusters, seed)
    return _kept(
        path,
        corpus,
        Clusters,
        lambda: cluster_reports(corpus, embedder_of(embedder, watch=watch), clusters, seed=seed),
    )


def neighbours_for(
    store: Store, corpus: Corpus, embedder: str, k: int, *, search: Search = "auto", watch: Watch = quiet
) -> Neighbours:
    """Those kept in the store, made now where there are none."""
    path = neighbours_path(store, corpus, embedder, k)
    return _kept(
        path,
        corpus,
        Neighbours,
        lambda: find_neighbours(corpus, embedder_of(embedder, watch=watch), k, search=search, watch=watch),
    )


@dataclass(frozen=True)
class ClusterOf:
    """What a loader hands on with each study: the number of its cluster."""

    numbers: Mapping[str, int]

    @classmethod
    def made_of(cls, clusters: Clusters) -> ClusterOf:
        return cls(dict(zip(clusters.ids, clusters.number.tolist(), strict=True)))

    def __call__(self, study: Study) -> Mapping[str, int]:
        """Studies that are not learned from have none: -1, which no loss reads."""
        return {CLUSTERS: self.numbers.get(study.id, -1)}


class _Table(Protocol):
    @property
    def about(self) -> dict[str, Any]: ...

    def save(self, path: Path | str) -> None: ...

    @classmethod
    def load(cls, path: Path | str) -> Self: ...


T = TypeVar("T", bound=_Table)


def _kept(path: Path, corpus: Corpus, kind: type[T], make: Callable[[], T]) -> T:
    if path.exists():
        kept = kind.load(path)
        check_corpus(kept.about, corpus, path)  # the name has the start of the hash alone
        return kept
    made = make()
    try:
        made.save(path)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        return made  # a store that may only be read: made again at the next run
    # What every process reads is what the file says, down to its last digit.
    return kind.load(path)


def _slug(embedder: str) -> str:
    """An encoder's by its whole source: two folders may have one name."""
    if embedder in ("tfidf", "labels"):
        return embedder
    name = re.sub(r"[^A-Za-z0-9]+", "-", Path(embedder).name).strip("-").lower()
    return f"{name or 'encoder'}-{hashlib.sha256(embedder.encode()).hexdigest()[:6]}"


def places_in(store: Store, ids: Sequence[str]) -> list[int]:
    """Where in the store each of these studies stands."""
    place = {study: at for at, study in enumerate(store.ids())}
    return [place[study] for study in ids]

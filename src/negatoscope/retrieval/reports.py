"""Whole reports for a split of a store, found among its training studies, into JSONL that `evaluate` reads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from negatoscope.errors import BadInput, WrongUse, nearest_names
from negatoscope.retrieval.findings import Telling, find
from negatoscope.retrieval.hybrid import NormalSentences
from negatoscope.retrieval.nearest import Found, Library, study_vectors
from negatoscope.retrieval.retriever import Retriever, cvse_vectors
from negatoscope.studies.store import Store
from negatoscope.studies.study import Split, Study
from negatoscope.text.abnormal import AbnormalSentences, SentenceClassifier
from negatoscope.vision.features import FeatureCache
from negatoscope.watch import Watch, quiet
from negatoscope.whole_files import whole_file

Way = Literal["nearest", "consensus", "hybrid"]
By = Literal["features", "cvse"]
WAYS: tuple[Way, ...] = ("nearest", "consensus", "hybrid")
K = 50
"""Nearest studies that a consensus is of."""
NAMED = 5
"""Training studies that are named with each report."""


@dataclass(frozen=True)
class Written:
    out: str
    reports: int
    distinct: int
    training: int


def retrieve_reports(
    store: Store,
    cache: FeatureCache,
    out: Path | str,
    *,
    split: Split = "test",
    way: str = "consensus",
    by: str = "features",
    k: int = K,
    retriever: Retriever | None = None,
    telling: Telling | None = None,
    classifier: SentenceClassifier | None = None,
    watch: Watch = quiet,
) -> Written:
    """`id`, `report`, and where it comes from, for each study of the split that has a picture.

    nearest: the report of the nearest training study. consensus: the most typical of the k nearest. hybrid: CVSE's
    findings, and normal sentences for other regions. `by`: what is near, pooled features or what CVSE sees.
    """
    for said, known in ((way, WAYS), (by, ("features", "cvse"))):
        if said not in known:
            raise WrongUse(f"no way {said!r}", remedy=nearest_names(said, known))
    if retriever is None and (by == "cvse" or way == "hybrid"):
        raise WrongUse("needs a trained CVSE", remedy="--cvse RUN; negatoscope retrieve train makes one")
    if retriever is not None:
        retriever.must_fit(cache)
    asked = [study for study in store.studies(split) if study.pictures]
    training = [study for study in store.studies("train") if study.pictures]
    if not asked:
        raise BadInput(f"no study with pictures in the split {split}", where=store.path, remedy="--split train or val")
    if not training:
        raise BadInput("no training study with pictures", where=store.path, remedy="take a store with a train split")
    if way == "hybrid":
        assert retriever is not None
        rows = _hybrid(retriever, asked, training, cache, telling, classifier, watch)
    else:

        def vectors(studies: Sequence[Study]) -> np.ndarray:
            if by == "cvse":
                assert retriever is not None
                return cvse_vectors(retriever, studies, cache, watch)
            return study_vectors(studies, cache, watch=watch)

        library = Library.of(training, vectors(training))
        ids = [study.id for study in asked]
        queries = vectors(asked)
        found = library.nearest(queries, ids) if way == "nearest" else library.consensus(queries, k, ids)
        rows = (_as_row(study, one) for study, one in zip(ids, found, strict=True))
    reports = []
    with whole_file(out) as part, part.open("w", encoding="utf-8") as file:
        for row in rows:
            reports.append(row["report"])
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return Written(str(out), len(reports), len(set(reports)), len(training))


def _as_row(study: str, found: Found) -> dict[str, Any]:
    near = list(found.among[:NAMED])
    return {
        "id": study,
        "report": found.report,
        "from": found.study,
        "closeness": round(found.closeness, 5),
        "nearest": near,
    }


def _hybrid(
    retriever: Retriever,
    asked: Sequence[Study],
    training: Sequence[Study],
    cache: FeatureCache,
    telling: Telling | None,
    classifier: SentenceClassifier | None,
    watch: Watch,
) -> Iterator[dict[str, Any]]:
    normal = NormalSentences.of([study.report for study in training], classifier or AbnormalSentences.default())
    for one in find(retriever, asked, cache, telling or Telling(calibrated=True), watch):
        lines = normal.complete([finding.sentence for finding in one.findings])
        yield {
            "id": one.id,
            "report": " ".join(line.sentence for line in lines),
            "sentences": [{"sentence": line.sentence, "abnormal": line.abnormal} for line in lines],
            "findings": [finding.as_json() for finding in one.findings],
        }

"""Whole reports found among training studies."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from negatoscope.errors import BadInput, WrongUse
from negatoscope.retrieval.nearest import Library, most_typical, runs_of_words, study_vectors
from negatoscope.studies.study import Picture, Study
from negatoscope.vision.features import FeatureCache
from tests.retrieval.small import cache_of

_reports = st.lists(
    st.lists(st.sampled_from(["heart", "lungs", "clear", ".", "no", "effusion", "is"]), max_size=9),
    min_size=2,
    max_size=7,
)


def _library(reports: list[str], vectors: np.ndarray | None = None) -> Library:
    studies = [Study(f"t{number}", report=report) for number, report in enumerate(reports)]
    return Library.of(studies, np.eye(len(reports), dtype=np.float32) if vectors is None else vectors)


def test_nearest_is_the_largest_cosine_by_loops() -> None:
    rng = np.random.default_rng(0)
    training, queries = rng.normal(size=(40, 6)) * rng.uniform(0.1, 9, (40, 1)), rng.normal(size=(5, 6))
    library = _library([f"report {n}" for n in range(40)], training)
    rows, cosines = library.closest(queries, 4)
    for query, row, close in zip(queries, rows, cosines):
        wanted = [float(query @ one / np.linalg.norm(query) / np.linalg.norm(one)) for one in training]
        assert row.tolist() == sorted(range(40), key=lambda n: -wanted[n])[:4]
        np.testing.assert_allclose(close, sorted(wanted, reverse=True)[:4], rtol=1e-5)
    assert [found.report for found in library.nearest(queries)] == [f"report {row[0]}" for row in rows]


def test_a_block_at_a_time_is_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    library, queries = _library([f"report {n}" for n in range(30)], rng.normal(size=(30, 4))), rng.normal(size=(9, 4))
    whole = library.closest(queries, 3, [f"t{n}" for n in range(9)])
    monkeypatch.setattr("negatoscope.retrieval.nearest._CELLS_AT_ONCE", 60)
    parts = library.closest(queries, 3, [f"t{n}" for n in range(9)])
    assert np.array_equal(whole[0], parts[0])
    np.testing.assert_allclose(whole[1], parts[1], rtol=1e-6)


def test_no_study_is_its_own_neighbour() -> None:
    library = _library(["a b", "c d", "e f"])
    found = library.nearest(library.vectors, library.ids)
    assert all(one.study != study for one, study in zip(found, library.ids))
    assert library.nearest(library.vectors)[1].study == "t1"
    assert library.consensus(library.vectors[:1], 50, ["t0"])[0].among == ("t1", "t2")


@settings(max_examples=100, deadline=None)
@given(_reports)
def test_most_typical_has_the_largest_sum_of_dice_by_loops(words: list[list[str]]) -> None:
    reports = [" ".join(report) for report in words]
    pairs = [Counter(itertools.pairwise(report)) for report in words]

    def dice(one: Counter, other: Counter) -> float:
        has = one.total() + other.total()
        return 2 * (one & other).total() / has if has else 0.0

    sums = [round(sum(dice(a, b) for at, b in enumerate(pairs) if at != own), 4) for own, a in enumerate(pairs)]
    assert sums[most_typical(runs_of_words(reports))] == pytest.approx(max(sums), abs=1e-4)


def test_consensus_takes_the_report_that_the_others_resemble() -> None:
    reports = [
        "tumour in the left lung",
        "the lungs are clear",
        "the lungs are both clear",
        "the lungs are quite clear",
    ]
    library = _library(reports, np.array([[1.0, 0], [0.9, 0.1], [0.8, 0.2], [0.7, 0.3]]))
    query = np.array([[1.0, 0.0]])
    assert library.nearest(query)[0].report == reports[0]
    one = library.consensus(query, 4)[0]
    assert one.study == "t1"
    assert one.among == ("t0", "t1", "t2", "t3")
    assert library.consensus(query, 1)[0].report == reports[0]


def test_vectors_are_the_mean_patch_of_each_view(tmp_path: Path) -> None:
    cache, maps = cache_of(tmp_path, ["f", "l"], patches=4, width=3)
    frontal, lateral = Picture("f.png", "frontal", sha256="f"), Picture("l.png", "lateral", sha256="l")
    both, turned, alone = (Study("a", pictures) for pictures in ((frontal, lateral), (lateral, frontal), (lateral,)))
    vectors = study_vectors([both, turned, alone], cache)
    for view, name in enumerate("fl"):
        mean = maps[name].astype(np.float32).mean(0)
        np.testing.assert_allclose(vectors[0, 3 * view : 3 * view + 3], mean / np.linalg.norm(mean), rtol=1e-5)
    assert np.array_equal(vectors[0], vectors[1])
    assert not vectors[2, :3].any()
    assert np.array_equal(vectors[2, 3:], vectors[0, 3:])


def test_bad_input(tmp_path: Path) -> None:
    cache = FeatureCache.open(cache_of(tmp_path, ["f"], patches=1, width=2)[0].path)
    with pytest.raises(BadInput, match="study x"):
        study_vectors([Study("x")], cache)
    with pytest.raises(BadInput, match="no features of the picture"):
        study_vectors([Study("x", (Picture("g.png", "frontal", sha256="g"),))], cache)
    with pytest.raises(BadInput, match="no training study has a report"):
        _library(["", " "])
    with pytest.raises(WrongUse, match="2 studies with 3 vectors"):
        Library.of([Study("a"), Study("b")], np.eye(3))
    with pytest.raises(WrongUse, match="0 nearest"):
        _library(["a"]).consensus(np.eye(1), 0)
    with pytest.raises(WrongUse, match="queries of shape"):
        _library(["a"]).nearest(np.eye(3))
    with pytest.raises(BadInput, match="the query itself"):
        _library(["a"]).nearest(np.eye(1), ["t0"])


def test_studies_without_a_report_are_never_taken() -> None:
    library = _library(["", "heart is large"])
    assert library.ids == ("t1",)
    assert library.nearest(np.array([[1.0, 0.0]]))[0].report == "heart is large"

"""Whose report says nearly the same: against all pairs looked at one by one; identical words and pictures left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from negatoscope.contrast.neighbours import (
    Corpus,
    Neighbours,
    Search,
    find_neighbours,
    nearest_by_index,
    nearest_exactly,
)
from negatoscope.errors import BadInput, WrongUse
from negatoscope.text.embed import TfidfSvd

SIDES, SIZES, FINDINGS = ("left", "right"), ("small", "large"), ("effusion", "nodule", "fracture", "opacity")
REPORTS = [f"{size} {side} {finding} ." for size in SIZES for side in SIDES for finding in FINDINGS]


def corpus_of(texts: list[str], pictures: tuple[str, ...] = ()) -> Corpus:
    return Corpus(tuple(f"s{at}" for at in range(len(texts))), tuple(texts), pictures)


def vectors_of(rows: int, width: int = 12, seed: int = 0) -> NDArray[np.float32]:
    made = np.random.default_rng(seed).normal(size=(rows, width))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def test_nearest_is_what_looking_at_every_pair_finds() -> None:
    vectors = vectors_of(50)
    places, cosines = nearest_exactly(vectors, 4)
    for row in range(50):
        close = [(-float(vectors[row] @ vectors[other]), other) for other in range(50) if other != row]
        wanted = sorted(close)[:4]
        assert places[row].tolist() == [other for _, other in wanted]
        np.testing.assert_allclose(cosines[row], [-near for near, _ in wanted], atol=1e-6)
    some = np.array([3, 40])
    np.testing.assert_array_equal(nearest_exactly(vectors, 4, rows=some)[0], places[some])


def test_a_study_is_no_neighbour_of_its_own_words() -> None:
    """However they are spelt: punctuation and capitals do not make another report."""
    texts = [*REPORTS, REPORTS[0], REPORTS[0].upper(), REPORTS[0].replace(" .", "."), REPORTS[5]]
    corpus = corpus_of(texts)
    found = find_neighbours(corpus, TfidfSvd(8), 5)
    same = {place: " ".join(text.lower().replace(".", "").split()) for place, text in enumerate(texts)}
    assert found.nearest.shape == (len(texts), 5)
    for study, row in enumerate(found.nearest.tolist()):
        assert study not in row
        assert all(other >= 0 and same[other] != same[study] for other in row)
        assert len(set(row)) == 5
    assert (np.diff(found.cosine, axis=1) <= 1e-6).all(), "nearest first"
    assert found.about["distinct"] == len(REPORTS)
    assert found.about["studies"] == len(texts)


def test_the_nearest_says_nearly_the_same() -> None:
    found = find_neighbours(corpus_of(REPORTS), TfidfSvd(64), 1)
    for study, (other,) in enumerate(found.nearest.tolist()):
        assert len(set(REPORTS[study].split()) & set(REPORTS[other].split())) == 3, "two words of three, and the stop"


def test_studies_of_one_text_take_turns() -> None:
    """Forty studies with one report must not all be given the first of forty with the other."""
    corpus = corpus_of([REPORTS[0]] * 40 + [REPORTS[1]] * 40 + [REPORTS[15]])
    found = find_neighbours(corpus, TfidfSvd(8), 1)
    first = found.nearest[:40, 0].tolist()
    assert sorted(first) == list(range(40, 80))


def test_captions_of_one_picture_are_no_negatives() -> None:
    corpus = corpus_of([REPORTS[0], REPORTS[1], REPORTS[2]], ("one", "one", "other"))
    found = find_neighbours(corpus, TfidfSvd(8), 2)
    assert found.nearest.tolist()[0] == [2, -1]
    assert found.of("s1") == ["s2"]
    assert find_neighbours(corpus_of(REPORTS[:3], ("", "", "")), TfidfSvd(8), 2).nearest.min() == 0, "unknown pictures"
    with pytest.raises(BadInput, match="no other report is a negative"):
        find_neighbours(corpus_of(REPORTS[:2], ("one", "one")), TfidfSvd(8))


@pytest.mark.parametrize("search", ["exact", "index"])
def test_however_many_near_texts_are_no_negatives(search: Search) -> None:
    """Thirty studies of one picture: the nearest that shows another lies beyond all that were looked at first."""
    alike = [f"small left effusion number {at}" for at in range(30)]
    corpus = corpus_of([*alike, *REPORTS[8:]], ("one",) * 30 + tuple(f"p{at}" for at in range(8)))
    found = find_neighbours(corpus, TfidfSvd(64), 2, search=search)
    assert (found.nearest[:30, 0] >= 30).all()
    vectors = TfidfSvd(64).fit(corpus.texts).embed(corpus.texts)
    for study in range(30):
        close = vectors[study] @ vectors[30:].T
        assert found.cosine[study, 0] == pytest.approx(close.max(), abs=1e-6)


def test_an_index_finds_them_too() -> None:
    pytest.importorskip("usearch")
    vectors = vectors_of(3000, 24)
    exact, exact_cosines = nearest_exactly(vectors, 5)
    found, cosines = nearest_by_index(vectors, 5)
    recall = np.mean([len(set(a) & set(b)) / 5 for a, b in zip(exact.tolist(), found.tolist())])
    assert recall > 0.95
    assert not (found == np.arange(3000)[:, None]).any()
    hit = found[:, 0] == exact[:, 0]
    np.testing.assert_allclose(cosines[hit, 0], exact_cosines[hit, 0], atol=1e-6)
    small = find_neighbours(corpus_of(REPORTS), TfidfSvd(8), 3, search="index")
    assert small.about["search"] == "index"
    wanted = find_neighbours(corpus_of(REPORTS), TfidfSvd(8), 3)
    assert wanted.about["search"] == "exact"
    np.testing.assert_allclose(small.cosine, wanted.cosine, atol=1e-5)


def test_written_and_read(tmp_path: Path) -> None:
    corpus = corpus_of(REPORTS[:6], ("a", "a", "b", "b", "c", "c"))
    found = find_neighbours(corpus, TfidfSvd(8), 5)
    found.save(tmp_path / "n.parquet")
    again = Neighbours.load(tmp_path / "n.parquet")
    assert again.ids == found.ids
    assert again.about == found.about
    assert again.about["corpus"] == corpus.fingerprint()
    width = again.nearest.shape[1]
    np.testing.assert_array_equal(again.nearest, found.nearest[:, :width])
    np.testing.assert_array_equal(again.cosine, found.cosine[:, :width])
    assert found.nearest[:, width:].max(initial=-1) == -1
    table = pq.read_table(tmp_path / "n.parquet")
    assert table["neighbours"].to_pylist()[0] == found.of("s0")


def test_a_fingerprint_tells_corpora_apart() -> None:
    one = corpus_of(REPORTS[:3])
    others = [
        corpus_of(REPORTS[:2]),
        corpus_of(REPORTS[2::-1]),
        Corpus(("s0", "s1", "t2"), one.texts),
        corpus_of(REPORTS[:3], ("a", "b", "c")),
    ]
    assert len({one.fingerprint(), *(other.fingerprint() for other in others)}) == 5


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="all reports say the same"):
        find_neighbours(corpus_of(["No effusion.", "no effusion"]), TfidfSvd(8))
    with pytest.raises(WrongUse, match="0 neighbours"):
        find_neighbours(corpus_of(REPORTS), TfidfSvd(8), 0)
    path = tmp_path / "n.parquet"
    with pytest.raises(BadInput, match="no such file"):
        Neighbours.load(path)
    path.write_bytes(b"no table")
    with pytest.raises(BadInput, match="no table of neighbours"):
        Neighbours.load(path)
    pq.write_table(pa.table({"id": ["a"]}), path)
    with pytest.raises(BadInput, match="no table of neighbours"):
        Neighbours.load(path)

"""Weak labels: reports that mean nearly the same, by K-Means."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from negatoscope.contrast.clusters import Clusters, check_corpus, cluster_reports
from negatoscope.contrast.neighbours import Corpus
from negatoscope.errors import BadInput, WrongUse
from negatoscope.text.embed import TfidfSvd

KINDS = {
    "effusion": ["small left pleural effusion", "large left pleural effusion", "right pleural effusion, large"],
    "fracture": ["old healed rib fracture", "healed fracture of a rib", "old rib fracture"],
    "normal": ["the lungs are clear", "clear lungs", "lungs are both clear", "the lungs appear clear"],
}
TEXTS = [text for texts in KINDS.values() for text in texts]
CORPUS = Corpus(tuple(f"s{at}" for at in range(len(TEXTS))), tuple(TEXTS))


@pytest.fixture(scope="module")
def made() -> Clusters:
    return cluster_reports(CORPUS, TfidfSvd(64), 3)


def test_what_is_said_alike_is_one_cluster(made: Clusters) -> None:
    at = 0
    numbers = []
    for texts in KINDS.values():
        numbers.append(set(made.number[at : at + len(texts)].tolist()))
        at += len(texts)
    assert all(len(found) == 1 for found in numbers)
    assert numbers[2] == {0}, "the largest comes first"
    assert made.sizes == [4, 3, 3]
    assert 0.1 < made.silhouette < 1


def test_the_silhouette_is_what_its_definition_says(made: Clusters) -> None:
    vectors = TfidfSvd(64).fit(TEXTS).embed(TEXTS).astype(float)
    apart = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    total = 0.0
    for i, own in enumerate(made.number):
        mates = [j for j in range(len(TEXTS)) if j != i and made.number[j] == own]
        within = float(np.mean([apart[i, j] for j in mates]))
        others = [np.mean(apart[i, made.number == other]) for other in range(3) if other != own]
        beside = float(min(others))
        total += (beside - within) / max(within, beside)
    assert made.silhouette == pytest.approx(total / len(TEXTS), abs=1e-5)


def test_the_most_typical_reports_are_nearest_the_centre(made: Clusters) -> None:
    vectors = TfidfSvd(64).fit(TEXTS).embed(TEXTS).astype(float)
    for cluster, typical in enumerate(made.typical):
        members = np.flatnonzero(made.number == cluster)
        distance = np.linalg.norm(vectors - vectors[members].mean(0), axis=1)
        assert sorted(typical) == members.tolist()
        assert (np.diff(distance[list(typical)]) >= -1e-6).all()


def test_no_report_is_typical_twice() -> None:
    texts = ("clear lungs",) * 5 + ("the lungs are clear",)
    found = cluster_reports(Corpus(tuple("abcdef"), texts), TfidfSvd(8), 1)
    assert [texts[place] for place in found.typical[0]] == ["clear lungs", "the lungs are clear"]
    assert found.silhouette == 0


def test_the_seed_and_what_was_clustered_are_recorded(made: Clusters) -> None:
    again = cluster_reports(CORPUS, TfidfSvd(64), 3)
    np.testing.assert_array_equal(again.number, made.number)
    about = made.about
    assert (about["clusters"], about["seed"], about["embedder"]) == (3, 0, "tfidf-svd-64")
    assert about["embedder_fingerprint"] == TfidfSvd(64).fit(TEXTS).fingerprint()
    check_corpus(about, CORPUS, "here")
    with pytest.raises(BadInput, match="other reports"):
        check_corpus(about, Corpus(CORPUS.ids, CORPUS.texts[::-1]), "here")


def test_written_and_read(made: Clusters, tmp_path: Path) -> None:
    made.save(tmp_path / "c.parquet")
    again = Clusters.load(tmp_path / "c.parquet")
    np.testing.assert_array_equal(again.number, made.number)
    assert (again.ids, again.about, again.typical) == (made.ids, made.about, made.typical)


def test_bad_input(tmp_path: Path) -> None:
    for clusters in (0, 11):
        with pytest.raises(WrongUse, match="of 10 different reports"):
            cluster_reports(CORPUS, TfidfSvd(64), clusters)
    with pytest.raises(BadInput, match="no such file"):
        Clusters.load(tmp_path / "none.parquet")
    (tmp_path / "c.parquet").write_bytes(b"no table")
    with pytest.raises(BadInput, match="no table of clusters"):
        Clusters.load(tmp_path / "c.parquet")

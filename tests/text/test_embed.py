"""Sentences as vectors."""

from __future__ import annotations

import numpy as np
import pytest

from negatoscope.errors import BadInput, WrongUse
from negatoscope.studies.study import OBSERVATIONS
from negatoscope.text.embed import LabelEmbedder, TfidfSvd, embedder_named

TEXTS = [
    f"{size} {side} {finding}"
    for size in ("small", "large")
    for side in ("left", "right")
    for finding in ("pleural effusion", "apical nodule", "old rib fracture")
]


@pytest.mark.parametrize("width", [4, 500])
def test_rows_are_of_unit_length_and_likeness_is_closeness(width: int) -> None:
    vectors = TfidfSvd(width).fit(TEXTS).embed([*TEXTS, "small left effusion"])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    close = vectors @ vectors[-1]
    assert close[TEXTS.index("small left pleural effusion")] > close[TEXTS.index("large right apical nodule")]


def test_nothing_known_is_a_row_of_zeros() -> None:
    assert not TfidfSvd(4).fit(TEXTS).embed(["", "zzz"]).any()


def test_fingerprint_follows_the_corpus_and_not_its_order() -> None:
    one, two = TfidfSvd(4).fit(TEXTS), TfidfSvd(4).fit(TEXTS[::-1])
    assert one.fingerprint() == two.fingerprint()
    assert one.fingerprint() != TfidfSvd(4).fit(TEXTS[:-1]).fingerprint()


def test_wrong_use() -> None:
    with pytest.raises(BadInput, match="has a word"):
        TfidfSvd().fit(["", "..."])
    with pytest.raises(WrongUse, match="no corpus"):
        TfidfSvd().embed(["a"])
    with pytest.raises(WrongUse, match="at least 1"):
        TfidfSvd(0)


def test_labels_alone() -> None:
    """Reports that a labeler tells alike are one point, whatever their words; what is denied weighs less."""
    found = {"a": {"Edema": 1}, "b": {"Edema": 1}, "c": {"Edema": -1, "Pneumonia": 0}, "d": {"Pneumonia": 0}, "e": {}}
    embedder = embedder_named("labels", labeller=lambda texts: [found[text] for text in texts])
    vectors = embedder.fit(list(found)).embed(list(found))
    assert vectors.shape == (5, 3 * len(OBSERVATIONS))
    np.testing.assert_array_equal(vectors[0], vectors[1])
    close = vectors @ vectors.T
    assert close[0, 2] == 0, "possible is not present"
    assert 0 < close[2, 3] < 0.5
    assert not vectors[4].any()
    assert isinstance(embedder, LabelEmbedder)
    assert embedder.fingerprint() != LabelEmbedder(lambda texts: [], "2").fingerprint()
    with pytest.raises(WrongUse, match="no labeler"):
        embedder_named("labels")

"""Sentences as vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from negatoscope.errors import BadInput, WrongUse
from negatoscope.text.abnormal import words
from negatoscope.text.embed import EncoderEmbedder, TfidfSvd, embedder_named

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


def test_an_encoder_from_a_folder(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    known = sorted({word for text in TEXTS for word in words(text)})
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *known]))
    transformers.BertTokenizer(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    shape = transformers.BertConfig(
        vocab_size=len(known) + 5, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    transformers.BertModel(shape).save_pretrained(tmp_path)
    embedder = embedder_named(str(tmp_path))
    vectors = embedder.fit(TEXTS).embed([*TEXTS, ""])
    assert vectors.shape == (13, 16)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    # Padding beside longer texts changes nothing.
    np.testing.assert_allclose(embedder.embed(TEXTS[:1]), vectors[:1], atol=1e-5)
    assert embedder.fingerprint() == EncoderEmbedder(tmp_path).fingerprint()
    assert embedder.name == str(tmp_path)


def test_no_encoder_there(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(BadInput, match="no encoder"):
        EncoderEmbedder(tmp_path)

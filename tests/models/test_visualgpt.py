"""VisualGPT: its activation unit, and what it takes over from a GPT-2 folder that `transformers` wrote."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from negatoscope.errors import BadInput, WrongUse
from negatoscope.models import visualgpt
from negatoscope.models.visualgpt import VisualGPT, VisualGPTSettings, resurrecting
from negatoscope.text.words import Vocabulary
from negatoscope.training.checkpoint import load_reporter
from negatoscope.training.loop import train
from negatoscope.training.recipe import Recipe, recipe_of
from tests.models.every import CachedFeatures, batch_of, tiny
from tests.training.conftest import small_recipe, small_store  # noqa: F401 - fixtures

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

VOCABULARY = Vocabulary((".", "<unk>", "clear", "effusion", "lung", "lungs"), cutoff=1)
PIECES = ["<|endoftext|>", "<x>", ".", "\u0120clear", "\u0120lung", "s", "\u0120eff", "usion"]


def write_gpt2(folder: Path, **config: int | str | bool) -> Path:
    """A GPT-2 by chance, whose tokenizer knows eight pieces."""
    said = {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 32, "vocab_size": len(PIECES), **config}
    torch.manual_seed(3)
    made = transformers.GPT2Model(transformers.GPT2Config(**said, bos_token_id=0, eos_token_id=0))
    for p in made.parameters():  # norms and biases too
        torch.nn.init.normal_(p, std=0.3)
    made.save_pretrained(folder)
    numbers = {piece: number for number, piece in enumerate(PIECES)}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(numbers, unk_token="<x>"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False),
            tokenizers.pre_tokenizers.Split(tokenizers.Regex("(?<=\u0120lung)s|usion"), "isolated"),
        ]
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, eos_token="<|endoftext|>", unk_token="<x>"
    ).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gpt2(tmp_path_factory.mktemp("gpt2"))


def of(folder: Path | str, **settings: int | str) -> VisualGPT:
    torch.manual_seed(0)
    made = VisualGPTSettings(**{**VisualGPT.tiny, "gpt2": str(folder), **settings})
    return VisualGPT(made, CachedFeatures(), VOCABULARY.logits).eval()


def test_each_unit_leans_on_what_it_sees_or_knows() -> None:
    H, seen = torch.tensor([-3.0, -0.5, 0.0, 2.0]), torch.tensor([10.0, 20.0, 30.0, 40.0])
    found = resurrecting(H, seen, 0.2)
    share = [1 / (1 + torch.exp(-h)).item() for h in H]
    expected = [
        (1 - share[0]) * -3.0,  # it sees too little: what it knows alone
        share[1] * 20 + (1 - share[1]) * -0.5,
        15.0,
        share[3] * 40,  # it knows too little
    ]
    torch.testing.assert_close(found, torch.tensor(expected))


def test_the_blocks_are_gpt2s(gpt2: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With nothing taken from the image, hidden states are those of `transformers`."""
    reporter = of(gpt2)
    reporter.take_pretrained(VOCABULARY)
    monkeypatch.setattr(visualgpt, "resurrecting", lambda H, seen, tau: H)
    batch = batch_of((6, 4))
    assert batch.words is not None
    words = batch.words % VOCABULARY.logits
    reference = transformers.GPT2Model.from_pretrained(gpt2).eval()
    with torch.inference_mode():
        expected = reference(inputs_embeds=reporter.embed(words)).last_hidden_state
        found = reporter.read(reporter.look(batch), words, torch.ones_like(words, dtype=torch.bool)).hidden
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_a_word_starts_as_the_mean_of_its_sub_words(gpt2: Path) -> None:
    reporter = of(gpt2)
    reporter.take_pretrained(VOCABULARY)
    theirs = transformers.GPT2Model.from_pretrained(gpt2).wte.weight
    ours = reporter.embed.weight
    torch.testing.assert_close(ours[VOCABULARY.number("lungs")], (theirs[4] + theirs[5]) / 2)
    torch.testing.assert_close(ours[VOCABULARY.number("effusion")], (theirs[6] + theirs[7]) / 2)
    torch.testing.assert_close(ours[VOCABULARY.number(".")], theirs[2])
    torch.testing.assert_close(ours[0], theirs[0])
    torch.testing.assert_close(ours[VOCABULARY.unknown], theirs.mean(0))


def test_words_by_chance_need_no_tokenizer(gpt2: Path, tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        shutil.copy(gpt2 / name, tmp_path)
    reporter = of(tmp_path, words_from="chance")
    before = reporter.embed.weight.clone()
    reporter.take_pretrained(VOCABULARY)
    assert torch.equal(reporter.embed.weight, before)
    with pytest.raises(BadInput, match="words_from: chance"):
        of(tmp_path).take_pretrained(VOCABULARY)


def test_other_sizes_are_named(gpt2: Path) -> None:
    with pytest.raises(WrongUse, match="width: 16, blocks: 2, positions: 32"):
        of(gpt2, blocks=3).take_pretrained(VOCABULARY)
    with pytest.raises(WrongUse, match=r"model\.heads: 4"):
        of(gpt2, heads=2).take_pretrained(VOCABULARY)


def test_what_is_no_gpt2_is_refused(gpt2: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such folder"):
        of("./nowhere").take_pretrained(VOCABULARY)
    with pytest.raises(BadInput, match="no GPT-2"):
        of(tmp_path).take_pretrained(VOCABULARY)
    shutil.copy(gpt2 / "config.json", tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04N.")
    with pytest.raises(BadInput, match="safetensors"):
        of(tmp_path).take_pretrained(VOCABULARY)


def test_code_beside_the_weights_is_never_run(gpt2: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(gpt2, tmp_path / "gpt2"))
    said = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**said, "auto_map": {"AutoModel": "evil.Evil"}}))
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\nclass Evil: pass\n")
    of(folder).take_pretrained(VOCABULARY)
    assert not (tmp_path / "ran").exists()


def test_more_words_than_positions_are_refused() -> None:
    with pytest.raises(WrongUse, match=r"model\.positions"):
        tiny("visualgpt")(batch_of((40, 3)))


def test_a_finished_run_needs_no_folder(small_recipe: Callable[..., Recipe], gpt2: Path, tmp_path: Path) -> None:  # noqa: F811
    folder = Path(shutil.copytree(gpt2, tmp_path / "gpt2"))
    said = small_recipe(epochs=1).as_dict()
    said["model"] = {"name": "visualgpt", **VisualGPT.tiny, "gpt2": str(folder)}
    train(recipe_of(said), tmp_path / "run")
    shutil.rmtree(folder)
    reporter, _ = load_reporter(tmp_path / "run")
    assert isinstance(reporter, VisualGPT)

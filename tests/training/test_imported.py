"""A run made of the authors' checkpoint writes reports; what is unsafe or does not fit is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from typer.testing import CliRunner

from negatoscope.cli import app
from negatoscope.decoding import DecodeSettings, write
from negatoscope.errors import BadInput, WrongUse
from negatoscope.studies.batch import Batch
from negatoscope.text.words import Vocabulary
from negatoscope.training import imported
from negatoscope.training.checkpoint import load_reporter
from negatoscope.training.imported import import_checkpoint, read_vocabulary
from negatoscope.vision import backbones
from tests.models.test_published import recorded

STEM = {"conv1": "0", "bn1": "1", "layer1": "4", "layer2": "5", "layer3": "6", "layer4": "7"}
WORDS = [f"word{number}" for number in range(21)]


def authors_state(model: str = "r2gencmn") -> dict[str, Tensor]:
    """A whole checkpoint as they save it: ResNet-50 as a list of parts, and a decoder of width 16 that reads 2,048."""
    torch.manual_seed(0)
    own = backbones.build("resnet50").state_dict()
    state = {f"visual_extractor.model.{STEM[name.split('.')[0]]}.{name.split('.', 1)[1]}": own[name] for name in own}
    for name, tensor in recorded(model)[1].items():
        tensor = 0.05 * torch.randn(16, 2048) if name == "att_embed.0.weight" else tensor
        state[f"encoder_decoder.{name}"] = tensor
    return state


@pytest.fixture(scope="module")
def state() -> dict[str, Tensor]:
    return authors_state()


@pytest.fixture
def vocabulary(tmp_path: Path) -> Path:
    Vocabulary(tuple(sorted(["<unk>", *WORDS]))).save(tmp_path / "vocabulary.json")
    return tmp_path / "vocabulary.json"


def saved(state: Any, path: Path) -> Path:
    torch.save({"epoch": 3, "state_dict": state, "optimizer": {"state": {}, "param_groups": [{"lr": 1e-4}]}}, path)
    return path


def test_it_becomes_a_run_that_writes(state: dict[str, Tensor], vocabulary: Path, tmp_path: Path) -> None:
    source = saved(state, tmp_path / "model_best.pth")
    told = ["--set", "heads=4", "--set", "top_k=3", "--into", str(tmp_path / "run"), "--json"]
    said = ["import-checkpoint", str(source), "--model", "r2gencmn", "--vocabulary", str(vocabulary)]
    done = CliRunner().invoke(app, said + told)
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["words"] == 22
    reporter, checkpoint = load_reporter(tmp_path / "run")
    assert checkpoint.recipe.encoder.backbone == "resnet50"
    assert checkpoint.recipe.data.arrange == "by-order"
    assert torch.equal(reporter.state_dict()["memory"], state["encoder_decoder.memory_matrix"])
    own = reporter.state_dict()["encoder.backbone.layer2.0.conv1.weight"]
    assert torch.equal(own, state["visual_extractor.model.5.0.conv1.weight"])
    batch = Batch(("a",), torch.ones(1, 2, dtype=torch.bool), images=torch.rand(1, 2, 1, 64, 64))
    assert write(reporter, batch, DecodeSettings(max_words=5))[0][0].log_probabilities


def test_another_vocabulary_is_refused(state: dict[str, Tensor], tmp_path: Path) -> None:
    source = tmp_path / "model.safetensors"
    save_file({name: tensor.clone().contiguous() for name, tensor in state.items()}, source)
    Vocabulary(("<unk>", "heart")).save(tmp_path / "words.json")
    with pytest.raises(BadInput, match="2 words, and the checkpoint knows 22"):
        import_checkpoint(source, tmp_path / "run", model="r2gencmn", vocabulary=tmp_path / "words.json")
    assert not (tmp_path / "run").exists()


def test_what_is_no_tensor_is_refused(vocabulary: Path, tmp_path: Path) -> None:
    source = saved({"encoder_decoder.logit.weight": re.compile("x")}, tmp_path / "model.pth")
    with pytest.raises(BadInput, match="only tensors are read here"):
        import_checkpoint(source, tmp_path / "run", model="r2gen", vocabulary=vocabulary)


def test_a_decoder_without_encoder_is_refused(state: dict[str, Tensor], vocabulary: Path, tmp_path: Path) -> None:
    alone = {name: tensor.clone() for name, tensor in state.items() if name.startswith("encoder_decoder.")}
    save_file(alone, tmp_path / "model.safetensors")
    with pytest.raises(BadInput, match="no image encoder"):
        import_checkpoint(
            tmp_path / "model.safetensors",
            tmp_path / "run",
            model="r2gencmn",
            vocabulary=vocabulary,
            changes={"heads": 4, "top_k": 3},
        )


def test_an_old_torch_reads_no_pickle(monkeypatch: pytest.MonkeyPatch, vocabulary: Path, tmp_path: Path) -> None:
    monkeypatch.setattr(imported.torch, "__version__", "2.9.1+cpu")
    with pytest.raises(WrongUse, match=r"takes torch 2\.10 or newer, this is 2\.9\.1"):
        import_checkpoint(tmp_path / "model.pth", tmp_path / "run", model="r2gen", vocabulary=vocabulary)


def test_a_model_that_was_never_published_so_is_refused(
    state: dict[str, Tensor], vocabulary: Path, tmp_path: Path
) -> None:
    save_file({"x": torch.zeros(1)}, tmp_path / "model.safetensors")
    with pytest.raises(BadInput, match="no published code of 'nic'"):
        import_checkpoint(tmp_path / "model.safetensors", tmp_path / "run", model="nic", vocabulary=vocabulary)


def test_words_of_an_annotation_file_are_the_training_reports(tmp_path: Path) -> None:
    said = {
        "train": [{"report": "Heart normal."}] * 3 + [{"report": "Rare thing."}],
        "test": [{"report": "Never seen."}] * 9,
    }
    (tmp_path / "annotation.json").write_text(json.dumps(said))
    assert read_vocabulary(tmp_path / "annotation.json").words == (".", "<unk>", "heart", "normal")

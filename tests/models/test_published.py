"""R2Gen, R2GenCMN and XProNet say what their authors' code says with the same weights (recorded by
scripts/record_published.py)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from torch import Tensor

from negatoscope.decoding import DecodeSettings, write
from negatoscope.errors import BadInput
from negatoscope.models import reporter_class
from negatoscope.models.base import Reporter, log_probabilities
from negatoscope.models.published import from_published, settings_of
from negatoscope.training.xpronet import prototype_contrast
from negatoscope.vision.encoder import Encoder
from tests.published.drawn import BEAMS, FEATURES, LONGEST, TINY, WORDS, drawn_inputs, drawn_tensor

RECORDED = Path(__file__).resolve().parents[1] / "published"
TOLD = {
    "r2gen": {"memory_heads": TINY["rm_num_heads"]},
    "r2gencmn": {"top_k": TINY["topk"]},
    "xpronet": {"top_k": TINY["topk"], "labels": "reference"},
}
"""Settings that the tensors do not tell."""
pytestmark = [
    pytest.mark.parametrize("model", list(TOLD)),
    pytest.mark.filterwarnings("ignore:labels. reference"),
]


def recorded(model: str) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The authors' answers, and their weights drawn anew."""
    with safe_open(RECORDED / f"{model}.safetensors", framework="pt") as opened:
        answers = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - no mapping
        shapes = json.loads(opened.metadata()["shapes"])
    return answers, {
        name: drawn_tensor(model, name, tuple(shape)) for name, shape in shapes.items() if not name.endswith(".pe")
    }


@pytest.fixture
def ours(model: str) -> Reporter:
    tensors = from_published(model, recorded(model)[1])
    kind = reporter_class(model)
    said = {"heads": TINY["num_heads"], **settings_of(model, tensors), **TOLD[model]}
    reporter = kind(kind.Settings(**said), Encoder(None, width=FEATURES), WORDS)  # pyright: ignore[reportCallIssue]
    reporter.load_state_dict(tensors)
    return reporter.eval()


def test_the_same_logits(model: str, ours: Reporter) -> None:
    answers, _ = recorded(model)
    batch, _ = drawn_inputs()
    with torch.inference_mode():
        reading = ours(batch)
    difference = (reading.logits - answers["logits"])[reading.mask].abs().max().item()
    print(f"{model}: largest difference of a logit {difference:.1e}")
    assert difference < 1e-4
    assert answers["logits"].std() > 1, "a comparison of near-zeros would say nothing"


def test_other_weights_say_something_else(model: str, ours: Reporter) -> None:
    """So the comparison reads each tensor: all but those that a softmax takes away, or that are ours alone."""
    answers, _ = recorded(model)
    batch, _ = drawn_inputs()
    expected = log_probabilities(answers["logits"])
    for name, parameter in ours.named_parameters():
        if name.endswith("key.bias") or name.startswith("observe."):
            continue
        kept = parameter.detach().clone()
        with torch.inference_mode():
            parameter.mul_(1.5).add_(0.05)
            reading = ours(batch)
            parameter.copy_(kept)
        off = (log_probabilities(reading.logits) - expected)[reading.mask].abs().max()
        assert off > 1e-3, f"{name} takes no part in the comparison"


@pytest.mark.parametrize("beam", BEAMS)
def test_the_same_words(model: str, ours: Reporter, beam: int) -> None:
    answers, _ = recorded(model)
    batch, _ = drawn_inputs()
    written = write(ours, batch, DecodeSettings(beam=beam, max_words=LONGEST))
    theirs = [tuple(row[: row.index(0)] if 0 in row else row) for row in answers[f"words-{beam}"].tolist()]
    assert [best[0].words for best in written] == theirs
    assert len(set(theirs)) == len(theirs), "studies that read alike would say nothing"
    assert all(theirs), "empty reports would say nothing"
    assert beam == 1 or answers[f"words-{beam}"].tolist() != answers["words-1"].tolist(), "beams find something else"


def test_xpronets_contrast_is_the_same(model: str, ours: Reporter) -> None:
    answers = recorded(model)[0]
    assert ("image_contrast" in answers) == (model == "xpronet")
    if model == "xpronet":
        batch, labels = drawn_inputs()
        with torch.inference_mode():
            responses = ours(batch).extra["image_response"]
        assert prototype_contrast(responses, labels).item() == pytest.approx(answers["image_contrast"].item(), abs=1e-6)


def test_another_models_tensors_are_refused(model: str) -> None:
    other = "r2gencmn" if model == "r2gen" else "r2gen"
    _, tensors = recorded(other)
    if model == "r2gen":
        with pytest.raises(BadInput, match="memory-driven"):
            from_published(model, tensors)
    else:
        assert "conditioning.first.weight" not in from_published(model, tensors)


def test_a_backbone_that_is_no_resnet_is_refused(model: str) -> None:
    with pytest.raises(BadInput, match="ResNet"):
        from_published(model, {"visual_extractor.model.9.weight": torch.zeros(1)})

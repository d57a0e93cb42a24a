"""A recogniser's lessons: what is kept after each epoch, what stays as it was, what each loss is."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from negatoscope.errors import BadInput, WrongUse
from negatoscope.models.recogniser import Recogniser, RecogniserSettings
from negatoscope.training.recognise import Gallery, Lessons, LessonSettings, height, nearest_report, recognise, teach
from negatoscope.vision.backbones import build
from negatoscope.vision.encoder import EncoderSettings


def lessons_for(studies: int) -> tuple[Gallery, Lessons]:
    draw = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (2 * studies, 40, 40), generator=draw, dtype=torch.uint8)
    row = torch.arange(studies).repeat_interleave(2)
    gallery = Gallery(images, row, torch.arange(2 * studies) % 2 == 1, studies)
    findings = (torch.rand(studies, 14, generator=draw) < 0.3).float()
    return gallery, Lessons(findings, findings[:, :3], findings[:, :5], torch.randn(studies, 4, generator=draw))


def new_recogniser() -> Recogniser:
    torch.manual_seed(0)
    encoder = EncoderSettings(backbone="resnet10-narrow", image_size=32)
    return Recogniser(RecogniserSettings(encoder=encoder, narrow=8, tags=3, phrases=5, meaning=4))


class Killed(Exception):
    pass


def test_a_killed_lesson_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    gallery, lessons = lessons_for(12)
    said = LessonSettings(epochs=3, batch=5, mix=0.3)
    whole = teach(new_recogniser(), gallery, lessons, torch.arange(12), said)

    def killed(epoch: int, _mean: Recogniser, _losses: dict[str, float]) -> None:
        if epoch == 1:
            raise Killed

    path = tmp_path / "lesson.safetensors"
    with pytest.raises(Killed):
        teach(new_recogniser(), gallery, lessons, torch.arange(12), said, after_epoch=killed, lesson_file=path)
    again = teach(new_recogniser(), gallery, lessons, torch.arange(12), said, lesson_file=path)
    for name, tensor in whole.state_dict().items():
        assert tensor.equal(again.state_dict()[name]), name
    with pytest.raises(WrongUse, match="other settings"):
        teach(new_recogniser(), gallery, lessons, torch.arange(12), LessonSettings(epochs=9), lesson_file=path)
    path.write_bytes(b"nothing")
    with pytest.raises(BadInput, match="damaged"):
        teach(new_recogniser(), gallery, lessons, torch.arange(12), said, lesson_file=path)


def test_the_first_stages_keep_their_weights() -> None:
    gallery, lessons = lessons_for(6)
    before = {name: tensor.clone() for name, tensor in new_recogniser().encoder.state_dict().items()}
    said = LessonSettings(epochs=1, batch=3, keep_stages=2, memory=0.0, weight_decay=0.0)
    after = teach(new_recogniser(), gallery, lessons, torch.arange(6), said).encoder.state_dict()
    weights = [name for name in before if name.endswith((".weight", ".bias"))]
    kept = {name for name in weights if before[name].equal(after[name])}
    assert kept == {name for name in weights if name.startswith(("backbone.conv1", "backbone.bn1", "backbone.layer1.",
                                                                "backbone.layer2."))}  # fmt: skip


@pytest.mark.parametrize("name", ["resnet18", "densenet121", "mobilenetv2", "vgg19"])
def test_any_backbone_can_keep_its_first_stages(name: str) -> None:
    backbone = build(name).freeze_stages(2)
    maps = backbone.stages(torch.zeros(1, 3, 64, 64))
    assert not maps[1].requires_grad
    assert maps[2].requires_grad


def test_the_rate_rises_and_falls() -> None:
    rates = [height(step, 100) for step in range(100)]
    assert max(rates) == pytest.approx(1, abs=0.01)
    assert rates.index(max(rates)) <= 6
    assert rates[-1] < 0.01


def test_alike_reports_are_no_negatives() -> None:
    meant = torch.tensor([[1.0, 0.0], [0.99, 0.1], [0.0, 1.0]])
    said = torch.tensor([[1.0, 0.2], [0.3, 1.0], [0.1, 0.7]])
    unit_said = [row / row.norm() for row in said]
    unit_meant = [row / row.norm() for row in meant]
    total = 0.0
    for i in range(3):
        others = [j for j in range(3) if j == i or float(unit_meant[i] @ unit_meant[j]) <= 0.8]
        scores = torch.stack([unit_said[i] @ unit_meant[j] / 0.1 for j in others])
        total -= float(scores[others.index(i)] - scores.logsumexp(0)) / 3
    assert float(nearest_report(said, meant, 0.1, 0.8)) == pytest.approx(total, rel=1e-4)


def test_a_study_is_seen_alone_as_among_others() -> None:
    gallery, _ = lessons_for(6)
    recogniser = new_recogniser()
    together = recognise(recogniser, gallery, torch.arange(6), batch=4)
    alone = recognise(recogniser, gallery, torch.tensor([3]))
    torch.testing.assert_close(together.findings[3:4], alone.findings)
    torch.testing.assert_close(together.meaning[3:4], alone.meaning)

"""Random changes: the same for the same seed, epoch and study, and the text goes with the image."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from pydantic import ValidationError

from negatoscope.errors import BadInput
from negatoscope.studies.study import Picture, Study
from negatoscope.vision.augment import AugmentSettings, LookAtFiles, augment, chances
from negatoscope.vision.prepare import as_image, short_side_to

WILD = AugmentSettings(rotate=10, brightness=0.2, contrast=0.2)


def changed(*said: Any) -> Any:
    return augment(*said)


def film(height: int = 90, width: int = 70, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width), dtype=np.uint8)


class Folder:
    """The one method of a store that a look needs."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def picture_path(self, picture: Picture) -> Path:
        return self.path / picture.path


@pytest.fixture
def study(tmp_path: Path) -> tuple[Any, Study]:
    for name, seed in (("f.png", 1), ("l.png", 2)):
        Image.fromarray(film(seed=seed)).save(tmp_path / name)
    pictures = (Picture("f.png", "frontal"), Picture("l.png", "lateral"))
    return Folder(tmp_path), Study("s1", pictures, "Left effusion.")


def looked(study: tuple[Any, Study], epoch: int = 0, *, seed: int = 0, change: AugmentSettings | None = WILD) -> Any:
    store, one = study
    return LookAtFiles(64, change=change, seed=seed)(store, one, one.pictures, epoch)


def test_the_same_for_the_same_seed_epoch_and_study(study):
    first = looked(study, 3)
    looked(study, 4)
    assert torch.equal(looked(study, 3).images, first.images)
    assert not torch.equal(looked(study, 4).images, first.images)
    assert not torch.equal(looked(study, 3, seed=1).images, first.images)
    assert first.images.shape == (2, 1, 64, 64)
    assert 0 <= first.images.min() <= first.images.max() <= 1


def test_another_study_draws_for_itself():
    draws = [chances(1, 0, name).random(4).tolist() for name in ("a", "b", "a")]
    assert draws[0] == draws[2] != draws[1]


def test_without_change_the_picture_is_whole(study):
    seen = looked(study, change=None)
    assert torch.equal(seen.images, looked(study, 9, seed=5, change=None).images)
    assert seen.report == "Left effusion."


def test_a_missing_slot_is_black_and_none_at_all_an_error(study):
    store, one = study
    seen: Any = LookAtFiles(32, change=WILD)(store, one, (one.pictures[0], None), 0)
    assert seen.images.shape == (2, 1, 32, 32)
    assert seen.images[1].max() == 0 < seen.images[0].max()
    with pytest.raises(BadInput, match="s1"):
        LookAtFiles(32)(store, one, (None, None), 0)


def test_the_default_is_a_crop_of_the_resized_picture_and_nothing_else():
    grey = film(400, 300)
    whole = np.asarray(short_side_to(as_image(grey), 256), dtype=np.float32) / 255  # (341, 256)
    for number in range(5):
        (image,), _ = changed([grey], ["frontal"], "", AugmentSettings(), 224, chances(0, number, "a"))
        windows = np.lib.stride_tricks.sliding_window_view(whole, (224, 224))
        corner = image[0, :4, :4].numpy()
        places = [(y, x) for y, x in np.ndindex(windows.shape[:2]) if np.allclose(windows[y, x, :4, :4], corner)]
        assert any(np.allclose(windows[place], image[0].numpy()) for place in places)


def test_every_place_of_the_crop_can_come_up():
    grey = np.arange(10, dtype=np.uint8)[:, None].repeat(10, 1)
    settings = AugmentSettings(margin=1.25)
    tops = {
        int(changed([grey], ["frontal"], "", settings, 8, chances(0, e, "a"))[0][0][0, 0, 0] * 255) for e in range(60)
    }
    assert tops == {0, 1, 2}


def test_mirroring_is_off_unless_asked_for():
    assert AugmentSettings().mirror == 0
    grey = np.zeros((20, 20), np.uint8)
    grey[:, :10] = 255
    for epoch in range(20):
        (image,), text = changed([grey], ["frontal"], "left", AugmentSettings(margin=1), 20, chances(0, epoch, "a"))
        assert image[0, 0, 0] == 1
        assert text == "left"


def test_a_mirrored_patient_has_a_mirrored_report_and_the_same_lateral():
    grey = np.zeros((20, 20), np.uint8)
    grey[:, :10] = 255
    views: Sequence[Any] = ("frontal", "lateral")
    settings = AugmentSettings(margin=1, mirror=0.5)
    seen = [changed([grey, grey], views, "Left base", settings, 20, chances(0, epoch, "a")) for epoch in range(40)]
    for (frontal, lateral), text in seen:
        assert text == ("Left base" if frontal[0, 0, 0] == 1 else "Right base")
        assert lateral[0, 0, 0] == 1
    assert {text for _, text in seen} == {"Left base", "Right base"}


def test_one_more_change_leaves_the_crop_where_it_was():
    plain, brighter = AugmentSettings(), AugmentSettings(brightness=0.01)
    (a,), _ = changed([film()], ["frontal"], "", plain, 32, chances(0, 1, "a"))
    (b,), _ = changed([film()], ["frontal"], "", brighter, 32, chances(0, 1, "a"))
    assert (a - b).abs().max() <= 0.01 + 1e-6
    assert not torch.equal(a, b)


def test_changes_out_of_range_are_refused():
    for wrong in ({"rotate": 90}, {"mirror": 2}, {"margin": 0.5}, {"flip": True}):
        with pytest.raises(ValidationError):
            AugmentSettings(**wrong)

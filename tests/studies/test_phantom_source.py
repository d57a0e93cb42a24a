"""Phantoms as a source: pictures, masks, report, labels and patients all reach the store."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from PIL import Image

from negatoscope.errors import WrongUse
from negatoscope.studies.importing import import_studies
from negatoscope.studies.phantom import PhantomSettings, draw_study
from negatoscope.studies.phantom.planning import plan_study
from negatoscope.studies.phantom.source import study_of
from negatoscope.studies.sources import open_source
from negatoscope.studies.store import Store

GIVEN = {"studies": 60, "size": 96, "seed": 3, "normal_share": 0.4}
SETTINGS = PhantomSettings(**GIVEN)


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    into = tmp_path_factory.mktemp("phantom") / "store"
    import_studies(open_source("phantom", settings=GIVEN), into, workers=2)
    return Store.open(into)


def test_all_arrive_in_order(store):
    assert store.ids() == [f"phantom-{index:06d}" for index in range(60)]


def test_pictures_masks_and_words_are_those_drawn(store):
    for index in range(0, 60, 7):
        drawn, kept = draw_study(3, index, SETTINGS), store.study(f"phantom-{index:06d}")
        assert kept.report == drawn.report
        assert dict(kept.sections) == drawn.sections
        assert dict(kept.labels) == drawn.labels
        assert kept.tags == drawn.tags
        assert kept.patient == drawn.patient
        assert [picture.view for picture in kept.pictures] == list(drawn.views)
        for picture, grey in zip(kept.pictures, drawn.views.values(), strict=True):
            assert (picture.width, picture.height, picture.bits) == (96, 96, 8)
            assert np.array_equal(np.asarray(Image.open(store.picture_path(picture))), grey)
        views = list(drawn.views)
        visible = {f"{f}@{views.index(v)}" for f, by_view in drawn.masks.items() for v, m in by_view.items() if m.any()}
        assert set(kept.masks) == visible
        for key, path in kept.masks.items():
            finding, number = key.rsplit("@", 1)
            with Image.open(store.path / path) as mask:
                assert mask.mode == "1"
                assert np.array_equal(np.asarray(mask), drawn.masks[finding][views[int(number)]])


def test_no_patient_stands_in_two_splits():
    studies = [study_of(plan_study(1, index, PhantomSettings()), PhantomSettings()) for index in range(2000)]
    splits: dict[str, set[str]] = {}
    for study in studies:
        splits.setdefault(study.patient, set()).add(study.split)
    assert all(len(split) == 1 for split in splits.values())
    shares = Counter(study.split for study in studies)
    assert 0.76 < shares["train"] / 2000 < 0.84
    assert 0.07 < shares["val"] / 2000 < 0.13
    assert 0.07 < shares["test"] / 2000 < 0.13


def test_a_misspelt_setting_is_named():
    with pytest.raises(WrongUse, match="normal_share"):
        open_source("phantom", settings={"normal_shares": 0.5})

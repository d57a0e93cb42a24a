"""A drafter that learned from phantoms for a few seconds: every part is there, none is any good."""

from __future__ import annotations

from pathlib import Path

import pytest

from negatoscope.drafting.drafter import Drafter
from negatoscope.drafting.kept import load_drafter
from negatoscope.drafting.training import DrafterSettings, drafter_settings, train_drafter
from negatoscope.studies.importing import import_studies
from negatoscope.studies.sources import open_source
from negatoscope.studies.store import Store

SMALL = {
    "encoder.backbone": "resnet10-narrow",
    "encoder.image_size": 64,
    "margin": 8,
    "subjects.meaning": 12,
    "subjects.phrases_least": 5,
    "lessons.epochs": 2,
    "lessons.batch": 8,
    "lessons.keep_stages": 0,
    "dictation.epochs": 3,
    "doubt_images": 40,
}


def small_settings(**changes: object) -> DrafterSettings:
    return drafter_settings({**SMALL, **changes})


@pytest.fixture(scope="session")
def phantoms(tmp_path_factory: pytest.TempPathFactory) -> Store:
    path = tmp_path_factory.mktemp("phantoms") / "store"
    import_studies(open_source("phantom", None, {"studies": 120, "size": 96, "normal_share": 0.5}), path)
    return Store.open(path)


@pytest.fixture(scope="session")
def trained(phantoms: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("drafter")
    return train_drafter(phantoms, into, small_settings(), say=lambda _: None).drafter


@pytest.fixture(scope="session")
def drafter(trained: Path) -> Drafter:
    return load_drafter(trained)


def images_of(store: Store, study: str) -> list[Path]:
    return [store.picture_path(one) for one in store.study(study).pictures]

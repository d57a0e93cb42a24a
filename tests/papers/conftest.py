"""Grounds without a store, for plans alone; and a small store of phantoms with features of an encoder that never
learned, for runs of seconds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from negatoscope.papers.grounds import Data, Grounds
from negatoscope.papers.making import PHANTOM_BACKBONE, phantom_store
from negatoscope.studies.store import Store
from negatoscope.vision.encoder import EncoderSettings
from negatoscope.vision.extract import extract_features

FEATURES = {"backbone": "resnet10-narrow", "weights": "0" * 64, "width": 128, "patches": 16, "image_size": 128,
            "fit": "squash", "precision": "float32", "pooled": False}  # fmt: skip


@pytest.fixture
def grounds_of(tmp_path: Path) -> Callable[..., Grounds]:
    """`grounds_of("phantom", tags=0)`: enough to plan runs by, nothing to train them on."""

    def make(data: Data, **about: Any) -> Grounds:
        told: dict[str, Any] = {"studies": {"train": 700, "val": 90}, "tags": 40, "features": FEATURES}
        store = tmp_path / "store"
        return Grounds(data, tmp_path / "into", store, tmp_path / "features", told | about)

    return make


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of 60 phantoms; its features lie where `reproduce` looks for them."""
    store = tmp_path_factory.mktemp("reproduce") / "phantoms"
    phantom_store(store, "quick", lambda _line: None, changes={"studies": 60, "size": 64, "normal_share": 0.4})
    encoder = EncoderSettings(backbone=PHANTOM_BACKBONE, image_size=64, fit="squash", precision="float32")
    extract_features(Store.open(store), encoder, store.with_name(f"{store.name}.{PHANTOM_BACKBONE}"))
    return store

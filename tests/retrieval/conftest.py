"""One small CVSE for all tests of this room."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from negatoscope.retrieval.recipe import CVSERecipe
from negatoscope.retrieval.retriever import Retriever
from negatoscope.retrieval.training import TrainedCVSE, train_cvse
from negatoscope.settings import read_settings
from negatoscope.studies.store import Store
from negatoscope.vision.features import FeatureCache
from tests.retrieval.small import drawn_store


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, FeatureCache]:
    return drawn_store(tmp_path_factory.mktemp("drawn"))


@pytest.fixture(scope="session")
def recipe_for(drawn: tuple[Store, FeatureCache]) -> Callable[..., CVSERecipe]:
    def make(**said: Any) -> CVSERecipe:
        value: dict[str, Any] = {
            "store": str(drawn[0].path),
            "features": str(drawn[1].path),
            "groups": {"groups": 2},
            "model": {"width": 16},
            "train": {"epochs": 15, "batch": 16, "lr": 1e-2, "held_out": 0.2},
            "top": 2,
            "precision": "float32",
        }
        for key, inner in said.items():
            value[key] = {**value[key], **inner} if isinstance(inner, dict) else inner
        return read_settings(CVSERecipe, value)

    return make


@pytest.fixture(scope="session")
def run(recipe_for: Callable[..., CVSERecipe], tmp_path_factory: pytest.TempPathFactory) -> TrainedCVSE:
    return train_cvse(
        recipe_for(), tmp_path_factory.mktemp("run"), labeller=lambda said: [["Fracture"] * ("rib" in s) for s in said]
    )


@pytest.fixture(scope="session")
def retriever(run: TrainedCVSE) -> Retriever:
    return Retriever.load(run.folder)

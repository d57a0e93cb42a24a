"""Tiny runs with contrastive losses, from a feature cache: what several tests train."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from negatoscope.models import reporter_class
from negatoscope.studies.store import Store
from negatoscope.training.recipe import EncoderSettings, Recipe, recipe_of
from negatoscope.vision.backbones import build
from negatoscope.vision.extract import extract_features

HOSTS = ("r2gen", "r2gencmn", "xpronet")
LOSSES: dict[str, list[dict[str, Any]]] = {
    "none": [],
    "wcl": [{"name": "wcl", "weight": 0.2, "clusters": 2}],
    "mochi": [{"name": "hard-negatives", "way": "mochi"}],
    "ithn": [{"name": "hard-negatives", "way": "ithn"}],
}
OWN: dict[str, list[dict[str, Any]]] = {"xpronet": [{"name": "xpronet-contrast"}, {"name": "xpronet-observations"}]}
"""Losses that a host has anyway."""

Make = Callable[..., Recipe]


@pytest.fixture(scope="session")
def cached(small_store: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """`data` and `encoder` of a recipe that learns from cached features of the small store."""
    folder = tmp_path_factory.mktemp("cached")
    torch.manual_seed(3)
    save_file(build("resnet10-narrow").state_dict(), folder / "backbone.safetensors")
    encoder = {
        "backbone": "resnet10-narrow",
        "weights": str(folder / "backbone.safetensors"),
        "image_size": 32,
        "precision": "float32",
    }
    store = Store.open(small_store)
    extract_features(store, EncoderSettings(**encoder), folder / "features")  # pyright: ignore[reportArgumentType]
    words = {"cutoff": 1, "max_words": 20}
    data = {"store": str(small_store), "features": str(folder / "features"), "vocabulary": words}
    return {"data": data, "encoder": encoder}


@pytest.fixture
def contrast_recipe(cached: dict[str, Any]) -> Make:
    """`contrast_recipe("r2gen", "ithn", epochs=3)`; or `losses=` in the words of a recipe."""
    return partial(_recipe, cached)


def _recipe(
    cached: dict[str, Any], host: str, loss: str = "none", losses: list[dict[str, Any]] | None = None, **train: Any
) -> Recipe:
    more = LOSSES[loss] if losses is None else losses
    cross_entropy = {"name": "cross-entropy", "weight": 0.8 if loss == "wcl" else 1.0}
    kind = reporter_class(host)
    return recipe_of(
        {
            **cached,
            "model": {"name": host, **kind.tiny},
            "losses": [cross_entropy, *OWN.get(host, []), *more],
            "train": {"epochs": 2, "batch": 6, "lr": 3e-3, "precision": "float32", "seed": 3, **train},
            "decode": {"beam": 1, "max_words": 20},
        }
    )

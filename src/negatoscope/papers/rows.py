"""From a row of a table to the recipe that is trained for it here, and what it is called.

Every row of a data set is trained on the same cached features (`grounds.py`), whatever encoder its paper fine-tuned:
rows are there to be compared with each other.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from negatoscope.errors import WrongUse
from negatoscope.models import reporter_class
from negatoscope.papers.grounds import WORDS, Grounds
from negatoscope.papers.paper import Form, Row, merged, with_losses
from negatoscope.recipes import recipe_path
from negatoscope.settings import read_yaml
from negatoscope.training.recipe import Recipe, recipe_of
from negatoscope.vision.encoder import CACHED

Tier = Literal["full", "quick"]
TIERS: tuple[Tier, ...] = ("full", "quick")

# Sizes at which a row trains in seconds on a few hundred studies; a model takes those that it has.
_QUICK_SIZES: dict[str, Any] = {
    **{"width": 96, "inner": 96, "attention_width": 96, "layers": 2, "heads": 4, "encoder_layers": 1, "blocks": 2},
    **{"memory_heads": 4, "memories": 128, "top_k": 8, "per_observation": 6, "text_width": 64, "word_layers": 1},
    **{"dropout": 0.1, "patch_dropout": 0.1, "gpt2": None, "words_from": "chance", "positions": 128},
}
_QUICK_TRAINING: dict[str, Any] = {
    **{"epochs": 12, "batch": 32, "lr": 2e-3, "optimiser": "adam", "weight_decay": 0.0, "clip": 1.0, "patience": 0},
    **{"validate_every": 4, "schedule": {"kind": "constant"}},
}
# What the same run may differ in on another machine: none of it decides how a run turns out.
_NOT_THE_RUN = {
    "data": ("store", "features", "workers"),
    "encoder": ("weights",),
    "train": ("seed", "accelerator", "save_minutes", "devices"),
}


@dataclass(frozen=True)
class Conditions:
    """How rows are trained here, one and all."""

    grounds: Grounds
    tier: Tier = "full"
    changes: Mapping[str, Any] = field(default_factory=dict)
    """'train.epochs' -> 10, as --set says them; `model.` settings go to those models that have them."""
    device: str = "cpu"


@dataclass(frozen=True)
class RowRun:
    """What is to be trained for one row and seed."""

    name: str
    """Of the run's folder: the same for the same recipe, in whatever table it stands."""
    seed: int
    recipe: Mapping[str, Any]
    kind: Literal["reporter", "cvse"] = "reporter"
    own_epochs: int = 0
    """Of the shipped recipe, where the run has other."""


def run_of(row: Row, form: Form, conditions: Conditions, seed: int) -> RowRun:
    """Raises WrongUse for a setting that no part of the recipe knows."""
    if row.retrieval is not None:
        from negatoscope.papers.retrieved import cvse_run_of

        return cvse_run_of(row, form, conditions, seed)
    assert row.recipe is not None
    grounds = conditions.grounds
    name, said = _base(row.recipe, grounds)
    said = merged(said, row.changes)
    said["losses"] = with_losses(said.get("losses") or [{"name": "cross-entropy"}], row.losses)
    own_epochs = int(said["train"]["epochs"])
    said["data"] |= {"store": str(grounds.store_of(form)), "features": str(grounds.features), "workers": 0}
    said["data"]["vocabulary"] = dict(WORDS[grounds.data])
    said["decode"] = {**said.get("decode", {}), "max_words": WORDS[grounds.data]["max_words"]}
    key = grounds.about["features"]
    said["encoder"] = {
        "backbone": f"{CACHED}{grounds.width}",
        "image_size": key["image_size"],
        "fit": key["fit"],
        "frozen": True,
    }
    if conditions.tier == "quick":
        said["train"] = merged(said["train"], _QUICK_TRAINING)
        said["model"] |= _fitting(said["model"], _QUICK_SIZES)
    _change(said, conditions.changes)
    accelerator = "gpu" if conditions.device.startswith("cuda") else "cpu"
    said["train"] |= {"seed": seed, "accelerator": accelerator}
    recipe = recipe_of(said, where=f"row {row.name}")
    return RowRun(f"{_slug(name, recipe)}-{digest(recipe)[:8]}", seed, recipe.as_dict(), own_epochs=own_epochs)


def _base(name: str, grounds: Grounds) -> tuple[str, dict[str, Any]]:
    """The shipped recipe; without MeSH terms co-attention predicts CheXpert's labels instead."""
    if name == "co-attention" and not grounds.about["tags"]:
        name = "co-attention-labels"
    said = read_yaml(recipe_path(f"{name}.iu-xray"))
    if any(loss.get("name") == "tags" for loss in said.get("losses", ())):
        tags = said["data"].get("tags", {})
        if tags.get("source") == "mesh":
            said["model"]["tags"] = min(grounds.about["tags"], tags.get("most") or grounds.about["tags"])
    return name, said


def _fitting(model: Mapping[str, Any], sizes: Mapping[str, Any]) -> dict[str, Any]:
    known = reporter_class(str(model["name"])).Settings.model_fields
    return {key: value for key, value in sizes.items() if key in known}


def _change(said: dict[str, Any], changes: Mapping[str, Any]) -> None:
    known = reporter_class(str(said["model"]["name"])).Settings.model_fields
    for key, value in changes.items():
        *above, last = key.split(".")
        if above[:1] == ["cvse"] or (above == ["model"] and last not in known):
            continue
        if above == ["losses"]:
            raise WrongUse(f"{key} cannot be set for all rows", remedy="losses are what rows differ in")
        inner = said
        for part in above:
            inner = inner.setdefault(part, {})
        inner[last] = value


def unknown_to_all(changes: Mapping[str, Any], rows: list[Row]) -> list[str]:
    """`model.` settings that no row's model has: a slip that would go unseen otherwise."""
    fields: set[str] = set()
    for row in rows:
        if row.recipe is not None:
            model = read_yaml(recipe_path(f"{row.recipe}.iu-xray"))["model"]
            fields |= set(reporter_class(str(model["name"])).Settings.model_fields)
    asked = [key for key in changes if key.startswith("model.")]
    return [key for key in asked if key.removeprefix("model.") not in fields]


def digest(recipe: Recipe | Mapping[str, Any]) -> str:
    """Of all that decides how runs of a recipe turn out, but for the seed."""
    said = json.loads(json.dumps(recipe.as_dict() if isinstance(recipe, Recipe) else dict(recipe), default=str))
    for part, keys in _NOT_THE_RUN.items():
        said[part] = {key: value for key, value in said.get(part, {}).items() if key not in keys}
    # A store of whole reports and its sibling of abnormal sentences are two data sets.
    said["abnormal"] = str(_store_of(recipe)).endswith(".abnormal")
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _store_of(recipe: Recipe | Mapping[str, Any]) -> Any:
    return recipe.data.store if isinstance(recipe, Recipe) else recipe.get("data", {}).get("store", "")


def _slug(name: str, recipe: Recipe) -> str:
    parts = [name]
    if recipe.contrast.attention is not None:
        parts.append("ca")
    for loss in recipe.losses:
        if loss["name"] in ("wcl", "hard-negatives"):
            parts.append(str(loss.get("way", "ithn")) if loss["name"] == "hard-negatives" else "wcl")
    if str(recipe.data.store).endswith(".abnormal"):
        parts.append("abnormal")
    return re.sub(r"[^a-z0-9+-]+", "-", "+".join(parts))

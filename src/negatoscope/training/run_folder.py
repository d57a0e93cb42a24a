"""Whose folder is it? A run's folder holds one recipe for good."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from negatoscope.errors import WrongUse
from negatoscope.settings import read_yaml
from negatoscope.training.recipe import Recipe, recipe_of

_FREE = ("epochs", "patience", "save_minutes")
"""What may change when a run is gone on with: none of it alters a step that was done."""


def must_be_of(recipe: Recipe, folder: Path) -> None:
    """Raises WrongUse, naming the first key that differs, where the folder holds a run of another recipe.

    A run that ended before it saved anything, for a misspelt store or no disk space, ties the folder to nothing.
    """
    path = folder / "recipe.yaml"
    if path.exists() and any(folder.glob("*.safetensors")):
        difference = _first_difference(_comparable(recipe_of(read_yaml(path), where=path)), _comparable(recipe))
        if difference:
            raise WrongUse(f"holds a run of another recipe: {difference}", where=folder, remedy="name another folder")


def _comparable(recipe: Recipe) -> dict[str, Any]:
    said = recipe.as_dict()
    said["train"] = {key: value for key, value in said["train"].items() if key not in _FREE}
    said["data"] = {key: value for key, value in said["data"].items() if key != "workers"}
    return said


def _first_difference(there: Any, wanted: Any, key: str = "") -> str:
    if isinstance(there, dict) and isinstance(wanted, dict):
        for name in {**there, **wanted}:
            found = _first_difference(there.get(name), wanted.get(name), f"{key}.{name}".strip("."))
            if found:
                return found
        return ""
    return "" if there == wanted else f"{key} is {there!r} there, {wanted!r} here"

"""Recipes that ship: one YAML each, `<model>.<data>.yaml`, named without the ending: `negatoscope train nic.phantom`.

`<model>+ca.<data>` is the same recipe with Contrastive Attention as its paper sets it, whatever the model: one line on
top, so no file of its own.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from negatoscope.errors import BadInput, nearest_names

CONTRAST = "+ca"


def recipe_names() -> list[str]:
    return sorted(
        path.name.removesuffix(".yaml")
        for path in files("negatoscope.recipes").iterdir()
        if path.name.endswith(".yaml")
    )


def recipe_path(name: str) -> Path:
    """A file of that path, or a shipped recipe of that name; raises BadInput with the nearest names."""
    if Path(name).is_file():
        return Path(name)
    shipped = recipe_names()
    if name in shipped:
        return Path(str(files("negatoscope.recipes") / f"{name}.yaml"))
    raise BadInput("neither a file nor a recipe that ships", where=name, remedy=nearest_names(name, shipped))


def recipe_named(name: str) -> tuple[Path, dict[str, Any]]:
    """The file, and the changes to it that its name asks for: those of `load_recipe`."""
    model, contrast, data = name.partition(CONTRAST)
    if contrast and data.startswith(".") and not Path(name).is_file() and name not in recipe_names():
        return recipe_path(model + data), {"contrast.attention": {}}
    return recipe_path(name), {}

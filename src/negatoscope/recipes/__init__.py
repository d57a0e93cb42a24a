"""Recipes that ship: one YAML each, `<model>.<data>.yaml`, named without the ending: `negatoscope train
nic.phantom`."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from negatoscope.errors import BadInput, nearest_names


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

"""Recipes that ship: one YAML each, `<model>.<data>.yaml`, named without the ending: `negatoscope train nic.phantom`.

`<model>+ca.<data>` is the same recipe with Contrastive Attention as its paper sets it, whatever the model; `+wcl`,
`+mochi` and `+ithn` add those losses, as theirs do, `+ithn-released` as ITHN's code does. That is one line on top, so
no file of its own.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from negatoscope.errors import BadInput, nearest_names

LAYERS: dict[str, dict[str, Any]] = {
    "ca": {"contrast.attention": {}},
    "wcl": {"losses+": [{"name": "cross-entropy", "weight": 0.8}, {"name": "wcl", "weight": 0.2}]},
    "mochi": {"losses+": [{"name": "hard-negatives", "way": "mochi"}]},
    "ithn": {"losses+": [{"name": "hard-negatives", "way": "ithn"}]},
    "ithn-released": {
        "losses+": [
            {"name": "cross-entropy", "weight": 0.7},
            {
                "name": "hard-negatives",
                "way": "ithn",
                **dict.fromkeys(("projection", "third", "apart", "temperatures", "schedule"), "released"),
            },
        ]
    },
}
"""What a name may add to a recipe, as changes of `load_recipe`."""
_FOR_DATA: dict[str, dict[str, dict[str, Any]]] = {
    "coco": {"hard-negatives": {"alpha": 0.1}},
    "mimic-abn": {"wcl": {"clusters": 13, "tau": 1.0}},
    "mimic-cxr": {"wcl": {"clusters": 14, "tau": 0.1}},
}
"""What a paper sets by the corpus, where it is not the default."""


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
    model, _, data = name.partition(".")
    base, *layers = model.split("+")
    if not layers or not data or Path(name).is_file() or name in recipe_names() or not LAYERS.keys() >= set(layers):
        return recipe_path(name), {}
    changes: dict[str, Any] = {}
    for layer in layers:
        for key, value in LAYERS[layer].items():
            if key == "losses+":
                value = [*changes.get(key, []), *(_for_data(loss, data) for loss in value)]
            changes[key] = value
    return recipe_path(f"{base}.{data}"), changes


def _for_data(loss: dict[str, Any], data: str) -> dict[str, Any]:
    return {**loss, **_FOR_DATA.get(data, {}).get(loss["name"], {})}

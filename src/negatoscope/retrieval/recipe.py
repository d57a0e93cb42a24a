"""All that decides how a CVSE turns out, in one typed YAML."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from negatoscope.errors import BadInput, nearest_names
from negatoscope.models.cvse import CVSESettings
from negatoscope.settings import Settings, put, read_settings, read_yaml
from negatoscope.studies.views import Arranging
from negatoscope.text.group import GroupSettings
from negatoscope.vision.precision import fast_precision


class CVSETraining(Settings):
    epochs: int = Field(default=40, ge=1)
    batch: int = Field(default=64, ge=2)
    """Studies a step; unmatched studies for a sentence are drawn from the same step."""
    negatives: int = Field(default=8, ge=1)
    """Unmatched sentences for a study, and unmatched studies for a sentence, of each matched pair."""
    margin: float = Field(default=0.2, gt=0)
    lr: float = Field(default=1e-3, gt=0)
    select: Literal["val", "held-out"] = "val"
    """On which studies the best epoch is chosen, by recall of their groups: the validation split, as in the paper, or
    training studies that were held out, which leaves the validation split untouched."""
    held_out: float = Field(default=0.1, ge=0, lt=0.9)
    """Share of the training studies that are not learned from: the threshold is calibrated on them."""
    seed: int = 1


class CVSERecipe(Settings):
    store: Path
    """A folder that `negatoscope data import` made. Only abnormal sentences of its reports are learned from."""
    features: Path
    """A cache that `negatoscope features` made of that store."""
    arrange: Arranging = "by-view"
    embedder: str = "tfidf"
    """Of sentences: tfidf, or a sentence encoder's folder or hub id."""
    groups: GroupSettings = GroupSettings()
    model: CVSESettings = CVSESettings()
    train: CVSETraining = CVSETraining()
    top: int = Field(default=3, ge=1)
    """Groups that are told for a study; recall is measured at as many."""
    precision: Literal["auto", "float32", "bf16"] = "auto"
    """Of the product with region features, by far the largest; auto: bf16 where the processor has instructions."""

    @property
    def bf16(self) -> bool:
        return (fast_precision("cpu") if self.precision == "auto" else self.precision) == "bf16"


def cvse_recipe_names() -> list[str]:
    names = (path.name for path in (files("negatoscope.recipes") / "cvse").iterdir())
    return sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml"))


def cvse_recipe(name: str, changes: dict[str, Any] | None = None) -> CVSERecipe:
    """A file, or a recipe that ships; `changes` such as {'train.lr': 1e-4} go on top."""
    if Path(name).is_file():
        path = Path(name)
    elif name in cvse_recipe_names():
        path = Path(str(files("negatoscope.recipes") / "cvse" / f"{name}.yaml"))
    else:
        raise BadInput(
            "neither a file nor a recipe that ships", where=name, remedy=nearest_names(name, cvse_recipe_names())
        )
    value = read_yaml(path)
    for key, new in (changes or {}).items():
        put(value, key, new)
    return read_settings(CVSERecipe, value, where=path)

"""A recipe: everything that decides how a run turns out, in one typed YAML. One recipe is one row of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field

from negatoscope.contrast.attention import AttentionSettings
from negatoscope.decoding.settings import DecodeSettings
from negatoscope.errors import WrongUse
from negatoscope.models import reporter_class
from negatoscope.settings import Settings, put, read_settings, read_yaml
from negatoscope.studies.views import Arranging
from negatoscope.text.report_forms import ReportForm
from negatoscope.text.tags import TagSettings
from negatoscope.text.words import Cleaning
from negatoscope.vision.augment import AugmentSettings
from negatoscope.vision.encoder import EncoderSettings
from negatoscope.whole_files import write_text


class VocabularySettings(Settings):
    cleaning: Cleaning = "iu-xray"
    cutoff: int = Field(default=3, ge=1)
    """Words seen less often in the training reports become <unk>: 3 for IU X-Ray, 10 for MIMIC-CXR."""
    max_words: int = Field(default=60, ge=2)
    """Longest report, the start mark counted in: 60 for IU X-Ray, 100 for MIMIC-CXR."""


class DataSettings(Settings):
    store: Path
    """A folder that `negatoscope data import` made."""
    features: Path | None = None
    """A cache that `negatoscope features` made: the encoder's backbone is then not run while training."""
    views: int = Field(default=2, ge=1, le=2)
    """View slots a study: frontal, lateral."""
    arrange: Arranging = "by-view"
    colour: bool = False
    """Photographs, in three channels; radiographs have one."""
    augment: AugmentSettings = AugmentSettings()
    vocabulary: VocabularySettings = VocabularySettings()
    reports: ReportForm = ReportForm()
    tags: TagSettings = TagSettings()
    """What the loss `tags` learns from."""
    workers: int = Field(default=0, ge=0)
    """Processes that read images beside the one that trains."""


class ScheduleSettings(Settings):
    kind: Literal["constant", "step", "plateau"] = "step"
    every: int = Field(default=50, ge=1)
    """step: epochs between two drops. plateau: epochs without progress before a drop."""
    factor: float = Field(default=0.1, gt=0, lt=1)


class TrainSettings(Settings):
    epochs: int = Field(default=30, ge=1)
    batch: int = Field(default=16, ge=1)
    """Studies a step, over all devices and accumulated parts together."""
    accumulate: int = Field(default=1, ge=1)
    """Parts in which a step's batch goes through the model, where memory is short."""
    optimiser: Literal["adam", "adamw", "adam-amsgrad", "sgd"] = "adam-amsgrad"
    lr: float = Field(default=1e-4, gt=0)
    encoder_lr: float = Field(default=5e-5, ge=0)
    """Of the image encoder's backbone; 0 freezes it."""
    weight_decay: float = Field(default=5e-5, ge=0)
    clip: float = Field(default=0.0, ge=0)
    """Largest norm of the whole gradient; 0 does not clip."""
    schedule: ScheduleSettings = ScheduleSettings()
    select: str = "BLEU-4"
    """The validation score by which the best epoch is kept, rates drop and a run stops early: 'loss', 'distinct', or a
    figure of `negatoscope evaluate`, of language, diversity, lengths or clinical efficacy ('CE F1 (r2gen)')."""
    patience: int = Field(default=0, ge=0)
    """Stop after so many validations without a new best; 0 never stops early."""
    validate_every: int = Field(default=1, ge=1)
    """Epochs between two validations; the last epoch is always validated."""
    validate_studies: int | None = None
    """Only the first so many validation studies are written at each validation."""
    seed: int = 1
    precision: Literal["auto", "float32", "bf16"] = "auto"
    """auto: bf16 autocast where images go through a backbone and the processor or GPU has bf16 instructions, else
    float32."""
    accelerator: Literal["auto", "cpu", "gpu"] = "auto"
    devices: int = Field(default=1, ge=1)
    strategy: Literal["auto", "ddp", "fsdp"] = "auto"
    save_minutes: float = Field(default=10.0, gt=0)
    """A run saves at the end of each epoch, and in between when so much time has passed."""


class ContrastSettings(Settings):
    attention: AttentionSettings | None = None
    """Contrastive Attention between encoder and decoder, whatever the model; without it, none."""


class Recipe(Settings):
    data: DataSettings
    encoder: EncoderSettings = EncoderSettings()
    model: dict[str, Any]
    """`name` as `negatoscope models` lists it, and that model's own settings."""
    contrast: ContrastSettings = ContrastSettings()
    losses: tuple[dict[str, Any], ...] = ({"name": "cross-entropy"},)
    """Each with `name`, a `weight` (1), and that loss's own settings."""
    train: TrainSettings = TrainSettings()
    decode: DecodeSettings = DecodeSettings()

    @property
    def model_name(self) -> str:
        return str(self.model.get("name", ""))

    def model_settings(self, *, where: object = None) -> Settings:
        kind = reporter_class(self.model_name, where=where)
        rest = {key: value for key, value in self.model.items() if key != "name"}
        return read_settings(kind.Settings, rest, where=where)

    def as_dict(self) -> dict[str, Any]:
        """With each default spelt out, as plain YAML and JSON values."""
        said = self.model_dump(mode="json")
        said["model"] = {"name": self.model_name, **self.model_settings().model_dump(mode="json")}
        return said

    def save(self, path: Path | str) -> None:
        write_text(path, yaml.safe_dump(self.as_dict(), sort_keys=False, allow_unicode=True))


def recipe_of(value: Any, *, where: object = None) -> Recipe:
    """Checked through to the settings of its model and losses; raises WrongUse naming the key and the file."""
    from negatoscope.training.objectives import build_objective

    recipe = read_settings(Recipe, value, where=where)
    recipe.model_settings(where=_within(where, "model"))
    for number, loss in enumerate(recipe.losses):
        rest = {key: value for key, value in loss.items() if key not in ("name", "weight")}
        build_objective(str(loss.get("name", "")), rest, where=_within(where, f"losses.{number}"))
    return recipe


def load_recipe(path: Path | str, changes: dict[str, Any] | None = None) -> Recipe:
    """From YAML; `changes` such as {'train.lr': 1e-3} go on top. 'losses+' adds losses; one of the same name takes the
    place of the recipe's own."""
    value = read_yaml(path)
    for key, new in (changes or {}).items():
        if key == "losses+":
            value["losses"] = _more_losses(value.get("losses", [{"name": "cross-entropy"}]), new)
        else:
            put(value, key, new)
    return recipe_of(value, where=path)


def _more_losses(losses: list[dict[str, Any]], more: Any) -> list[dict[str, Any]]:
    more = [more] if isinstance(more, dict) else more
    if not isinstance(more, list) or not all(isinstance(loss, dict) for loss in more):
        remedy = "for example [{name: wcl, weight: 0.2}]"
        raise WrongUse(f"{more!r} is no list of losses", where="losses+", remedy=remedy)
    return list({str(loss.get("name")): loss for loss in (*losses, *more)}.values())


def _within(where: object, part: str) -> str:
    return part if where is None else f"{where}: {part}"

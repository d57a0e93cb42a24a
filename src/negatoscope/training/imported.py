"""A run folder made of the authors' checkpoint: R2Gen, R2GenCMN or XProNet as published, ready for `negatoscope
generate`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from negatoscope.errors import BadInput, WrongUse
from negatoscope.models.published import from_published, settings_of
from negatoscope.text.words import Cleaning, Vocabulary
from negatoscope.training.build import build_reporter
from negatoscope.training.checkpoint import Checkpoint, fill, save_checkpoint
from negatoscope.training.recipe import Recipe, recipe_of
from negatoscope.vision.weights import read_tensors
from negatoscope.whole_files import make_folder, write_json

SAFE_TORCH = (2, 10)
"""Earlier versions' `weights_only` has known ways out (CVE-2025-32434 and its kin)."""

NOTES = {
    "xpronet": "the published XProNet is told the reference report's labels; the head that predicts them here is "
    'untrained and says "No Finding" of every study: train it, or import with --set labels=reference to compare'
}


@dataclass(frozen=True)
class Imported:
    folder: Path
    model: str
    words: int
    parameters: int
    note: str = ""
    """What to know before its reports are believed."""


def import_checkpoint(
    source: Path | str,
    folder: Path | str,
    *,
    model: str,
    vocabulary: Path | str,
    store: Path | str = "data/iu-xray",
    cleaning: Cleaning = "iu-xray",
    changes: Mapping[str, Any] | None = None,
) -> Imported:
    """Reads the authors' `.pth` (or its tensors as safetensors) and writes `best.safetensors` and `vocabulary.json`
    into `folder`.

    `vocabulary` is the annotation.json that the checkpoint was trained on, or a vocabulary.json of ours. `changes` are
    settings of the model that its tensors do not tell: {'heads': 8, 'top_k': 32}. Raises WrongUse for a torch that
    reads checkpoints unsafely or a folder that holds a run, BadInput for anything but tensors and plain settings, and
    for tensors that do not fit.
    """
    source, folder = Path(source), Path(folder)
    _check_torch(source, torch.__version__)
    if (folder / "best.safetensors").exists():
        raise WrongUse("holds a run already", where=folder, remedy="name another folder")
    tensors, _ = read_tensors(source)
    own = from_published(model, tensors)
    words = own["out.weight"].shape[0] if "out.weight" in own else 0
    spoken = read_vocabulary(vocabulary, cleaning)
    if spoken.logits != words:
        raise BadInput(
            f"{len(spoken)} words, and the checkpoint knows {words - 1}",
            where=vocabulary,
            remedy="take the annotation.json it was trained on, whole, and its --cleaning",
        )
    recipe = _recipe(model, own, store, spoken, changes or {})
    reporter = build_reporter(recipe, spoken, pretrained=False)
    if not any(name.startswith("encoder.") for name in own):
        raise BadInput(
            "no image encoder in it (visual_extractor.*)",
            where=source,
            remedy="a report generator's checkpoint has one",
        )
    fill(reporter, _counted(own, reporter.state_dict()), where=source)
    about = {"imported": source.name, "epoch": None, "scores": {}}
    make_folder(folder)
    save_checkpoint(folder / "best.safetensors", Checkpoint(recipe, spoken, reporter.state_dict(), about))
    recipe.save(folder / "recipe.yaml")
    spoken.save(folder / "vocabulary.json")
    write_json(folder / "scores.json", about)
    return Imported(folder, model, len(spoken), sum(p.numel() for p in reporter.parameters()), NOTES.get(model, ""))


def _check_torch(source: Path, version: str) -> None:
    """Only a pickle needs it: safetensors are read by any version."""
    found = re.match(r"(\d+)\.(\d+)", version)
    if source.suffix != ".safetensors" and (found is None or (int(found[1]), int(found[2])) < SAFE_TORCH):
        wanted = ".".join(map(str, SAFE_TORCH))
        raise WrongUse(
            f"reading a .pth safely takes torch {wanted} or newer, this is {version}",
            where=source,
            remedy=f"pip install 'torch>={wanted}'",
        )


def read_vocabulary(path: Path | str, cleaning: Cleaning = "iu-xray") -> Vocabulary:
    """Ours as it is; of an annotation.json the words that the published tokenizer counts: those of the training reports
    alone."""
    path = Path(path)
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise BadInput("no such file", where=path) from error
    except ValueError as error:
        raise BadInput(f"not JSON ({error})", where=path) from error
    if not isinstance(value, dict) or "train" not in value:
        return Vocabulary.from_json(value, where=path)
    try:
        reports = [str(study["report"]) for study in value["train"]]
    except (TypeError, KeyError) as error:
        raise BadInput("a training study without 'report'", where=path) from error
    cutoff, longest = (3, 60) if cleaning == "iu-xray" else (10, 100)
    return Vocabulary.build(reports, cleaning=cleaning, cutoff=cutoff, max_words=longest)


def _recipe(
    model: str, own: Mapping[str, Tensor], store: Path | str, spoken: Vocabulary, changes: Mapping[str, Any]
) -> Recipe:
    """The published settings, with the sizes that the tensors tell. The published code shows images in the order of
    their files."""
    depth = 1 + max(
        (int(found[1]) for name in own if (found := re.match(r"encoder\.backbone\.layer3\.(\d+)\.", name))), default=22
    )
    backbone = {6: "resnet50", 23: "resnet101", 36: "resnet152"}.get(depth)
    if backbone is None:
        raise BadInput(
            f"its image encoder has {depth} blocks in its third stage", remedy="ResNet-50, -101 and -152 are known"
        )
    said = {
        "data": {
            "store": str(store),
            "arrange": "by-order",
            "vocabulary": {"cleaning": spoken.cleaning, "cutoff": spoken.cutoff, "max_words": spoken.max_words},
        },
        "encoder": {"backbone": backbone},
        "model": {"name": model, **settings_of(model, own), **changes},
        "decode": {"beam": 3, "max_words": spoken.max_words},
    }
    return recipe_of(said, where="the imported run's recipe")


def _counted(own: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Old checkpoints lack batch norm's counters, which no forward pass reads."""
    counters = {name: tensor for name, tensor in wanted.items() if name.endswith("num_batches_tracked")}
    return {**counters, **own}

"""Checkpoints: safetensors whose header also holds the recipe and the vocabulary. One file alone can write a report.

`best.safetensors` holds a reporter, `last.safetensors` a reporter and all that the loop needs to go on. Both are
written under another name and renamed, so that a run killed at any moment leaves the one before.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from negatoscope.contrast.attention import ContrastiveAttention
from negatoscope.errors import BadInput
from negatoscope.models.base import Reporter
from negatoscope.text.words import Vocabulary
from negatoscope.training.build import build_reporter
from negatoscope.training.recipe import Recipe, recipe_of
from negatoscope.vision.precision import checked_device
from negatoscope.whole_files import whole_file

FORMAT = 1


@dataclass(frozen=True)
class Checkpoint:
    recipe: Recipe
    vocabulary: Vocabulary
    tensors: Mapping[str, Tensor]
    about: Mapping[str, Any] = field(default_factory=dict)
    """What is no tensor: epoch, scores, the loop's counters."""


def save_checkpoint(path: Path | str, checkpoint: Checkpoint) -> None:
    header = {
        "format": json.dumps({"negatoscope": FORMAT}),
        "recipe": json.dumps(checkpoint.recipe.as_dict()),
        "vocabulary": json.dumps(checkpoint.vocabulary.as_json()),
        "about": json.dumps(dict(checkpoint.about)),
    }
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in checkpoint.tensors.items()}
    with whole_file(path) as part:
        try:
            save_file(tensors, part, metadata=header)
        except SafetensorError as error:  # its Rust half tells a full disk in words, not by number
            full = f"os error {errno.ENOSPC})" in str(error)
            raise OSError(errno.ENOSPC if full else errno.EIO, str(error), str(path)) from error


def load_checkpoint(path: Path | str) -> Checkpoint:
    """Raises BadInput where the file is damaged or is no checkpoint of ours."""
    path = Path(path)
    try:
        with safe_open(path, framework="pt") as opened:
            header = opened.metadata() or {}
            if "recipe" not in header or "vocabulary" not in header:
                raise BadInput(
                    "weights, but no recipe and vocabulary in it: not a checkpoint of negatoscope", where=path
                )
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - no mapping
        said = {key: json.loads(header[key]) for key in ("format", "recipe", "vocabulary", "about")}
    except FileNotFoundError as error:
        raise BadInput("no such checkpoint", where=path) from error
    except (SafetensorError, KeyError, ValueError) as error:
        raise BadInput(
            f"damaged checkpoint ({error})", where=path, remedy="train again, or take another copy"
        ) from error
    if said["format"].get("negatoscope") != FORMAT:
        raise BadInput(
            f"checkpoint format {said['format'].get('negatoscope')}, this version reads {FORMAT}", where=path
        )
    recipe = recipe_of(said["recipe"], where=path)
    return Checkpoint(recipe, Vocabulary.from_json(said["vocabulary"], where=path), tensors, said["about"])


def load_reporter(path: Path | str, device: torch.device | str = "cpu") -> tuple[Reporter, Checkpoint]:
    """A reporter ready to write, from one file or from a run's folder (its best epoch)."""
    device = checked_device(str(device))
    path = Path(path)
    if path.is_dir():
        path = path / "best.safetensors"
    checkpoint = load_checkpoint(path)
    reporter = build_reporter(checkpoint.recipe, checkpoint.vocabulary, pretrained=False)
    fill(reporter, checkpoint.tensors, where=path)
    return reporter.to(device).eval(), checkpoint


def fill(module: torch.nn.Module, tensors: Mapping[str, Tensor], *, where: object) -> None:
    """Loads tensors into a module of exactly these names and shapes; raises BadInput that names what does not fit."""
    contrast = getattr(module, "contrast", None)
    if isinstance(contrast, ContrastiveAttention):
        contrast.make_room({name.removeprefix("contrast."): tensor for name, tensor in tensors.items()})
    wanted = module.state_dict()
    missing = sorted(wanted.keys() - tensors.keys())
    extra = sorted(tensors.keys() - wanted.keys())
    other = [
        f"{name}: {tuple(tensors[name].shape)} for {tuple(wanted[name].shape)}"
        for name in sorted(wanted.keys() & tensors.keys())
        if wanted[name].shape != tensors[name].shape
    ]
    complaints = [
        f"{len(names)} {kind} ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})"
        for kind, names in (("missing", missing), ("unknown", extra), ("of another shape", other))
        if names
    ]
    if complaints:
        raise BadInput(
            "tensors do not fit the model: " + "; ".join(complaints),
            where=where,
            remedy="was the recipe or the vocabulary changed?",
        )
    module.load_state_dict(dict(tensors))


def flatten(state: Mapping[str, Mapping[str, Any]], prefix: str) -> dict[str, Tensor]:
    """{'out.weight': {'exp_avg': tensor}} -> {'optimiser/out.weight/exp_avg': tensor}."""
    return {
        f"{prefix}/{name}/{key}": torch.as_tensor(value)
        for name, values in state.items()
        for key, value in values.items()
    }


def unflatten(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, dict[str, Tensor]]:
    state: dict[str, dict[str, Tensor]] = {}
    for path, tensor in tensors.items():
        if path.startswith(prefix + "/"):
            _, name, key = path.split("/")
            state.setdefault(name, {})[key] = tensor
    return state


def under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix + "/"): tensor for name, tensor in tensors.items() if name.startswith(prefix + "/")
    }

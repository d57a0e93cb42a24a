"""A reporter together with what it is trained by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from negatoscope.errors import WrongUse
from negatoscope.models.base import Reporter
from negatoscope.studies.batch import Batch
from negatoscope.training.objectives import Objective, build_objective
from negatoscope.training.recipe import Recipe


class Learner(nn.Module):
    """One forward pass gives every term of the loss: what DDP and FSDP wrap."""

    def __init__(self, reporter: Reporter, objectives: Mapping[str, Objective], weights: Mapping[str, float]) -> None:
        super().__init__()
        self.reporter = reporter
        self.objectives = nn.ModuleDict(objectives)  # pyright: ignore[reportArgumentType] - each is a module as well
        self.weights = dict(weights)

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """The terms by name, and their weighted sum as 'loss'."""
        reading = self.reporter(batch)
        terms: dict[str, Tensor] = {}
        total = torch.zeros((), device=reading.logits.device)
        for name, objective in self.objectives.items():
            for term, value in objective(reading, batch).items():
                terms[term] = value
                total = total + self.weights[name] * value
        return {"loss": total, **terms}

    def around(self, reporter: Reporter) -> Learner:
        """The same objectives for another copy of the reporter: whole, where this one's is in shards."""
        return self if reporter is self.reporter else Learner(reporter, dict(self.objectives.items()), self.weights)  # pyright: ignore[reportArgumentType]


def build_learner(recipe: Recipe, reporter: Reporter) -> Learner:
    """Raises WrongUse for a loss that is listed twice."""
    objectives: dict[str, Objective] = {}
    weights: dict[str, float] = {}
    for loss in recipe.losses:
        name = str(loss["name"])
        if name in objectives:
            raise WrongUse(f"the loss {name!r} is listed twice", where="losses", remedy="give it one weight")
        rest = {key: value for key, value in loss.items() if key not in ("name", "weight")}
        objectives[name], weights[name] = build_objective(name, rest), float(loss.get("weight", 1.0))
    return Learner(reporter, objectives, weights)


def reporters_own(tensors: Mapping[str, Any]) -> dict[str, Tensor]:
    """Of a learner's tensors those that write: objectives leave nothing behind in a reporter."""
    return {name.removeprefix("reporter."): tensor for name, tensor in tensors.items() if name.startswith("reporter.")}

"""A reporter together with what it is trained by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from negatoscope.contrast.objective import BACKBONE, BESIDE, NEIGHBOURS, Contrastive, Widths
from negatoscope.errors import WrongUse
from negatoscope.models.base import Reading, Reporter
from negatoscope.studies.batch import Batch
from negatoscope.studies.study import OBSERVATIONS
from negatoscope.training.objectives import Objective, build_objective
from negatoscope.training.recipe import Recipe
from negatoscope.vision.sight import Sight


class Learner(nn.Module):
    """One forward pass gives every term of the loss: what DDP and FSDP wrap."""

    def __init__(self, reporter: Reporter, objectives: Mapping[str, Objective], weights: Mapping[str, float]) -> None:
        super().__init__()
        self.reporter = reporter
        self.objectives = nn.ModuleDict(objectives)  # pyright: ignore[reportArgumentType] - each is a module as well
        self.weights = dict(weights)
        self._contrastive = [one for one in self.objectives.values() if isinstance(one, Contrastive)]

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """The terms by name, and their weighted sum as 'loss'.

        Contrastive losses compare what is learned from: a learner that does not learn leaves them out.
        """
        reading, batch = self._read(batch)
        terms: dict[str, Tensor] = {}
        total = torch.zeros((), device=reading.logits.device)
        for name, objective in self.objectives.items():
            if isinstance(objective, Contrastive) and not self.training:
                continue
            for term, value in objective(reading, batch).items():
                terms[term] = value
                total = total + self.weights[name] * value
        return {"loss": total, **terms}

    def begin_epoch(self, epoch: int) -> None:
        """Tells the losses that change with the epochs, which count from 0."""
        for objective in self._contrastive:
            objective.begin_epoch(epoch)

    @property
    def needs_neighbours(self) -> bool:
        return any(objective.needs_neighbours for objective in self._contrastive)

    def around(self, reporter: Reporter) -> Learner:
        """The same objectives for another copy of the reporter: whole, where this one's is in shards."""
        return self if reporter is self.reporter else Learner(reporter, dict(self.objectives.items()), self.weights)  # pyright: ignore[reportArgumentType]

    def _read(self, batch: Batch) -> tuple[Reading, Batch]:
        """Studies and their neighbours go through the reporter side by side, in one pass."""
        if not self._contrastive or not self.training:
            return self.reporter(batch), batch
        if not self.needs_neighbours:
            return self._with_backbone(batch), batch
        beside = batch.extra.get(NEIGHBOURS)
        if not isinstance(beside, Batch):
            raise WrongUse("this loss needs the neighbours of each study", where=f"batch of {batch.ids[0]}")
        both = side_by_side(batch, beside)
        reading = self._with_backbone(both)
        ours, theirs = slice(0, len(batch)), slice(len(batch), len(both))
        assert both.words is not None
        assert both.word_mask is not None
        extra = {**batch.extra, BESIDE: rows_of(reading, theirs)}
        # Words are as long as the longest of both, in the batch as in the reading.
        batch = replace(batch, words=both.words[ours], word_mask=both.word_mask[ours], extra=extra)
        return rows_of(reading, ours), batch

    def _with_backbone(self, batch: Batch) -> Reading:
        with remembering(self.reporter.encoder) as seen:
            reading: Reading = self.reporter(batch)
        return replace(reading, extra={**reading.extra, BACKBONE: seen[-1].overall}) if seen else reading


@contextmanager
def remembering(encoder: Any) -> Iterator[list[Sight]]:
    """The raw Sights that an encoder makes inside the block: a reporter hands on only what it made of them."""
    seen: list[Sight] = []
    hook = encoder.register_forward_hook(lambda _module, _given, sight: seen.append(sight))
    try:
        yield seen
    finally:
        hook.remove()


def side_by_side(one: Batch, other: Batch) -> Batch:
    """Two batches as one, their words padded to the longest; what only one loss needs is left out."""
    assert one.words is not None
    assert other.words is not None
    longest = max(one.words.shape[1], other.words.shape[1])
    joined: dict[str, Any] = {"ids": one.ids + other.ids, "extra": {}}
    for field in fields(Batch):
        if field.name in joined:
            continue
        parts = [getattr(one, field.name), getattr(other, field.name)]
        if field.name in ("words", "word_mask"):
            parts = [F.pad(part, (0, longest - part.shape[1])) for part in parts]
        joined[field.name] = None if any(part is None for part in parts) else torch.cat(parts)
    return Batch(**joined)


def rows_of(reading: Reading, rows: slice) -> Reading:
    """Some studies of a reading, its Sight and its extras among them."""
    count = len(reading.logits)

    def chosen(value: Any) -> Any:
        return value[rows] if isinstance(value, Tensor) and value.dim() and len(value) == count else value

    sight = replace(reading.sight, **{f.name: chosen(getattr(reading.sight, f.name)) for f in fields(reading.sight)})
    return Reading(
        chosen(reading.logits),
        chosen(reading.hidden),
        chosen(reading.mask),
        sight,
        {name: chosen(value) for name, value in reading.extra.items()},
    )


def build_learner(recipe: Recipe, reporter: Reporter) -> Learner:
    """Raises WrongUse for a loss that is listed twice."""
    objectives: dict[str, Objective] = {}
    weights: dict[str, float] = {}
    widths: Widths | None = None
    for loss in recipe.losses:
        name = str(loss["name"])
        if name in objectives:
            raise WrongUse(f"the loss {name!r} is listed twice", where="losses", remedy="give it one weight")
        rest = {key: value for key, value in loss.items() if key not in ("name", "weight")}
        objectives[name], weights[name] = build_objective(name, rest), float(loss.get("weight", 1.0))
        if isinstance(objectives[name], Contrastive):
            widths = widths or widths_of(reporter)
            objectives[name].meet(widths)  # pyright: ignore[reportAttributeAccessIssue]
    return Learner(reporter, objectives, weights)


@torch.no_grad()
def widths_of(reporter: Reporter) -> Widths:
    """Found by one reading of an invented study: no two kinds of models call their widths the same."""
    was_training = reporter.training
    device = next(reporter.parameters()).device
    wide: int = reporter.encoder.width
    word = min(1, reporter.words - 1)
    batch = Batch(
        ids=("invented",),
        present=torch.ones(1, 2, dtype=torch.bool),
        features=torch.zeros(1, 2, 4, wide),
        words=torch.tensor([[0, word, 0]]),
        word_mask=torch.ones(1, 3, dtype=torch.bool),
        labels=torch.zeros(1, len(OBSERVATIONS)),
    ).to(device)
    assert batch.words is not None
    assert batch.word_mask is not None
    try:
        reading = reporter.eval().read(reporter.look(batch), batch.words[:, :-1], batch.word_mask[:, 1:])
    finally:
        reporter.train(was_training)
    encoded = reading.extra.get("encoded", reading.sight.patches)
    learns = any(p.requires_grad for p in getattr(reporter.encoder, "parameters", list)())
    return Widths(wide, encoded.shape[-1], reading.hidden.shape[-1], learns)


def reporters_own(tensors: Mapping[str, Any]) -> dict[str, Tensor]:
    """Of a learner's tensors those that write: objectives leave nothing behind in a reporter."""
    return {name.removeprefix("reporter."): tensor for name, tensor in tensors.items() if name.startswith("reporter.")}

"""Teaching a Dictated writer to say what it is asked for, in the way of a report that it is shown the place of.

Reports are places phi in the space of CIDEr's n-grams. When it works, a writer is asked for findings that images let
expect, and shown the place of a training report that was written for a study like it: another patient's report. So that
is what it learns from as well. For its own report r it is told

    [findings of r;  phi(r')]        r' = r itself with the chance `own`, or one of the `near` reports nearest to r

The findings are those that the labeler reads in r, whatever r' says: what to say it learns to take from the one, how to
say it from the other.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from negatoscope.errors import Trouble
from negatoscope.models.dictated import Dictated, tell
from negatoscope.settings import Settings
from negatoscope.text.words import END
from negatoscope.training.recognise import height, remember
from negatoscope.watch import Watch, quiet


class DictationSettings(Settings):
    epochs: int = Field(default=25, ge=1)
    batch: int = Field(default=64, ge=1)
    lr: float = Field(default=2e-3, gt=0)
    weight_decay: float = Field(default=0.05, ge=0)
    memory: float = Field(default=0.99, ge=0, lt=1)
    """Of the running mean of the weights, a step."""
    smoothing: float = Field(default=0.1, ge=0, lt=1)
    """Of the words' labels."""
    own: float = Field(default=0.3, ge=0, le=1)
    near: int = Field(default=20, ge=1)
    seed: int = 1


@dataclass(frozen=True)
class Dictation:
    """N reports, and what each says."""

    words: Tensor  # (N, T) numbers: start, words, end, then END again
    mask: Tensor  # (N, T) bool: start, words, end
    findings: Tensor  # (N, 14) 0 and 1, as the labeler reads the report
    places: Tensor  # (N, E)

    @classmethod
    def of(cls, encoded: list[list[int]], findings: Tensor, places: Tensor) -> Dictation:
        longest = max(len(one) for one in encoded)
        words = torch.full((len(encoded), longest), END)
        mask = torch.zeros(len(encoded), longest, dtype=torch.bool)
        for row, one in enumerate(encoded):
            words[row, : len(one)] = torch.tensor(one)
            mask[row, : len(one)] = True
        return cls(words, mask, findings, places)

    def near(self, many: int) -> Tensor:
        """(N, many) the rows of the reports nearest to each, itself not among them."""
        unit = F.normalize(self.places)
        cosines = (unit @ unit.T).fill_diagonal_(-torch.inf)
        return cosines.topk(min(many, len(unit) - 1), 1).indices


def dictate(
    writer: Dictated,
    reports: Dictation,
    settings: DictationSettings,
    *,
    watch: Watch = quiet,
    after_epoch: Callable[[int, Dictated, float], None] | None = None,
) -> Dictated:
    """The running mean of the weights. `after_epoch(epoch, mean so far, loss)`. Raises Trouble when a loss is not
    finite."""
    writer.train()
    mean = copy.deepcopy(writer).eval().requires_grad_(False)
    optimiser = torch.optim.AdamW(writer.parameters(), lr=settings.lr, weight_decay=settings.weight_decay)
    near = reports.near(settings.near)
    n, per_epoch = len(reports.words), math.ceil(len(reports.words) / settings.batch)
    step, steps = 0, per_epoch * settings.epochs
    for epoch in watch(range(settings.epochs), "learning to write", settings.epochs):
        rng = np.random.default_rng([settings.seed, epoch])
        torch.manual_seed(int(rng.integers(2**62)))
        total = 0.0
        for rows in torch.from_numpy(rng.permutation(n)).split(settings.batch):
            for group in optimiser.param_groups:
                group["lr"] = settings.lr * height(step, steps)
            other = near[rows, torch.randint(near.shape[1], (len(rows),))]
            shown = torch.where(torch.rand(len(rows)) < settings.own, rows, other)
            words, real = reports.words[rows], reports.mask[rows][:, 1:]
            logits = writer(tell(reports.findings[rows], reports.places[shown]), words[:, :-1])  # (B, T - 1, W)
            loss = F.cross_entropy(logits[real], words[:, 1:][real], label_smoothing=settings.smoothing)
            if not math.isfinite(loss.item()):
                raise Trouble(f"the writer's loss is not finite at epoch {epoch + 1}", remedy="lower the rate")
            loss.backward()
            nn.utils.clip_grad_norm_(writer.parameters(), 5.0)
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            step += 1
            remember(mean, writer, min(settings.memory, step / (step + 10)))
            total += loss.item() / per_epoch
        if after_epoch:
            after_epoch(epoch, mean, total)
    return mean

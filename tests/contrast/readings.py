"""Readings of an invented host, with which losses are tried by themselves."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from negatoscope.contrast.objective import Widths
from negatoscope.models.base import Reading
from negatoscope.studies.batch import Batch
from negatoscope.vision.sight import Sight

WIDE, WORDS = 10, 9
WIDTHS = Widths(backbone=7, encoder=WIDE, decoder=WIDE, learns=False)
LENGTHS = (5, 3, 4, 2)
OUT = torch.randn(WIDE, WORDS, generator=torch.Generator().manual_seed(11))


def reading_of(seed: int = 0, lengths: tuple[int, ...] = LENGTHS, patches: int = 6) -> tuple[Reading, Batch]:
    """B reports of so many words and images of which the second lacks a view; logits follow from the hidden states."""
    draw = torch.Generator().manual_seed(seed)
    b, longest = len(lengths), max(lengths)
    mask = torch.arange(longest)[None] < torch.tensor(lengths)[:, None]
    hidden = torch.randn(b, longest, WIDE, generator=draw, requires_grad=True)
    seen = torch.randn(b, patches, WIDE, generator=draw, requires_grad=True)
    there = torch.ones(b, patches, dtype=torch.bool)
    there[1:2, patches // 2 :] = False
    words = torch.randint(1, WORDS, (b, longest + 1), generator=draw) * F.pad(mask, (1, 0), value=True)
    batch = Batch(
        tuple(f"{seed}-{row}" for row in range(b)),
        torch.ones(b, 2, dtype=torch.bool),
        words=words,
        word_mask=F.pad(mask, (1, 0), value=True),
        extra={"clusters": torch.tensor([0, 1, 0, 0][:b])},
    )
    return Reading(hidden @ OUT, hidden, mask, Sight(seen, seen.mean(1), there, (2, 1, patches // 2))), batch


def padded(reading: Reading, batch: Batch, words: int = 3, patches: int = 4) -> tuple[Reading, Batch]:
    """The same with more padding, of numbers that would show: a longer report and a view nobody has."""
    sight = reading.sight
    longer = Sight(
        F.pad(sight.patches, (0, 0, 0, patches), value=50.0),
        sight.overall,
        F.pad(sight.mask, (0, patches)),
        (sight.grid[0] + 1, 1, patches),
    )
    hidden = F.pad(reading.hidden, (0, 0, 0, words), value=50.0)
    more = Reading(hidden @ OUT, hidden, F.pad(reading.mask, (0, words)), longer)
    assert batch.words is not None
    return more, Batch(batch.ids, batch.present, words=F.pad(batch.words, (0, words)), extra=batch.extra)


def mean(values: Tensor, mask: Tensor) -> list[list[float]]:
    """Of each row the mean of its real positions, added up in a loop, as doubles."""
    rows = []
    for row, real in zip(values.double().tolist(), mask.tolist(), strict=True):
        kept = [vector for vector, is_real in zip(row, real, strict=True) if is_real]
        rows.append([sum(column) / len(kept) for column in zip(*kept)])
    return rows

"""What the tests of all models share: a tiny model of each kind, and a batch with padding and a missing view."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from negatoscope.models import reporter_class
from negatoscope.models.base import Reporter
from negatoscope.studies.batch import Batch
from negatoscope.vision.sight import Sight, masked_mean

WORDS = 23
FEATURES = 12
LENGTHS = (9, 4, 12, 7)


class CachedFeatures(nn.Module):
    """An encoder that only hands on what the batch holds."""

    width = FEATURES

    def forward(self, batch: Batch) -> Sight:
        assert batch.features is not None
        v, n = batch.features.shape[1:3]
        patches = batch.features.flatten(1, 2)  # (B, V N, D)
        mask = batch.present.repeat_interleave(n, 1)
        side = int(n**0.5)
        return Sight(patches, masked_mean(patches, mask), mask, (v, side, side))


def tiny(name: str, seed: int = 0) -> Reporter:
    kind = reporter_class(name)
    torch.manual_seed(seed)
    return kind(kind.Settings(**kind.tiny), CachedFeatures(), WORDS)  # pyright: ignore[reportCallIssue]


def batch_of(lengths: tuple[int, ...] = LENGTHS, seed: int = 1) -> Batch:
    """Reports of so many words, of which every fifth is word 3 (a full stop, say); the second study lacks its lateral."""
    draw = torch.Generator().manual_seed(seed)
    longest = max(lengths) + 2
    words, mask = (
        torch.zeros(len(lengths), longest, dtype=torch.long),
        torch.zeros(len(lengths), longest, dtype=torch.bool),
    )
    for row, length in enumerate(lengths):
        said = torch.randint(1, WORDS, (length,), generator=draw)
        said[4::5] = 3
        words[row, 1 : length + 1] = said
        mask[row, : length + 2] = True
    present = torch.ones(len(lengths), 2, dtype=torch.bool)
    present[1, 1] = False
    features = torch.randn(len(lengths), 2, 9, FEATURES, generator=draw)
    features[~present] = 0
    ids = tuple(f"study-{row}" for row in range(len(lengths)))
    labels = torch.randint(-1, 2, (len(lengths), 14), generator=draw).float()
    return Batch(ids, present, features=features, words=words, word_mask=mask, labels=labels)


def differences(one: Tensor, other: Tensor, mask: Tensor) -> float:
    return (one - other)[mask].abs().max().item()

"""What the tests of all models share: a tiny model of each kind, and a batch with padding and a missing view."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from negatoscope.contrast.attention import AttentionSettings, ContrastiveAttention
from negatoscope.models import reporter_class
from negatoscope.models.base import Reporter
from negatoscope.studies.batch import Batch
from negatoscope.vision.sight import Sight, masked_mean

WORDS = 23
FULL_STOP = 3
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
    """The smallest of its kind; `nic+ca` is NIC with Contrastive Attention, its pool filled."""
    host, contrast, _ = name.partition("+ca")
    kind = reporter_class(host)
    torch.manual_seed(seed)
    reporter: Reporter = kind(kind.Settings(**kind.tiny), CachedFeatures(), WORDS)  # pyright: ignore[reportCallIssue]
    reporter.full_stop = FULL_STOP
    if contrast:
        reporter.contrast = _contrast(reporter.width)
    return reporter


def _contrast(width: int) -> ContrastiveAttention:
    """Study 2 of the batch is in the pool itself."""
    contrast = ContrastiveAttention(AttentionSettings(heads=2), width)
    ids = ["normal-0", "study-2", *(f"normal-{number}" for number in range(1, 8))]
    contrast.hold(torch.randn(len(ids), 1, width), torch.ones(len(ids), 1, dtype=torch.bool), {"ids": ids})
    return contrast


def batch_of(lengths: tuple[int, ...] = LENGTHS, seed: int = 1) -> Batch:
    """Reports of so many words, of which every fifth is a full stop; the second study lacks its lateral."""
    draw = torch.Generator().manual_seed(seed)
    longest = max(lengths) + 2
    words, mask = (
        torch.zeros(len(lengths), longest, dtype=torch.long),
        torch.zeros(len(lengths), longest, dtype=torch.bool),
    )
    for row, length in enumerate(lengths):
        said = torch.randint(1, WORDS, (length,), generator=draw)
        said[4::5] = FULL_STOP
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

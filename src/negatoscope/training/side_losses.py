"""What the hierarchical reporters learn beside their words: tags, when to stop, which decoder writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from negatoscope.errors import WrongUse
from negatoscope.models.base import Reading, targets
from negatoscope.settings import Settings
from negatoscope.studies.batch import Batch
from negatoscope.text.words import END


class NoSettings(Settings):
    pass


class TagLoss(nn.Module):
    """Jing et al. 2018: - sum_i l_i / |l|_1 log p(tag_i), the mean over the studies that have a tag."""

    Settings = NoSettings

    def __init__(self, settings: NoSettings) -> None:
        super().__init__()

    def forward(self, reading: Reading, batch: Batch) -> dict[str, Tensor]:
        """Needs a model that predicts tags, and `batch.extra["tags"]` (B, tags)."""
        logits = _needed(reading.extra, "tags", "a model that predicts tags: co-attention").float()
        wanted = _needed(batch.extra, "tags", "tag targets in the batch").to(logits)
        if wanted.shape != logits.shape:
            raise WrongUse(
                f"the model has {logits.shape[1]} tags, the data {wanted.shape[1]}",
                where="model.tags",
                remedy=f"set model.tags: {wanted.shape[1]}, or data.tags.most",
            )
        count = wanted.sum(1)  # (B,)
        share = wanted / count.clamp_min(1).unsqueeze(1)
        each = -(share * logits.log_softmax(-1)).sum(1)
        return {"tags": each.sum() / (count > 0).sum().clamp_min(1)}


class StopLoss(nn.Module):
    """- log p(stop or go on) where a sentence opens. Cross-entropy holds this term once; here it can weigh more."""

    Settings = NoSettings

    def __init__(self, settings: NoSettings) -> None:
        super().__init__()

    def forward(self, reading: Reading, batch: Batch) -> dict[str, Tensor]:
        stop = _needed(reading.extra, "stop", "a hierarchical model")
        opens = reading.extra["opens"] & reading.mask
        ended = (targets(batch) == END)[opens].float()
        return {"stop": F.binary_cross_entropy_with_logits(stop[opens].float(), ended)}


class SwitchLoss(nn.Module):
    """- log p(which decoder wrote | the sentence), for sentences known to be normal or abnormal, over all words.

    Added to cross-entropy with weight 1 it makes the likelihood of words and switch together: each sentence is learned
    by its own decoder alone, as Harzig et al. 2019 train them.
    """

    Settings = NoSettings

    def __init__(self, settings: NoSettings) -> None:
        super().__init__()

    def forward(self, reading: Reading, batch: Batch) -> dict[str, Tensor]:
        """Needs `batch.extra["abnormal"]` (B, S): 1, 0, NaN where it is not known."""
        q = _needed(reading.extra, "switch", "a model with dual decoders: hlstm-dual")  # (B, T, 2)
        known = _needed(batch.extra, "abnormal", "labels of sentences in the batch").to(q)
        wanted, opens, mask = targets(batch), reading.extra["opens"], reading.mask
        last = mask & F.pad(opens[:, 1:] | ~mask[:, 1:], (0, 1), value=True) & ~(opens & (wanted == END))
        rows, places = last.nonzero(as_tuple=True)
        said = reading.extra["decoders"][rows, places, :, wanted[rows, places]]  # (G, 2)
        posterior = (q[rows, places] + said).log_softmax(-1)
        sentence = opens.cumsum(1)[rows, places] - 1
        abnormal = known[rows, sentence.clamp_max(known.shape[1] - 1)]  # (G,)
        there = ~abnormal.isnan() & (sentence < known.shape[1])
        chosen = posterior.gather(1, abnormal.nan_to_num().long().unsqueeze(1)).squeeze(1)
        return {"switch": -(chosen * there).sum() / mask.sum()}


def _needed(extra: Mapping[str, Any], name: str, what: str) -> Tensor:
    if not isinstance(extra.get(name), Tensor):
        raise WrongUse(f"the loss {name!r} needs {what}", where="losses")
    return torch.as_tensor(extra[name])

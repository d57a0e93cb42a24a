"""What may not come next: rules on log-probabilities (R, W) before a word is chosen."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from negatoscope.decoding.settings import DecodeSettings
from negatoscope.text.words import END


def forbid(log_p: Tensor, written: Tensor, settings: DecodeSettings, unknown: int | Sequence[int] | None) -> Tensor:
    """Log-probabilities with forbidden words at minus infinity; `written` (R, t) holds the words so far, `unknown` the
    word or words that `suppress_unknown` is about.

    A report to which the rules leave no word at all ends, however short.
    """
    t = written.shape[1]
    if (
        t < settings.min_words
        or (settings.suppress_unknown and unknown is not None)
        or (settings.block_trigrams and t >= 3)
    ):
        end = log_p[:, END]
        log_p = log_p.clone()
        if t < settings.min_words:
            log_p[:, END] = -torch.inf
        if settings.suppress_unknown and unknown is not None:
            log_p[:, unknown] = -torch.inf
        if settings.block_trigrams and t >= 3:
            _block_trigrams(log_p, written)
        stuck = log_p.amax(-1) == -torch.inf
        log_p[:, END] = torch.where(stuck, end, log_p[:, END])
    return log_p


def _block_trigrams(log_p: Tensor, written: Tensor) -> None:
    """Where the last two words stood before, the word that followed them there may not follow again."""
    last = written[:, -2:].unsqueeze(1)  # (R, 1, 2)
    earlier = written[:, :-1].unfold(1, 2, 1)  # (R, t - 2, 2): each pair that has a follower
    rows, places = (earlier == last).all(-1).nonzero(as_tuple=True)
    log_p[rows, written[rows, places + 2]] = -torch.inf

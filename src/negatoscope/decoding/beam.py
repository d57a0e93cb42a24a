"""Beam search over any model's `start` and `step`, several studies at a time.

Beams of a study lie side by side: row = study * k + beam. A study is finished, and stops costing, as soon as no living
beam can still overtake its `best` finished reports: log-probabilities only fall, so that is known for sure, and the
words are those of a search that runs to the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from negatoscope.decoding.rules import forbid
from negatoscope.decoding.settings import DecodeSettings, Written
from negatoscope.models.base import choose_rows
from negatoscope.text.words import END


class Speaker(Protocol):
    """Anything that writes word by word: every Reporter, and the writer of `drafting`."""

    def step(self, words: Tensor, state: Any) -> tuple[Tensor, Any]: ...

    def parameters(self) -> Iterator[nn.Parameter]: ...


@dataclass
class _Finished:
    """The finished reports of one study, best first; equal scores keep the order in which they came."""

    reports: list[Written] = field(default_factory=list)

    def add(self, report: Written, best: int) -> None:
        self.reports.append(report)
        self.reports.sort(key=lambda written: -written.score)
        del self.reports[best:]

    def cannot_be_beaten_by(self, living: float, best: int) -> bool:
        return len(self.reports) == best and self.reports[-1].score >= living


@torch.inference_mode()
def beam_search(
    reporter: Speaker,
    state: Any,
    ids: Sequence[str],
    settings: DecodeSettings,
    unknown: int | Sequence[int] | None = None,
) -> list[list[Written]]:
    """For each study its `settings.best` reports, best first. `state` is what `reporter.start` gave for them."""
    k, limit, a = settings.beam, settings.max_words, settings.length_penalty
    studies = len(ids)
    finished = [_Finished() for _ in ids]
    open_studies = list(range(studies))
    device = _device_of(reporter)

    log_p, state = reporter.step(torch.full((studies,), END, device=device), state)  # (B, W)
    written = torch.empty(studies, 0, dtype=torch.long, device=device)  # (rows, t)
    gained = torch.empty(studies, 0, device=device)  # (rows, t) log-probability of each word
    total = torch.zeros(studies, 1, device=device)  # (B, beams)

    for t in range(1, limit + 1):
        log_p = forbid(
            torch.log_softmax(log_p / settings.temperature, -1) if settings.temperature != 1 else log_p,
            written,
            settings,
            unknown,
        )
        B, beams, W = len(open_studies), total.shape[1], log_p.shape[-1]
        candidates = (total.unsqueeze(-1) + log_p.view(B, beams, W)).flatten(1)  # (B, beams * W)
        total, chosen = candidates.topk(min(k, candidates.shape[1]), dim=1)  # (B, k)
        word = (chosen % W).flatten()  # (B * k)
        rows = (torch.arange(B, device=device).unsqueeze(1) * beams + chosen // W).flatten()
        gained = torch.cat([gained[rows], log_p.reshape(-1)[rows * W + word].unsqueeze(1)], 1)
        written = torch.cat([written[rows], word.unsqueeze(1)], 1)

        ended = (word.view(B, -1) == END) | (t == limit)
        ended &= total > -torch.inf
        _collect(finished, open_studies, ended, written, gained, total, settings)
        total = total.masked_fill(ended, -torch.inf)

        # The best that a living beam could still reach is its sum now, over the longest length.
        reach = (total.amax(1) / float(limit if a > 0 else t) ** a).tolist()
        going = [
            i
            for i, study in enumerate(open_studies)
            if not finished[study].cannot_be_beaten_by(reach[i], settings.best)
        ]
        if t == limit or not going or all(reach[i] == -torch.inf for i in going):
            break
        width = total.shape[1]
        if len(going) < B:
            keep = torch.tensor(going, device=device)
            kept_rows = (keep.unsqueeze(1) * width + torch.arange(width, device=device)).flatten()
            written, gained, total = written[kept_rows], gained[kept_rows], total[keep]
            word, rows = word[kept_rows], rows[kept_rows]
            open_studies = [open_studies[i] for i in going]
            state = choose_rows(state, rows, keep)
        else:
            state = choose_rows(state, rows)
        log_p, state = reporter.step(word, state)
    return [one.reports for one in finished]


def _collect(
    finished: list[_Finished],
    open_studies: list[int],
    ended: Tensor,
    written: Tensor,
    gained: Tensor,
    total: Tensor,
    settings: DecodeSettings,
) -> None:
    k, t = ended.shape[1], written.shape[1]
    for i, beam in ended.nonzero().tolist():
        numbers = written[i * k + beam].tolist()
        words = tuple(numbers[:-1] if numbers[-1] == END else numbers)
        score = total[i, beam].item() / t**settings.length_penalty
        finished[open_studies[i]].add(Written(words, score, tuple(gained[i * k + beam].tolist())), settings.best)


def _device_of(reporter: Speaker) -> torch.device:
    return next(reporter.parameters()).device

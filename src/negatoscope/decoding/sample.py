"""Drawing words by chance, seeded: each study draws from its own stream, so that its neighbours in the batch change
nothing."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from negatoscope.decoding.rules import forbid
from negatoscope.decoding.settings import DecodeSettings, Written
from negatoscope.models.base import Reporter, choose_rows
from negatoscope.text.words import END


@torch.inference_mode()
def sample(
    reporter: Reporter, state: Any, ids: Sequence[str], settings: DecodeSettings, unknown: int | None = None
) -> list[list[Written]]:
    """For each study `settings.best` reports drawn at random, likeliest first.

    Each draw goes on as a study of its own, so that it stops costing as soon as it has ended, whatever its siblings do.
    """
    draws = settings.best
    device = next(reporter.parameters()).device
    streams = [_stream(settings.seed, study, draw) for study in ids for draw in range(draws)]
    open_rows = list(range(len(streams)))
    numbers: list[list[int]] = [[] for _ in streams]
    gained: list[list[float]] = [[] for _ in streams]
    written = torch.empty(len(streams), 0, dtype=torch.long, device=device)  # (rows, t)

    log_p, state = reporter.step(torch.full((len(ids),), END, device=device), state)
    going = torch.arange(len(ids), device=device).repeat_interleave(draws)
    log_p = log_p[going]
    for t in range(1, settings.max_words + 1):
        log_p = forbid(torch.log_softmax(log_p / settings.temperature, -1), written, settings, unknown)
        chance = _cut(log_p, settings).exp().cpu()
        word = torch.stack([torch.multinomial(p, 1, generator=streams[row])[0] for p, row in zip(chance, open_rows)])
        word = word.to(device)
        gains = log_p.gather(1, word.unsqueeze(1)).squeeze(1)
        for row, number, gain in zip(open_rows, word.tolist(), gains.tolist(), strict=True):
            numbers[row].append(number)
            gained[row].append(gain)
        on = (word != END).nonzero().squeeze(1)
        if t == settings.max_words or not len(on):
            break
        going = going[on] if t == 1 else on  # rows of the state: after the first word there is one for each draw
        written = torch.cat([written[on], word[on].unsqueeze(1)], 1)
        open_rows = [open_rows[i] for i in on.tolist()]
        log_p, state = reporter.step(word[on], choose_rows(state, going, going))

    reports = [_report(one, gains, settings) for one, gains in zip(numbers, gained, strict=True)]
    return [sorted(reports[i * draws : (i + 1) * draws], key=lambda one: -one.score) for i in range(len(ids))]


def _stream(seed: int, study: str, draw: int) -> torch.Generator:
    return torch.Generator().manual_seed(zlib.crc32(f"{seed}/{draw}/{study}".encode()))


def _report(numbers: list[int], gains: list[float], settings: DecodeSettings) -> Written:
    words = numbers[:-1] if numbers[-1] == END else numbers
    return Written(tuple(words), sum(gains) / len(gains) ** settings.length_penalty, tuple(gains))


def _cut(log_p: Tensor, settings: DecodeSettings) -> Tensor:
    """Keeps the top k, then the smallest set that holds top_p of the probability (Holtzman et al. 2020)."""
    if settings.top_k and settings.top_k < log_p.shape[-1]:
        least = log_p.topk(settings.top_k, -1).values[:, -1:]
        log_p = log_p.masked_fill(log_p < least, -torch.inf)
    if settings.top_p < 1:
        ordered, order = log_p.sort(-1, descending=True)
        share = ordered.softmax(-1).cumsum(-1)
        beyond = share - ordered.softmax(-1) >= settings.top_p  # the word that crosses the line stays
        log_p = log_p.masked_fill(beyond.gather(-1, order.argsort(-1)), -torch.inf)
    return log_p.log_softmax(-1)

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
    """For each study `settings.best` reports drawn at random, likeliest first. Finished rows stop costing."""
    studies, draws = len(ids), settings.best
    device = next(reporter.parameters()).device
    rows = torch.arange(studies, device=device).repeat_interleave(draws)
    log_p, state = reporter.step(torch.full((studies,), END, device=device), state)
    log_p, state = log_p[rows], choose_rows(state, rows)
    streams = [_stream(settings.seed, study, draw) for study in ids for draw in range(draws)]
    open_rows = list(range(studies * draws))
    written: list[list[int]] = [[] for _ in open_rows]
    gained: list[list[float]] = [[] for _ in open_rows]

    for t in range(1, settings.max_words + 1):
        so_far = torch.tensor([written[row] for row in open_rows], dtype=torch.long, device=device).view(
            len(open_rows), t - 1
        )
        log_p = forbid(torch.log_softmax(log_p / settings.temperature, -1), so_far, settings, unknown)
        chance = _cut(log_p, settings).exp().cpu()
        word = torch.stack(
            [torch.multinomial(chance[i], 1, generator=streams[row])[0] for i, row in enumerate(open_rows)]
        )
        for i, (row, number) in enumerate(zip(open_rows, word.tolist(), strict=True)):
            written[row].append(number)
            gained[row].append(log_p[i, number].item())
        # All draws of a study go on together, because they share its image; a study is dropped when each of them has
        # ended.
        alive = [
            study
            for study in dict.fromkeys(row // draws for row in open_rows)
            if any(END not in written[study * draws + j] for j in range(draws))
        ]
        if not alive:
            break
        where = {row: i for i, row in enumerate(open_rows)}
        kept = [study * draws + j for study in alive for j in range(draws)]
        places = torch.tensor([where[row] for row in kept], device=device)
        seen_studies = list(dict.fromkeys(row // draws for row in open_rows))
        keep = torch.tensor([seen_studies.index(study) for study in alive], device=device)
        state = choose_rows(state, places, keep if len(alive) < len(seen_studies) else None)
        open_rows = kept
        log_p, state = reporter.step(word.to(device)[places], state)

    reports = [_report(numbers, gains, settings) for numbers, gains in zip(written, gained, strict=True)]
    return [sorted(reports[i * draws : (i + 1) * draws], key=lambda one: -one.score) for i in range(studies)]


def _stream(seed: int, study: str, draw: int) -> torch.Generator:
    return torch.Generator().manual_seed(zlib.crc32(f"{seed}/{draw}/{study}".encode()))


def _report(numbers: list[int], gains: list[float], settings: DecodeSettings) -> Written:
    end = numbers.index(END) if END in numbers else len(numbers)
    gains = gains[: end + 1]
    return Written(tuple(numbers[:end]), sum(gains) / len(gains) ** settings.length_penalty, tuple(gains))


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

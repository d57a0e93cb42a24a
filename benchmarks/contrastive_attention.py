"""What Contrastive Attention adds: to a training step, and to writing, of R2Gen at its published size.

    python benchmarks/contrastive_attention.py [--pool 1000] [--threads 2] [--turns 9] [--settings '{"heads": 10}']

From cached features (two views of 7 x 7 x 2048, batch 16, reports of 60 words), float32, random weights. Host with and
without take turns in one process; ratios are taken turn by turn, so that a busy moment of the machine hits both sides,
and their median is told, of the wall's seconds and of the processor's. Writing is beam 3, 16 studies. Random weights
would end their reports anywhere, so the end is forbidden before the 60th word: both write equally much.
"""

from __future__ import annotations

import argparse
import json
import resource
from collections.abc import Callable
from statistics import median
from time import perf_counter, process_time

import torch
from torch.nn import functional as F

from negatoscope.contrast.attention import AttentionSettings, ContrastiveAttention
from negatoscope.decoding import DecodeSettings, write
from negatoscope.models.base import Reporter, targets
from negatoscope.models.r2gen import R2Gen, R2GenSettings
from negatoscope.studies.batch import Batch
from negatoscope.training.optimise import make_optimiser
from negatoscope.training.recipe import TrainSettings
from negatoscope.vision.encoder import Encoder

STUDIES, WORDS, LENGTH, FEATURES = 16, 761, 60, 2048


def batch_of() -> Batch:
    draw = torch.Generator().manual_seed(1)
    words = torch.randint(1, WORDS, (STUDIES, LENGTH), generator=draw)
    words[:, 0] = words[:, -1] = 0
    return Batch(
        ids=tuple(f"study-{number}" for number in range(STUDIES)),
        present=torch.ones(STUDIES, 2, dtype=torch.bool),
        features=torch.rand(STUDIES, 2, 49, FEATURES, generator=draw),
        words=words,
        word_mask=torch.ones(STUDIES, LENGTH, dtype=torch.bool),
    )


def host() -> Reporter:
    torch.manual_seed(1)
    return R2Gen(R2GenSettings(), Encoder(None, width=FEATURES), WORDS)


def with_contrast(settings: AttentionSettings) -> Reporter:
    """Half of the batch is in the pool itself, as in training."""
    reporter = host()
    contrast = ContrastiveAttention(settings, reporter.width)
    ids = [f"study-{number * 2}" for number in range(settings.pool)]
    places = 1 if settings.level == "overall" else 99
    pool = torch.rand(settings.pool, places, reporter.width)
    contrast.hold(pool, torch.ones(settings.pool, places, dtype=torch.bool), {"ids": ids})
    reporter.contrast = contrast
    return reporter


def step_of(reporter: Reporter, batch: Batch) -> Callable[[], object]:
    reporter.train()
    optimiser = make_optimiser(reporter, TrainSettings(lr=1e-5))

    def step() -> None:
        reading = reporter(batch)
        loss = F.cross_entropy(reading.logits[reading.mask], targets(batch)[reading.mask])
        loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    return step


def compare(name: str, without: Callable[[], object], with_: Callable[[], object], turns: int) -> None:
    peers = (without, with_)
    wall: tuple[list[float], list[float]] = ([], [])
    worked: tuple[list[float], list[float]] = ([], [])
    for peer in peers:
        peer()
    for turn in range(turns):
        for which in (0, 1) if turn % 2 else (1, 0):
            began, work = perf_counter(), process_time()
            peers[which]()
            wall[which].append(perf_counter() - began)
            worked[which].append(process_time() - work)
    ratios = [median(b / a for a, b in zip(*seconds)) for seconds in (wall, worked)]
    print(
        f"{name:<14} without {median(wall[0]) * 1e3:8.0f} ms   with {median(wall[1]) * 1e3:8.0f} ms   "
        f"ratio {ratios[0]:.4f}, of processor seconds {ratios[1]:.4f}",
        flush=True,
    )


def itself(settings: AttentionSettings, turns: int) -> None:
    """The module alone, so that its cost is known however the host's wavers."""
    reporter = with_contrast(settings)
    batch = batch_of()
    sight = reporter.eval().look(batch)
    contrast = reporter.contrast
    assert isinstance(contrast, ContrastiveAttention)
    forward, backward = [], []
    for _ in range(turns):
        began = perf_counter()
        out = contrast(sight, batch.ids)
        forward.append(perf_counter() - began)
        loss = out.patches.sum() + out.overall.sum()
        began = perf_counter()
        loss.backward(retain_graph=True)
        backward.append(perf_counter() - began)
    print(
        f"{'itself':<14} forward {median(forward) * 1e3:.1f} ms, backward {median(backward) * 1e3:.1f} ms (with look's)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pool", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--settings", type=json.loads, default={}, help="of contrast.attention, as JSON")
    said = parser.parse_args()
    torch.set_num_threads(said.threads)
    settings = AttentionSettings.model_validate({"pool": said.pool, **said.settings})
    without, with_, batch = host(), with_contrast(settings), batch_of()

    print(f"R2Gen, batch {STUDIES}, {said.threads} threads, float32, {settings}")
    compare("training step", step_of(without, batch), step_of(with_, batch), said.turns)
    decode = DecodeSettings(beam=3, max_words=LENGTH, min_words=LENGTH - 1)
    compare("writing", lambda: write(without, batch, decode), lambda: write(with_, batch, decode), said.turns)
    itself(settings, said.turns)
    print(f"peak memory    {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB, both hosts in it")


if __name__ == "__main__":
    main()

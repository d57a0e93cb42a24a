"""R2Gen's relational memory: how long its loop over the words takes, and how long it would take if it were none.

    python benchmarks/relational_memory.py [--studies 16] [--words 60] [--threads 2] [--turns 7]

M_t needs M_{t-1}, so a report's words go through the memory one after another: sixty small products, where the rest of
the decoder has one large one. The floor is the same arithmetic on memories that need not wait for each other: all
words at once. Three things take turns in one process, each told by its median: the loop, the floor, the whole step.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median
from time import perf_counter

import torch
from torch import Tensor
from torch.nn import functional as F

from negatoscope.models.base import targets
from negatoscope.models.r2gen import R2Gen, R2GenSettings
from negatoscope.vision.encoder import Encoder
from published import WORDS
from r2gen_training import batch_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=16)
    parser.add_argument("--words", type=int, default=60)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=7)
    said = parser.parse_args()
    torch.set_num_threads(said.threads)
    torch.manual_seed(0)
    reporter = R2Gen(R2GenSettings(), Encoder(None, width=2048), WORDS + 1).train()
    memory, d = reporter.memory, reporter.width
    batch = batch_of(said.studies, said.words, 0)
    y = torch.randn(said.studies, said.words - 1, d, requires_grad=True)  # the last word is never read

    def loop() -> Tensor:
        return memory(y, memory.start(len(y), y))

    def floor() -> Tensor:
        rows = y.flatten(0, 1)
        return memory(rows.unsqueeze(1), memory.start(len(rows), rows))

    def whole() -> Tensor:
        reading = reporter(batch)
        return F.cross_entropy(reading.logits[reading.mask].float(), targets(batch)[reading.mask])

    print(f"{said.studies} studies, {said.words} words, {said.threads} threads, median of {said.turns} turns")
    for low in (False, True):
        told: dict[str, tuple[list[float], list[float]]] = {}
        for turn in range(said.turns + 1):
            for name, one in (("loop", loop), ("floor", floor), ("whole", whole)):
                forward, backward = timed(one, low=low)
                if turn:
                    there, back = told.setdefault(name, ([], []))
                    there.append(forward)
                    back.append(backward)
        kind = "bf16" if low else "float32"
        seconds = {name: (median(there), median(back)) for name, (there, back) in told.items()}
        for name, (forward, backward) in seconds.items():
            print(f"{kind:8} {name:6} forward {forward * 1e3:7.1f} ms   backward {backward * 1e3:7.1f} ms")
        total = {name: sum(both) for name, both in seconds.items()}
        print(
            f"{kind:8} the loop takes {total['loop'] / total['floor']:.2f} times its floor, and is "
            f"{total['loop'] / total['whole']:.0%} of forward and backward; at its floor the whole would be "
            f"{total['whole'] / (total['whole'] - total['loop'] + total['floor']):.2f} times faster"
        )


def timed(one: Callable[[], Tensor], *, low: bool) -> tuple[float, float]:
    with torch.autocast("cpu", torch.bfloat16, enabled=low):
        began = perf_counter()
        out = one()
        forward = perf_counter() - began
    began = perf_counter()
    out.float().sum().backward()
    return forward, perf_counter() - began


if __name__ == "__main__":
    main()

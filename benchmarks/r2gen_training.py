"""A training step of R2Gen from cached features, ours against the authors' code: seconds, their ratio, and the losses
of a run.

    python benchmarks/r2gen_training.py FOLDER_OF_THE_AUTHORS_REPOSITORY [--curve 200]

Batch 16, reports of 60 words, full size; a step is forward, cross-entropy, backward, Adam. The three take turns in one
process, so that a busy machine slows each; processor seconds, of all threads, are printed beside the wall's. `--curve`
trains theirs and ours from the same weights on the same small batches, without dropout (whose draws would differ), and
prints how far apart the two losses ever are.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from negatoscope.models.base import targets
from negatoscope.models.r2gen import R2Gen
from negatoscope.studies.batch import Batch
from negatoscope.training.optimise import make_optimiser
from negatoscope.training.recipe import TrainSettings
from published import WORDS, r2gen_twice

Step = Callable[[Batch], float]


def batch_of(studies: int, words: int, seed: int) -> Batch:
    draw = torch.Generator().manual_seed(seed)
    said = torch.randint(1, WORDS + 1, (studies, words), generator=draw)
    said[:, 0] = 0
    return Batch(
        tuple(map(str, range(studies))),
        torch.ones(studies, 2, dtype=torch.bool),
        features=torch.randn(studies, 2, 49, 2048, generator=draw).abs() * 0.5,
        words=said,
        word_mask=torch.ones_like(said, dtype=torch.bool),
    )


def stepping(
    optimiser: torch.optim.Optimizer, loss_of: Callable[[Batch], Tensor], around: Callable[[], Any] = nullcontext
) -> Step:
    def step(batch: Batch) -> float:
        with around():
            loss = loss_of(batch)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss.item()

    return step


def authors(theirs: Any) -> Step:
    def loss_of(batch: Batch) -> Tensor:
        assert batch.features is not None
        assert batch.words is not None
        said = theirs(batch.features.mean((1, 2)), batch.features.flatten(1, 2), batch.words, mode="forward")
        return -said.gather(2, batch.words[:, 1:].unsqueeze(2)).mean()

    return stepping(torch.optim.Adam(theirs.parameters(), lr=1e-4, weight_decay=5e-5, amsgrad=True), loss_of)


def ours_of(reporter: R2Gen, *, low: bool) -> Step:
    def loss_of(batch: Batch) -> Tensor:
        reading = reporter(batch)
        return F.cross_entropy(reading.logits[reading.mask].float(), targets(batch)[reading.mask])

    settings = TrainSettings(optimiser="adam-amsgrad", lr=1e-4, weight_decay=5e-5)
    return stepping(
        make_optimiser(reporter, settings), loss_of, lambda: torch.autocast("cpu", torch.bfloat16, enabled=low)
    )


def take_turns(steps: dict[str, Step], batch: Batch, rounds: int) -> dict[str, tuple[float, float]]:
    """Median seconds of each, on the wall and of the processor."""
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in steps}
    for number in range(rounds + 1):
        for name, step in steps.items():
            began, worked = time.perf_counter(), time.process_time()
            step(batch)
            if number:  # the first warms up
                seconds[name].append((time.perf_counter() - began, time.process_time() - worked))
    return {
        name: (statistics.median(wall for wall, _ in told), statistics.median(worked for _, worked in told))
        for name, told in seconds.items()
    }


def curves(repository: Path, steps: int, *, low: bool) -> None:
    theirs, ours = r2gen_twice(repository, dropout=False)
    for module in theirs.modules():  # those whose rate the command line does not reach
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    for module in ours.modules():
        if isinstance(getattr(module, "dropout", None), float):
            module.dropout = 0.0  # pyright: ignore[reportArgumentType]
    one, other = authors(theirs.train()), ours_of(ours.train(), low=low)
    batches = [batch_of(2, 16, seed) for seed in range(8)]
    pairs = [(one(batches[n % 8]), other(batches[n % 8])) for n in range(steps)]
    apart = max(abs(a - b) for a, b in pairs)
    kind = "bf16" if low else "float32"
    print(
        f"{steps} steps, ours in {kind}: loss {pairs[0][0]:.3f} to {pairs[-1][0]:.3f} theirs, {pairs[-1][1]:.3f} ours"
    )
    print(f"never more than {apart:.4f} apart")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("repository", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--curve", type=int, default=0)
    said = parser.parse_args()
    torch.set_num_threads(said.threads)
    theirs, ours = r2gen_twice(said.repository)
    _, other = r2gen_twice(said.repository)
    steps = {
        "authors' code, float32": authors(theirs.train()),
        "ours, float32": ours_of(ours.train(), low=False),
        "ours, bf16": ours_of(other.train(), low=True),
    }
    told = take_turns(steps, batch_of(16, 60, 0), said.rounds)
    slow, slow_work = next(iter(told.values()))
    for name, (wall, worked) in told.items():
        print(
            f"{name:24} {wall:6.2f} s a step {slow / wall:5.2f} times   {worked:6.2f} processor seconds "
            f"{slow_work / worked:5.2f} times"
        )
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    if said.curve:
        for low in (False, True):
            curves(said.repository, said.curve, low=low)


if __name__ == "__main__":
    main()

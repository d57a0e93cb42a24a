"""What WCL, MoCHi and ITHN add to a training step, at the hosts' published sizes.

    python benchmarks/contrastive_losses.py [--hosts r2gen,r2gencmn,xpronet] [--backbone resnet50] [--threads 2]
                                            [--turns 9] [--device cuda]

From cached features (two views of 7 x 7 x 2048), batch 16, reports of 60 words, float32, random weights; with
`--backbone` from images of 224 x 224 through a backbone that learns. A step is forward, losses, backward, Adam. The
host alone and with each loss take turns in one process. ITHN and MoCHi read two studies where the host reads one, so
twice the host's step is what they cost by design: the line `two studies` is the host alone with a batch of 32.
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Callable
from dataclasses import replace
from statistics import median
from time import perf_counter
from typing import Any

import torch

from negatoscope.contrast.objective import CLUSTERS, NEIGHBOURS, Contrastive
from negatoscope.models import reporter_class
from negatoscope.studies.batch import Batch
from negatoscope.training.learner import Learner, widths_of
from negatoscope.training.objectives import build_objective
from negatoscope.training.optimise import make_optimiser
from negatoscope.training.recipe import TrainSettings
from negatoscope.vision.backbones import build
from negatoscope.vision.encoder import Encoder

STUDIES, WORDS, LENGTH, FEATURES = 16, 761, 60, 2048
LOSSES: dict[str, list[dict[str, Any]]] = {
    "host": [],
    "two studies": [],
    "wcl": [{"name": "wcl"}],
    "wcl, adversarial": [{"name": "wcl", "alpha": 1.0, "adversarial": 0.02}],
    "mochi": [{"name": "hard-negatives", "way": "mochi"}],
    "ithn": [{"name": "hard-negatives", "way": "ithn"}],
}
OWN = {"xpronet": [{"name": "xpronet-contrast"}, {"name": "xpronet-observations"}]}


def batch_of(studies: int, seed: int, *, images: bool) -> Batch:
    draw = torch.Generator().manual_seed(seed)
    words = torch.randint(1, WORDS, (studies, LENGTH), generator=draw)
    words[:, 0] = words[:, -1] = 0
    return Batch(
        ids=tuple(f"{seed}-{number}" for number in range(studies)),
        present=torch.ones(studies, 2, dtype=torch.bool),
        images=torch.rand(studies, 2, 1, 224, 224, generator=draw) if images else None,
        features=None if images else torch.rand(studies, 2, 49, FEATURES, generator=draw),
        words=words,
        word_mask=torch.ones(studies, LENGTH, dtype=torch.bool),
        labels=torch.randint(-1, 2, (studies, 14), generator=draw).float(),
        extra={CLUSTERS: torch.randint(0, 14, (studies,), generator=draw)},
    )


def learner_of(host: str, losses: list[dict[str, Any]], backbone: str | None) -> Learner:
    torch.manual_seed(1)
    kind = reporter_class(host)
    encoder = Encoder(None, width=FEATURES) if backbone is None else Encoder(build(backbone))
    reporter = kind(kind.Settings(), encoder, WORDS)  # pyright: ignore[reportCallIssue]
    objectives: dict[str, Any] = {}
    for said in [{"name": "cross-entropy"}, *OWN.get(host, []), *losses]:
        rest = {key: value for key, value in said.items() if key != "name"}
        objectives[said["name"]] = build_objective(said["name"], rest)
        if isinstance(objectives[said["name"]], Contrastive):
            objectives[said["name"]].meet(widths_of(reporter))
    return Learner(reporter, objectives, dict.fromkeys(objectives, 1.0)).train()


def step_of(learner: Learner, batch: Batch) -> Callable[[], None]:
    optimiser = make_optimiser(learner, TrainSettings(lr=1e-5))
    learner.begin_epoch(10)

    def step() -> None:
        learner(batch)["loss"].backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    return step


def compare(host: str, backbone: str | None, turns: int, device: str) -> None:
    steps = {}
    beside = batch_of(STUDIES, 2, images=backbone is not None)
    for name, losses in LOSSES.items():
        batch = batch_of(STUDIES * (2 if name == "two studies" else 1), 1, images=backbone is not None)
        learner = learner_of(host, losses, backbone).to(device)
        if learner.needs_neighbours:
            batch = replace(batch, extra={NEIGHBOURS: beside})
        steps[name] = step_of(learner, batch.to(device))
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(turns + 1):
        order = list(steps) if turn % 2 else list(steps)[::-1]
        for name in order:
            began = perf_counter()
            steps[name]()
            if device == "cuda":
                torch.cuda.synchronize()
            if turn:  # the first warms up
                seconds[name].append(perf_counter() - began)
    for name, times in seconds.items():
        # Turn by turn, so that a busy moment of the machine hits both sides of a ratio.
        ratio = median(mine / alone for mine, alone in zip(times, seconds["host"]))
        print(f"{host:<9} {name:<17} {median(times) * 1e3:8.1f} ms   {ratio:.3f} times the host's step")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", default="r2gen,r2gencmn,xpronet")
    parser.add_argument("--backbone")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--device", default="cpu")
    said = parser.parse_args()
    torch.set_num_threads(said.threads)
    seen = f"images through {said.backbone}" if said.backbone else "cached features"
    print(f"batch {STUDIES}, {LENGTH} words, {seen}, {said.device}, {said.threads} threads, float32")
    for host in said.hosts.split(","):
        compare(host, said.backbone, said.turns, said.device)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB, all learners in it")


if __name__ == "__main__":
    main()

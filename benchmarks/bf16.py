"""A training step in float32 and in bf16 autocast, end to end from images and from cached features; and whether it
learns the same.

    python benchmarks/bf16.py [--backbone resnet50] [--model nic] [--steps 6]

The two precisions take turns in one process, so that a busy machine slows both; the medians are compared. The loss
after the same steps from the same weights tells whether rounding changes what is learned.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections.abc import Callable

import torch

from negatoscope.models import reporter_class
from negatoscope.studies.batch import Batch
from negatoscope.training.learner import Learner
from negatoscope.training.objectives import CrossEntropy, CrossEntropySettings
from negatoscope.vision.encoder import EncoderSettings, build_encoder

STUDIES, WORDS = 16, 761


def batch_of(*, images: bool, width: int, seed: int = 0) -> Batch:
    """Noise of the right shape: time does not depend on what is in the picture."""
    draw = torch.Generator().manual_seed(seed)
    words = torch.randint(1, WORDS, (STUDIES, 60), generator=draw)
    words[:, 0] = 0
    return Batch(
        tuple(map(str, range(STUDIES))),
        torch.ones(STUDIES, 2, dtype=torch.bool),
        images=torch.rand(STUDIES, 2, 1, 224, 224, generator=draw) if images else None,
        features=None if images else torch.rand(STUDIES, 2, 49, width, generator=draw),
        words=words,
        word_mask=torch.ones_like(words, dtype=torch.bool),
    )


def stepper(model: str, backbone: str, batch: Batch, precision: torch.dtype) -> Callable[[], float]:
    """A function that does one step and gives its loss; always from the same weights."""
    torch.manual_seed(0)
    kind = reporter_class(model)
    encoder = build_encoder(EncoderSettings(backbone=backbone), pretrained=False)
    reporter = kind(kind.Settings(), encoder, WORDS)  # pyright: ignore[reportCallIssue]
    learner = Learner(reporter, {"cross-entropy": CrossEntropy(CrossEntropySettings())}, {"cross-entropy": 1.0}).train()
    optimiser = torch.optim.Adam([p for p in learner.parameters() if p.requires_grad], lr=1e-4)
    number = iter(range(10**9))

    def step() -> float:
        torch.manual_seed(next(number))
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == torch.bfloat16):
            loss = learner(batch)["loss"]
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        return loss.item()

    return step


def compare(model: str, backbone: str, *, images: bool, steps: int) -> None:
    width = build_encoder(EncoderSettings(backbone=backbone), pretrained=False).width
    batch = batch_of(images=images, width=width)
    runs = {kind: stepper(model, backbone, batch, kind) for kind in (torch.float32, torch.bfloat16)}
    seconds: dict[torch.dtype, list[float]] = {kind: [] for kind in runs}
    losses: dict[torch.dtype, list[float]] = {kind: [] for kind in runs}
    for turn in range(steps + 1):  # the first turn warms up
        for kind, step in runs.items():
            began = time.perf_counter()
            losses[kind].append(step())
            if turn:
                seconds[kind].append(time.perf_counter() - began)
    slow, fast = (statistics.median(seconds[kind]) for kind in runs)
    exact, rough = (losses[kind][-1] for kind in runs)
    what = f"{model}, {backbone}, " + ("from images" if images else "from features")
    times = f"float32 {slow:7.3f} s  bf16 {fast:7.3f} s  {slow / fast:5.2f} x"
    print(f"{what:38} {times}  loss {exact:.4f} and {rough:.4f}")


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--backbone", default="resnet50")
    ask.add_argument("--model", default="nic", nargs="+")
    ask.add_argument("--steps", type=int, default=6)
    asked = ask.parse_args()
    print(f"{STUDIES} studies of two views at 224 px, reports of 60 words, {torch.get_num_threads()} threads")
    for model in [asked.model] if isinstance(asked.model, str) else asked.model:
        compare(model, asked.backbone, images=True, steps=asked.steps)
        compare(model, asked.backbone, images=False, steps=asked.steps)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()

"""What each registered reporter said when it was last looked at: logits and gradients of tiny models, drawn weights.

`python -m scripts.record_golden` writes tests/models/golden.safetensors; do so when a model is new, or when it is meant
to say something else from now on.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from negatoscope.contrast.attention import ContrastiveAttention
from negatoscope.models import REPORTERS
from negatoscope.training.objectives import CrossEntropy, CrossEntropySettings
from tests.models.captioning_cases import draw_weights, drawn_batch
from tests.models.every import tiny

GOLDEN = Path(__file__).with_suffix(".safetensors")
NAMES = [host + contrast for contrast in ("", "+ca") for host in REPORTERS]


def said_now(name: str) -> tuple[dict[str, Tensor], list[str]]:
    """With the same weights on any machine: `logits` (M, W) of the M words that count, `slopes` (P,), the norm of each
    parameter's gradient, and the parameters' names."""
    reporter, batch = tiny(name).eval(), drawn_batch()
    draw_weights(reporter)
    if isinstance(reporter.contrast, ContrastiveAttention):
        pool = reporter.contrast.pool
        drawn = np.random.default_rng(3).standard_normal(tuple(pool.shape)).astype(np.float32)
        reporter.contrast.pool = torch.from_numpy(drawn)
    reading = reporter(batch)
    CrossEntropy(CrossEntropySettings())(reading, batch)["cross-entropy"].backward()
    slopes = {part: p.grad.norm() for part, p in reporter.named_parameters() if p.grad is not None}
    said = {"logits": reading.logits[reading.mask].detach(), "slopes": torch.stack(list(slopes.values()))}
    return said, list(slopes)

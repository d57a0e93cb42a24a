"""Which arithmetic a run uses."""

from __future__ import annotations

from typing import Literal

import torch

from negatoscope.training.recipe import Recipe
from negatoscope.vision.precision import fast_precision

Precision = Literal["32-true", "bf16-mixed"]


def precision_for(recipe: Recipe) -> Precision:
    """auto: bf16 where it was measured to help, that is where images go through a backbone (docs/design.md,
    benchmarks/bf16.py)."""
    wanted = recipe.train.precision
    if wanted != "auto":
        return "bf16-mixed" if wanted == "bf16" else "32-true"
    if recipe.data.features is not None:
        return "32-true"
    on_gpu = recipe.train.accelerator != "cpu" and torch.cuda.is_available()
    return "bf16-mixed" if fast_precision("cuda" if on_gpu else "cpu") == "bf16" else "32-true"

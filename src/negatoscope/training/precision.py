"""Which arithmetic a run uses."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import torch

from negatoscope.training.recipe import Recipe

Precision = Literal["32-true", "bf16-mixed"]


def has_bf16_instructions(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the processor multiplies bf16 matrices itself: elsewhere autocast only makes it slower."""
    try:
        flags = next((line for line in cpuinfo.read_text().splitlines() if line.startswith("flags")), "").split()
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags


def precision_for(recipe: Recipe) -> Precision:
    """auto: bf16 where it was measured to help, that is where images go through a backbone (docs/design.md, benchmarks/bf16.py)."""
    wanted = recipe.train.precision
    if wanted != "auto":
        return "bf16-mixed" if wanted == "bf16" else "32-true"
    if recipe.data.features is not None:
        return "32-true"
    on_gpu = recipe.train.accelerator != "cpu" and torch.cuda.is_available()
    return "bf16-mixed" if (torch.cuda.is_bf16_supported() if on_gpu else has_bf16_instructions()) else "32-true"

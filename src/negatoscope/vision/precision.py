"""Where bf16 is worth its while."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import torch

Precision = Literal["float32", "bf16"]


def has_bf16_instructions(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the processor multiplies bf16 matrices itself: elsewhere autocast only makes it slower."""
    try:
        flags = next((line for line in cpuinfo.read_text().splitlines() if line.startswith("flags")), "").split()
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags


def fast_precision(device: torch.device | str) -> Precision:
    """What convolutions run fastest in on a device, at a rounding that pictures do not notice
    (benchmarks/backbones.py)."""
    on_gpu = torch.device(device).type == "cuda"
    return "bf16" if (torch.cuda.is_bf16_supported() if on_gpu else has_bf16_instructions()) else "float32"

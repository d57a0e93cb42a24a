"""Where bf16 is worth its while."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import torch

from negatoscope.errors import WrongUse

Precision = Literal["float32", "bf16"]


def has_bf16_instructions(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the processor multiplies bf16 matrices itself: elsewhere autocast only makes it slower."""
    try:
        flags = next((line for line in cpuinfo.read_text().splitlines() if line.startswith("flags")), "").split()
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags


def checked_device(name: str) -> torch.device:
    """Raises WrongUse for a device that does not exist, or not here."""
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise WrongUse(f"no device is called {name!r}", where="device", remedy="cpu, cuda, cuda:1 ...") from error
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise WrongUse(f"{name} is not to be had on this machine", where="device", remedy="take cpu")
    return device


def fast_precision(device: torch.device | str) -> Precision:
    """What convolutions run fastest in on a device, at a rounding that pictures do not notice
    (benchmarks/backbones.py)."""
    on_gpu = torch.device(device).type == "cuda"
    return "bf16" if (torch.cuda.is_bf16_supported() if on_gpu else has_bf16_instructions()) else "float32"

"""The authors' R2Gen beside ours, in one process, with the same weights: what the two R2Gen benchmarks share."""

from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path
from typing import Any

import torch

from negatoscope.models.published import from_published
from negatoscope.models.r2gen import R2Gen, R2GenSettings
from negatoscope.vision.encoder import Encoder

WORDS = 760
"""Entries of IU X-Ray's vocabulary."""
SETTINGS = {
    "d_model": 512,
    "d_ff": 512,
    "d_vf": 2048,
    "num_heads": 8,
    "num_layers": 3,
    "dropout": 0.1,
    "drop_prob_lm": 0.5,
    "max_seq_length": 60,
    "bos_idx": 0,
    "eos_idx": 0,
    "pad_idx": 0,
    "use_bn": 0,
    "rm_num_slots": 3,
    "rm_num_heads": 8,
    "rm_d_model": 512,
    "sample_method": "beam_search",
    "beam_size": 3,
    "temperature": 1.0,
    "sample_n": 1,
    "group_size": 1,
    "output_logsoftmax": 1,
    "decoding_constraint": 0,
    "block_trigrams": 1,
}


def r2gen_twice(repository: Path, seed: int = 0, *, dropout: bool = True) -> tuple[Any, R2Gen]:
    """Theirs and ours. What their code imports for images alone is replaced by nothing."""
    for name in ("cv2", "torchvision", "torchvision.models"):
        sys.modules[name] = types.ModuleType(name)
    sys.path.insert(0, str(repository))
    torch.Tensor.cuda = lambda self, *_, **__: self  # pyright: ignore[reportAttributeAccessIssue]
    none = {} if dropout else {"dropout": 0.0, "drop_prob_lm": 0.0}
    torch.manual_seed(seed)
    tokens = types.SimpleNamespace(idx2token={number: str(number) for number in range(1, WORDS + 1)})
    args = types.SimpleNamespace(**{**SETTINGS, **none})
    theirs = importlib.import_module("modules.encoder_decoder").EncoderDecoder(args, tokens)
    settings = R2GenSettings() if dropout else R2GenSettings(dropout=0.0, patch_dropout=0.0)
    ours = R2Gen(settings, Encoder(None, width=2048), WORDS + 1)
    ours.load_state_dict(from_published("r2gen", theirs.state_dict()))
    return theirs, ours

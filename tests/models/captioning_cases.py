"""What scripts/record_captioning.py records and test_captioning_published.py compares: models, weights, studies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import torch
from torch import Tensor, nn

from negatoscope.models import reporter_class
from negatoscope.models.base import Reporter
from negatoscope.studies.batch import Batch
from negatoscope.text.words import END
from tests.models.every import FEATURES, WORDS, CachedFeatures, batch_of

RECORDED = Path(__file__).parents[1] / "published"
BEAMS = (1, 3, 5)
MAX_WORDS = 14
_SIZES = {"width": 16, "attention_width": 12}

CASES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "show_tell": ("nic", {"width": 16}),
    "show_attend_tell": ("st", {**_SIZES, "features": "raw"}),
    # It concatenates the sentinel's embedding (of width d) with the patches' keys (of width a): a must be d there.
    "adaatt": ("adaptive-attention", {"width": 16, "attention_width": 16, "released": True}),
    "att2in": ("att2in", {**_SIZES, "features": "raw"}),
    "att2in2": ("att2in", {**_SIZES, "features": "relu"}),
    "updown": ("topdown", _SIZES),
}
"""The published name, ours, and the settings in which the two are the same model."""
_WITHOUT_BIAS = {"show_attend_tell": "lstm.of.0.bias"}
"""The published LSTM has none."""

_ENDS = {"show_tell": 0.5, "show_attend_tell": -1, "adaatt": 2.5, "att2in": 3, "att2in2": 0.5, "updown": 2.5}
"""How willing each is to end: drawn weights would write for ever, or nothing."""
NEVER_THE_LAST_WORD = ("show_tell", "show_attend_tell")
"""The old beam search takes the vocabulary's last word for <unk> and never writes it."""


def draw_weights(module: nn.Module, seed: int = 5) -> None:
    """Each tensor from its name and the seed alone: the same weights on any machine and any version of PyTorch."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            draw = np.random.default_rng([seed, crc32(name.encode())])
            scale = 2.0 / np.sqrt(parameter.shape[-1]) if parameter.dim() > 1 else 0.3
            parameter.copy_(torch.from_numpy(draw.standard_normal(tuple(parameter.shape)) * scale))


def reporter_of(case: str) -> Reporter:
    name, settings = CASES[case]
    kind = reporter_class(name)
    reporter = kind(kind.Settings(**settings), CachedFeatures(), WORDS)  # pyright: ignore[reportCallIssue]
    draw_weights(reporter)
    if case in _WITHOUT_BIAS:
        nn.init.zeros_(reporter.get_parameter(_WITHOUT_BIAS[case]))
    with torch.no_grad():
        reporter.get_parameter("out.weight").mul_(3)  # sure of its words, so that beams go apart
        reporter.get_parameter("out.bias")[END] += _ENDS[case]
    return reporter.eval()


def drawn_batch() -> Batch:
    """Four studies, padded reports, the second without its lateral view."""
    batch = batch_of()
    features = np.random.default_rng(11).standard_normal((len(batch), 2, 9, FEATURES)).astype(np.float32)
    return replace(batch, features=torch.from_numpy(features) * batch.present[:, :, None, None])


def recorded_batch(features: Tensor, words: Tensor, word_mask: Tensor) -> Batch:
    """The studies of a recording: a view of zeros is one that is missing."""
    ids = tuple(f"study-{row}" for row in range(len(features)))
    return Batch(ids, features.flatten(2).any(-1), features=features, words=words, word_mask=word_mask)

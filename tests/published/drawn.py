"""Weights and inputs of the recorded comparisons, drawn by name: the same here and in scripts/record_published.py."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import torch
from torch import Tensor

from negatoscope.studies.batch import Batch

WORDS = 23
FEATURES = 12
BEAMS = (1, 3, 5)
LONGEST = 12
"""Words a report."""
TINY = {
    "d_model": 16,
    "d_ff": 24,
    "d_vf": FEATURES,
    "num_heads": 4,
    "num_layers": 2,
    "rm_num_slots": 3,
    "rm_num_heads": 2,
    "rm_d_model": 16,
    "topk": 3,
    "cmm_size": 10,
    "cmm_dim": 16,
    "num_cluster": 14,
    "num_protype": 4,
    "d_txt_ebd": 6,
    "d_img_ebd": FEATURES,
}
"""Sizes, by the names of the published command lines."""


@dataclass(frozen=True)
class Lively:
    """Scales at which drawn weights write reports that differ between studies and beams, and end after some words."""

    matrices: float
    words: float
    out: float
    end: float
    """Added to the end's bias."""


LIVELY = {
    "r2gen": Lively(0.6, 1.2, 1.8, -1),
    "r2gencmn": Lively(1.4, 0.6, 2.4, -2),
    "xpronet": Lively(0.6, 0.9, 2.4, -1),
}
PUBLISHED = {
    "dropout": 0.1,
    "drop_prob_lm": 0.5,
    "max_seq_length": LONGEST,
    "bos_idx": 0,
    "eos_idx": 0,
    "pad_idx": 0,
    "use_bn": 0,
    "img_con_margin": 0.4,
    "txt_con_margin": 0.4,
    "sample_method": "beam_search",
    "beam_size": 3,
    "temperature": 1.0,
    "sample_n": 1,
    "group_size": 1,
    "output_logsoftmax": 1,
    "decoding_constraint": 0,
    "block_trigrams": 1,
}


def drawn_tensor(model: str, name: str, shape: tuple[int, ...]) -> Tensor:
    """Of a name in the authors' state dict: what they save twice is drawn the same twice."""
    name = name.replace("model.cmn.", "cmn.")
    values = torch.randn(shape, generator=torch.Generator().manual_seed(zlib.crc32(name.encode())))
    if name.endswith((".gamma", ".a_2")):
        return 1 + 0.1 * values
    lively = LIVELY[model]
    if name.endswith("logit.bias"):
        values[0] += lively.end
        return values
    if len(shape) == 1:
        return 0.1 * values
    scale = {"logit": lively.out, "lut": lively.words}.get(f".{name}".split(".")[-2], lively.matrices)
    return values * scale / shape[-1] ** 0.25


def drawn_inputs() -> tuple[Batch, Tensor]:
    """Three studies, and their labels as 0 and 1 (the second shows nothing but "No Finding")."""
    draw = torch.Generator().manual_seed(5)
    lengths = (11, 5, 8)
    words = torch.zeros(3, 14, dtype=torch.long)
    mask = torch.zeros(3, 14, dtype=torch.bool)
    for row, length in enumerate(lengths):
        words[row, 1 : length + 1] = torch.randint(1, WORDS, (length,), generator=draw)
        mask[row, : length + 2] = True
    features = torch.randn(3, 2, 9, FEATURES, generator=draw)
    labels = torch.zeros(3, 14)
    labels[0, [2, 10]] = 1
    labels[1, 0] = 1
    labels[2, [2, 4, 13]] = 1
    batch = Batch(
        ("a", "b", "c"),
        torch.ones(3, 2, dtype=torch.bool),
        features=features,
        words=words,
        word_mask=mask,
        labels=labels.masked_fill(labels == 0, torch.nan),
    )
    return batch, labels

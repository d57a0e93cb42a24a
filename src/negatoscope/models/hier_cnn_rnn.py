"""Hier-CNN-RNN, or HCR: the hierarchical baseline of CVSE (Ni et al. 2020) and WCL (Yan et al. 2021).

Jing, Xie, Xing: On the Automatic Generation of Medical Imaging Reports, ACL 2018, without its tags: a sentence LSTM
of one layer looks at the patches of both views, a word LSTM of two layers writes.

    alpha_n = softmax_n(w tanh(W_v v_n + W_h h_{s-1})),   ctx_s = sum_n alpha_n v_n

CVSE's variants: `complete`, `abnormal` and `shuffled` are what it is fed with (`data.reports` of a recipe); with
co-attention it is co_attention.py, with dual decoders hlstm_dual.py, both with two layers of words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from negatoscope.models.base import Encoder
from negatoscope.models.hierarchical import Hierarchical, HierarchicalSettings, SentenceLSTM, WordLSTM
from negatoscope.models.recurrent import AdditiveAttention, Attended
from negatoscope.vision.sight import Sight


class LookingPlanner(SentenceLSTM):
    """Looks at the patches anew for each sentence."""

    def __init__(self, d: int) -> None:
        super().__init__(d)
        self.attention = AdditiveAttention(d, d, d)

    def see(self, sight: Sight) -> Attended:
        return self.attention.of(sight)

    def context(self, seen: Attended, h: Tensor) -> tuple[Tensor, Tensor]:
        return self.attention(h, seen)


class HierCNNRNNSettings(HierarchicalSettings):
    word_layers: int = 2


class HierCNNRNN(Hierarchical):
    Settings = HierCNNRNNSettings
    tiny: ClassVar[Mapping[str, Any]] = {"width": 16, "dropout": 0.1}
    name = "hcr"
    paper = "Jing et al.: On the Automatic Generation of Medical Imaging Reports (as CVSE and WCL compare with it)"
    year = 2018

    def __init__(self, settings: HierCNNRNNSettings, encoder: Encoder, words: int) -> None:
        super().__init__(settings, encoder, words)
        self.planner = LookingPlanner(settings.width)
        self.writer = WordLSTM(words, settings.width, settings.word_layers, settings.dropout)

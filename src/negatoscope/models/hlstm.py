"""HLSTM (Krause, Johnson, Krishna, Fei-Fei: A Hierarchical Approach for Generating Descriptive Image Paragraphs, CVPR
2017).

    h_s = LSTM(v, h_{s-1})              the sentence LSTM reads the overall image at every step
    u_s = sigmoid(w h_s)                stop
    t_s = FC_2 ReLU(FC_1 h_s)           topic
    word LSTM(t_s, start, w_1, w_2, ...)

v is the mean over the patches of all views, as in Contrastive Attention's description of this host; Krause et al.
pool the largest response over detected regions, which a chest film has not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from negatoscope.models.base import Encoder, State
from negatoscope.models.hierarchical import Hierarchical, HierarchicalSettings, Memory, Plan, WordLSTM, one_step
from negatoscope.vision.sight import Sight


@dataclass(frozen=True)
class Overall(State):
    v: Tensor  # (B, d)


class OverallPlanner(nn.Module):
    """A sentence LSTM that sees the same v at every sentence."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(d, d, batch_first=True)
        self.stop = nn.Linear(d, 1)
        self.topic = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d))  # FC_1, FC_2

    def start(self, sight: Sight) -> tuple[Overall, Memory]:
        nothing = torch.zeros_like(sight.overall)
        return Overall(sight.overall), (nothing, nothing)

    def forward(self, seen: Overall, memory: Memory) -> tuple[Plan, Memory]:
        v = seen.v.repeat_interleave(len(memory[0]) // len(seen.v), 0)  # (R, d)
        h, c = one_step(self.lstm, v, memory)
        return Plan(self.topic(h), self.stop(h).squeeze(-1)), (h, c)


class HLSTMSettings(HierarchicalSettings):
    word_layers: int = 2


class HLSTM(Hierarchical):
    Settings = HLSTMSettings
    tiny: ClassVar[Mapping[str, Any]] = {"width": 16, "dropout": 0.1}
    name = "hlstm"
    paper = "Krause et al.: A Hierarchical Approach for Generating Descriptive Image Paragraphs"
    year = 2017

    def __init__(self, settings: HLSTMSettings, encoder: Encoder, words: int) -> None:
        super().__init__(settings, encoder, words)
        d = settings.width
        self.planner = OverallPlanner(d)
        self.writer = WordLSTM(words, d, settings.word_layers, settings.dropout)

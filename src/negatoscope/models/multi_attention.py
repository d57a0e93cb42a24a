"""Multi-Attention (Huang, Yan, Li, Li, Li, Zhang: Multi-Attention and Incorporating Background Information Model for
Chest X-Ray Image Report Generation, IEEE Access 2019), the strongest host of Contrastive Attention.

Each sentence weighs the channels of the patches, then looks at the patches so weighed. The forms of both are those of
SCA-CNN (Chen et al., CVPR 2017, eq. 4 to 8, channels first):

    beta    = d softmax_d(W_b tanh((w_c * mean_n v_n + b_c) + W_{hc} h_{s-1}))      channel attention
    x_n     = beta v_n
    alpha_n = softmax_n(w tanh(W_s x_n + W_{hs} h_{s-1}))                           spatial attention
    ctx_s   = sum_n alpha_n x_n

with beta's mean at 1, so that features keep their size. What the paper writes from the patient's background (the
indication) is left out: Contrastive Attention compares hosts that see images alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from negatoscope.models.base import Encoder, State
from negatoscope.models.hierarchical import Hierarchical, HierarchicalSettings, SentenceLSTM, WordLSTM
from negatoscope.models.recurrent import masked_softmax
from negatoscope.vision.sight import Sight


@dataclass(frozen=True)
class Channels(State):
    v: Tensor  # (B, N, d)
    overall: Tensor  # (B, d), the mean of each channel
    mask: Tensor  # (B, N)


class MultiAttentionPlanner(SentenceLSTM):
    def __init__(self, d: int) -> None:
        super().__init__(d)
        self.channel_scale, self.channel_shift = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d))  # w_c, b_c
        self.channel_of_state = nn.Linear(d, d, bias=False)  # W_hc
        self.channel = nn.Linear(d, d)  # W_b
        self.patch_of_values, self.patch_of_state = nn.Linear(d, d), nn.Linear(d, d, bias=False)  # W_s, W_hs
        self.patch = nn.Linear(d, 1, bias=False)  # w

    def see(self, sight: Sight) -> Channels:
        return Channels(sight.patches, sight.overall, sight.mask)

    def context(self, seen: Channels, h: Tensor) -> tuple[Tensor, Tensor]:
        h = h.view(len(seen.v), -1, h.shape[-1])  # (B, k, d)
        beta = self.channels(seen.overall, h)  # (B, k, d)
        x = beta.unsqueeze(2) * seen.v.unsqueeze(1)  # (B, k, N, d)
        score = self.patch((self.patch_of_values(x) + self.patch_of_state(h).unsqueeze(2)).tanh()).squeeze(-1)
        alpha = masked_softmax(score, seen.mask)  # (B, k, N)
        ctx = beta * (alpha @ seen.v.to(alpha.dtype))  # sum_n alpha_n beta v_n
        return ctx.flatten(0, 1), alpha.flatten(0, 1)

    def channels(self, overall: Tensor, h: Tensor) -> Tensor:
        told = (self.channel_scale * overall + self.channel_shift).unsqueeze(1) + self.channel_of_state(h)
        return h.shape[-1] * self.channel(told.tanh()).softmax(-1)


class MultiAttention(Hierarchical):
    Settings = HierarchicalSettings
    tiny: ClassVar[Mapping[str, Any]] = {"width": 16, "dropout": 0.1}
    name = "multi-attention"
    paper = (
        "Huang et al.: Multi-Attention and Incorporating Background Information Model "
        "for Chest X-Ray Image Report Generation"
    )
    year = 2019

    def __init__(self, settings: HierarchicalSettings, encoder: Encoder, words: int) -> None:
        super().__init__(settings, encoder, words)
        self.planner = MultiAttentionPlanner(settings.width)
        self.writer = WordLSTM(words, settings.width, settings.word_layers, settings.dropout)

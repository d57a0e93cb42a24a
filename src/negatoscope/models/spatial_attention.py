"""Spatial-Attention (Lu, Xiong, Parikh, Socher: Knowing When to Look, CVPR 2017, section 2.2).

    v_i = ReLU(W_a a_i),  v^g = ReLU(W_b mean(a_i)),  x_t = [w_t; v^g]               eq. 14 to 16
    h_t, m_t = LSTM(x_t, h_{t-1}, m_{t-1})                                           eq. 4
    z_t = w_h^T tanh(W_v V + W_g h_t),  alpha_t = softmax(z_t)                       eq. 6 and 7
    c_t = sum_i alpha_ti v_i                                                         eq. 5 and 8
    p_t = softmax(W_p (c_t + h_t))                                                   eq. 13, with c_t for its sum

Unlike in Show, Attend and Tell, it is the LSTM's new state that looks, and what it sees is not fed back: all words of a
report look at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from negatoscope.models.base import Encoder, Reading, Reporter, State, log_probabilities, per_study
from negatoscope.models.recurrent import (
    LSTM,
    AdditiveAttention,
    Attended,
    AttendingSettings,
    Projection,
    nothing,
    with_study,
    words_as,
)
from negatoscope.studies.batch import Batch
from negatoscope.vision.sight import Sight


@dataclass(frozen=True)
class SpatialAttentionState(State):
    h: Tensor  # (R, d)
    m: Tensor  # (R, d)
    seen: Attended = per_study()
    given: Tensor = per_study()  # (B, 4 d): what v^g adds to the gates at each word
    looked: Tensor | None = None  # (R, N) alpha of the word just written


class SpatialAttention(Reporter):
    Settings = AttendingSettings
    tiny: ClassVar[Mapping[str, Any]] = {"width": 16, "attention_width": 12, "dropout": 0.2}
    name = "spatial-attention"
    paper = "Lu et al.: Knowing When to Look: Adaptive Attention via A Visual Sentinel (section 2.2, without it)"
    year = 2017

    def __init__(self, settings: AttendingSettings, encoder: Encoder, words: int) -> None:
        super().__init__(encoder, words)
        d = self.width = settings.width
        self.image = Projection(encoder.width, d, settings.dropout, relu=True, apart=True)  # W_a, W_b
        self.embed = words_as(d, words, settings.dropout)
        self.lstm = LSTM(d, d, d=d)
        self.attention = AdditiveAttention(d, d, settings.attention_width)  # W_v, W_g, w_h
        self.drop = nn.Dropout(settings.dropout)
        self.out = nn.Linear(d, words)  # W_p

    def look(self, batch: Batch) -> Sight:
        return self.image(self.encoder(batch))

    def start(self, sight: Sight) -> SpatialAttentionState:
        zero = nothing(sight, self.width)
        return SpatialAttentionState(zero, zero, self.attention.of(sight), self.lstm.of[1](sight.overall))

    def step(self, words: Tensor, state: SpatialAttentionState) -> tuple[Tensor, SpatialAttentionState]:
        given = with_study(self.lstm.of[0](self.embed(words)), state.given)  # (R, 4 d)
        h, m = self.lstm(given, state.h, state.m)
        c, alpha = self.attention(h, state.seen)
        return log_probabilities(self.out(c + h)), SpatialAttentionState(h, m, state.seen, state.given, alpha)

    def read(self, sight: Sight, words: Tensor, mask: Tensor) -> Reading:
        state = self.start(sight)
        h, m, steps = state.h, state.m, []
        given = self.lstm.of[0](self.embed(words)) + state.given.unsqueeze(1)  # (B, T, 4 d)
        for each in given.unbind(1):
            h, m = self.lstm(each, h, m)
            steps.append(h)
        hidden = self.drop(torch.stack(steps, 1))  # (B, T, d)
        c, alpha = self.attention(hidden.flatten(0, 1), state.seen)  # (B T, d), (B T, N)
        logits = self.out(self.drop(c.view_as(hidden) + hidden))
        return Reading(logits, hidden, mask, sight, {"attention": alpha.unflatten(0, words.shape)})

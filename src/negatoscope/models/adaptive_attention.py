"""Adaptive-Attention (Lu, Xiong, Parikh, Socher: Knowing When to Look, CVPR 2017, section 2.3), with its sentinel.

    v_i = ReLU(W_a a_i),  v^g = ReLU(W_b mean(a_i)),  x_t = [w_t; v^g]               eq. 14 to 16
    h_t, m_t = LSTM(x_t, h_{t-1}, m_{t-1})                                           eq. 4
    g_t = sigmoid(W_x x_t + W_h h_{t-1}),  s_t = g_t tanh(m_t)                       eq. 9 and 10
    z_t = w_h^T tanh(W_v V + W_g h_t)                                                eq. 6
    alpha^_t = softmax([z_t; w_h^T tanh(W_s s_t + W_g h_t)]),  beta_t its last       eq. 12
    c^_t = sum_i alpha^_ti v_i + beta_t s_t                                          eq. 8 and 11
    p_t = softmax(W_p (c^_t + h_t))                                                  eq. 13

beta_t near 1: the word was written from what had been said, not from what was seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from negatoscope.models.base import Encoder, Reading, Reporter, State, log_probabilities, per_study
from negatoscope.models.recurrent import (
    AdditiveAttention,
    Attended,
    AttendingSettings,
    Gates,
    Projection,
    masked_softmax,
    nothing,
    with_study,
    words_as,
)
from negatoscope.studies.batch import Batch
from negatoscope.vision.sight import Sight


class AdaptiveAttentionSettings(AttendingSettings):
    released: bool = False
    """The layers that the authors' code has beyond the paper: a ReLU over word embeddings; s_t through a ReLU layer and
    h_t through a tanh layer before they are compared and added; another tanh layer before W_p."""


@dataclass(frozen=True)
class AdaptiveAttentionState(State):
    h: Tensor  # (R, d)
    m: Tensor  # (R, d)
    seen: Attended = per_study()
    given: Tensor = per_study()  # (B, 5 d): what v^g adds to the gates at each word
    looked: Tensor | None = None  # (R, N) alpha^ of the word just written: its sum is 1 - beta


class SentinelLSTM(Gates):
    """An LSTM with a fifth gate, which decides what of the cell the sentinel shows."""

    units = 5

    def forward(self, given: Tensor, h: Tensor, m: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """given (R, 5 d) -> h_t, m_t and s_t, (R, d)."""
        i, f, g, o, show = (given + self.of_hidden(h)).chunk(5, -1)
        m = f.sigmoid() * m + i.sigmoid() * g.tanh()
        held = m.tanh()
        return o.sigmoid() * held, m, show.sigmoid() * held


class SentinelAttention(AdditiveAttention):
    """eq. 6, 8, 11, 12: each word chooses among the patches and its own sentinel."""

    def __init__(self, d: int, a: int) -> None:
        super().__init__(d, d, a)
        self.W_s = nn.Linear(d, a, bias=False)

    def forward(self, h: Tensor, s: Tensor, seen: Attended) -> tuple[Tensor, Tensor]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """h and s (R, d) -> c^ (R, d) and alpha^ over the patches (R, N)."""
        studies = len(seen.patches)
        h, s = (rows.view(studies, -1, rows.shape[-1]) for rows in (h, s))  # (B, k, d)
        of_sentinel = self.w((self.W_s(s) + self.U(h)).tanh())  # (B, k, 1)
        scores = torch.cat([self.scores(h, seen.keys), of_sentinel], -1)  # (B, k, N + 1)
        mask = torch.cat([seen.mask, seen.mask.new_ones(studies, 1)], 1)
        alpha, beta = masked_softmax(scores, mask).split([seen.mask.shape[1], 1], -1)
        context = alpha @ seen.patches.to(alpha.dtype) + beta * s
        return context.flatten(0, 1), alpha.flatten(0, 1)


class AdaptiveAttention(Reporter):
    Settings = AdaptiveAttentionSettings
    tiny: ClassVar[Mapping[str, Any]] = {"width": 16, "attention_width": 12, "dropout": 0.2}
    name = "adaptive-attention"
    paper = "Lu et al.: Knowing When to Look: Adaptive Attention via A Visual Sentinel for Image Captioning"
    year = 2017

    def __init__(self, settings: AdaptiveAttentionSettings, encoder: Encoder, words: int) -> None:
        super().__init__(encoder, words)
        d, p = settings.width, settings.dropout
        self.width = d
        self.image = Projection(encoder.width, d, p, relu=True, apart=True)  # W_a, W_b
        self.embed = words_as(d, words, p, relu=settings.released)
        self.lstm = SentinelLSTM(d, d, d=d)
        self.attention = SentinelAttention(d, settings.attention_width)
        self.of_sentinel, self.of_hidden, self.before_out = (
            (_layer(d, nn.ReLU()), _layer(d, nn.Tanh()), _layer(d, nn.Tanh()))
            if settings.released
            else (nn.Identity(), nn.Identity(), nn.Identity())
        )
        self.drop = nn.Dropout(p)
        self.out = nn.Linear(d, words)  # W_p

    def look(self, batch: Batch) -> Sight:
        return self.image(self.encoder(batch))

    def start(self, sight: Sight) -> AdaptiveAttentionState:
        zero = nothing(sight, self.width)
        return AdaptiveAttentionState(zero, zero, self.attention.of(sight), self.lstm.of[1](sight.overall))

    def say(self, h: Tensor, s: Tensor, seen: Attended) -> tuple[Tensor, Tensor]:
        """h and s (R, d) -> logits (R, W), alpha^ (R, N)."""
        h, s = self.of_hidden(self.drop(h)), self.of_sentinel(self.drop(s))
        context, alpha = self.attention(h, s, seen)
        return self.out(self.drop(self.before_out(context + h))), alpha

    def step(self, words: Tensor, state: AdaptiveAttentionState) -> tuple[Tensor, AdaptiveAttentionState]:
        given = with_study(self.lstm.of[0](self.embed(words)), state.given)  # (R, 5 d)
        h, m, s = self.lstm(given, state.h, state.m)
        logits, alpha = self.say(h, s, state.seen)
        return log_probabilities(logits), AdaptiveAttentionState(h, m, state.seen, state.given, alpha)

    def read(self, sight: Sight, words: Tensor, mask: Tensor) -> Reading:
        state = self.start(sight)
        h, m, steps = state.h, state.m, []
        given = self.lstm.of[0](self.embed(words)) + state.given.unsqueeze(1)  # (B, T, 5 d)
        for each in given.unbind(1):
            h, m, s = self.lstm(each, h, m)
            steps.append((h, s))
        hidden, sentinels = (torch.stack(each, 1) for each in zip(*steps))  # (B, T, d) each
        logits, alpha = self.say(hidden.flatten(0, 1), sentinels.flatten(0, 1), state.seen)  # all words look at once
        alpha = alpha.unflatten(0, words.shape)  # (B, T, N)
        extra = {"attention": alpha, "sentinel": 1 - alpha.sum(-1)}
        return Reading(logits.unflatten(0, words.shape), hidden, mask, sight, extra)


def _layer(d: int, bend: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Linear(d, d), bend)

"""Att2in (Rennie, Marcheret, Mroueh, Ross, Goel: Self-critical Sequence Training, CVPR 2017, section 2).

    x_t = E 1_{w_{t-1}}
    alpha_t = softmax over i of  W tanh(W_aI I_i + W_ah h_{t-1} + b_a),   I_t = sum_i alpha_ti I_i
    i_t, f_t, o_t = sigmoid(W_x x_t + W_h h_{t-1} + b)                      one set of weights each
    c_t = i_t phi(W_zx x_t + W_zI I_t + W_zh h_{t-1} + b_z) + f_t c_{t-1}   the image enters the cell alone
    h_t = o_t tanh(c_t),   s_t = W_s h_t

phi takes the larger of two units each (maxout); c_0 = h_0 = 0.
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
    Features,
    Gates,
    nothing,
    patches_as,
    words_as,
)
from negatoscope.studies.batch import Batch
from negatoscope.vision.sight import Sight


class Att2inSettings(AttendingSettings):
    features: Features = "linear"
    """raw: as in the paper. linear: as Contrastive Attention feeds its hosts. relu: with a ReLU over words too, the
    field's "att2in2"."""


@dataclass(frozen=True)
class Att2inState(State):
    h: Tensor  # (R, d)
    c: Tensor  # (R, d)
    seen: Attended = per_study()
    looked: Tensor | None = None  # (R, N) alpha of the word just written


class MaxoutLSTM(Gates):
    """Three gates, and two units for phi to choose from."""

    units = 5

    def __init__(self, words: int, image: int, *, d: int) -> None:
        super().__init__(words, d=d)
        self.of_image = nn.Linear(image, 2 * d)  # W_zI

    def forward(self, given: Tensor, image: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """given (R, 5 d): what the word adds; I_t (R, d_image) -> h_t and c_t, (R, d)."""
        gates, z = (given + self.of_hidden(h)).tensor_split([3 * h.shape[-1]], -1)
        i, f, o = gates.sigmoid().chunk(3, -1)
        one, other = (z + self.of_image(image)).chunk(2, -1)
        c = i * torch.maximum(one, other) + f * c
        return o * c.tanh(), c


class Att2in(Reporter):
    Settings = Att2inSettings
    tiny: ClassVar[Mapping[str, Any]] = {"width": 16, "attention_width": 12, "dropout": 0.2}
    name = "att2in"
    paper = "Rennie et al.: Self-critical Sequence Training for Image Captioning"
    year = 2017

    def __init__(self, settings: Att2inSettings, encoder: Encoder, words: int) -> None:
        super().__init__(encoder, words)
        d, p, relu = settings.width, settings.dropout, settings.features == "relu"
        self.depth = d
        D = self.width = encoder.width if settings.features == "raw" else d
        self.image = patches_as(settings.features, encoder.width, D, p)
        self.embed = words_as(d, words, p, relu=relu)  # E
        self.attention = AdditiveAttention(D, d, settings.attention_width)  # W_aI, W_ah, W
        self.lstm = MaxoutLSTM(d, D, d=d)
        self.drop = nn.Dropout(p)
        self.out = nn.Linear(d, words)  # W_s

    def look(self, batch: Batch) -> Sight:
        return self.image(self.encoder(batch))

    def start(self, sight: Sight) -> Att2inState:
        zero = nothing(sight, self.depth)
        return Att2inState(zero, zero, self.attention.of(sight))

    def step(self, words: Tensor, state: Att2inState) -> tuple[Tensor, Att2inState]:
        image, alpha = self.attention(state.h, state.seen)
        h, c = self.lstm(self.lstm.of[0](self.embed(words)), image, state.h, state.c)
        return log_probabilities(self.out(h)), Att2inState(h, c, state.seen, alpha)

    def read(self, sight: Sight, words: Tensor, mask: Tensor) -> Reading:
        state = self.start(sight)
        h, c, steps = state.h, state.c, []
        for given in self.lstm.of[0](self.embed(words)).unbind(1):  # (B, 5 d) a word
            image, alpha = self.attention(h, state.seen)
            h, c = self.lstm(given, image, h, c)
            steps.append((h, alpha))
        hidden, alpha = (torch.stack(each, 1) for each in zip(*steps))  # (B, T, d), (B, T, N)
        return Reading(self.out(self.drop(hidden)), hidden, mask, sight, {"attention": alpha})

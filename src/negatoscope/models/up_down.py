"""Up-Down (Anderson, He, Buehler, Teney, Johnson, Gould, Zhang: Bottom-Up and Top-Down Attention, CVPR 2018).

    x^1_t = [h^2_{t-1}; v; W_e Pi_t],  v = mean v_i,  h^1_t = LSTM(x^1_t, h^1_{t-1})     eq. 1 and 2
    a_ti = w_a^T tanh(W_va v_i + W_ha h^1_t),  alpha_t = softmax(a_t)                    eq. 3 and 4
    v^_t = sum_i alpha_ti v_i                                                            eq. 5
    x^2_t = [v^_t; h^1_t],  h^2_t = LSTM(x^2_t, h^2_{t-1})                               eq. 1 and 6
    p(y_t) = softmax(W_p h^2_t + b_p)                                                    eq. 7

The paper's v_i are detected regions; of a radiograph there are patches of the last feature map (its "ResNet baseline").
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
    Features,
    nothing,
    patches_as,
    with_study,
    words_as,
)
from negatoscope.studies.batch import Batch
from negatoscope.vision.sight import Sight


class UpDownSettings(AttendingSettings):
    features: Features = "linear"
    """relu: as the field's code has it, with a ReLU over words too, and v with weights of its own."""


class TopDownSettings(UpDownSettings):
    features: Features = "relu"


@dataclass(frozen=True)
class UpDownState(State):
    h1: Tensor  # (R, d)
    c1: Tensor  # (R, d)
    h2: Tensor  # (R, d)
    c2: Tensor  # (R, d)
    seen: Attended = per_study()
    given: Tensor = per_study()  # (B, 4 d): what v adds to the first LSTM's gates at each word
    looked: Tensor | None = None  # (R, N) alpha of the word just written


class UpDown(Reporter):
    Settings = UpDownSettings
    tiny: ClassVar[Mapping[str, Any]] = {"width": 16, "attention_width": 12, "dropout": 0.2}
    name = "up-down"
    paper = "Anderson et al.: Bottom-Up and Top-Down Attention for Image Captioning and Visual Question Answering"
    year = 2018

    def __init__(self, settings: UpDownSettings, encoder: Encoder, words: int) -> None:
        super().__init__(encoder, words)
        d, p, relu = settings.width, settings.dropout, settings.features == "relu"
        self.depth = d
        D = self.width = encoder.width if settings.features == "raw" else d
        self.image = patches_as(settings.features, encoder.width, D, p, apart=relu)
        self.embed = words_as(d, words, p, relu=relu)  # W_e
        self.attending = LSTM(d, D, d, d=d)  # from the word, v, and h^2_{t-1}
        self.attention = AdditiveAttention(D, d, settings.attention_width)  # W_va, W_ha, w_a
        self.speaking = LSTM(D, d, d=d)  # from v^_t and h^1_t
        self.drop = nn.Dropout(p)
        self.out = nn.Linear(d, words)  # W_p, b_p

    def look(self, batch: Batch) -> Sight:
        return self.image(self.encoder(batch))

    def start(self, sight: Sight) -> UpDownState:
        zero = nothing(sight, self.depth)
        return UpDownState(zero, zero, zero, zero, self.attention.of(sight), self.attending.of[1](sight.overall))

    def turn(self, given: Tensor, state: UpDownState) -> UpDownState:
        """given (R, 4 d): what the word and v add to the first LSTM's gates."""
        h1, c1 = self.attending(given + self.attending.of[2](state.h2), state.h1, state.c1)
        v, alpha = self.attention(h1, state.seen)  # (R, D), (R, N)
        h2, c2 = self.speaking(self.speaking.of[0](v) + self.speaking.of[1](h1), state.h2, state.c2)
        return UpDownState(h1, c1, h2, c2, state.seen, state.given, alpha)

    def step(self, words: Tensor, state: UpDownState) -> tuple[Tensor, UpDownState]:
        state = self.turn(with_study(self.attending.of[0](self.embed(words)), state.given), state)
        return log_probabilities(self.out(state.h2)), state

    def read(self, sight: Sight, words: Tensor, mask: Tensor) -> Reading:
        state, hidden, looked = self.start(sight), [], []
        given = self.attending.of[0](self.embed(words)) + state.given.unsqueeze(1)  # (B, T, 4 d)
        for each in given.unbind(1):
            state = self.turn(each, state)
            hidden.append(state.h2)
            looked.append(state.looked)
        said = torch.stack(hidden, 1)  # (B, T, d)
        return Reading(self.out(self.drop(said)), said, mask, sight, {"attention": torch.stack(looked, 1)})


class TopDown(UpDown):
    """Up-Down in the form that the field's code gives it: TopDown in WCL's and R2Gen's tables."""

    Settings = TopDownSettings
    name = "topdown"

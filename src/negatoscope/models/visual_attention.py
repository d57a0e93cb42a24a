"""Visual-Attention (Xu, Ba, Kiros, Cho, Courville, Salakhutdinov, Zemel, Bengio: Show, Attend and Tell, ICML 2015).

The soft attention of section 4.2:

    c_0 = f_init,c(mean a_i),  h_0 = f_init,h(mean a_i)                                    section 3.1.2
    e_ti = f_att(a_i, h_{t-1}),  alpha_t = softmax(e_t)                                    eq. 4 and 5
    z_t = beta_t sum_i alpha_ti a_i,  beta_t = sigmoid(f_beta(h_{t-1}))                    eq. 6 and 13, section 4.2.1
    h_t, c_t = LSTM(E y_{t-1}, h_{t-1}, z_t)                                               eq. 1 to 3
    p(y_t) ~ exp(L_o (E y_{t-1} + L_h h_t + L_z z_t))                                      eq. 7

The paper's penalty (1 - sum_t alpha_ti)^2 is a loss: it reads `Reading.extra["attention"]`.
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
    patches_as,
    words_as,
)
from negatoscope.studies.batch import Batch
from negatoscope.vision.sight import Sight


class VisualAttentionSettings(AttendingSettings):
    features: Features = "linear"


@dataclass(frozen=True)
class VisualAttentionState(State):
    h: Tensor  # (R, d)
    c: Tensor  # (R, d)
    seen: Attended = per_study()
    looked: Tensor | None = None  # (R, N) alpha of the word just written


class VisualAttention(Reporter):
    Settings = VisualAttentionSettings
    tiny: ClassVar[Mapping[str, Any]] = {"width": 16, "attention_width": 12, "dropout": 0.2}
    name = "visual-attention"
    paper = "Xu et al.: Show, Attend and Tell: Neural Image Caption Generation with Visual Attention"
    year = 2015

    def __init__(self, settings: VisualAttentionSettings, encoder: Encoder, words: int) -> None:
        super().__init__(encoder, words)
        m = d = settings.width
        D = self.width = encoder.width if settings.features == "raw" else d
        self.image = patches_as(settings.features, encoder.width, D, settings.dropout)
        self.embed = words_as(m, words, settings.dropout)  # E
        self.attention = AdditiveAttention(D, d, settings.attention_width)  # f_att
        self.lstm = LSTM(m, D, d=d)
        self.drop = nn.Dropout(settings.dropout)
        self.out = nn.Linear(m, words)  # L_o
        self.add_own_parts(D, d, m)

    def add_own_parts(self, D: int, d: int, m: int) -> None:
        """What `st` has otherwise."""
        self.first_h, self.first_c = (nn.Sequential(nn.Linear(D, d), nn.Tanh()) for _ in range(2))  # f_init
        self.gate = nn.Linear(d, 1)  # f_beta
        self.L_h, self.L_z = nn.Linear(d, m, bias=False), nn.Linear(D, m, bias=False)

    def first(self, overall: Tensor) -> tuple[Tensor, Tensor]:
        """h_0 and c_0, (B, d)."""
        return self.first_h(overall), self.first_c(overall)

    def weigh(self, z: Tensor, h: Tensor) -> Tensor:
        return self.gate(h).sigmoid() * z

    def say(self, word: Tensor, h: Tensor, z: Tensor) -> Tensor:
        """eq. 7: E y (..., m), h (..., d), z (..., D) -> logits (..., W)."""
        return self.out(self.drop(word + self.L_h(self.drop(h)) + self.L_z(z)))

    def look(self, batch: Batch) -> Sight:
        return self.image(self.encoder(batch))

    def start(self, sight: Sight) -> VisualAttentionState:
        h, c = (first.float() for first in self.first(sight.overall))  # the cell adds up in float32 under autocast too
        return VisualAttentionState(h, c, self.attention.of(sight))

    def turn(self, given: Tensor, h: Tensor, c: Tensor, seen: Attended) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """given (R, 4 d): what the word adds to the gates -> h, c, z and alpha."""
        z, alpha = self.attention(h, seen)  # (R, D), (R, N)
        z = self.weigh(z, h)
        h, c = self.lstm(given + self.lstm.of[1](z), h, c)
        return h, c, z, alpha

    def step(self, words: Tensor, state: VisualAttentionState) -> tuple[Tensor, VisualAttentionState]:
        word = self.embed(words)  # (R, m)
        h, c, z, alpha = self.turn(self.lstm.of[0](word), state.h, state.c, state.seen)
        return log_probabilities(self.say(word, h, z)), VisualAttentionState(h, c, state.seen, alpha)

    def read(self, sight: Sight, words: Tensor, mask: Tensor) -> Reading:
        state = self.start(sight)
        h, c, steps = state.h, state.c, []
        word = self.embed(words)  # (B, T, m)
        for given in self.lstm.of[0](word).unbind(1):
            h, c, z, alpha = self.turn(given, h, c, state.seen)
            steps.append((h, z, alpha))
        hidden, z, alpha = (torch.stack(each, 1) for each in zip(*steps))  # (B, T, d), (B, T, D), (B, T, N)
        return Reading(self.say(word, hidden, z), hidden, mask, sight, {"attention": alpha})


class ST(VisualAttention):
    """The shorter form that the field's code gives this model: WCL's ST, "CNN+LSTM with attention".

    h_0 = c_0 = W mean(a_i);  z_t ungated;  p(y_t) ~ exp(L h_t).
    """

    name = "st"

    def add_own_parts(self, D: int, d: int, m: int) -> None:
        self.first_both = nn.Linear(D, d)

    def first(self, overall: Tensor) -> tuple[Tensor, Tensor]:
        both = self.first_both(overall)
        return both, both

    def weigh(self, z: Tensor, h: Tensor) -> Tensor:
        return z

    def say(self, word: Tensor, h: Tensor, z: Tensor) -> Tensor:
        return self.out(self.drop(h))

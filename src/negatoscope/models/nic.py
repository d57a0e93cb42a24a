"""NIC, Show and Tell (Vinyals, Toshev, Bengio, Erhan: Show and Tell: A Neural Image Caption Generator, CVPR 2015).

    x_{-1} = W_i v              the image, once, as if it were a word         (paper eq. 10)
    x_t    = W_e S_t            the word just read                            (eq. 11)
    p_{t+1} = softmax(W_o LSTM(x_t))                                          (eq. 12)

v is the mean over the patches of all views that a study has.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from negatoscope.models.base import Encoder, Reading, Reporter, State, log_probabilities
from negatoscope.settings import Settings
from negatoscope.studies.batch import Batch
from negatoscope.vision.sight import Sight


class NICSettings(Settings):
    width: int = 512
    """Width of word embeddings and of the LSTM."""
    layers: int = 1
    dropout: float = 0.5


@dataclass(frozen=True)
class NICState(State):
    h: Tensor  # (R, layers, d)
    c: Tensor  # (R, layers, d)


class NIC(Reporter):
    Settings = NICSettings
    name = "nic"
    paper = "Vinyals et al.: Show and Tell: A Neural Image Caption Generator"
    year = 2015

    def __init__(self, settings: NICSettings, encoder: Encoder, words: int) -> None:
        super().__init__(encoder, words)
        d = self.width = settings.width
        self.image = nn.Linear(encoder.width, d)  # W_i
        self.embed = nn.Embedding(words, d)  # W_e
        self.lstm = nn.LSTM(
            d,
            d,
            settings.layers,
            bias=False,
            dropout=settings.dropout if settings.layers > 1 else 0.0,
            batch_first=True,
        )
        self.drop = nn.Dropout(settings.dropout)
        self.out = nn.Linear(d, words)  # W_o
        for table in (self.embed, self.out):
            nn.init.uniform_(table.weight, -0.1, 0.1)
        nn.init.zeros_(self.out.bias)

    def look(self, batch: Batch) -> Sight:
        seen = self.encoder(batch)
        return seen.with_features(self.image(seen.patches), self.image(seen.overall))  # (B, N, d), (B, d)

    def start(self, sight: Sight) -> NICState:
        _, (h, c) = self.lstm(sight.overall.unsqueeze(1))  # x_{-1}: (B, 1, d)
        return NICState(h.transpose(0, 1), c.transpose(0, 1))

    def step(self, words: Tensor, state: NICState) -> tuple[Tensor, NICState]:
        memory = (state.h.transpose(0, 1).contiguous(), state.c.transpose(0, 1).contiguous())
        out, (h, c) = self.lstm(self.embed(words).unsqueeze(1), memory)
        return log_probabilities(self.out(self.drop(out[:, 0]))), NICState(h.transpose(0, 1), c.transpose(0, 1))

    def read(self, sight: Sight, words: Tensor, mask: Tensor) -> Reading:
        x = torch.cat([sight.overall.unsqueeze(1), self.embed(words)], 1)  # (B, 1 + T, d)
        hidden = self.lstm(x)[0][:, 1:]  # (B, T, d)
        return Reading(self.out(self.drop(hidden)), hidden, mask, sight)

"""The writer of the reporter that ships: it is told what to say, and says it as training reports do.

    told = [findings to be named; phi]                what the images came to; the place of a report like the one wanted
    u    = told W_u                                   added to every word's input
    x_t  = W_e S_t
    p_{t+1} = softmax(W_o dropout(LSTM(x_t + u)))

While it learns, the findings are those that the labeler reads off the very report to be written, so it learns to obey:
whoever asks for an effusion gets a report of one. Which findings to ask for is decided outside, by calibrated
probabilities. Nothing here sees the image; where a sentence comes from is read off the Recogniser's maps.

Most reports near a normal one are normal, so the place speaks against what is asked for. `Guided` lets the findings
weigh more, by what they change against being asked for none (Ho and Salimans 2022, Classifier-free diffusion guidance;
for language models: Sanchez et al. 2023):

    log p = log p(. | asked, phi) + g (log p(. | asked, phi) - log p(. | No Finding, phi))
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from pydantic import Field
from torch import Tensor, nn

from negatoscope.models.base import State, log_probabilities, per_study
from negatoscope.models.recurrent import with_study
from negatoscope.settings import Settings


class DictatedSettings(Settings):
    told: int = Field(ge=1)
    """Width of what it is told."""
    width: int = Field(default=512, ge=1)
    dropout: float = Field(default=0.5, ge=0, lt=1)


@dataclass(frozen=True)
class DictatedState(State):
    h: Tensor  # (R, d)
    c: Tensor  # (R, d)
    told: Tensor = per_study()  # (B, d)


class Dictated(nn.Module):
    Settings = DictatedSettings

    def __init__(self, settings: DictatedSettings, words: int) -> None:
        super().__init__()
        self.settings, self.words = settings, words
        d = settings.width
        self.hear = nn.Linear(settings.told, d)  # W_u
        self.embed = nn.Embedding(words, d)  # W_e
        self.lstm = nn.LSTM(d, d, batch_first=True)
        self.drop = nn.Dropout(settings.dropout)
        self.out = nn.Linear(d, words)  # W_o
        for table in (self.embed, self.out):
            nn.init.uniform_(table.weight, -0.1, 0.1)
        nn.init.zeros_(self.out.bias)

    def start(self, told: Tensor) -> DictatedState:
        """(B, C)."""
        nothing = told.new_zeros(len(told), self.settings.width)
        return DictatedState(nothing, nothing, self.hear(told))

    def step(self, words: Tensor, state: DictatedState) -> tuple[Tensor, DictatedState]:
        x = with_study(self.embed(words), state.told).unsqueeze(1)  # (R, 1, d)
        out, (h, c) = self.lstm(x, (state.h.unsqueeze(0), state.c.unsqueeze(0)))
        return log_probabilities(self.out(self.drop(out[:, 0]))), DictatedState(h[0], c[0], state.told)

    def forward(self, told: Tensor, words: Tensor) -> Tensor:
        """Told (B, C), words as read (B, T) -> logits (B, T, W) of the next."""
        x = self.drop(self.embed(words)) + self.hear(told).unsqueeze(1)
        return self.out(self.drop(self.lstm(x)[0]))


@dataclass(frozen=True)
class GuidedState(State):
    asked: DictatedState
    normal: DictatedState


class Guided(nn.Module):
    """A writer to whom findings weigh 1 + g times as much; `plain` are the findings of a report without any (14,)."""

    def __init__(self, writer: Dictated, plain: Tensor, g: float) -> None:
        super().__init__()
        self.writer, self.g = writer, g
        self.plain: Tensor
        self.register_buffer("plain", plain, persistent=False)

    def start(self, told: Tensor) -> GuidedState:
        normal = torch.cat([self.plain.expand(len(told), -1), told[:, len(self.plain) :]], 1)
        return GuidedState(self.writer.start(told), self.writer.start(normal))

    def step(self, words: Tensor, state: GuidedState) -> tuple[Tensor, GuidedState]:
        asked, after_asked = self.writer.step(words, state.asked)
        normal, after_normal = self.writer.step(words, state.normal)
        return log_probabilities(asked + self.g * (asked - normal)), GuidedState(after_asked, after_normal)


def tell(wanted: Tensor, place: Tensor) -> Tensor:
    """Findings to be named (B, 14) of 0 and 1, and a place (B, E) -> (B, C)."""
    return torch.cat([wanted, place], 1)

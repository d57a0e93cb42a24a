"""R2GenCMN (Chen, Shen, Song, Wan: Cross-modal Memory Networks for Radiology Report Generation, ACL-IJCNLP 2021).

A transformer whose patches and words both ask one matrix of memory vectors m_1 ... m_N before they go on:

    D(x, m_i) = (x W_q) . (m_i W_k) / sqrt(d)                 how well a memory fits a patch or a word
    K          = the top_k memories of largest D              querying
    w_i        = softmax over K of D                          each of h heads for itself
    r_x        = sum over K of w_i (m_i W_v)                  responding
    x         <- x + r_x

The look-up has one set of weights for both kinds: that is what brings images and words together. The matrix's keys and
values depend on no study, so they are made once a report (`start`), not once a word.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from negatoscope.models.base import Encoder as ImageEncoder
from negatoscope.models.base import Reading, State, for_all, log_probabilities
from negatoscope.models.layers import KeysValues, place, xavier
from negatoscope.models.linear import Linear
from negatoscope.models.past import PastState
from negatoscope.models.transformer import Transformer, TransformerSettings
from negatoscope.vision.sight import Sight


class R2GenCMNSettings(TransformerSettings):
    memories: int = Field(2048, ge=1)
    """N: rows of the memory matrix."""
    top_k: int = Field(32, ge=1)
    """Memories that answer a patch or a word, in each head."""


class Responding(nn.Module):
    """What the best-fitting of M memory vectors answer, in h heads."""

    def __init__(self, d: int, heads: int, top_k: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.heads, self.top_k, self.dropout = heads, top_k, dropout
        self.query, self.key, self.value, self.out = (Linear(d, d) for _ in range(4))

    def keys_values(self, memory: Tensor) -> KeysValues:
        """(M, d) -> (h, M, d / h) twice."""
        return self._heads(self.key(memory)), self._heads(self.value(memory))

    def forward(self, x: Tensor, held: KeysValues, mask: Tensor | None = None) -> Tensor:
        """x (B, T, d) -> responses (B, T, d); mask (B, M) is True for the memories that a study may ask."""
        keys, values = held
        h, M, width = keys.shape
        B, T = x.shape[:2]
        queries = self._heads(self.query(x).flatten(0, 1)) / math.sqrt(width)  # (h, B T, d / h)
        fit = queries @ keys.transpose(1, 2)  # (h, B T, M)
        if mask is not None:
            fit = fit.masked_fill(~mask.repeat_interleave(T, 0), -torch.inf)
        fit, chosen = fit.topk(min(self.top_k, M))  # (h, B T, k)
        weight = F.dropout(fit.float().softmax(-1), self.dropout, self.training).to(values.dtype)
        # A weighted sum of a few rows of a table, which is what embedding_bag does without first gathering them.
        chosen = chosen + M * torch.arange(h, device=x.device).view(h, 1, 1)
        table = values.flatten(0, 1)  # (h M, d / h)
        found = F.embedding_bag(chosen.flatten(0, 1), table, per_sample_weights=weight.flatten(0, 1), mode="sum")
        return self.out(found.view(h, B, T, width).permute(1, 2, 0, 3).flatten(2))

    def _heads(self, x: Tensor) -> Tensor:
        """(n, d) -> (h, n, d / h)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(0, 1)


@dataclass(frozen=True)
class R2GenCMNState(State):
    decoder: PastState
    memory: KeysValues = for_all()  # (h, N, d / h) twice


class R2GenCMN(Transformer):
    Settings = R2GenCMNSettings
    tiny: ClassVar[Mapping[str, Any]] = {**Transformer.tiny, "memories": 10, "top_k": 3}
    name = "r2gencmn"
    paper = "Chen et al.: Cross-modal Memory Networks for Radiology Report Generation"
    year = 2021

    def __init__(self, settings: R2GenCMNSettings, encoder: ImageEncoder, words: int) -> None:
        super().__init__(settings, encoder, words)
        self.ask = Responding(settings.width, settings.heads, settings.top_k)
        self.memory = nn.Parameter(torch.empty(settings.memories, settings.width))  # (N, d)
        xavier(self.ask)
        nn.init.normal_(self.memory, 0, 1 / settings.width)

    def start(self, sight: Sight) -> R2GenCMNState:  # pyright: ignore[reportIncompatibleMethodOverride]
        held = self.ask.keys_values(self.memory)
        return R2GenCMNState(self.decoder.start(self._patches(sight, held), sight.mask), held)

    def step(self, words: Tensor, state: R2GenCMNState) -> tuple[Tensor, R2GenCMNState]:  # pyright: ignore[reportIncompatibleMethodOverride]
        y = self.embed(words.view(len(state.decoder.mask), -1), state.decoder.position, one=True)  # (B, k, d)
        x, decoder = self.decoder.step(y + self.ask(y, state.memory), state.decoder)
        return log_probabilities(self.out(x.flatten(0, 1))), R2GenCMNState(decoder, state.memory)

    def read(self, sight: Sight, words: Tensor, mask: Tensor) -> Reading:
        held = self.ask.keys_values(self.memory)
        patches = self._patches(sight, held)  # (B, N, d)
        y = self.embed.drop(self.embed(words))  # (B, T, d)
        hidden = self.decoder(y + self.ask(y, held), patches, sight.mask)  # (B, T, d)
        return Reading(self.out(hidden), hidden, mask, sight.with_features(patches, sight.overall))

    def _patches(self, sight: Sight, held: KeysValues) -> Tensor:
        x = sight.patches + self.ask(sight.patches, held)
        return self.among_patches(self.embed.drop(place(x)), sight.mask)

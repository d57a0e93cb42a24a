"""R2Gen (Chen, Song, Chang, Wan: Generating Radiology Reports via Memory-driven Transformer, EMNLP 2020). WCL calls it
MDT.

A transformer whose decoder is steered by a relational memory of what was written so far:

    Z      = attention(M_{t-1}, [M_{t-1}; y_{t-1}])                                   paper eq. 7 and 8
    M~_t   = f_mlp(Z + M_{t-1}) + Z + M_{t-1}                                         eq. 9
    G^f, G^i = split(W y_{t-1} + U tanh(M_{t-1}))                                     eq. 10 and 11
    M_t    = sigmoid(G^f) M_{t-1} + sigmoid(G^i) tanh(M~_t)                           eq. 12
    MCLN(r) = (gamma + f_gamma(m_t)) (r - mean) / std + (beta + f_beta(m_t))          eq. 13 to 15

with m_t the memory's slots side by side, and a norm of its own in each of the three places of each decoder layer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from negatoscope.models.base import Encoder as ImageEncoder
from negatoscope.models.base import Reading, Reporter, State, log_probabilities
from negatoscope.models.layers import (
    Conditions,
    Decoder,
    DecoderLayer,
    Dropout,
    Encoder,
    WordEmbedding,
    dropout,
    standardise,
    xavier,
)
from negatoscope.models.linear import InALoop, Linear, linear
from negatoscope.models.past import PastState
from negatoscope.models.transformer import TransformerSettings
from negatoscope.studies.batch import Batch
from negatoscope.vision.sight import Sight


class R2GenSettings(TransformerSettings):
    slots: int = 3
    """Rows of the relational memory."""
    memory_heads: int = 8


Product = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class _Products:
    """What the memory's loop multiplies by at each turn."""

    ask: Callable[[Tensor], Sequence[Tensor]]  # queries, keys, values
    out: Product
    first: Product  # of f_mlp
    second: Product
    U: Product


class RelationalMemory(nn.Module):
    """M (R, S, d), one step a word. What depends on the words alone is computed for all of them before the loop."""

    def __init__(self, slots: int, d: int, heads: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.slots, self.d, self.heads, self.dropout = slots, d, heads, dropout
        # Not through oneDNN: MKL adds up more exactly, and a loop of sixty turns makes 1e-5 of a logit 1e-4.
        self.query, self.key, self.value, self.out = (nn.Linear(d, d) for _ in range(4))
        self.think = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d), nn.ReLU())  # f_mlp
        self.W, self.U = nn.Linear(d, 2 * d), nn.Linear(d, 2 * d)

    def start(self, rows: int, like: Tensor) -> Tensor:
        """Slot i starts as the i-th unit vector."""
        return torch.eye(self.slots, self.d, device=like.device, dtype=like.dtype).expand(rows, -1, -1)

    def forward(self, y: Tensor, memory: Tensor) -> Tensor:
        """Words y (R, T, d) and M_0 -> M_1 ... M_T, (R, T, S, d)."""
        keys, values, gates = self.key(y), self.value(y), self.W(y)  # (R, T, d), (R, T, d), (R, T, 2d)
        R, T = y.shape[:2]
        products = self._products(T, R * self.slots)
        kept = dropout(y.new_ones(T, R, self.heads, self.slots, self.slots + 1), self.dropout, self.training)
        steps = []
        for k, v, g, chance in zip(keys.unbind(1), values.unbind(1), gates.unbind(1), kept.unbind(0)):
            memory = self._turn(memory, k, v, g, chance, products)
            steps.append(memory)
        return torch.stack(steps, 1)

    def _products(self, turns: int, rows: int) -> _Products:
        asks: tuple[Any, ...] = (self.query, self.key, self.value)
        others: tuple[Any, ...] = (self.out, self.think[0], self.think[2], self.U)
        if not torch.is_grad_enabled() or turns == 1:
            return _Products(lambda memory: [layer(memory) for layer in asks], *others)
        weight, bias = torch.cat([layer.weight for layer in asks]), torch.cat([layer.bias for layer in asks])  # (3d, d)
        ask = InALoop(weight, bias, turns, rows)
        return _Products(
            lambda memory: ask(memory).chunk(3, -1),
            *(InALoop(layer.weight, layer.bias, turns, rows) for layer in others),
        )

    def _turn(self, memory: Tensor, k: Tensor, v: Tensor, g: Tensor, chance: Tensor, of: _Products) -> Tensor:
        queries, keys, values = of.ask(memory)  # (R, S, d) each
        keys, values = torch.cat([keys, k.unsqueeze(1)], 1), torch.cat([values, v.unsqueeze(1)], 1)  # (R, S + 1, d)
        share = (
            self._heads(queries) @ self._heads(keys).transpose(-2, -1) / math.sqrt(self.d // self.heads)
        )  # (R, h, S, S + 1)
        found = ((share.softmax(-1) * chance) @ self._heads(values)).transpose(1, 2).flatten(2)  # (R, S, d)
        new = memory + of.out(found)
        new = new + of.second(of.first(new).relu()).relu()
        let_in, keep = (g.unsqueeze(1) + of.U(memory.tanh())).sigmoid().chunk(2, -1)  # (R, S, d) each
        return let_in * new.tanh() + keep * memory

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class ConditionedNorm(nn.Module):
    """MCLN: a norm whose gamma and beta the memory shifts."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d))

    def forward(self, x: Tensor, shift: tuple[Tensor, Tensor]) -> Tensor:
        """x and the two shifts (R, T, d)."""
        gamma, beta = shift
        return (self.gamma + gamma) * standardise(x) + (self.beta + beta)


class Conditioning(nn.Module):
    """f_gamma and f_beta of all norms: 2n perceptrons (S d -> d -> d), of which all read the same memory."""

    def __init__(self, norms: int, slots: int, d: int) -> None:
        super().__init__()
        self.norms, self.d = norms, d
        self.first = Linear(slots * d, 2 * norms * d)
        self.second = nn.Parameter(torch.empty(2 * norms, d, d))  # (2n, in, out)
        self.bias = nn.Parameter(torch.empty(2 * norms, d))
        for one in (*self.first.weight.data.split(d), *self.second.data):
            nn.init.xavier_uniform_(one)
        for bias in (self.first.bias, self.bias):
            nn.init.constant_(bias, 0.1)

    def forward(self, memory: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Memory (R, T, S, d) -> each norm's f_gamma and f_beta, (R, T, d)."""
        inner = self.first(memory.flatten(2)).relu().split(self.d, -1)  # 2n of (R, T, d)
        weights, biases = self.second.transpose(1, 2).unbind(0), self.bias.unbind(0)
        told = [linear(x, weight, bias) for x, weight, bias in zip(inner, weights, biases)]
        return list(zip(told[::2], told[1::2]))


@dataclass(frozen=True)
class R2GenState(State):
    decoder: PastState
    memory: Tensor  # (R, S, d)


class R2Gen(Reporter):
    Settings = R2GenSettings
    tiny: ClassVar[Mapping[str, Any]] = {"width": 16, "inner": 24, "layers": 2, "heads": 4, "memory_heads": 2}
    name = "r2gen"
    paper = "Chen et al.: Generating Radiology Reports via Memory-driven Transformer"
    year = 2020

    def __init__(self, settings: R2GenSettings, encoder: ImageEncoder, words: int) -> None:
        super().__init__(encoder, words)
        d, h, inner, p = settings.width, settings.heads, settings.inner, settings.dropout
        self.width, self.layers = d, settings.layers
        self.project = nn.Sequential(Linear(encoder.width, d), nn.ReLU(), Dropout(settings.patch_dropout))
        self.among_patches = Encoder(settings.layers, d, h, inner, p)
        self.embed = WordEmbedding(words, d, p)
        self.memory = RelationalMemory(settings.slots, d, settings.memory_heads)
        self.conditioning = Conditioning(3 * settings.layers, settings.slots, d)
        self.decoder = Decoder([DecoderLayer(d, h, inner, p, ConditionedNorm) for _ in range(settings.layers)], d)
        self.out = Linear(d, words)
        for part in (self.among_patches, self.embed, self.memory, self.decoder):
            xavier(part)

    def look(self, batch: Batch) -> Sight:
        seen = self.encoder(batch)
        return seen.with_features(self.project(seen.patches), self.project(seen.overall))

    def start(self, sight: Sight) -> R2GenState:
        patches = self.among_patches(sight.patches, sight.mask)
        return R2GenState(self.decoder.start(patches, sight.mask), self.memory.start(len(patches), patches))

    def step(self, words: Tensor, state: R2GenState) -> tuple[Tensor, R2GenState]:
        y = self.embed(words.view(len(state.decoder.mask), -1), state.decoder.position, one=True)  # (B, k, d)
        memory = self.memory(y.flatten(0, 1).unsqueeze(1), state.memory)  # (R, 1, S, d)
        conditions = self._conditions(memory.view(*y.shape[:2], *memory.shape[2:]))
        x, decoder = self.decoder.step(y, state.decoder, conditions)
        return log_probabilities(self.out(x.flatten(0, 1))), R2GenState(decoder, memory[:, 0])

    def read(self, sight: Sight, words: Tensor, mask: Tensor) -> Reading:
        patches = self.among_patches(sight.patches, sight.mask)  # (B, N, d)
        y = self.embed(words)  # (B, T, d)
        drop = self.embed.drop  # anew for the memory and for the decoder, as there
        memory = self.memory(drop(y), self.memory.start(len(y), y))  # (B, T, S, d)
        hidden = self.decoder(drop(y), patches, sight.mask, self._conditions(memory))  # (B, T, d)
        return Reading(self.out(hidden), hidden, mask, sight.with_features(patches, sight.overall))

    def _conditions(self, memory: Tensor) -> list[Conditions]:
        shifts = self.conditioning(memory)  # 3 L
        return [shifts[first : first + 3] for first in range(0, len(shifts), 3)]

"""What several of the transformer reporters share (Transformer, R2Gen, R2GenCMN, XProNet).

B studies, k beams each, R = B * k rows, T words, N patches, h heads, d width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from negatoscope.models.base import State, per_study
from negatoscope.models.linear import Linear
from negatoscope.models.past import Past, PastState

KeysValues = tuple[Tensor, Tensor]
Conditions = Sequence[tuple[Tensor, Tensor] | None]
"""What each norm of a layer is conditioned on; plain norms take None."""
UNCONDITIONED: Conditions = (None, None, None)


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """F.dropout. On a CPU PyTorch draws a number for each element, one after another whatever the threads; here four
    elements share the 64 bits of one, so that p is held to within 2^-17."""
    if not training or not 0 < p < 1 or x.device.type != "cpu":
        return F.dropout(x, p, training)
    drawn = torch.empty(x.numel() // 4 + 1, dtype=torch.int64).random_(torch.iinfo(torch.int64).min, None)
    kept = drawn.view(torch.int16)[: x.numel()].view(x.shape) >= round(p * 2**16) - 2**15
    return x * kept.to(x.dtype).mul_(1 / (1 - p))


class Dropout(nn.Dropout):
    def forward(self, input: Tensor) -> Tensor:
        return dropout(input, self.p, self.training)


class Norm(nn.Module):
    """gamma (x - mean) / (std + eps) + beta, with the sample's std: the layer norm of these papers' code, not
    PyTorch's."""

    def __init__(self, d: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.gamma, self.beta, self.eps = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d)), eps

    def forward(self, x: Tensor, condition: None = None) -> Tensor:
        return self.gamma * standardise(x, self.eps) + self.beta


def standardise(x: Tensor, eps: float = 1e-6) -> Tensor:
    """(x - mean) / (std + eps) over the last dimension.

    PyTorch's layer norm, one kernel, knows the biased std and has no eps beside it; what it divided by comes with it,
    so that one factor a row makes it the other norm. No gradient goes through that factor: it would be of the size of
    eps / std.
    """
    d = x.shape[-1]
    even, _, divided = torch.native_layer_norm(x, (d,), None, None, (eps * 1e-4) ** 2)
    return even * (math.sqrt(d / (d - 1)) + eps * divided.detach()).reciprocal()


class Attention(nn.Module):
    """Scaled dot products in h heads. Keys and values are made apart from the look-up, so that they can be kept."""

    def __init__(self, d: int, heads: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query, self.key, self.value, self.out = (Linear(d, d) for _ in range(4))

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, h, T, d / h)

    def keys_values(self, x: Tensor) -> KeysValues:
        return self.split(self.key(x)), self.split(self.value(x))

    def forward(self, x: Tensor, kv: KeysValues, *, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """x (B, T, d) looks up kv (B, h, N, d / h); mask, True where it may look, fits (B, h, T, N)."""
        query = self.split(self.query(x))
        if self.training:
            if causal:
                mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril()
            fit = (query / math.sqrt(query.shape[-1])) @ kv[0].transpose(-2, -1)  # (B, h, T, N)
            share = (fit if mask is None else fit.masked_fill(~mask, -torch.inf)).softmax(-1)
            found = dropout(share, self.dropout, self.training).to(kv[1].dtype) @ kv[1]
        else:
            found = F.scaled_dot_product_attention(query, *kv, attn_mask=mask, is_causal=causal)
        return self.out(found.transpose(1, 2).flatten(2))

    def of_study(self, x: Tensor, kv: KeysValues, mask: Tensor) -> Tensor:
        """Rows (R, 1, d) look up what their study (B, h, N, d / h) holds: a study's beams are so many queries of one
        look-up."""
        studies = kv[0].shape[0]
        return self(x.view(studies, -1, x.shape[-1]), kv, mask=mask).view_as(x)


def longer(past: KeysValues, new: KeysValues) -> KeysValues:
    return torch.cat([past[0], new[0]], 2), torch.cat([past[1], new[1]], 2)


def looking_mask(mask: Tensor) -> Tensor:
    """(B, N) True where there is a patch -> (B, 1, 1, N), which fits any head and query."""
    return mask[:, None, None, :]


class FeedForward(nn.Sequential):
    def __init__(self, d: int, inner: int, dropout: float) -> None:
        super().__init__(Linear(d, inner), nn.ReLU(), Dropout(dropout), Linear(inner, d))


class EncoderLayer(nn.Module):
    """x + attention(norm x), then x + feed-forward(norm x)."""

    def __init__(self, d: int, heads: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.norms = nn.ModuleList([Norm(d), Norm(d)])
        self.attention, self.feed_forward = Attention(d, heads), FeedForward(d, inner, dropout)
        self.drop = Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        y = self.norms[0](x)
        x = x + self.drop(self.attention(y, self.attention.keys_values(y), mask=mask))
        return x + self.drop(self.feed_forward(self.norms[1](x)))


class Encoder(nn.Module):
    """Patches (B, N, d) that have seen one another."""

    def __init__(self, layers: int, d: int, heads: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(d, heads, inner, dropout) for _ in range(layers))
        self.norm = Norm(d)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x, looking_mask(mask))
        return self.norm(x)


@dataclass(frozen=True)
class DecoderState(State):
    """What is kept between two words: each layer's keys and values of the words so far, and of the study's patches."""

    words: tuple[KeysValues, ...]  # a layer: (R, h, t, d / h) twice
    patches: tuple[KeysValues, ...] = per_study()  # a layer: (B, h, N, d / h) twice
    mask: Tensor = per_study()  # (B, 1, 1, N)

    @property
    def position(self) -> int:
        return self.words[0][0].shape[2]


class DecoderLayer(nn.Module):
    """Words look at the words before them, then at the patches, then think, each after a norm of the kind `norm`."""

    def __init__(self, d: int, heads: int, inner: int, dropout: float, norm: Callable[[int], nn.Module] = Norm) -> None:
        super().__init__()
        self.norms: Any = nn.ModuleList([norm(d), norm(d), norm(d)])
        self.to_words, self.to_patches = Attention(d, heads), Attention(d, heads)
        self.feed_forward = FeedForward(d, inner, dropout)
        self.drop = Dropout(dropout)

    def forward(self, x: Tensor, patches: KeysValues, mask: Tensor, conditions: Conditions) -> Tensor:
        """All words at once, (B, T, d)."""
        y = self.norms[0](x, conditions[0])
        x = x + self.drop(self.to_words(y, self.to_words.keys_values(y), causal=True))
        x = x + self.drop(self.to_patches(self.norms[1](x, conditions[1]), patches, mask=mask))
        return x + self.drop(self.feed_forward(self.norms[2](x, conditions[2])))

    def step(
        self, x: Tensor, lines: Tensor, past: Past, patches: KeysValues, mask: Tensor, conditions: Conditions
    ) -> tuple[Tensor, Past]:
        """One word a row, (B, k, d) for the k rows of each study, and the longer past; lines (B, 1, k, n + k)."""
        y = self.norms[0](x, conditions[0])
        past = past.and_then(self.to_words.key(y), self.to_words.value(y))
        keys, values = past.held
        x = x + self.to_words(y, (self.to_words.split(keys), self.to_words.split(values)), mask=lines)
        x = x + self.to_patches(self.norms[1](x, conditions[1]), patches, mask=mask)
        return x + self.feed_forward(self.norms[2](x, conditions[2])), past


class Decoder(nn.Module):
    """Layers and the last norm; `conditions` are, for each layer, what its three norms are conditioned on."""

    def __init__(self, layers: list[DecoderLayer], d: int) -> None:
        super().__init__()
        self.layers: Any = nn.ModuleList(layers)
        self.norm = Norm(d)

    def start(self, patches: Tensor, mask: Tensor) -> PastState:
        """patches (B, N, d), mask (B, N)."""
        held = tuple(layer.to_patches.keys_values(patches) for layer in self.layers)
        past = tuple(Past.empty(keys) for keys, _ in held)
        return PastState(mask.new_zeros(len(mask), 0), 0, past, held, looking_mask(mask))

    def forward(
        self, x: Tensor, patches: Tensor, mask: Tensor, conditions: Sequence[Conditions] | None = None
    ) -> Tensor:
        for number, layer in enumerate(self.layers):
            wanted = conditions[number] if conditions else UNCONDITIONED
            x = layer(x, layer.to_patches.keys_values(patches), looking_mask(mask), wanted)
        return self.norm(x)

    def step(
        self, x: Tensor, state: PastState, conditions: Sequence[Conditions] | None = None
    ) -> tuple[Tensor, PastState]:
        """One word a row, x and conditions (B, k, d) with the k rows of each study side by side -> (B, k, d)."""
        state = state.one_more()
        lines = looking_mask(state.lines).view(len(x), 1, x.shape[1], -1)
        told = []
        for number, layer in enumerate(self.layers):
            wanted = conditions[number] if conditions else UNCONDITIONED
            x, past = layer.step(x, lines, state.past[number], state.patches[number], state.mask, wanted)
            told.append(past)
        return self.norm(x), replace(state, position=state.position + 1, past=tuple(told))


class WordEmbedding(nn.Module):
    """Words times sqrt(d), plus where they stand (sines and cosines); `drop` is the reader's to apply."""

    def __init__(self, words: int, d: int, dropout: float) -> None:
        super().__init__()
        self.table, self.d = nn.Embedding(words, d), d
        self.drop = Dropout(dropout)

    def forward(self, words: Tensor, first: int = 0, *, one: bool = False) -> Tensor:
        """(B, T) words of which the first stands at place `first` -> (B, T, d); all stand there if it is `one`
        place."""
        x = self.table(words) * math.sqrt(self.d)
        return x + positions(first, 1 if one else words.shape[1], self.d, x)


def positions(first: int, count: int, d: int, like: Tensor) -> Tensor:
    """Sines and cosines of places `first` and on, (count, d)."""
    place = torch.arange(first, first + count, device=like.device).unsqueeze(1).float()
    rate = torch.exp(torch.arange(0, d, 2, device=like.device).float() * -(math.log(10000.0) / d))
    return torch.stack([(place * rate).sin(), (place * rate).cos()], -1).flatten(1).to(like.dtype)


def place(x: Tensor) -> Tensor:
    """(B, N, d) plus where each of the N stands: R2GenCMN and its descendants number their patches too."""
    return x + positions(0, x.shape[1], x.shape[2], x)


def xavier(module: nn.Module) -> None:
    """All matrices Xavier-uniform, embeddings too, as these papers' code starts."""
    for parameter in module.parameters():
        if parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)

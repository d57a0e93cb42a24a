"""Transformer (Vaswani et al.: Attention Is All You Need, NeurIPS 2017), over patches, as the report papers' baseline.

Patches through a linear layer, ReLU and dropout; three encoder layers, three decoder layers, 512 wide, eight heads
(Chen et al. 2020).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from negatoscope.models.base import Encoder as ImageEncoder
from negatoscope.models.base import Reading, Reporter, log_probabilities
from negatoscope.models.layers import Decoder, DecoderLayer, Dropout, Encoder, WordEmbedding, xavier
from negatoscope.models.linear import Linear
from negatoscope.models.past import PastState
from negatoscope.settings import Settings
from negatoscope.studies.batch import Batch
from negatoscope.vision.sight import Sight


class TransformerSettings(Settings):
    width: int = 512
    inner: int = 512
    """Width inside the feed-forward layers."""
    layers: int = 3
    heads: int = 8
    dropout: float = 0.1
    patch_dropout: float = 0.5
    """Of the patches after their projection."""


class Transformer(Reporter):
    Settings = TransformerSettings
    tiny: ClassVar[Mapping[str, Any]] = {"width": 16, "inner": 24, "layers": 2, "heads": 4}
    name = "transformer"
    paper = "Vaswani et al.: Attention Is All You Need"
    year = 2017

    def __init__(self, settings: TransformerSettings, encoder: ImageEncoder, words: int) -> None:
        super().__init__(encoder, words)
        d, h, inner, p = settings.width, settings.heads, settings.inner, settings.dropout
        self.width = d
        self.project = nn.Sequential(Linear(encoder.width, d), nn.ReLU(), Dropout(settings.patch_dropout))
        self.among_patches = Encoder(settings.layers, d, h, inner, p)
        self.embed = WordEmbedding(words, d, p)
        self.decoder = Decoder([DecoderLayer(d, h, inner, p) for _ in range(settings.layers)], d)
        self.out = Linear(d, words)
        for part in (self.among_patches, self.embed, self.decoder):
            xavier(part)

    def look(self, batch: Batch) -> Sight:
        seen = self.encoder(batch)
        return seen.with_features(self.project(seen.patches), self.project(seen.overall))

    def start(self, sight: Sight) -> PastState:
        return self.decoder.start(self.among_patches(sight.patches, sight.mask), sight.mask)

    def step(self, words: Tensor, state: PastState) -> tuple[Tensor, PastState]:
        y = self.embed(words.view(len(state.mask), -1), state.position, one=True)  # (B, k, d)
        x, state = self.decoder.step(y, state)
        return log_probabilities(self.out(x.flatten(0, 1))), state

    def read(self, sight: Sight, words: Tensor, mask: Tensor) -> Reading:
        patches = self.among_patches(sight.patches, sight.mask)  # (B, N, d)
        hidden = self.decoder(self.embed.drop(self.embed(words)), patches, sight.mask)  # (B, T, d)
        return Reading(self.out(hidden), hidden, mask, sight.with_features(patches, sight.overall))

"""What the reporter that ships sees in a study: findings, tags, phrases and the place of its report among others.

One backbone looks at each view. The pooled features of the frontal and of the lateral image, each zero where the study
lacks it, stand side by side, and all answers are read off them:

    f_v = mean over patches of map_v                    v = frontal, lateral
    answers = W U [f_frontal; f_lateral; has_frontal; has_lateral] + b

U narrows, so that two thousand answers cost few weights. Because both are linear in the patches, an answer's map over a
view is those weights times the patches
(class activation maps: Zhou et al., Learning Deep Features for Discriminative Localization, CVPR 2016).

The answers are
    findings  the 14 observations of CheXpert, logits
    tags      terms of the indexers, logits
    phrases   runs of one to four words of a report, logits: whether the report will hold them
    meaning   the report in the space of CIDEr's n-gram vectors, reduced: E[phi(report) | images]
and, of each image by itself, whether it was taken from the side.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from pydantic import Field
from torch import Tensor, nn

from negatoscope.settings import Settings
from negatoscope.vision.encoder import Encoder, EncoderSettings, build_encoder

FRONTAL, LATERAL = 0, 1


class RecogniserSettings(Settings):
    encoder: EncoderSettings = EncoderSettings(backbone="resnet50-v1", image_size=320)
    dropout: float = Field(default=0.4, ge=0, lt=1)
    """Of the pooled features."""
    narrow: int = Field(default=512, ge=1)
    """Rank of the answers' weights."""
    findings: int = Field(default=14, ge=1)
    tags: int = Field(default=0, ge=0)
    phrases: int = Field(default=0, ge=0)
    meaning: int = Field(default=0, ge=0)


@dataclass(frozen=True)
class Answers:
    """Of B studies."""

    findings: Tensor  # (B, 14) logits
    tags: Tensor  # (B, K) logits
    phrases: Tensor  # (B, P) logits
    meaning: Tensor  # (B, E)


class Recogniser(nn.Module):
    Settings = RecogniserSettings

    def __init__(self, settings: RecogniserSettings, *, pretrained: bool = True) -> None:
        super().__init__()
        self.settings = settings
        self.encoder: Encoder = build_encoder(settings.encoder, pretrained=pretrained)
        self.sizes = (settings.findings, settings.tags, settings.phrases, settings.meaning)
        self.dropout = nn.Dropout(settings.dropout)
        self.narrow = nn.Linear(2 * self.encoder.width + 2, settings.narrow, bias=False)
        self.answers = nn.Linear(settings.narrow, sum(self.sizes))
        self.side = nn.Linear(self.encoder.width, 1)
        nn.init.normal_(self.narrow.weight, std=self.encoder.width**-0.5)
        for layer in (self.answers, self.side):
            nn.init.normal_(layer.weight, std=0.002)
            nn.init.zeros_(layer.bias)

    def look(self, images: Tensor) -> Tensor:
        """Grey images (n, 1, S, S) from 0 to 1 -> maps (n, D, h, w)."""
        return self.encoder.maps(images)

    def from_the_side(self, pooled: Tensor) -> Tensor:
        """Pooled features (n, D) -> logits (n,) of being a lateral image."""
        return self.side(pooled).squeeze(-1)

    def together(self, pooled: Tensor, study: Tensor, lateral: Tensor, studies: int) -> Tensor:
        """Pooled features (n, D) of images, their study's row (n,), whether each is lateral (n,) -> (B, 2 D + 2).

        Several images of one kind are averaged.
        """
        slots = study * 2 + lateral.long()  # (n,)
        counts = pooled.new_zeros(2 * studies).index_add_(0, slots, pooled.new_ones(len(slots)))
        total = pooled.new_zeros(2 * studies, pooled.shape[1]).index_add_(0, slots, pooled)
        mean = total / counts.clamp_min(1).unsqueeze(1)
        return torch.cat([mean.view(studies, -1), (counts > 0).to(mean).view(studies, 2)], 1)

    def forward(self, together: Tensor) -> Answers:
        """(B, 2 D + 2) -> Answers."""
        wide = together.shape[1] - 2
        dropped = torch.cat([self.dropout(together[:, :wide]), together[:, wide:]], 1)
        return Answers(*self.answers(self.narrow(dropped)).split(self.sizes, 1))

    def heat(self, maps: Tensor, lateral: bool, answer: Tensor) -> Tensor:
        """Where in one view an answer comes from: maps (D, h, w), rows of `self.answers` (k,) -> (k, h, w)."""
        wide = self.encoder.width
        of_view = self.narrow.weight[:, lateral * wide : (lateral + 1) * wide]  # (r, D)
        weights = self.answers.weight[answer] @ of_view  # (k, D)
        return torch.einsum("kd,dhw->khw", weights, maps.to(weights))

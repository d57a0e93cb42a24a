"""Co-Attention (Jing, Xie, Xing: On the Automatic Generation of Medical Imaging Reports, ACL 2018).

Tags are predicted from the image; each sentence looks at the patches and at the likeliest tags.

    p(tag_i) = softmax_i(MLC(v))                                               paper eq. 1
    alpha_{v,n} = softmax_n(w_v tanh(W_v v_n + W_{v,h} h_{s-1}))               eq. 2, visual attention
    alpha_{a,m} = softmax_m(w_a tanh(W_a a_m + W_{a,h} h_{s-1}))               eq. 3, semantic attention
    v_att = sum_n alpha_{v,n} v_n,   a_att = sum_m alpha_{a,m} a_m             eq. 4, 5
    ctx_s = W_fc [v_att; a_att]                                                eq. 6

a_1 ... a_M are the embeddings of the M likeliest tags. h, topic and stop are hierarchical.SentenceLSTM's (eq. 7, 8).
The loss `tags` trains p(tag) on MeSH terms or on the labeler's observations. What a tag is called is the run's to
know (`tags.json`), not the model's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from negatoscope.models.base import Encoder, State
from negatoscope.models.hierarchical import Hierarchical, HierarchicalSettings, SentenceLSTM, WordLSTM
from negatoscope.models.recurrent import AdditiveAttention, Attended
from negatoscope.vision.sight import Sight


@dataclass(frozen=True)
class ImageAndTags(State):
    patches: Attended
    tags: Attended  # M tags in the place of N patches
    logits: Tensor  # (B, tags)


class CoAttentionPlanner(SentenceLSTM):
    def __init__(self, d: int, tags: int, likeliest: int) -> None:
        super().__init__(d)
        self.likeliest = min(likeliest, tags)  # M
        self.mlc = nn.Linear(d, tags)
        self.tag = nn.Embedding(tags, d)
        self.visual, self.semantic = AdditiveAttention(d, d, d), AdditiveAttention(d, d, d)
        self.fc = nn.Linear(2 * d, d)  # W_fc

    def see(self, sight: Sight) -> ImageAndTags:
        logits = self.mlc(sight.overall)
        p, chosen = logits.softmax(-1).topk(self.likeliest, -1)  # (B, M)
        # Worth 1, with the slope of p: so the words teach the choice of tags too.
        a = self.tag(chosen) * (1 + (p - p.detach())).unsqueeze(-1)  # (B, M, d)
        tags = Attended(a, self.semantic.W(a), torch.ones_like(chosen, dtype=torch.bool))
        return ImageAndTags(self.visual.of(sight), tags, logits)

    def context(self, seen: ImageAndTags, h: Tensor) -> tuple[Tensor, Tensor]:
        v_att, alpha = self.visual(h, seen.patches)
        a_att, _ = self.semantic(h, seen.tags)
        return self.fc(torch.cat([v_att, a_att], -1)), alpha


class CoAttentionSettings(HierarchicalSettings):
    tags: int = Field(14, ge=1)
    """Tags there are: 14 observations, or as many MeSH terms as `data.tags` keeps."""
    likeliest: int = Field(10, ge=1)
    """M: tags that are looked at."""


class CoAttention(Hierarchical):
    Settings = CoAttentionSettings
    tiny: ClassVar[Mapping[str, Any]] = {"width": 16, "dropout": 0.1, "tags": 6, "likeliest": 4}
    name = "co-attention"
    paper = "Jing et al.: On the Automatic Generation of Medical Imaging Reports"
    year = 2018

    def __init__(self, settings: CoAttentionSettings, encoder: Encoder, words: int) -> None:
        super().__init__(settings, encoder, words)
        self.planner = CoAttentionPlanner(settings.width, settings.tags, settings.likeliest)
        self.writer = WordLSTM(words, settings.width, settings.word_layers, settings.dropout)

    def tell(self, seen: ImageAndTags) -> Mapping[str, Tensor]:
        return {"tags": seen.logits}

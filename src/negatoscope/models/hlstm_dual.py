"""HLSTM+att+Dual (Harzig, Chen, Chen, Lienhart: Addressing Data Bias Problems for Chest X-ray Image Report
Generation, BMVC 2019).

Most sentences of a report are normal, and a single word LSTM learns to write those. Here one LSTM writes normal
sentences and another abnormal ones, and a switch on the topic says which of them writes sentence s:

    a_s = sigmoid(w t_s)                                       the next sentence is abnormal
    P(sentence) = (1 - a_s) P_normal(sentence) + a_s P_abnormal(sentence)

Harzig et al. choose the likelier one and write with it. The mixture is what they train, in one: word by word it is

    p(w_t | before) = sum_z q_t(z) p_z(w_t | before),   q_1 = (1 - a_s, a_s),   q_{t+1}(z) ~ q_t(z) p_z(w_t | before)

where q soon knows which of the two is writing. The loss `switch` gives sentences that are known to be normal or
abnormal to their own LSTM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from negatoscope.models.base import Encoder, State
from negatoscope.models.hier_cnn_rnn import LookingPlanner
from negatoscope.models.hierarchical import Hierarchical, HierarchicalSettings, Memory, Sentences, WordLSTM
from negatoscope.text.words import END


@dataclass(frozen=True)
class DualState(State):
    decoders: tuple[Memory, Memory]  # of the normal one and of the abnormal one
    q: Tensor  # (R, 2) log q
    said: Tensor  # (R, 2, W): what each thought of the word that came next; zeros where a sentence opens


class DualWriter(nn.Module):
    def __init__(self, words: int, d: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.words = words
        self.normal, self.abnormal = (WordLSTM(words, d, layers, dropout) for _ in range(2))
        self.switch = nn.Linear(d, 1)

    def q(self, topic: Tensor) -> Tensor:
        """log q_1 (..., 2)."""
        a = self.switch(topic).float()
        return torch.cat([F.logsigmoid(-a), F.logsigmoid(a)], -1)

    def begin(self, topic: Tensor) -> DualState:
        q = self.q(topic)
        return DualState((self.normal.begin(topic), self.abnormal.begin(topic)), q, q.new_zeros(len(q), 2, self.words))

    def step(self, words: Tensor, state: DualState, opens: Tensor) -> tuple[Tensor, DualState]:
        gained = state.said.gather(-1, words.view(-1, 1, 1).expand(-1, 2, 1)).squeeze(-1)  # (R, 2)
        q = (state.q + gained).log_softmax(-1)
        normal, first = self.normal.advance(words, state.decoders[0])
        abnormal, second = self.abnormal.advance(words, state.decoders[1])
        said = torch.stack([self.normal.log_p(normal, opens), self.abnormal.log_p(abnormal, opens)], 1)
        return mixed(q, said), DualState((first, second), q, said)

    def read(
        self, topics: Tensor, words: Tensor, opens: Tensor, sentences: Sentences
    ) -> tuple[Tensor, Tensor, Mapping[str, Tensor]]:
        both = (self.normal, self.abnormal)
        hidden = torch.stack([one.hidden(topics, words, sentences) for one in both], 2)  # (B, T, 2, d)
        said = torch.stack([one.log_p(hidden[:, :, z], opens) for z, one in enumerate(both)], 2)  # (B, T, 2, W)
        following = F.pad(words[:, 1:], (0, 1))[:, :, None, None].expand(-1, -1, 2, 1)
        gained = said.gather(-1, following).squeeze(-1)  # (B, T, 2)
        # The last word of a sentence has no successor in it: what it gained is never asked for.
        gained = gained.masked_fill(following.squeeze(-1) == END, 0.0)
        q = (self.q(topics)[sentences.number] + sentences.since_open(gained)).log_softmax(-1)  # (B, T, 2)
        mean = (q.exp().unsqueeze(-1).to(hidden.dtype) * hidden).sum(2)
        return mixed(q, said), mean, {"switch": q, "decoders": said}


def mixed(q: Tensor, said: Tensor) -> Tensor:
    """log sum_z q(z) p_z: (..., 2), (..., 2, W) -> (..., W)."""
    return (q.unsqueeze(-1) + said).logsumexp(-2)


class HLSTMDualSettings(HierarchicalSettings):
    word_layers: int = 1


class HLSTMDual(Hierarchical):
    Settings = HLSTMDualSettings
    tiny: ClassVar[Mapping[str, Any]] = {"width": 16, "dropout": 0.1}
    name = "hlstm-dual"
    paper = "Harzig et al.: Addressing Data Bias Problems for Chest X-ray Image Report Generation"
    year = 2019

    def __init__(self, settings: HLSTMDualSettings, encoder: Encoder, words: int) -> None:
        super().__init__(settings, encoder, words)
        self.planner = LookingPlanner(settings.width)
        self.writer = DualWriter(words, settings.width, settings.word_layers, settings.dropout)

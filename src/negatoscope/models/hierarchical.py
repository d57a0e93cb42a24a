"""What the hierarchical reporters share: a sentence LSTM that plans sentence after sentence, a word LSTM that writes
each.

Their papers feed them reports cut into sentences. Here words come flat, one after another, and a full stop ends a
sentence, so that decoding need not know of sentences. A sentence opens where the start mark or a full stop was read.
There, with u the probability of the stop control and p the word LSTM's own,

    P(end) = u,   P(word w) = (1 - u) p(w | w is not the end)

and inside a sentence P = p, the end included: a report that was cut has an end without a full stop. So each step is a
proper distribution, and cross-entropy trains the stop control with the words.

B studies, k beams each, R = B k rows, T flat words, G sentences of all studies, of at most L words, N patches, d
width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from negatoscope.models.base import Encoder, Reading, Reporter, State, per_study
from negatoscope.settings import Settings
from negatoscope.studies.batch import Batch
from negatoscope.text.words import END
from negatoscope.vision.sight import Sight

S = TypeVar("S")
NEVER = -1e9
"""The logit of a word that cannot come: finite, for the slope of a mixture of two of them is not, at minus infinity."""


class HierarchicalSettings(Settings):
    width: int = 512
    """Of the patches, of both LSTMs and of the word embeddings."""
    word_layers: int = 1
    """Layers of the word LSTM."""
    dropout: float = 0.5
    """Of the word LSTM's hidden states before the words are chosen."""


@dataclass(frozen=True)
class Plan(State):
    """What the sentence LSTM says of one sentence a row."""

    topic: Tensor  # (R, d)
    stop: Tensor  # (R,) logit: the report has ended, there is no such sentence
    attention: Tensor | None = None  # (R, N) where it looked, in sum 1


class Planner(Protocol):
    """A sentence LSTM. `seen` is what it keeps of the images, a study a row; `memory` what it keeps of its own way."""

    def start(self, sight: Sight) -> tuple[Any, Any]: ...
    def __call__(self, seen: Any, memory: Any) -> tuple[Plan, Any]: ...


class Writer(Protocol):
    """A word LSTM, or two: words (R,) and whether each opens a sentence, to log-probabilities (R, W) of the next."""

    def begin(self, topic: Tensor) -> Any: ...
    def step(self, words: Tensor, state: Any, opens: Tensor) -> tuple[Tensor, Any]: ...
    def read(
        self, topics: Tensor, words: Tensor, opens: Tensor, sentences: Sentences
    ) -> tuple[Tensor, Tensor, Mapping[str, Tensor]]: ...


@dataclass(frozen=True)
class HierarchicalState(State):
    memory: Any  # the sentence LSTM's, a row each
    writing: Any  # the word LSTM's, a row each
    seen: Any = per_study()
    looked: Tensor | None = None  # (R, N) where the planner looked for the sentence that is being written


class Hierarchical(Reporter):
    """A planner and a writer make a reporter; a subclass says which."""

    planner: Planner
    writer: Writer

    def __init__(self, settings: HierarchicalSettings, encoder: Encoder, words: int) -> None:
        super().__init__(encoder, words)
        self.width = settings.width
        self.project = nn.Linear(encoder.width, settings.width)

    def look(self, batch: Batch) -> Sight:
        seen = self.encoder(batch)
        return seen.with_features(self.project(seen.patches), self.project(seen.overall))  # (B, N, d), (B, d)

    def opens(self, words: Tensor) -> Tensor:
        """Where a sentence opens: after the start mark and after each full stop."""
        return (words == END) | (words == self.full_stop)

    def start(self, sight: Sight) -> HierarchicalState:
        seen, memory = self.planner.start(sight)
        return HierarchicalState(memory, self.writer.begin(torch.zeros_like(sight.overall)), seen)

    def step(self, words: Tensor, state: HierarchicalState) -> tuple[Tensor, HierarchicalState]:
        opens, memory, writing = self.opens(words), state.memory, state.writing
        plan, looked = None, state.looked
        if opens.any():
            plan, moved = self.planner(state.seen, memory)
            memory = choose_where(opens, moved, memory)
            writing = choose_where(opens, self.writer.begin(plan.topic), writing)
            looked = plan.attention if looked is None else choose_where(opens, plan.attention, looked)
        log_p, writing = self.writer.step(words.masked_fill(opens, END), writing, opens)
        if plan is not None:
            log_p = with_stop(log_p, plan.stop, opens)
        return log_p, HierarchicalState(memory, writing, state.seen, looked)

    def read(self, sight: Sight, words: Tensor, mask: Tensor) -> Reading:
        opens = self.opens(words) & mask
        sentences = Sentences.found(opens, mask)
        seen, memory = self.planner.start(sight)
        plans = []
        for _ in range(sentences.most):
            plan, memory = self.planner(seen, memory)
            plans.append(plan)
        topics = sentences.of_each([plan.topic for plan in plans])  # (G, d)
        log_p, hidden, extra = self.writer.read(topics, words.masked_fill(opens, END), opens, sentences)
        stop = sentences.of_each([plan.stop for plan in plans])[sentences.number]  # (B, T)
        told = {"stop": stop, "opens": opens, **extra, **self.tell(seen)}
        if plans[0].attention is not None:
            looked = sentences.of_each([plan.attention for plan in plans if plan.attention is not None])  # (G, N)
            told["attention"] = looked[sentences.number]  # (B, T, N)
        return Reading(with_stop(log_p, stop, opens), hidden, mask, sight, told)

    def tell(self, seen: Any) -> Mapping[str, Tensor]:
        """What a loss wants to know of the planner's view of the images: predicted tags."""
        return {}


def with_stop(log_p: Tensor, stop: Tensor, opens: Tensor) -> Tensor:
    """Where a sentence opens, the end has the stop control's probability and the words share the rest."""
    stop = stop.float()
    end = torch.where(opens, F.logsigmoid(stop), log_p[..., END])
    goes_on = torch.where(opens, F.logsigmoid(-stop), torch.zeros_like(stop))
    return torch.cat([end.unsqueeze(-1), log_p[..., END + 1 :] + goes_on.unsqueeze(-1)], -1)


def choose_where(rows: Tensor, new: S, old: S) -> S:
    """`new` in those rows (R,) that are True, `old` in the others, all through a state."""
    if isinstance(new, Tensor):
        return torch.where(rows.view(-1, *[1] * (new.dim() - 1)), new, old)  # pyright: ignore[reportReturnType, reportArgumentType, reportCallIssue]
    if isinstance(new, tuple):
        return tuple(choose_where(rows, a, b) for a, b in zip(new, old, strict=True))  # pyright: ignore[reportReturnType, reportArgumentType]
    if not is_dataclass(new) or isinstance(new, type):
        raise TypeError(f"{type(new).__name__} is no dataclass")
    return replace(new, **{f.name: choose_where(rows, getattr(new, f.name), getattr(old, f.name)) for f in fields(new)})


@dataclass(frozen=True)
class Sentences:
    """Where the sentences of flat reports lie."""

    number: Tensor  # (B, T): which of the G sentences a word is of
    place: Tensor  # (B, T): the how-manieth word of it, from 0
    study: Tensor  # (G,): whose sentence
    order: Tensor  # (G,): the how-manieth of its report, from 0
    mask: Tensor  # (B, T)
    most: int
    """Sentences of the report that has most."""
    longest: int

    @classmethod
    def found(cls, opens: Tensor, mask: Tensor) -> Sentences:
        study, first = opens.nonzero(as_tuple=True)
        number = opens.flatten().cumsum(0).view_as(opens) - 1
        order = opens.cumsum(1)[study, first] - 1
        place = torch.arange(opens.shape[1], device=opens.device) - first[number]
        longest = int(place[mask].max()) + 1
        return cls(number, place.clamp_max(longest - 1), study, order, mask, int(order.max()) + 1, longest)

    def of_each(self, steps: list[Tensor]) -> Tensor:
        """What was said at each step for every study, (B, ...), as one row a sentence (G, ...)."""
        return torch.stack(steps, 1)[self.study, self.order]

    def apart(self, words: Tensor) -> Tensor:
        """Flat words (B, T), one sentence a row: (G, L)."""
        rows = words.new_zeros(len(self.study), self.longest)
        rows[self.number[self.mask], self.place[self.mask]] = words[self.mask]
        return rows

    def flat(self, values: Tensor) -> Tensor:
        """(G, L, d), one sentence a row, as flat as the words: (B, T, d)."""
        return values[self.number, self.place]

    def since_open(self, values: Tensor) -> Tensor:
        """The sum of values (B, T, ...) over the words of the same sentence before each."""
        before = values.cumsum(1) - values
        study = torch.arange(len(values), device=values.device).unsqueeze(1)
        opening = torch.arange(values.shape[1], device=values.device) - self.place
        return before - before[study, opening.clamp_min(0)]


Memory = tuple[Tensor, Tensor]  # h and c, (R, d) or (R, layers, d)


class SentenceLSTM(nn.Module):
    """The sentence LSTM as Jing et al. 2018 wire it, used for Harzig et al. 2019, Huang et al. 2019 and HCR too.

    ctx_s = what is looked at, by h_{s-1}                                a subclass's `context`
    h_s   = LSTM(ctx_s)
    t_s   = tanh(W_{t,h} h_s + W_{t,ctx} ctx_s)                          topic
    u_s   = sigmoid(w tanh(W_{stop,s-1} h_{s-1} + W_{stop,s} h_s))       stop
    """

    def __init__(self, d: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(d, d, batch_first=True)
        self.topic_of_state, self.topic_of_context = nn.Linear(d, d), nn.Linear(d, d, bias=False)
        self.stop_before, self.stop_now = nn.Linear(d, d), nn.Linear(d, d, bias=False)
        self.stop = nn.Linear(d, 1)

    def see(self, sight: Sight) -> Any:
        """What is kept of the images: a State, one row a study."""
        raise NotImplementedError

    def context(self, seen: Any, h: Tensor) -> tuple[Tensor, Tensor]:
        """ctx_s (R, d), and over which patches, (R, N)."""
        raise NotImplementedError

    def start(self, sight: Sight) -> tuple[Any, Memory]:
        nothing = torch.zeros_like(sight.overall)
        return self.see(sight), (nothing, nothing)

    def forward(self, seen: Any, memory: Memory) -> tuple[Plan, Memory]:
        before = memory[0]
        ctx, attention = self.context(seen, before)
        h, c = one_step(self.lstm, ctx, memory)
        topic = (self.topic_of_state(h) + self.topic_of_context(ctx)).tanh()
        stop = self.stop((self.stop_before(before) + self.stop_now(h)).tanh()).squeeze(-1)
        return Plan(topic, stop, attention), (h, c)


def one_step(lstm: nn.LSTM, x: Tensor, memory: Memory) -> Memory:
    """x (R, d) and h, c (R, d) of one layer -> h, c."""
    h, c = (part.unsqueeze(0).to(x.dtype) for part in memory)
    _, (h, c) = lstm(x.unsqueeze(1), (h, c))
    return h[0], c[0]


class WordLSTM(nn.Module):
    """Reads the topic, then the start mark, then the words of the sentence."""

    def __init__(self, words: int, d: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, d)
        self.lstm = nn.LSTM(d, d, layers, dropout=dropout if layers > 1 else 0.0, batch_first=True)
        self.drop = nn.Dropout(dropout)
        self.out = nn.Linear(d, words)
        for table in (self.embed, self.out):
            nn.init.uniform_(table.weight, -0.1, 0.1)
        nn.init.zeros_(self.out.bias)

    def begin(self, topic: Tensor) -> Memory:
        """h, c (R, layers, d) after the topic (R, d)."""
        _, (h, c) = self.lstm(topic.unsqueeze(1))
        return h.transpose(0, 1), c.transpose(0, 1)

    def advance(self, words: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        """Words (R,) -> hidden (R, d) and h, c after them."""
        x = self.embed(words).unsqueeze(1)
        h, c = (part.transpose(0, 1).contiguous() for part in memory)
        hidden, (h, c) = self.lstm(x, (h, c))
        return hidden[:, 0], (h.transpose(0, 1), c.transpose(0, 1))

    def log_p(self, hidden: Tensor, opens: Tensor) -> Tensor:
        """(..., d) -> (..., W) in float32; no end where a sentence opens."""
        logits = self.out(self.drop(hidden)).float()
        end = logits[..., END].masked_fill(opens, NEVER)
        return torch.cat([end.unsqueeze(-1), logits[..., END + 1 :]], -1).log_softmax(-1)

    def step(self, words: Tensor, state: Memory, opens: Tensor) -> tuple[Tensor, Memory]:
        hidden, state = self.advance(words, state)
        return self.log_p(hidden, opens), state

    def hidden(self, topics: Tensor, words: Tensor, sentences: Sentences) -> Tensor:
        """Topics (G, d) and flat words (B, T) -> (B, T, d): all sentences side by side."""
        x = torch.cat([topics.unsqueeze(1).to(self.embed.weight.dtype), self.embed(sentences.apart(words))], 1)
        return sentences.flat(self.lstm(x)[0][:, 1:])

    def read(
        self, topics: Tensor, words: Tensor, opens: Tensor, sentences: Sentences
    ) -> tuple[Tensor, Tensor, Mapping[str, Tensor]]:
        hidden = self.hidden(topics, words, sentences)
        return self.log_p(hidden, opens), hidden, {}

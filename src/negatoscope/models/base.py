"""What every report generator can do. See docs/design.md for the way of a study through it.

    batch --look--> Sight --contrast (optional)--> Sight --start--> State --step, step, ...--> words
                                                       \\--read (teacher forcing)--> Reading

`step` fed a report word by word gives the same log-probabilities as `read`; one test runs that over every registered
model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, Protocol, TypeVar

import torch
from torch import Tensor, nn

from negatoscope.errors import BadInput
from negatoscope.settings import Settings
from negatoscope.studies.batch import Batch
from negatoscope.text.words import Vocabulary
from negatoscope.vision.sight import Sight

S = TypeVar("S")


@dataclass(frozen=True)
class Reading:
    """One teacher-forced pass: what was said at each position, and what stood behind it."""

    logits: Tensor  # (B, T, W): after reading word t, what comes next
    hidden: Tensor  # (B, T, d): the decoder's last hidden states
    mask: Tensor  # (B, T) bool: positions whose next word is a real one or the end
    sight: Sight
    extra: Mapping[str, Tensor] = field(default_factory=dict)
    """Further outputs that a loss of this model asks for, by name: tag or stop logits."""


def per_study() -> Any:
    """Marks a field of a State whose first dimension is the study, not the row: what a decoder knows of the images."""
    return field(metadata={"per_study": True})


def for_all() -> Any:
    """Marks a field of a State that is the same for all rows: what the model itself remembers."""
    return field(metadata={"for_all": True})


@dataclass(frozen=True)
class State:
    """A decoder between two words: a frozen dataclass of tensors, tuples of tensors, or None.

    First dimension of each tensor: the row; R rows are B studies times k beams, the k of a study side by side. Fields
    marked `per_study()` have B instead: the beams of a study share its image, so that it is neither copied k times
    nor reordered. Fields marked `for_all()` have neither, and are never indexed.
    """


def choose_rows(state: S, rows: Tensor, studies: Tensor | None = None) -> S:
    """The state of other rows: beams that were reordered, multiplied, or (with `studies`) the studies still
    unfinished."""
    if not is_dataclass(state) or isinstance(state, type):
        raise TypeError(f"{type(state).__name__} is no dataclass")
    chosen = {}
    for f in fields(state):
        if not f.metadata.get("for_all"):
            kind = (studies, studies) if f.metadata.get("per_study") else (rows, studies)
            chosen[f.name] = _index(getattr(state, f.name), *kind)
    return replace(state, **chosen)


def _index(value: Any, index: Tensor | None, studies: Tensor | None) -> Any:
    if value is None or index is None:
        return value
    if isinstance(value, Tensor):
        return value.index_select(0, index)
    if isinstance(value, tuple):
        return tuple(_index(inner, index, studies) for inner in value)
    return choose_rows(value, index, studies)


class Encoder(Protocol):
    """What a reporter needs of an image encoder (`vision/encoder.py`): raw features of width `width`."""

    width: int

    def __call__(self, batch: Batch) -> Sight: ...


class Contrast(Protocol):
    """What stands between `look` and `start`: Contrastive Attention, or nothing."""

    def __call__(self, sight: Sight, ids: tuple[str, ...]) -> Sight: ...


class Reporter(nn.Module, ABC):
    """Base of every report generator. A subclass is one published system: `look`, `start`, `step`, `read`."""

    Settings: type[Settings]
    tiny: ClassVar[Mapping[str, Any]] = {"width": 16}
    """Settings of the smallest model of this kind that has every part: what the tests of all models build."""
    name: str
    paper: str
    """Authors, title, year: what `negatoscope models` lists."""
    year: int
    width: int
    """d of the Sight that `look` hands out: where Contrastive Attention fits in."""
    full_stop: int = 0
    """Number of the word that ends a sentence, set by whoever knows the vocabulary; 0 where there is none: a report is
    one sentence then."""

    def __init__(self, encoder: Encoder, words: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.words = words
        """Width W of the logits: the vocabulary's entries and the end."""
        self.contrast: Contrast | None = None

    def take_pretrained(self, vocabulary: Vocabulary) -> None:
        """Weights from elsewhere in the place of random ones, where the settings name some; before a training."""

    def begin(self, batches: Callable[[], Iterable[Batch]], seed: int) -> None:
        """Once, before the first step of a training: what a model draws from the training studies themselves.

        `batches()` gives each of them once.
        """

    @abstractmethod
    def look(self, batch: Batch) -> Sight:
        """Images or cached features to the features this decoder reads, (B, N, d)."""

    @abstractmethod
    def start(self, sight: Sight) -> Any:
        """The decoder's State before the first word, one row a study."""

    @abstractmethod
    def step(self, words: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Words (R,) just written -> log-probabilities (R, W) of the next, and the State after them."""

    @abstractmethod
    def read(self, sight: Sight, words: Tensor, mask: Tensor) -> Reading:
        """Teacher forcing: words (B, T) as read, mask (B, T) of those positions that have a next word."""

    def see(self, batch: Batch) -> Sight:
        """`look`, and the contrast with normal images where one is set."""
        sight = self.look(batch)
        return sight if self.contrast is None else self.contrast(sight, batch.ids)

    def forward(self, batch: Batch) -> Reading:
        if batch.words is None or batch.word_mask is None:
            raise BadInput("no reports to learn from", where=f"batch of {batch.ids[0]}")
        # The last column is never read: it has no next word.
        return self.read(self.see(batch), batch.words[:, :-1], batch.word_mask[:, 1:])


def targets(batch: Batch) -> Tensor:
    """(B, T): the word that should follow each position of a Reading."""
    assert batch.words is not None
    return batch.words[:, 1:]


def log_probabilities(logits: Tensor) -> Tensor:
    """In float32 whatever the logits are: sums of 60 of them decide between beams."""
    return torch.log_softmax(logits.float(), dim=-1)

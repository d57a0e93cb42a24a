"""The words so far, as a decoder keeps their keys and values between two words: written once, seldom moved.

A beam search reorders its beams at every word. Keys and values could follow their beams, which copies all of them each
time. Here the words of a study's beams stay where they were written, in slots that all its beams look at, and each row
knows which slots are its own line: a table of truth values is all that is reordered. Slots that no line holds any more
are left out when there are many.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from negatoscope.models.base import State, for_all, per_study

KeysValues = tuple[Tensor, Tensor]
SMALLEST_ROOM = 64
FEWEST_SLOTS = 32
"""Until there are so many, none is left out."""


@dataclass
class _Room:
    """How many slots were ever written in a room. Two states may share a room; only the one that knows all of it writes
    on."""

    written: int = 0


@dataclass(frozen=True)
class Past(State):
    """One layer's keys and values, n slots of a room that is larger. Heads lie side by side: a slot is one piece of
    memory."""

    keys: Tensor = per_study()  # (B, room, d)
    values: Tensor = per_study()
    slots: int = for_all()
    room: _Room = field(default_factory=_Room, metadata={"for_all": True})

    @classmethod
    def empty(cls, like: Tensor) -> Past:
        """For studies of which some keys (B, h, N, d / h) are at hand."""
        B, h, _, width = like.shape
        nothing = like.new_empty(B, 0, h * width)
        return cls(nothing, nothing, 0, _Room())

    def and_then(self, keys: Tensor, values: Tensor) -> Past:
        """With k more slots, (B, k, d) twice."""
        before, after = self.slots, self.slots + keys.shape[1]
        if keys.requires_grad:  # what a gradient goes through must not be written over
            longer = [torch.cat([old, new], 1) for old, new in zip(self.held, (keys, values))]
            return Past(longer[0], longer[1], after, _Room(after))
        told = self if self.room.written == before and after <= self.keys.shape[1] else self._moved(after)
        told.keys[:, before:after] = keys
        told.values[:, before:after] = values
        told.room.written = after
        return replace(told, slots=after)

    def _moved(self, wanted: int) -> Past:
        """Into a room of its own, with space for as much again."""
        return self._in_a_room(*self.held, max(SMALLEST_ROOM, 2 * wanted))

    def only(self, slots: Tensor) -> Past:
        """Those slots (B, m) of each study."""
        keys, values = (x.gather(1, slots.unsqueeze(2).expand(-1, -1, x.shape[2])) for x in (self.keys, self.values))
        return self._in_a_room(keys, values, max(SMALLEST_ROOM, 2 * slots.shape[1]))

    def _in_a_room(self, keys: Tensor, values: Tensor, room: int) -> Past:
        B, slots, d = keys.shape
        if keys.requires_grad:
            return Past(keys, values, slots, _Room(slots))
        wide = keys.new_empty(B, room, d), values.new_empty(B, room, d)
        wide[0][:, :slots], wide[1][:, :slots] = keys, values
        return Past(*wide, slots, _Room(slots))

    @property
    def held(self) -> KeysValues:
        """(B, n, d) twice."""
        return self.keys[:, : self.slots], self.values[:, : self.slots]


@dataclass(frozen=True)
class PastState(State):
    """What a transformer decoder knows between two words: its own past, and each layer's keys and values of the
    patches."""

    lines: Tensor  # (R, n) bool: which slots of its study are a row's own words
    position: int = for_all()
    past: tuple[Past, ...] = per_study()  # a layer
    patches: tuple[KeysValues, ...] = per_study()  # a layer: (B, h, N, d / h) twice
    mask: Tensor = per_study()  # (B, 1, 1, N)
    thin_at: int = field(default=FEWEST_SLOTS, metadata={"for_all": True})
    """Slots at which it is next looked for some that no line holds."""

    def one_more(self) -> PastState:
        """Of rows that are about to write one word each, k rows a study side by side: their lines are (R, n + k)."""
        thin = self._thinned() if self.lines.shape[1] > self.thin_at else self
        rows, studies = len(self.lines), len(self.mask)
        own = torch.eye(rows // studies, dtype=torch.bool, device=self.lines.device).repeat(studies, 1)  # (R, k)
        return replace(thin, lines=torch.cat([thin.lines, own], 1))

    def _thinned(self) -> PastState:
        studies, n = len(self.mask), self.lines.shape[1]
        lines = self.lines.view(studies, -1, n)  # (B, k, n)
        alive = lines.any(1)  # (B, n)
        most = int(alive.sum(1).max())
        if 4 * most > 3 * n:
            return replace(self, thin_at=2 * n)
        living_first = alive.byte().argsort(dim=1, descending=True, stable=True)
        slots = living_first[:, :most]  # (B, m), in the order they were written
        kept = lines.gather(2, slots.unsqueeze(1).expand(-1, lines.shape[1], -1)).flatten(0, 1)  # (R, m)
        past = tuple(one.only(slots) for one in self.past)
        return replace(self, lines=kept, past=past, thin_at=max(FEWEST_SLOTS, 3 * most // 2))

"""The words so far, as a decoder keeps their keys and values between two words: written once, never moved.

A beam search reorders its beams at every word. Keys and values could follow their beams, which copies all of them each
time. Here the words of a study's beams stay where they were written, in slots that all its beams look at, and each row
knows which slots are its own line: a table of truth values is all that is reordered.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from negatoscope.models.base import State, for_all, per_study

KeysValues = tuple[Tensor, Tensor]
SMALLEST_ROOM = 64


@dataclass
class _Room:
    """How many slots were ever written in a room. Two states may share a room; only the one that knows all of it writes
    on."""

    written: int = 0


@dataclass(frozen=True)
class Past(State):
    """One layer's keys and values, n slots of a room that is larger."""

    keys: Tensor = per_study()  # (B, h, room, d / h)
    values: Tensor = per_study()
    slots: int = for_all()
    room: _Room = field(default_factory=_Room, metadata={"for_all": True})

    @classmethod
    def empty(cls, like: Tensor) -> Past:
        """For studies of which some keys (B, h, N, d / h) are at hand."""
        nothing = like[:, :, :0]
        return cls(nothing, nothing, 0, _Room())

    def and_then(self, keys: Tensor, values: Tensor) -> Past:
        """With k more slots, (B, h, k, d / h) twice."""
        before, after = self.slots, self.slots + keys.shape[2]
        if keys.requires_grad:  # what a gradient goes through must not be written over
            longer = [
                torch.cat([old[:, :, :before], new], 2) for old, new in ((self.keys, keys), (self.values, values))
            ]
            return Past(longer[0], longer[1], after, _Room(after))
        told = self if self.room.written == before and after <= self.keys.shape[2] else self._moved(after)
        told.keys[:, :, before:after] = keys
        told.values[:, :, before:after] = values
        told.room.written = after
        return replace(told, slots=after)

    def _moved(self, wanted: int) -> Past:
        """Into a room of its own, with space for as much again."""
        B, h, _, width = self.keys.shape
        room = max(SMALLEST_ROOM, 2 * wanted)
        keys, values = self.keys.new_empty(B, h, room, width), self.values.new_empty(B, h, room, width)
        keys[:, :, : self.slots] = self.keys[:, :, : self.slots]
        values[:, :, : self.slots] = self.values[:, :, : self.slots]
        return Past(keys, values, self.slots, _Room(self.slots))

    @property
    def held(self) -> KeysValues:
        return self.keys[:, :, : self.slots], self.values[:, :, : self.slots]


@dataclass(frozen=True)
class PastState(State):
    """What a transformer decoder knows between two words: its own past, and each layer's keys and values of the
    patches."""

    lines: Tensor  # (R, n) bool: which slots of its study are a row's own words
    position: int = for_all()
    past: tuple[Past, ...] = per_study()  # a layer
    patches: tuple[KeysValues, ...] = per_study()  # a layer: (B, h, N, d / h) twice
    mask: Tensor = per_study()  # (B, 1, 1, N)

    def one_more(self) -> Tensor:
        """The lines (R, n + k) of rows that are about to write one word each, k rows a study side by side."""
        rows, studies = len(self.lines), len(self.mask)
        own = torch.eye(rows // studies, dtype=torch.bool, device=self.lines.device).repeat(studies, 1)  # (R, k)
        return torch.cat([self.lines, own], 1)

"""Predictions beside their references: each study once, in the references' order, nothing dropped without a word."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from negatoscope.errors import BadInput, WrongUse
from negatoscope.metrics.forms import Reports


@dataclass(frozen=True)
class Pairs:
    """What is scored: n studies, one prediction and one or more references each."""

    ids: tuple[str, ...]
    """As the references have them; '1', '2' ... where the references have none."""
    predictions: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]
    by: Literal["id", "position"]
    """Position where one of the two files has no ids."""
    missing: tuple[str, ...] = ()
    """Studies without a prediction, scored as an empty report because that was asked for."""
    unasked: tuple[str, ...] = ()
    """Predictions without a reference, left out because that was asked for."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def empty(self) -> tuple[str, ...]:
        """Studies whose prediction is there and says nothing."""
        missing = set(self.missing)
        return tuple(i for i, text in zip(self.ids, self.predictions) if not text.strip() and i not in missing)

    @property
    def empty_references(self) -> tuple[str, ...]:
        return tuple(i for i, texts in zip(self.ids, self.references) if not any(text.strip() for text in texts))

    @property
    def references_hash(self) -> str:
        """Of ids and texts, whatever the file's form and order."""
        sorted_pairs = sorted(zip(self.ids, self.references))
        return hashlib.sha256(json.dumps(sorted_pairs, ensure_ascii=False).encode()).hexdigest()

    def subset(self, positions: Sequence[int]) -> Pairs:
        """Some of the studies, in the order given."""
        ids = tuple(self.ids[p] for p in positions)
        kept = set(ids)
        return replace(
            self,
            ids=ids,
            predictions=tuple(self.predictions[p] for p in positions),
            references=tuple(self.references[p] for p in positions),
            missing=tuple(i for i in self.missing if i in kept),
        )


def pair(
    predictions: Reports,
    references: Reports,
    *,
    missing: str = "error",
    unasked: str = "error",
) -> Pairs:
    """Pairs by id, or by position where a file has no ids and both are of one length.

    `missing='empty'` scores a reference without a prediction as an empty report; `unasked='leave-out'` leaves
    predictions without a reference out. Both are counted in the result. Raises BadInput otherwise."""
    for setting, said, known in (
        ("missing", missing, ("error", "empty")),
        ("unasked", unasked, ("error", "leave-out")),
    ):
        if said not in known:
            raise WrongUse(f"{setting} is {said!r}", remedy=f"{known[0]} or {known[1]}")
    several = next((p for p, wording in enumerate(predictions.wordings) if len(wording) > 1), None)
    if several is not None:
        raise BadInput(
            f"{len(predictions.wordings[several])} predictions for one study", where=predictions.where(several)
        )
    if predictions.numbered or references.numbered:
        return _by_position(predictions, references)
    text_of = dict(zip(predictions.ids, predictions.texts))
    asked = set(references.ids)
    without_prediction = tuple(i for i in references.ids if i not in text_of)
    without_reference = tuple(i for i in predictions.ids if i not in asked)
    if len(without_prediction) == len(references):
        raise BadInput(
            f"no study id in common with {references.path}",
            where=predictions.path,
            remedy=f"{predictions.ids[0]!r} here, {references.ids[0]!r} there: are these files of one split?",
        )
    if without_prediction and missing == "error":
        raise BadInput(
            f"{_count(without_prediction)} of {references.path} without a prediction",
            where=predictions.path,
            remedy="--missing empty scores them as empty reports",
        )
    if without_reference and unasked == "error":
        raise BadInput(
            f"{_count(without_reference)} of {predictions.path} without a reference",
            where=references.path,
            remedy="--unasked leave-out leaves them out",
        )
    return Pairs(
        ids=references.ids,
        predictions=tuple(text_of.get(i, "") for i in references.ids),
        references=references.wordings,
        by="id",
        missing=without_prediction,
        unasked=without_reference,
    )


def _by_position(predictions: Reports, references: Reports) -> Pairs:
    if len(predictions) != len(references):
        without = predictions if predictions.numbered else references
        raise BadInput(
            f"{len(predictions)} predictions, {len(references)} references, and {without.path} has no ids to pair by",
            where=predictions.path,
            remedy="give both files ids, or the same number of reports in the same order",
        )
    return Pairs(ids=references.ids, predictions=predictions.texts, references=references.wordings, by="position")


def _count(ids: Sequence[str]) -> str:
    shown = ", ".join(repr(i) for i in ids[:3])
    return f"{len(ids)} {'study' if len(ids) == 1 else 'studies'} ({shown}{' ...' if len(ids) > 3 else ''})"

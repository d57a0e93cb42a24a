"""How well a reporter does on the validation split, by loss and by what it writes. The test split has no place here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch

from negatoscope.decoding import DecodeSettings
from negatoscope.errors import WrongUse, nearest_names
from negatoscope.studies.batch import Batch
from negatoscope.studies.loader import StudyLoader
from negatoscope.text.words import Vocabulary
from negatoscope.training.learner import Learner
from negatoscope.training.writing import language_scores, write_reports
from negatoscope.watch import Watch

_ALWAYS = ("loss", "distinct")
_FURTHER = ("diversity", "lengths", "clinical")
_LOWER_IS_BETTER = ("loss", "missed", "invented", "rep-", "reports with repetition", "length,")


def metrics_for(select: str) -> tuple[str, ...]:
    """The metrics that have this figure, beyond the quick ones that every validation computes: METEOR, diversity,
    lengths, clinical efficacy. Raises WrongUse for a figure that none has."""
    known = {*_ALWAYS, "METEOR", *language_scores(["a"], ["a"])}
    if select in known:
        return ("meteor",) if select == "METEOR" else ()
    for name in _FURTHER:
        figures = language_scores(["a"], ["a"], (name,)).keys()
        if select in figures:
            return (name,)
        known |= figures
    raise WrongUse(f"no validation score {select!r}", where="train.select", remedy=nearest_names(select, known))


def sign_of(select: str) -> float:
    """1 where more of a score is better, -1 where less is."""
    return -1.0 if select.startswith(_LOWER_IS_BETTER) else 1.0


def validate(
    learner: Learner,
    loader: StudyLoader,
    vocabulary: Vocabulary,
    decode: DecodeSettings,
    *,
    autocast: AbstractContextManager[Any],
    watch: Watch,
    wordings: Mapping[str, Sequence[str]] | None = None,
    more: Sequence[str] = (),
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Scores (language figures, 'loss', 'distinct': the share of distinct reports) and the reports themselves.

    `wordings`: all references of the studies that have several. `more`: metrics beside the quick ones.
    """
    learner.eval()
    device = next(learner.parameters()).device
    references: dict[str, str] = {}
    losses: list[tuple[int, float]] = []

    def batches() -> Iterator[Batch]:
        for batch in watch(loader.epoch(), "validation", len(loader)):
            assert batch.words is not None
            for study, words in zip(batch.ids, batch.words.tolist(), strict=True):
                references[study] = vocabulary.decode(words[1:])
            batch = batch.to(device)
            losses.append((len(batch), learner(batch)["loss"].item()))
            yield batch

    with torch.inference_mode(), autocast:
        rows = list(write_reports(learner.reporter, batches(), vocabulary, decode))
    told = [(wordings or {}).get(row["id"]) or [references[row["id"]]] for row in rows]
    scores = language_scores([row["report"] for row in rows], told, more)
    scores["loss"] = sum(n * loss for n, loss in losses) / sum(n for n, _ in losses)
    scores["distinct"] = len({row["report"] for row in rows}) / len(rows)
    return scores, rows

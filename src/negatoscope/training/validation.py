"""How well a reporter does on the validation split, by loss and by what it writes. The test split has no place here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch

from negatoscope.decoding import DecodeSettings
from negatoscope.studies.batch import Batch
from negatoscope.studies.loader import StudyLoader
from negatoscope.text.words import Vocabulary
from negatoscope.training.learner import Learner
from negatoscope.training.writing import language_scores, write_reports
from negatoscope.watch import Watch


def validate(
    learner: Learner,
    loader: StudyLoader,
    vocabulary: Vocabulary,
    decode: DecodeSettings,
    *,
    autocast: AbstractContextManager[Any],
    watch: Watch,
    wordings: Mapping[str, Sequence[str]] | None = None,
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Scores (language figures, 'loss', 'distinct': the share of distinct reports) and the reports themselves.

    `wordings`: all references of the studies that have several.
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
    scores = language_scores([row["report"] for row in rows], told)
    scores["loss"] = sum(n * loss for n, loss in losses) / sum(n for n, _ in losses)
    scores["distinct"] = len({row["report"] for row in rows}) / len(rows)
    return scores, rows

"""Reports for every study of a loader, as the lines of a JSONL file, and their scores."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from negatoscope.decoding import DecodeSettings, write
from negatoscope.models.base import Reporter
from negatoscope.studies.batch import Batch
from negatoscope.text.words import Vocabulary
from negatoscope.whole_files import write_text


def write_reports(
    reporter: Reporter, batches: Iterable[Batch], vocabulary: Vocabulary, decode: DecodeSettings
) -> Iterator[dict[str, Any]]:
    """One object a study: `id`, `report`, `score` (its log-probability), and `others` where more than one was asked
    for."""
    for batch in batches:
        for study, written in zip(batch.ids, write(reporter, batch, decode, vocabulary.unknown), strict=True):
            said = [{"report": vocabulary.decode(one.words), "score": one.score} for one in written]
            yield {"id": study, **said[0], **({"others": said[1:]} if len(said) > 1 else {})}


def save_jsonl(path: Path | str, rows: Iterable[Mapping[str, Any]]) -> None:
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


Score = Callable[[Sequence[str], Sequence[str]], dict[str, float]]


def language_scores(
    predictions: Sequence[str], references: Sequence[str | Sequence[str]], more: Sequence[str] = ()
) -> dict[str, float]:
    """The quick figures by which an epoch is chosen: BLEU-1 to 4, ROUGE-L, CIDEr, and those of `more` metrics. For
    tables use `metrics.evaluate`."""
    from negatoscope.metrics import metric_named

    told = [[one] if isinstance(one, str) else list(one) for one in references]
    figures: dict[str, float] = {}
    for name in ("bleu", "rouge", "cider", *more):
        metric = metric_named(name)
        totals = metric.rows(predictions, told).sum(0)
        figures |= {key: float(value) for key, value in metric.figures(totals).items()}
    return figures

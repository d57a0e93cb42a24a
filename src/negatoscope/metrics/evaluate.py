"""Two files in, every figure out, each with the line that says how it was made."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from negatoscope.errors import BadInput, Trouble, WrongUse
from negatoscope.metrics import USUAL, known_metric, metric_named
from negatoscope.metrics.forms import Reports, read_reports
from negatoscope.metrics.given_labels import read_labels
from negatoscope.metrics.metric import Detailed, Metric
from negatoscope.metrics.pairs import Pairs, pair
from negatoscope.metrics.protocol import Protocol
from negatoscope.metrics.signature import Signature, refuse_unlike
from negatoscope.watch import Watch, quiet


@dataclass(frozen=True)
class Source:
    path: str
    form: str
    reports: int
    sha256: str


@dataclass(frozen=True)
class Evaluation:
    """One model's figures, and under them one row of counts a study and metric: what intervals and tests are drawn
    from."""

    pairs: Pairs
    protocol: Protocol
    figures: Mapping[str, float]
    """'BLEU-4': 0.17 ..., in the order of the metrics."""
    rows: Mapping[str, np.ndarray]
    """Metric name -> (n, k)."""
    metrics: Mapping[str, Metric]
    metric_of: Mapping[str, str]
    """Figure -> the metric that made it."""
    signature: Signature
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Metric -> why it is not among the figures."""
    sources: Mapping[str, Source] = field(default_factory=dict)
    """'predictions', 'references', 'training' -> the file and the form in which it was read."""

    @property
    def n(self) -> int:
        return len(self.pairs)

    def figures_of(self, metric: str, weights: np.ndarray) -> dict[str, np.ndarray]:
        """Figures for weights over studies (..., n): a bootstrap draw is a row of counts, a split a row of zeros and
        ones."""
        return self.metrics[metric].figures(weights @ self.rows[metric])

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "n": self.n,
            "figures": dict(self.figures),
            "details": {
                name: metric.details(self.rows[name].sum(axis=0))
                for name, metric in self.metrics.items()
                if isinstance(metric, Detailed)
            },
            "signature": self.signature.as_json(),
            "signatures": {figure: str(self.signature.of(metric)) for figure, metric in self.metric_of.items()},
            "left_out": dict(self.left_out),
            "sources": {role: asdict(source) for role, source in self.sources.items()},
            "paired_by": self.pairs.by,
            "missing_predictions": len(self.pairs.missing),
            "unasked_predictions": len(self.pairs.unasked),
            "empty_predictions": len(self.pairs.empty),
            "empty_references": len(self.pairs.empty_references),
        }


def evaluate(
    predictions: Path | str | Reports,
    references: Path | str | Reports,
    *,
    protocol: Protocol = Protocol(),  # noqa: B008 - frozen
    metrics: Sequence[str] | None = None,
    training: Path | str | Reports | None = None,
    form: str = "auto",
    references_form: str = "auto",
    split: str = "test",
    missing: str = "error",
    unasked: str = "error",
    clinical: str | None = None,
    labels: Path | str | None = None,
    reference_labels: Path | str | None = None,
    watch: Watch = quiet,
) -> Evaluation:
    """Scores a file of predictions against a file of references, in any form of `forms.FORMS`.

    Without `metrics`, the usual ones; one that cannot be computed here is then left out with its reason, whereas one
    that was asked for by name raises. `training`: reports of the training split, for the share that was copied.
    `clinical`: settings of clinical efficacy by name (`clinical_settings.py`). `labels` and `reference_labels`: CSVs
    of the 14 observations in place of what the labeler reads."""
    said = _read(predictions, form, "prediction", split)
    asked = _read(references, references_form, "reference", split)
    learned_from = None if training is None else _read(training, "auto", "reference", "train")
    pairs = pair(said, asked, missing=missing, unasked=unasked)
    texts = None if learned_from is None else learned_from.texts
    ready = {}
    if clinical is not None or labels is not None or reference_labels is not None:
        ready["clinical"] = _clinical(clinical or "usual", (labels, reference_labels), (said, asked), pairs, watch)
    scored = score(pairs, protocol=protocol, metrics=metrics, training=texts, ready=ready, watch=watch)
    files = {"predictions": said, "references": asked, "training": learned_from}
    return replace(scored, sources={role: source_of(reports) for role, reports in files.items() if reports is not None})


def score(
    pairs: Pairs,
    *,
    protocol: Protocol = Protocol(),  # noqa: B008 - frozen
    metrics: Sequence[str] | None = None,
    training: Sequence[str] | None = None,
    ready: Mapping[str, Metric] | None = None,
    watch: Watch = quiet,
) -> Evaluation:
    """Scores pairs that are in memory already. `ready`: metrics made with settings of their own, by name."""
    texts = Prepared(pairs, protocol)
    known = None if training is None else protocol.words(training, "reference")
    done: dict[str, Metric] = {}
    rows: dict[str, np.ndarray] = {}
    figures: dict[str, float] = {}
    metric_of: dict[str, str] = {}
    left_out: dict[str, str] = {}
    names = USUAL if metrics is None else tuple(dict.fromkeys(map(known_metric, metrics)))
    if not names:
        raise WrongUse("no metric was named", where="metrics", remedy=f"for example {','.join(USUAL[:3])}")
    for name in names:
        try:
            metric = (ready or {}).get(name) or metric_named(name, known, watch)
            rows[name] = metric.rows(*texts.for_metric(metric))
        except Trouble as trouble:
            if metrics is not None:
                raise
            left_out[name] = str(trouble)
            continue
        done[name] = metric
        for figure, value in metric.figures(rows[name].sum(axis=0)).items():
            figures[figure] = float(value)
            metric_of[figure] = name
    signature = Signature(
        protocol=protocol.line,
        tokens=protocol.tokens,
        metrics=tuple(sorted((name, metric.version) for name, metric in done.items())),
        labels=",".join(sorted({str(p) for m in done.values() if (p := getattr(m, "labels", None))})) or "none",
        n=len(pairs),
        references=pairs.references_hash[:16],
    )
    return Evaluation(pairs, protocol, figures, rows, done, metric_of, signature, left_out)


def read_earlier(path: Path | str, now: Evaluation) -> dict[str, float]:
    """The figures of an earlier evaluation's JSON. Raises WrongUse naming the difference if they were made
    otherwise."""
    path = Path(path)
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        figures = {str(name): float(value) for name, value in said["figures"].items()}
        signature = said["signature"]
    except FileNotFoundError as error:
        raise BadInput("no such file", where=path) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput("not an evaluation as --out writes it", where=path) from error
    refuse_unlike(now.signature, Signature.from_json(signature, where=path), ("this evaluation", str(path)))
    return figures


class Prepared:
    """The pairs' texts under a protocol, each made when a metric first reads it."""

    def __init__(self, pairs: Pairs, protocol: Protocol) -> None:
        self._pairs, self._protocol = pairs, protocol
        self._made: dict[bool, tuple[list[str], list[list[str]]]] = {}

    def for_metric(self, metric: Metric) -> tuple[list[str], list[list[str]]]:
        """Predictions and references as this metric reads them: in words, or, where it says `reads_sentences`, as
        sentences."""
        return self.texts(sentences=getattr(metric, "reads_sentences", False))

    def texts(self, *, sentences: bool = False) -> tuple[list[str], list[list[str]]]:
        if sentences not in self._made:
            flat = [text for wording in self._pairs.references for text in wording]
            if sentences:
                said = [self._protocol.sentences(text, "prediction") for text in self._pairs.predictions]
                asked = iter([self._protocol.sentences(text, "reference") for text in flat])
            else:
                said = self._protocol.words(self._pairs.predictions, "prediction")
                asked = iter(self._protocol.words(flat, "reference"))
            self._made[sentences] = said, [[next(asked) for _ in wording] for wording in self._pairs.references]
        return self._made[sentences]


def _clinical(
    settings: str,
    given: tuple[Path | str | None, Path | str | None],
    reports: tuple[Reports, Reports],
    pairs: Pairs,
    watch: Watch,
) -> Metric:
    """Clinical efficacy with these settings, from given labels (of predictions, of references) where there are any."""
    from negatoscope.metrics.clinical import Clinical

    labels, said = [], ""
    for path, of_file, role in zip(given, reports, ("predictions", "references")):
        if path is None:
            labels.append(None)
            continue
        read = read_labels(path)
        by_id = read.of(of_file)
        said += f".{role}-given-{read.sha256[:8]}" if role == "references" else f".{role}-given"
        if pairs.by == "position":
            labels.append(list(by_id.values()))
        else:  # an empty report, scored because that was asked for, is No Finding as the labeler has it
            labels.append([by_id.get(i, {"No Finding": 1}) for i in pairs.ids])
    return Clinical(settings, given=(labels[0], labels[1]), given_as=said, watch=watch)


def source_of(reports: Reports) -> Source:
    return Source(str(reports.path), reports.form, len(reports), reports.sha256)


def _read(source: Path | str | Reports, form: str, role: Literal["prediction", "reference"], split: str) -> Reports:
    return source if isinstance(source, Reports) else read_reports(source, form, role=role, split=split)

"""Several models over the same studies, so that nobody is fooled: intervals, tests, splits, rows that need no image.

Every row is scored by one protocol against one set of references; every figure has its bootstrap interval and, against
a chosen row, its paired permutation p. With training reports at hand the best constant report is always a row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isnan
from pathlib import Path
from typing import Any, Literal

import numpy as np

from negatoscope.errors import BadInput, WrongUse, nearest_names
from negatoscope.metrics.baselines import Constant, constant_report, nearest_by_features
from negatoscope.metrics.clinical import Clinical, abnormal_studies
from negatoscope.metrics.evaluate import Evaluation, Source, read_earlier, score, source_of
from negatoscope.metrics.forms import Reports, read_reports
from negatoscope.metrics.pairs import pair
from negatoscope.metrics.protocol import Protocol
from negatoscope.metrics.resampling import DRAWS, Counts, Figures, bootstrap, interval, paired_permutation
from negatoscope.metrics.signature import Signature, refuse_unlike
from negatoscope.watch import Watch, quiet

Kind = Literal["model", "constant", "nearest", "earlier"]
CONSTANT, NEAREST = "constant report", "nearest training study"

HEADLINE = (
    *("BLEU-1", "BLEU-4", "METEOR", "ROUGE-L", "CIDEr"),
    *("CE F1 (r2gen)", "CE F1, micro 14 (chexbert)", "CE F1, micro 13 (findings)", "CE F1, micro 5 (chexbert)"),
    *("missed abnormality", "invented abnormality", "diversity", "distinct reports", "copied", "words"),
)
"""The figures of the short tables; every other stands in the CSV and the JSON."""


@dataclass(frozen=True)
class Cell:
    value: float
    low: float | None = None
    high: float | None = None
    """The 95 % bootstrap interval; None for a row of which only figures are known."""
    p: float | None = None
    """Of the paired permutation test against the chosen row; None for that row itself."""
    difference: tuple[float, float] | None = None
    """The 95 % interval of the difference to the chosen row, over the same draws."""

    @property
    def mark(self) -> str:
        """* p < 0.05, ** p < 0.01, *** p < 0.001, as tables have it."""
        return "" if self.p is None else "*" * sum(self.p < limit for limit in (0.05, 0.01, 0.001))


@dataclass(frozen=True)
class Part:
    """All studies, or some."""

    name: str
    n: int
    rows: Mapping[str, Mapping[str, Cell]]
    """Row -> figure -> cell."""


@dataclass(frozen=True)
class Comparison:
    parts: tuple[Part, ...]
    """The first is all studies."""
    kinds: Mapping[str, Kind]
    against: str
    signature: Signature
    evaluations: Mapping[str, Evaluation]
    """Of every row but the earlier ones."""
    constant: Constant | None
    draws: int
    seed: int
    notes: tuple[str, ...]
    """What a reader must know: rows that are missing, studies that were scored as empty."""
    sources: Mapping[str, Source]
    """'references', 'training' and each row that came from a file -> the file and the form in which it was read."""

    @property
    def n(self) -> int:
        return self.parts[0].n

    def headline(self, asked: Sequence[str] | None = None) -> list[str]:
        """The figures of the short tables that are there."""
        there = {figure for row in self.parts[0].rows.values() for figure in row}
        return [figure for figure in asked or HEADLINE if figure in there]

    def as_json(self) -> dict[str, Any]:
        return {
            "n": self.n,
            "against": self.against,
            "draws": self.draws,
            "seed": self.seed,
            "signature": self.signature.as_json(),
            "kinds": dict(self.kinds),
            "constant": None if self.constant is None else asdict(self.constant),
            "notes": list(self.notes),
            "sources": {role: asdict(source) for role, source in self.sources.items()},
            "parts": [
                {"name": part.name, "n": part.n, "rows": {row: _cells(cells) for row, cells in part.rows.items()}}
                for part in self.parts
            ],
        }


def _cells(cells: Mapping[str, Cell]) -> dict[str, Any]:
    return {figure: {k: v for k, v in asdict(cell).items() if v is not None} for figure, cell in cells.items()}


def compare(
    systems: Sequence[Path | str],
    references: Path | str,
    *,
    training: Path | str | None = None,
    validation: Path | str | None = None,
    nearest: tuple[Any, Any] | Path | str | None = None,
    against: str | None = None,
    protocol: Protocol = Protocol(),  # noqa: B008 - frozen
    metrics: Sequence[str] | None = None,
    clinical: str = "usual",
    form: str = "auto",
    references_form: str = "auto",
    split: str = "test",
    missing: str = "error",
    unasked: str = "error",
    draws: int = DRAWS,
    seed: int = 0,
    watch: Watch = quiet,
) -> Comparison:
    """Scores each file of predictions, draws intervals and tests, and adds the rows that need no model.

    `systems`: files of reports in any form, or what `evaluate --out` wrote, which joins without intervals if its
    signature is the same. `training`, `validation`: what the constant report is chosen on. `nearest`: a Store and a
    FeatureCache, to find the nearest training study by, or a file of such studies' reports that somebody else found.
    `against`: the row that the others are tested against, the first where nothing is said. Raises WrongUse naming the
    difference where signatures differ."""
    asked = read_reports(references, references_form, role="reference", split=split)
    known = None if training is None else read_reports(training, role="reference", split="train")
    names = _names(systems)
    earlier = {name: Path(path) for name, path in names.items() if _is_evaluation(Path(path))}
    files = {name: path for name, path in names.items() if name not in earlier}
    if not files:
        raise WrongUse("no file of predictions among these", remedy="intervals need at least one model's reports")

    rows: dict[str, Evaluation] = {}
    ready: dict[str, Any] = {"clinical": Clinical(clinical, watch=watch)}
    for name, path in files.items():
        said = read_reports(path, form)
        rows[name] = _scored(said, asked, known, protocol, metrics, ready, (missing, unasked), watch)
        ready = dict(rows[name].metrics)
    first = next(iter(rows.values()))
    kinds: dict[str, Kind] = dict.fromkeys(rows, "model")
    notes = _notes(rows)
    constant = None
    sources = {"references": source_of(asked), **{name: done.sources["predictions"] for name, done in rows.items()}}
    if known is not None:
        sources["training"] = source_of(known)

    def row_of(predictions: Sequence[str]) -> Evaluation:
        pairs = replace(first.pairs, predictions=tuple(predictions), missing=(), unasked=())
        return score(pairs, protocol=protocol, metrics=list(first.metrics), ready=ready, watch=watch)

    if known is not None:
        checked = None if validation is None else read_reports(validation, role="reference", split="val")
        chosen_by = () if checked is None else checked.texts
        constant = constant_report(known.texts, chosen_by, protocol, watch)
        notes += [
            *_also_in(asked, known, "training"),
            *([] if checked is None else _also_in(asked, checked, "validation")),
        ]
        rows[CONSTANT], kinds[CONSTANT] = row_of([constant.report] * first.n), "constant"
        if not chosen_by:
            notes.append("the constant report was chosen on training alone: --val FILE gives validation reports")
    else:
        notes.append("no constant report and no split by training: --train FILE gives the training reports")
    if nearest is None:
        notes.append(
            "no row for the nearest training study: --images STORE --features CACHE adds it, or --nearest FILE"
        )
    else:
        if isinstance(nearest, tuple):
            found: Sequence[str] = nearest_by_features(first.pairs.ids, *nearest, watch)
        else:
            given = read_reports(nearest)
            sources[NEAREST] = source_of(given)
            found = pair(given, asked, missing=missing, unasked=unasked).predictions
            notes += _strangers(found, known)
        rows[NEAREST], kinds[NEAREST] = row_of(found), "nearest"

    for name, evaluation in rows.items():
        refuse_unlike(first.signature, evaluation.signature, (next(iter(rows)), name))
    chosen = _chosen(against, rows)
    parts = tuple(
        _part(part, studies, rows, chosen, draws, seed)
        for part, studies in watch(_parts(first, notes).items(), "drawing intervals and tests")
    )
    for name, path in earlier.items():
        figures = read_earlier(path, first)
        kinds[name] = "earlier"
        parts = (replace(parts[0], rows={**parts[0].rows, name: {f: Cell(v) for f, v in figures.items()}}), *parts[1:])
        notes.append(f"{name} is known by its figures alone: no interval, no test")
    return Comparison(parts, kinds, chosen, first.signature, rows, constant, draws, seed, tuple(notes), sources)


def _scored(
    said: Reports,
    asked: Reports,
    known: Reports | None,
    protocol: Protocol,
    metrics: Sequence[str] | None,
    ready: Mapping[str, Any],
    lenience: tuple[str, str],
    watch: Watch,
) -> Evaluation:
    """As `evaluate`, with metrics that have read the references already."""

    pairs = pair(said, asked, missing=lenience[0], unasked=lenience[1])
    texts = None if known is None else known.texts
    done = score(pairs, protocol=protocol, metrics=metrics, training=texts, ready=ready, watch=watch)
    return replace(done, sources={"predictions": source_of(said)})


def _notes(rows: Mapping[str, Evaluation]) -> list[str]:
    notes = []
    for name, done in rows.items():
        counts = {
            "missing predictions scored as empty": len(done.pairs.missing),
            "empty predictions": len(done.pairs.empty),
            "empty references": len(done.pairs.empty_references),
            "predictions without a reference left out": len(done.pairs.unasked),
        }
        notes += [f"{name}: {count} {what}" for what, count in counts.items() if count]
    first = next(iter(rows.values()))
    notes += [f"left out: {metric} ({why})" for metric, why in first.left_out.items() if metric != "copied"]
    return notes


def _also_in(asked: Reports, other: Reports, role: str) -> list[str]:
    """A warning where scored studies also stand among those that the constant report was chosen on."""
    both = 0 if asked.numbered or other.numbered else len(set(asked.ids) & set(other.ids))
    warning = f"{both:,} of the studies that are scored are also {role} studies: this flatters the rows chosen on them"
    return [warning] if both else []


def _strangers(found: Sequence[str], known: Reports | None) -> list[str]:
    """A warning where what is called the nearest training study's report is none of the training reports."""
    if known is None:
        return []
    training = {" ".join(text.split()) for text in known.texts}
    strange = sum(" ".join(text.split()) not in training for text in found)
    return [f"{NEAREST}: {strange:,} of its reports do not stand in training"] if strange else []


def _parts(first: Evaluation, notes: list[str]) -> dict[str, np.ndarray]:
    """Name -> which studies, a mask (n,). Both splits go by the references alone, so they are one for all rows."""
    masks: dict[str, np.ndarray] = {"all": np.ones(first.n, bool)}
    if "clinical" in first.rows:
        abnormal = abnormal_studies(first.rows["clinical"]) > 0
        masks |= {"normal": ~abnormal, "abnormal": abnormal}
    if "copied" in first.rows:
        seen = first.rows["copied"][:, 1] > 0
        masks |= {"in training": seen, "not in training": ~seen}
    for name in [name for name, mask in masks.items() if not mask.any()]:
        notes.append(f"no study is in the part {name!r}")
        del masks[name]
    return masks


def _part(name: str, studies: np.ndarray, rows: Mapping[str, Evaluation], against: str, draws: int, seed: int) -> Part:
    counts = {row: Counts.of(evaluation).only(studies) for row, evaluation in rows.items()}
    drawn = dict(zip(counts, bootstrap(list(counts.values()), draws, seed)))
    # A normal study has no abnormality to miss, and how many reports are distinct belongs to the whole.
    without = {"all": (), "normal": ("missed", "distinct")}.get(name, ("distinct",))
    done = {}
    for row, own in counts.items():
        p = {} if row == against else paired_permutation(own, counts[against], draws, seed)
        done[row] = {
            figure: _cell(figure, float(value), drawn[row], None if row == against else drawn[against], p.get(figure))
            for figure, value in own.figures().items()
            if not figure.startswith(without)
        }
    return Part(name, int(studies.sum()), done)


def _cell(figure: str, value: float, drawn: Figures, other: Figures | None, p: float | None) -> Cell:
    low_high = _known(interval(drawn[figure])) or (None, None)
    if other is None or figure not in other:
        return Cell(value, *low_high)
    return Cell(value, *low_high, p, _known(interval(drawn[figure] - other[figure])))


def _known(low_high: tuple[float, float]) -> tuple[float, float] | None:
    """None where no draw has the figure."""
    return None if isnan(low_high[0]) else low_high


def _chosen(against: str | None, rows: Mapping[str, Evaluation]) -> str:
    if against is None:
        return next(iter(rows))
    short = {"constant": CONSTANT, "nearest": NEAREST}
    chosen = against if against in rows else short.get(against, Path(against).stem)
    if chosen not in rows:
        raise WrongUse(f"no row {against!r} to test against", remedy=nearest_names(against, rows))
    return chosen


def _names(systems: Sequence[Path | str]) -> dict[str, Path | str]:
    """Short names for files: the stem, with its folder where two have the same."""
    paths = [Path(path) for path in systems]
    stems = [path.stem for path in paths]
    names = [p.stem if stems.count(p.stem) == 1 else f"{p.parent.name}/{p.stem}" for p in paths]
    if len(set(names)) < len(names):
        names = [str(path) for path in paths]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise WrongUse(f"{twice} is named twice", remedy="name each file once")
    return dict(zip(names, systems))


def _is_evaluation(path: Path) -> bool:
    """Whether `evaluate --out` wrote it."""
    if path.suffix != ".json" or not path.is_file():
        return False
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadInput("not JSON", where=path) from error
    return isinstance(said, dict) and {"figures", "signature"} <= said.keys()

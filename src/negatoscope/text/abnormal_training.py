"""How the classifier of abnormal sentences is trained: one seeded run, from labelled reports to a calibrated file.

The labels are noisy: identical sentences carry both, and in some reports they have slid by a sentence. Everything is
therefore decided on scores of reports that a model never saw, and on the training reports alone:

1. training reports are parted into folds, and each fold is scored by a model of the others;
2. those scores give the calibration, and the threshold: the middle of the range whose F1 is within 0.001 of the best;
3. the model that ships is fitted to all training reports.

Nothing of the development reports is used but to print how well it does.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from negatoscope.errors import BadInput
from negatoscope.settings import Settings
from negatoscope.text.abnormal import AbnormalSentences, Lexicon, Shape, order_features, words
from negatoscope.watch import Watch, quiet

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class Recipe(Settings):
    """How to train."""

    shape: Shape = Shape()
    seed: int = 1
    folds: int = 5
    freedom: float = 3.0
    """Inverse strength of the L2 penalty on the weights."""


@dataclass(frozen=True)
class LabelledReport:
    id: str
    sentences: tuple[str, ...]
    labels: tuple[bool, ...]
    """True: abnormal."""


class Figure(NamedTuple):
    """With its 95 % interval: reports drawn with replacement, 1,000 times."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Figures:
    """How well abnormal sentences were told."""

    f1: Figure
    precision: Figure
    recall: Figure
    sentences: int
    abnormal: int
    errors: int


@dataclass(frozen=True)
class Trained:
    """How well a run did, and the threshold it chose."""

    threshold: float
    held_out: Figures
    """Training reports, each scored by a model that saw none of its fold."""
    held_out_unseen: Figures
    """The same, of sentences that stand in no report of the other folds."""
    dev: Figures | None
    noise: dict[str, int | float]

    def as_json(self) -> dict[str, Any]:
        return {
            "held_out": asdict(self.held_out),
            "held_out_unseen": asdict(self.held_out_unseen),
            "dev": asdict(self.dev) if self.dev else None,
            "noise": self.noise,
            "threshold": self.threshold,
        }


def read_reports(path: Path | str) -> list[LabelledReport]:
    """JSONL, a report a line: `id`, `sents`, `labels`. Raises BadInput naming the line."""
    reports = []
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError as error:
        raise BadInput("no such file", where=path) from error
    except UnicodeDecodeError as error:
        raise BadInput("is not UTF-8", where=path, remedy="convert it: iconv -t utf-8") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            row = json.loads(line)
            report = LabelledReport(str(row["id"]), tuple(row["sents"]), tuple(row["labels"]))
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput(
                f"not a labelled report ({error!r})", where=where, remedy='expected {"id", "sents", "labels"}'
            ) from error
        if len(report.sentences) != len(report.labels):
            raise BadInput(f"{len(report.sentences)} sentences with {len(report.labels)} labels", where=where)
        if not all(isinstance(s, str) for s in report.sentences) or not all(isinstance(y, bool) for y in report.labels):
            raise BadInput("sentences must be strings and labels true or false", where=where)
        reports.append(report)
    if len({label for report in reports for label in report.labels}) < 2:
        raise BadInput("needs both abnormal and normal sentences", where=path)
    return reports


@dataclass(frozen=True)
class Rows:
    """Reports as one row a sentence (n rows)."""

    sentences: list[str]
    labels: NDArray[np.bool_]
    report: NDArray[np.int64]


def as_rows(reports: Sequence[LabelledReport]) -> Rows:
    return Rows(
        [sentence for report in reports for sentence in report.sentences],
        np.array([label for report in reports for label in report.labels], np.bool_),
        np.repeat(np.arange(len(reports)), [len(report.sentences) for report in reports]),
    )


def design(sentences: Sequence[str], shape: Shape) -> csr_matrix:
    """(n, 2 ** order_bits + 2 ** piece_bits): both views of every sentence, of unit length where no feature repeats."""
    from scipy.sparse import csr_matrix, diags, hstack

    lexicon = Lexicon(shape)
    rows, owner, _ = lexicon.read(sentences)
    hashes, cues = np.array(lexicon.hashes, np.uint64), np.array(lexicon.cues)
    buckets, owners = order_features(hashes[rows], cues[rows], owner, shape.order_bits)
    pieces = [lexicon.pieces[row] for row in rows]
    spelling = np.concatenate(pieces)
    whose = np.repeat(owner, [len(of_word) for of_word in pieces])
    views = []
    for feature, sentence, bits in ((buckets, owners, shape.order_bits), (spelling, whose, shape.piece_bits)):
        counts = csr_matrix((np.ones(len(feature)), (sentence, feature)), shape=(len(sentences), 1 << bits))
        length = np.sqrt(np.maximum(np.bincount(sentence, minlength=len(sentences)), 1))
        views.append(diags(1.0 / length) @ counts)
    return csr_matrix(hstack(views))


def fit(sentences: Sequence[str], labels: NDArray[np.bool_], recipe: Recipe) -> AbnormalSentences:
    """One uncalibrated model: L2-penalised logistic regression, as liblinear solves it."""
    from sklearn.linear_model import LogisticRegression

    solver = LogisticRegression(C=recipe.freedom, solver="liblinear", max_iter=300, random_state=recipe.seed)
    solver.fit(design(sentences, recipe.shape), labels)
    weights = np.asarray(solver.coef_)[0].astype(np.float16).astype(np.float32)
    order, pieces = np.split(weights, [1 << recipe.shape.order_bits])
    return AbnormalSentences(recipe.shape, order, pieces, float(np.asarray(solver.intercept_)[0]))


def train(
    train_path: Path | str, dev_path: Path | str | None, recipe: Recipe | None = None, *, watch: Watch = quiet
) -> tuple[AbnormalSentences, Trained]:
    """The whole run of the module's docstring. Raises BadInput where a file cannot be used."""
    recipe = recipe or Recipe()
    reports = read_reports(train_path)
    rows = as_rows(reports)
    logits, unseen = _held_out_logits(rows, len(reports), recipe, watch)
    slope, shift = calibrate(logits, rows.labels)
    probability = 1.0 / (1.0 + np.exp(-(slope * logits + shift)))
    threshold = best_threshold(rows.labels, probability)
    said = probability >= threshold
    model = fit(rows.sentences, rows.labels, recipe)
    model.slope, model.shift, model.threshold = slope, shift, threshold
    dev = as_rows(read_reports(dev_path)) if dev_path else None
    noise = label_noise(rows.sentences, rows.labels)
    trained = Trained(
        threshold,
        figures(rows.labels, said, rows.report, recipe.seed),
        figures(rows.labels[unseen], said[unseen], rows.report[unseen], recipe.seed),
        figures(dev.labels, model.abnormal(dev.sentences), dev.report, recipe.seed) if dev else None,
        noise,
    )
    model.about.update(recipe=recipe.model_dump(mode="json"), **trained.as_json())
    return model, trained


def _held_out_logits(
    rows: Rows, reports: int, recipe: Recipe, watch: Watch
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """(n,) logits from models that saw no report of the row's fold; (n,) whether they never saw the sentence either."""
    folds = min(recipe.folds, reports)
    if folds < 2:
        raise BadInput("one report cannot be parted into folds", remedy="train on more reports")
    fold = (np.random.default_rng(recipe.seed).permutation(reports) % folds)[rows.report]
    logits, unseen = np.zeros(len(fold)), np.zeros(len(fold), np.bool_)
    for k in watch(range(folds), "cross-validation", folds):
        inside, outside = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        if len(np.unique(rows.labels[inside])) < 2:
            raise BadInput("too few reports: a fold is left with one label only", remedy="train on more reports")
        model = fit([rows.sentences[i] for i in inside], rows.labels[inside], recipe)
        met = {tuple(words(rows.sentences[i])) for i in inside}
        logits[outside] = model.logits([rows.sentences[i] for i in outside])
        unseen[outside] = [tuple(words(rows.sentences[i])) not in met for i in outside]
    return np.where(np.isneginf(logits), -50.0, logits), unseen


def calibrate(logits: NDArray[np.float64], labels: NDArray[np.bool_]) -> tuple[float, float]:
    """Platt's slope and shift, by Newton's method, with his smoothed targets."""
    up, down = labels.sum(), (~labels).sum()
    target = np.where(labels, (up + 1) / (up + 2), 1 / (down + 2))
    x = np.stack([logits, np.ones_like(logits)], 1)
    solution = np.array([1.0, 0.0])
    for _ in range(50):
        p = 1.0 / (1.0 + np.exp(-np.clip(x @ solution, -50, 50)))
        gradient = x.T @ (p - target)
        curvature = x.T @ (x * (p * (1 - p))[:, None]) + 1e-6 * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        solution -= step
        if np.abs(step).max() < 1e-9:
            break
    return float(solution[0]), float(solution[1])


def best_threshold(labels: NDArray[np.bool_], probability: NDArray[np.float64]) -> float:
    """The middle of the thresholds whose F1 is within 0.001 of the best: the peak itself is an accident of noise."""
    tried = np.linspace(0.2, 0.8, 121)
    reached = np.array([_counts(labels, probability >= threshold)[0] for threshold in tried])
    return round(float(np.mean(tried[reached >= reached.max() - 0.001])), 3)


def figures(labels: NDArray[np.bool_], said: NDArray[np.bool_], report: NDArray[np.int64], seed: int) -> Figures:
    """F1, precision and recall of the abnormal sentences; for the intervals whole reports are drawn."""
    point = _counts(labels, said)
    _, number = np.unique(report, return_inverse=True)
    reports = number.max() + 1 if len(number) else 0
    right, wrong, missed = (
        np.bincount(number, part, reports) for part in (labels & said, ~labels & said, labels & ~said)
    )
    drawn = np.random.default_rng(seed).integers(0, max(reports, 1), (1000, reports))
    tp, fp, fn = (part[drawn].sum(1) for part in (right, wrong, missed))
    with np.errstate(invalid="ignore", divide="ignore"):
        draws = np.nan_to_num([2 * tp / (2 * tp + fp + fn), tp / (tp + fp), tp / (tp + fn)])
    low, high = np.percentile(draws, [2.5, 97.5], axis=1).round(4)
    f1, precision, recall = (
        Figure(round(value, 4), float(least), float(most)) for value, least, most in zip(point, low, high, strict=True)
    )
    return Figures(f1, precision, recall, len(labels), int(labels.sum()), int((labels != said).sum()))


def _counts(labels: NDArray[np.bool_], said: NDArray[np.bool_]) -> tuple[float, float, float]:
    tp, fp, fn = int((labels & said).sum()), int((~labels & said).sum()), int((labels & ~said).sum())
    return 2 * tp / max(2 * tp + fp + fn, 1), tp / max(tp + fp, 1), tp / max(tp + fn, 1)


def label_noise(sentences: Sequence[str], labels: NDArray[np.bool_]) -> dict[str, int | float]:
    """What no classifier of single sentences can get right: identical sentences that carry both labels."""
    said: dict[str, Counter[bool]] = defaultdict(Counter)
    for sentence, label in zip(sentences, labels, strict=True):
        said[sentence][bool(label)] += 1
    repeated = [counts for counts in said.values() if counts.total() > 1]
    minority = sum(min(counts[True], counts[False]) for counts in repeated)
    rows = sum(counts.total() for counts in repeated)
    return {
        "distinct": len(said),
        "repeated": len(repeated),
        "conflicting": sum(len(counts) == 2 for counts in repeated),
        "repeated_rows": rows,
        "minority_rows": minority,
        "minority_share": round(minority / max(rows, 1), 4),
    }

"""Two rows that need no model: one report for everybody, and the report of the training study that looks most alike.

The constant report is chosen on training and validation alone: a search over training reports and sentences for the
best BLEU-4 on the training references gives a list of candidates, and the one that scores best on the validation
references is taken. A constant's BLEU is cheap: how often a reference has a word run at least t times is counted once,
and a candidate then costs as much as its own words, however many references there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from negatoscope.errors import BadInput, WrongUse
from negatoscope.metrics.bleu import LONGEST, Bleu
from negatoscope.metrics.protocol import Protocol
from negatoscope.text.sentences import split_sentences
from negatoscope.watch import Watch, quiet

if TYPE_CHECKING:  # scores need neither pictures nor PyTorch
    from negatoscope.studies.store import Store
    from negatoscope.vision.features import FeatureCache

SENTENCES, STARTS, FINALISTS = 60, 5, 40
"""How many of the most frequent training sentences the search puts together, from how many reports it starts, and how
many candidates validation decides between."""
MOST_TRAINING = 20_000
"""Of more training reports as many, evenly spaced, are looked at: the best constant hangs on what is frequent."""
_ROUNDS = 12

Sentences = tuple[str, ...]


@dataclass(frozen=True)
class Constant:
    report: str
    training_bleu: float
    """BLEU-4 of it, for everybody, against the training references."""
    validation_bleu: float | None
    """None where there were no validation references to choose by."""
    candidates: int


def constant_report(
    training: Sequence[str], validation: Sequence[str] = (), protocol: Protocol | None = None, watch: Watch = quiet
) -> Constant:
    """The report that, written for everybody, has the best BLEU-4. Raises WrongUse without training reports."""
    if not any(text.strip() for text in training):
        raise WrongUse("no training reports to choose a constant report from", remedy="--train FILE")
    training = training[:: -(-len(training) // MOST_TRAINING)]
    words = _Words(protocol or Protocol())
    by_training = _ConstantBleu(words.protocol.words(training, "reference"))
    scores: dict[Sentences, float] = {}

    def score(candidate: Sentences) -> float:
        if candidate not in scores:
            scores[candidate] = by_training(words(candidate))
        return scores[candidate]

    split = {text: tuple(split_sentences(text)) for text in dict.fromkeys(training)}
    whole = sorted(filter(None, split.values()), key=score, reverse=True)
    often = Counter(sentence for text in training for sentence in split[text])
    sentences = [sentence for sentence, _ in often.most_common(SENTENCES)]
    for start in watch(whole[:STARTS], "looking for the best constant report"):
        _climb(start, sentences, score)

    best = sorted(scores, key=score, reverse=True)[:FINALISTS]
    if not validation:
        return Constant(" ".join(best[0]), score(best[0]), None, len(scores))
    by_validation = _ConstantBleu(words.protocol.words(validation, "reference"))
    chosen = max(best, key=lambda candidate: by_validation(words(candidate)))
    return Constant(" ".join(chosen), score(chosen), by_validation(words(chosen)), len(scores))


def _climb(start: Sentences, sentences: Sequence[str], score: Callable[[Sentences], float]) -> None:
    """Drops, adds and exchanges one sentence at a time as long as that is better."""
    now = start
    for _ in range(_ROUNDS):
        better = max(_changed(now, sentences), key=score, default=now)
        if score(better) <= score(now):
            return
        now = better


def _changed(now: Sentences, sentences: Sequence[str]) -> Iterable[Sentences]:
    for at in range(len(now)):
        if len(now) > 1:
            yield now[:at] + now[at + 1 :]
    for sentence in sentences:
        if sentence in now:
            continue
        for at in range(len(now) + 1):
            yield (*now[:at], sentence, *now[at:])
        for at in range(len(now)):
            yield (*now[:at], sentence, *now[at + 1 :])


class _Words:
    """Words of a candidate as the protocol would have them. Each sentence is prepared once."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self._made: dict[str, list[str]] = {}
        self._longest = None if protocol.vocabulary is None else protocol.vocabulary.max_words

    def __call__(self, candidate: Sentences) -> list[str]:
        new = [sentence for sentence in candidate if sentence not in self._made]
        for sentence, words in zip(new, self.protocol.words(new, "prediction")):
            self._made[sentence] = words.split()
        return [word for sentence in candidate for word in self._made[sentence]][: self._longest]


class _ConstantBleu:
    """BLEU-4 of one report for everybody: sum over references of min(own count, reference's count) is the sum over
    t = 1 ... own count of the references that have the run at least t times."""

    def __init__(self, references: Sequence[str]) -> None:
        self._n = len(references)
        self._at_least: Counter[tuple[tuple[str, ...], int]] = Counter()
        self._words = 0
        for text in references:
            words = text.split()
            self._words += len(words)
            for run, count in _runs(words).items():
                self._at_least.update((run, t) for t in range(1, count + 1))

    def __call__(self, words: Sequence[str]) -> float:
        matched, written = np.zeros(LONGEST), np.zeros(LONGEST)
        for run, count in _runs(words).items():
            matched[len(run) - 1] += sum(self._at_least[run, t] for t in range(1, count + 1))
            written[len(run) - 1] += count * self._n
        totals = np.concatenate([matched, written, [written[0], self._words]])
        return float(Bleu().figures(totals)["BLEU-4"])


def _runs(words: Sequence[str]) -> Counter[tuple[str, ...]]:
    """Runs of one to four words, and how often each comes."""
    return Counter(tuple(words[k : k + n]) for n in range(1, LONGEST + 1) for k in range(len(words) - n + 1))


# ---- nearest study ----


def nearest_reports(queries: np.ndarray, training: np.ndarray, reports: list[str] | tuple[str, ...]) -> list[str]:
    """For each of `queries` (q, d) the report of the row of `training` (m, d) with the largest cosine; of equals the
    first."""
    if len(training) != len(reports):
        raise WrongUse(f"features of {len(training)} training studies, and {len(reports)} reports")
    known = _unit(training)
    nearest: list[int] = []
    for start in range(0, len(queries), 1024):
        nearest += (_unit(queries[start : start + 1024]) @ known.T).argmax(axis=1).tolist()
    return [reports[k] for k in nearest]


def nearest_by_features(ids: Sequence[str], store: Store, cache: FeatureCache, watch: Watch = quiet) -> list[str]:
    """For each study of the store the report of the nearest study of its training split. A study's features are the
    mean over its pictures and their patches. Raises BadInput for a study or a picture that is not there."""
    table = store.table(["id", "split", "report", "pictures"])
    columns = [table[name].to_pylist() for name in ("id", "split", "report", "pictures")]
    place = {study: k for k, study in enumerate(columns[0])}
    missing = [study for study in ids if study not in place]
    if missing:
        raise BadInput(f"no study {missing[0]!r} here", where=store.path, remedy="is this the store of these studies?")
    wanted = set(ids)
    rows = [
        k for k, split in enumerate(columns[1]) if split == "train" and columns[3][k] and columns[0][k] not in wanted
    ]
    if not rows:
        raise BadInput("no training studies with pictures", where=store.path)

    def features(k: int) -> np.ndarray:
        seen = [cache.get(picture["sha256"]).astype(np.float32).mean(axis=0) for picture in columns[3][k]]
        if not seen:
            raise BadInput("has no pictures to find the nearest study by", where=f"study {columns[0][k]}")
        return np.mean(seen, axis=0)

    training = np.stack([features(k) for k in watch(rows, "features of training studies", len(rows))])
    queries = np.stack([features(place[study]) for study in ids])
    return nearest_reports(queries, training, [columns[2][k] for k in rows])


def _unit(rows: np.ndarray) -> np.ndarray:
    rows = np.asarray(rows, np.float32)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)

"""Clinical efficacy: what the CheXpert labeler reads in the prediction, held against what it reads in the reference.

Every observation of a study is positive, negative, uncertain or blank on both sides, so that a study is one count in
each of 14 tables of 4 x 4. Of their sums every macro, micro and weighted figure can be made, with uncertain as
positive, as negative or ignored. Example-based figures are means over studies, and stand in a row as they are.

"Ignore" leaves a cell (a study and an observation) out where either side is uncertain. What divides by zero is 0, as in
scikit-learn with `zero_division=0`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from negatoscope.errors import WrongUse
from negatoscope.metrics.chexpert.labeler import Labeler
from negatoscope.metrics.clinical_settings import (
    ABNORMAL,
    MEASURES,
    SETS,
    UNCERTAIN,
    USUAL_SETTINGS,
    Measure,
    Setting,
    Uncertain,
    Way,
    settings_named,
)
from negatoscope.studies.study import OBSERVATIONS
from negatoscope.watch import Watch, quiet

STATES = ("positive", "negative", "uncertain", "blank")
_CODE = {1: 0, 0: 1, -1: 2}
_BLANK = 3
_O, _S = len(OBSERVATIONS), len(STATES)

# A row: 14 tables of (reference's state, prediction's state); for each policy and set of observations the study's own
# four figures; for each policy the answers to the two questions; and 1.
_TABLES = slice(0, _O * _S * _S)
_EXAMPLES = slice(_TABLES.stop, _TABLES.stop + len(UNCERTAIN) * len(SETS) * len(MEASURES))
_QUESTIONS = ("abnormal", "missed some", "missed every", "invented")
_ANSWERS = slice(_EXAMPLES.stop, _EXAMPLES.stop + len(UNCERTAIN) * len(_QUESTIONS))
COLUMNS = _ANSWERS.stop + 1

Labels = Mapping[str, int]


class Clinical:
    """A row: 14 tables of 4 x 4 states, example-based figures, the answers to two questions, and 1."""

    name = "clinical"
    version = "1"
    reads_sentences = True

    def __init__(
        self,
        settings: str | Sequence[str] = USUAL_SETTINGS,
        *,
        given: tuple[Sequence[Labels] | None, Sequence[Labels] | None] = (None, None),
        given_as: str = "",
        labeler: Labeler | None = None,
        watch: Watch = quiet,
    ) -> None:
        """`given`: labels of the predictions and of the references, in the order of the studies, that somebody else
        made; `given_as` names them in the signature. Raises WrongUse for a setting that does not exist."""
        self.settings: tuple[Setting, ...] = settings_named(settings if isinstance(settings, str) else list(settings))
        self._labeler = labeler or Labeler()
        self._given, self._watch = given, watch
        self._known: dict[str, np.ndarray] = {}
        names = "+".join(setting.name for setting in self.settings)
        self.labels = f"chexpert-rules-{self._labeler.version}{given_as}.{names}"

    def rows(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
        """(n, 273). With several references the first counts."""
        said = self.coded(predictions, self._given[0])
        asked = self.coded([wordings[0] for wordings in references], self._given[1])
        return rows_of(asked, said)

    def coded(self, texts: Sequence[str], given: Sequence[Labels] | None = None) -> np.ndarray:
        """(n, 14) places in STATES."""
        if given is not None:
            if len(given) != len(texts):
                raise WrongUse(f"{len(given)} given labels for {len(texts)} reports")
            return code(given)
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        self._known |= zip(new, code(self._labeler.label_many(new, watch=self._watch)))
        return np.array([self._known[text] for text in texts], np.int8).reshape(len(texts), _O)

    def figures(self, totals: np.ndarray) -> dict[str, np.ndarray]:
        shown: dict[str, np.ndarray] = {}
        for setting in self.settings:
            for way in setting.ways:
                several = f", {way.average} {way.over}" if len(setting.ways) > 1 else ""
                values = averaged(totals, way)
                shown |= {f"CE {measure}{several} ({setting.name})": values[measure] for measure in way.shown}
            for way, measure in product(setting.ways[:1], setting.each):
                values = each_observation(totals, way.uncertain)[measure]
                shown |= {f"{name}, {measure} ({setting.name})": values[..., k] for k, name in enumerate(OBSERVATIONS)}
            if setting.asks is not None:
                of_policy = "" if setting.name == "ca" else f", uncertain {setting.asks}"
                shown |= {f"{asked}{of_policy}": value for asked, value in two_questions(totals, setting.asks).items()}
        return shown

    def details(self, totals: np.ndarray) -> dict[str, Any]:
        """Of one corpus, for `--json`: each observation under each policy, and how the states met."""
        observations = {
            policy: {
                name: {measure: float(value[k]) for measure, value in each_observation(totals, policy).items()}
                for k, name in enumerate(OBSERVATIONS)
            }
            for policy in UNCERTAIN
        }
        met = tables(totals).astype(int)
        states = {name: met[k].tolist() for k, name in enumerate(OBSERVATIONS)}
        return {"observations": observations, "states": list(STATES), "reference_by_prediction": states}


def code(labels: Iterable[Labels]) -> np.ndarray:
    """Labels as the labeler gives them -> (n, 14) places in STATES."""
    rows = [
        [_CODE.get(of_one[name], _BLANK) if name in of_one else _BLANK for name in OBSERVATIONS] for of_one in labels
    ]
    return np.array(rows, np.int8).reshape(len(rows), _O)


def rows_of(asked: np.ndarray, said: np.ndarray) -> np.ndarray:
    """(n, 273) from the states of references and predictions, (n, 14) each."""
    n = len(asked)
    met = np.eye(_S * _S)[asked * _S + said].reshape(n, -1)
    examples, answers = [], []
    for policy in UNCERTAIN:
        wanted, found = _positive(asked, said, policy)
        for over in SETS.values():
            examples.append(_example_figures(wanted[:, over], found[:, over]))
        answers.append(_answers(wanted[:, ABNORMAL], found[:, ABNORMAL]))
    return np.column_stack([met, *examples, *answers, np.ones(n)])


def tables(totals: np.ndarray) -> np.ndarray:
    """(..., 14, 4, 4): observation, the reference's state, the prediction's state."""
    return totals[..., _TABLES].reshape(*totals.shape[:-1], _O, _S, _S)


def averaged(totals: np.ndarray, way: Way) -> dict[Measure, np.ndarray]:
    """The four figures of one way."""
    if way.average == "example":
        shape = (*totals.shape[:-1], len(UNCERTAIN), len(SETS), len(MEASURES))
        sums = totals[..., _EXAMPLES].reshape(shape)
        of_way = sums[..., UNCERTAIN.index(way.uncertain), tuple(SETS).index(way.over), :]
        means = _over(of_way, totals[..., -1:])
        return {measure: means[..., k] for k, measure in enumerate(MEASURES)}
    counts = [count[..., SETS[way.over]] for count in _counts(totals, way.uncertain)]
    if way.average == "micro":
        return _figures_of(*(count.sum(axis=-1) for count in counts))
    values = _figures_of(*counts)
    if way.average == "macro":
        return {measure: value.mean(axis=-1) for measure, value in values.items()}
    support = counts[0] + counts[2]
    return {m: _over((value * support).sum(axis=-1), support.sum(axis=-1)) for m, value in values.items()}


def each_observation(totals: np.ndarray, uncertain: Uncertain) -> dict[str, np.ndarray]:
    """(..., 14) each: the four figures, `in references` and `in predictions` (studies that have it)."""
    counts = _counts(totals, uncertain)
    hits, invented, missed, _ = counts
    return {**_figures_of(*counts), "in references": hits + missed, "in predictions": hits + invented}


def two_questions(totals: np.ndarray, uncertain: Uncertain) -> dict[str, np.ndarray]:
    """Liu et al., 2021, section 4.4: on what fraction of the abnormal studies was an abnormality not mentioned, and on
    what fraction of all studies was one described that is not there?"""
    shape = (*totals.shape[:-1], len(UNCERTAIN), len(_QUESTIONS))
    answers = totals[..., _ANSWERS].reshape(shape)[..., UNCERTAIN.index(uncertain), :]
    abnormal, some, every, invented = np.moveaxis(answers, -1, 0)
    return {
        "missed abnormality": _over(some, abnormal),
        "missed every abnormality": _over(every, abnormal),
        "invented abnormality": _over(invented, totals[..., -1]),
    }


def abnormal_studies(totals: np.ndarray, uncertain: Uncertain = "positive") -> np.ndarray:
    """How many studies have one of the twelve abnormal observations in the reference; of rows, which."""
    return totals[..., _ANSWERS.start + UNCERTAIN.index(uncertain) * len(_QUESTIONS)]


def _positive(asked: np.ndarray, said: np.ndarray, uncertain: Uncertain) -> tuple[np.ndarray, np.ndarray]:
    """(n, 14) bool each. A cell that is ignored is positive on neither side."""
    if uncertain == "positive":
        return (asked == 0) | (asked == 2), (said == 0) | (said == 2)
    certain = True if uncertain == "negative" else (asked != 2) & (said != 2)
    return (asked == 0) & certain, (said == 0) & certain


def _example_figures(wanted: np.ndarray, found: np.ndarray) -> np.ndarray:
    """(n, 4) of each study: precision, recall, F1, and for accuracy what both have of what either has."""
    both, of_wanted, of_found = ((cells.sum(axis=1).astype(float)) for cells in (wanted & found, wanted, found))
    either = of_wanted + of_found - both
    pairs = ((both, of_found), (both, of_wanted), (2 * both, of_wanted + of_found), (both, either))
    return np.column_stack([_over(part, whole) for part, whole in pairs])


def _answers(wanted: np.ndarray, found: np.ndarray) -> np.ndarray:
    """(n, 4) in the order of _QUESTIONS, each 0 or 1."""
    abnormal = wanted.any(axis=1)
    some = (wanted & ~found).any(axis=1)
    every = abnormal & ~(wanted & found).any(axis=1)
    return np.column_stack([abnormal, some, every, (found & ~wanted).any(axis=1)])


def _counts(totals: np.ndarray, uncertain: Uncertain) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(..., 14) each: hits, invented, missed, rightly left out."""
    met = tables(totals)
    yes = [0, 2] if uncertain == "positive" else [0]
    no = [k for k in range(_S) if k not in yes and not (uncertain == "ignore" and k == 2)]

    def of(asked: list[int], said: list[int]) -> np.ndarray:
        return met[..., asked, :][..., said].sum(axis=(-1, -2))

    return of(yes, yes), of(no, yes), of(yes, no), of(no, no)


def _figures_of(
    hits: np.ndarray, invented: np.ndarray, missed: np.ndarray, left_out: np.ndarray
) -> dict[Measure, np.ndarray]:
    return {
        "precision": _over(hits, hits + invented),
        "recall": _over(hits, hits + missed),
        "F1": _over(2 * hits, 2 * hits + invented + missed),
        "accuracy": _over(hits + left_out, hits + invented + missed + left_out),
    }


def _over(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole, 0 where whole is 0."""
    part, whole = np.broadcast_arrays(np.asarray(part, float), whole)
    return np.divide(part, whole, out=np.zeros(part.shape), where=whole > 0)

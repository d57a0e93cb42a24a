"""From what a Recogniser saw to a report: which findings to name, several ways to say it, and the best of them.

    evidence   what the recogniser says of each observation o, and how often the nearest training studies have it:
               two log-odds, added, for the two err in different studies
    asked_o    P(o | evidence) > limit_o, calibrated
    phi^       E[phi(report) | images]: the mean place of the reports of the nearest training studies
    c_1 ...    beam searches of the Dictated writer, told `asked` and phi_i, for the K training reports with the largest
               phi^ . phi_i: each says what was asked for in the way of one of them
    score(c)   phi^ . phi(c)  -  w (findings that c names and was not asked for, the reverse, and those of which one
               sentence of c says that they are there and another that they are not)
               -  s (runs of words in c that no report has)

Of many findings the surest few are asked for together, the others alone, and what the best draft does not name is said
in a sentence more (`mending.py`).

phi^ . phi(c) is what the images let expect of the product of c with the report that a radiologist would write, in the
space of CIDEr's n-grams: the expectation of a product with a fixed vector is the product with the expectation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from negatoscope.decoding import DecodeSettings, Written, beam_search
from negatoscope.drafting.calibration import Calibration
from negatoscope.drafting.library import Library
from negatoscope.drafting.mending import mended, said_once
from negatoscope.drafting.wording import LEFT_OUT, sentences_of
from negatoscope.models.dictated import Dictated, Guided, tell
from negatoscope.settings import Settings
from negatoscope.studies.study import OBSERVATIONS
from negatoscope.text.words import Vocabulary

NO_FINDING = OBSERVATIONS.index("No Finding")
_WORTH_SHARING = 100
"""Rows of a product of 512 by 2,048."""
_OTHERS = [name not in ("No Finding", "Support Devices") for name in OBSERVATIONS]


class MeaningSpace(Protocol):
    """Reports as vectors whose products are nearly CIDEr (`Subjects`)."""

    def meaning(self, reports: Sequence[str]) -> np.ndarray: ...

    def strange(self, text: str) -> int: ...


class Reader(Protocol):
    """What a report names (the CheXpert labeler)."""

    def label(self, report: str) -> dict[str, int]: ...


class AuthorSettings(Settings):
    among: int = Field(default=25, ge=1)
    """Nearest training studies that phi^ is the mean of."""
    ways: int = Field(default=8, ge=1)
    """K."""
    beam: int = Field(default=3, ge=1, le=10)
    length_penalty: float = Field(default=1.0, ge=0)
    max_words: int = Field(default=60, ge=1)
    guidance: float = Field(default=0.5, ge=0)
    """g: how much more the findings that are asked for weigh while it writes; 0 is the writer as it learned."""
    at_once: int = Field(default=3, ge=1)
    """So many findings the writer is asked for together, those furthest above their limits; the others each alone."""
    obey: float = Field(default=0.1, ge=0)
    """w."""
    smooth: float = Field(default=0.02, ge=0)
    """How much each run of two or three words counts against a draft that hardly any training report has."""
    common: float = Field(default=0.5, ge=0)
    """How much all findings together weigh beside each observation by itself when limits are set (`best_limits`): 0
    asks for rare ones that can hardly be told, and much in vain."""


@dataclass(frozen=True)
class Authored:
    """One report."""

    report: str
    asked: tuple[str, ...]
    words: tuple[int, ...]
    log_probabilities: tuple[float, ...]


@dataclass(frozen=True)
class Author:
    writer: Dictated
    vocabulary: Vocabulary
    space: MeaningSpace
    library: Library
    calibration: Calibration
    limits: np.ndarray  # (14,)
    reader: Reader
    settings: AuthorSettings = field(default_factory=AuthorSettings)

    def asked(self, probabilities: np.ndarray) -> np.ndarray:
        """(n, 14) bool. No Finding where nothing else is asked for but devices."""
        asked = probabilities > self.limits
        asked[:, NO_FINDING] = ~asked[:, _OTHERS].any(1)
        return asked

    def evidence(self, findings: Tensor, cosines: Tensor) -> np.ndarray:
        return evidence_of(self.library, findings, cosines)

    @torch.inference_mode()
    def write(self, evidence: np.ndarray, cosines: Tensor) -> list[Authored]:
        """From evidence (n, 14), and cosines (n, N) with the library's studies."""
        probabilities = self.calibration.probability(evidence)[0]
        asked = self.asked(probabilities)
        first = self._first(asked, probabilities)
        expected = self.library.expected_places(cosines, self.settings.among)  # (n, E)
        best = (expected @ self.library.places.T).topk(min(self.settings.ways, len(self.library.ids)), 1)
        ways = best.indices.shape[1]
        drafts = self._drafts(first.repeat(ways, axis=0), self.library.places[best.indices.flatten()])
        study = np.repeat(np.arange(len(asked)).repeat(ways), [len(of_way) for of_way in drafts])
        written = [one for of_way in drafts for one in of_way]
        reports = [self.vocabulary.decode(one.words) for one in written]
        scores = self.scores(reports, study, first, expected.numpy())
        best_drafts = [
            _authored(written, reports, np.flatnonzero(study == row), scores, asked[row]) for row in range(len(asked))
        ]
        whole = mended(self, best_drafts, asked, cosines, expected.numpy(), self._drafts)
        return [said_once(self, one) for one in whole]

    def _first(self, asked: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
        """(n, 14) of what is asked for, the few that are asked for together."""
        surest = np.where(asked, probabilities / np.maximum(self.limits, 1e-6), -1.0)
        surest[:, NO_FINDING] = asked[:, NO_FINDING] * 1e9
        rank = (-surest).argsort(1, kind="stable").argsort(1, kind="stable")
        return asked & (rank < self.settings.at_once + asked[:, [NO_FINDING]])

    def named(self, reports: Sequence[str]) -> np.ndarray:
        """(n, 14) bool: what a labeler reads in them."""
        return np.array([[one.get(name) == 1 for name in OBSERVATIONS] for one in map(self.reader.label, reports)])

    def _drafts(self, asked: np.ndarray, places: Tensor) -> list[list[Written]]:
        said = self.settings
        decode = DecodeSettings(
            beam=said.beam,
            best=said.beam,
            length_penalty=said.length_penalty,
            max_words=said.max_words,
            suppress_unknown=True,
        )
        with _threads_for(len(asked) * said.beam):
            return self._searched(asked, places, decode)

    def _searched(self, asked: np.ndarray, places: Tensor, decode: DecodeSettings) -> list[list[Written]]:
        said = self.settings
        none, unknown = [""] * len(asked), [self.vocabulary.unknown, self.vocabulary.number(LEFT_OUT)]
        told = tell(torch.from_numpy(asked).float(), places)
        if not said.guidance:
            return beam_search(self.writer, self.writer.start(told), none, decode, unknown)
        plain = torch.zeros(len(OBSERVATIONS))
        plain[NO_FINDING] = 1
        guided = Guided(self.writer, plain, said.guidance)
        return beam_search(guided, guided.start(told), none, decode, unknown)

    def scores(self, reports: Sequence[str], study: np.ndarray, asked: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """(k,) of k reports, each for the study of its row (k,)."""
        different = list(dict.fromkeys(reports))
        place = {report: number for number, report in enumerate(different)}
        row = np.array([place[report] for report in reports])
        named = self.named(different)
        against_itself = np.array([self._against_itself(report) for report in different])
        wrong = (named[row] != asked[study]).sum(1) + against_itself[row]
        strange = np.array([self.space.strange(report) for report in different])[row]
        fitting = (self.space.meaning(different)[row] * expected[study]).sum(1)
        return fitting - self.settings.obey * wrong - self.settings.smooth * strange

    def _against_itself(self, report: str) -> int:
        said = [self.reader.label(sentence) for sentence in sentences_of(report)]
        return sum({0, 1} <= {one.get(name) for one in said} for name in OBSERVATIONS[1:])


def evidence_of(library: Library, findings: Tensor, cosines: Tensor) -> np.ndarray:
    """(n, 14) from the recogniser's logits (n, 14), and cosines (n, N) with the library's studies."""
    return (findings + library.log_odds(cosines)).double().numpy()


@contextmanager
def _threads_for(rows: int) -> Iterator[None]:
    """One thread for few rows: their products are too small to share, and threads that wait for each other after each
    of a thousand of them wait for whatever else the machine does."""
    before = torch.get_num_threads()
    torch.set_num_threads(before if rows >= _WORTH_SHARING else 1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _authored(
    written: Sequence[Written], reports: Sequence[str], rows: np.ndarray, scores: np.ndarray, asked: np.ndarray
) -> Authored:
    best = int(rows[scores[rows].argmax()])
    names = tuple(name for name, one in zip(OBSERVATIONS, asked, strict=True) if one)
    return Authored(reports[best], names, written[best].words, written[best].log_probabilities)


def best_limits(probabilities: np.ndarray, common: float) -> np.ndarray:
    """(K,) limits with the best  (1/K) sum_k F1_k + w F1 of all findings together,  w = `common`, where each count is
    the one that calibrated probabilities (n, K) let expect: labels of ten studies would only add their chance.

    F1_k = 2 sum_{p > t} p / (n_{p > t} + sum p). One limit after the other is set to its best, until none moves.
    No Finding has none: it is said where nothing else is.
    """
    ordered = -np.sort(-probabilities, axis=0)  # (n, K)
    n, observations = ordered.shape
    right = np.vstack([np.zeros(observations), ordered.cumsum(0)])  # (n + 1, K) expected, when the first j are named
    said, there = np.arange(n + 1), ordered.sum(0)
    findings = [k for k in range(observations) if k != NO_FINDING]
    named = np.zeros(observations, int)
    for _ in range(50):
        before = named.copy()
        for k in findings:
            others = [one for one in findings if one != k]
            alone = 2 * right[:, k] / np.maximum(said + there[k], 1e-12)
            all_right = right[:, k] + right[named[others], others].sum()
            together = 2 * all_right / np.maximum(said + named[others].sum() + there[findings].sum(), 1e-12)
            named[k] = (alone / observations + common * together).argmax()
        if (named == before).all():
            break
    padded = np.vstack([np.ones(observations), ordered, np.zeros(observations)])  # nobody is surer than 1
    columns = np.arange(observations)
    limits = (padded[named, columns] + padded[named + 1, columns]) / 2
    return np.where(named == 0, 1.0, limits)

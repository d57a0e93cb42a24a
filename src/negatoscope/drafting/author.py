"""From what a Recogniser saw to a report: which findings to name, several ways to say it, and the best of them.

    asked_o    P(o | images) > limit_o, calibrated
    phi^       E[phi(report) | images]: the mean place of the reports of the nearest training studies
    c_1 ...    beam searches of the Dictated writer, told `asked` and phi_i, for the K training reports with the largest
               phi^ . phi_i: each says what was asked for in the way of one of them
    score(c)   phi^ . phi(c)  -  w (findings that c names and was not asked for, the reverse, and those of which one
               sentence of c says that they are there and another that they are not)

phi^ . phi(c) is what the images let expect of the product of c with the report that a radiologist would write, in the
space of CIDEr's n-grams: the expectation of a product with a fixed vector is the product with the expectation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from negatoscope.decoding import DecodeSettings, Written, beam_search
from negatoscope.drafting.calibration import Calibration
from negatoscope.drafting.library import Library
from negatoscope.drafting.wording import LEFT_OUT, sentences_of
from negatoscope.models.dictated import Dictated, Guided, tell
from negatoscope.settings import Settings
from negatoscope.studies.study import OBSERVATIONS
from negatoscope.text.words import Vocabulary

NO_FINDING = OBSERVATIONS.index("No Finding")
_OTHERS = [name not in ("No Finding", "Support Devices") for name in OBSERVATIONS]


class MeaningSpace(Protocol):
    """Reports as vectors whose products are nearly CIDEr (`Subjects`)."""

    def meaning(self, reports: Sequence[str]) -> np.ndarray: ...


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
    obey: float = Field(default=0.1, ge=0)
    """w."""
    surest: float = Field(default=0.12, ge=0, le=1)
    """No limit_o is below this: a finding that can hardly be told is not asked for, however rare it is."""


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
        asked = probabilities > np.maximum(self.limits, self.settings.surest)
        asked[:, NO_FINDING] = ~asked[:, _OTHERS].any(1)
        return asked

    @torch.inference_mode()
    def write(self, findings: Tensor, cosines: Tensor) -> list[Authored]:
        """From logits (n, 14), and cosines (n, N) with the library's studies."""
        asked = self.asked(self.calibration.probability(findings.numpy())[0])
        expected = self.library.expected_places(cosines, self.settings.among)  # (n, E)
        best = (expected @ self.library.places.T).topk(min(self.settings.ways, len(self.library.ids)), 1)
        ways = best.indices.shape[1]
        drafts = self._drafts(asked.repeat(ways, axis=0), self.library.places[best.indices.flatten()])
        study = np.repeat(np.arange(len(asked)).repeat(ways), [len(of_way) for of_way in drafts])
        written = [one for of_way in drafts for one in of_way]
        reports = [self.vocabulary.decode(one.words) for one in written]
        scores = self.scores(reports, study, asked, expected.numpy())
        return [
            _authored(written, reports, np.flatnonzero(study == row), scores, asked[row]) for row in range(len(asked))
        ]

    def _drafts(self, asked: np.ndarray, places: Tensor) -> list[list[Written]]:
        said = self.settings
        decode = DecodeSettings(
            beam=said.beam,
            best=said.beam,
            length_penalty=said.length_penalty,
            max_words=said.max_words,
            suppress_unknown=True,
        )
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
        named = np.array([[one.get(name) == 1 for name in OBSERVATIONS] for one in map(self.reader.label, different)])
        against_itself = np.array([self._against_itself(report) for report in different])
        wrong = (named[row] != asked[study]).sum(1) + against_itself[row]
        return (self.space.meaning(different)[row] * expected[study]).sum(1) - self.settings.obey * wrong

    def _against_itself(self, report: str) -> int:
        said = [self.reader.label(sentence) for sentence in sentences_of(report)]
        return sum({0, 1} <= {one.get(name) for one in said} for name in OBSERVATIONS[1:])


def _authored(
    written: Sequence[Written], reports: Sequence[str], rows: np.ndarray, scores: np.ndarray, asked: np.ndarray
) -> Authored:
    best = int(rows[scores[rows].argmax()])
    names = tuple(name for name, one in zip(OBSERVATIONS, asked, strict=True) if one)
    return Authored(reports[best], names, written[best].words, written[best].log_probabilities)


def best_limits(probabilities: np.ndarray) -> np.ndarray:
    """(K,) for each observation the limit with the best expected F1 = 2 sum_{p > t} p / (n_{p > t} + sum p), from
    calibrated probabilities (n, K) alone: labels of ten studies would only add their chance."""
    ordered = -np.sort(-probabilities, axis=0)
    told = np.arange(1, len(ordered) + 1)[:, None]
    expected = 2 * ordered.cumsum(0) / (told + ordered.sum(0))
    best = expected.argmax(0)
    after = np.vstack([ordered[1:], np.zeros((1, ordered.shape[1]))])
    columns = np.arange(ordered.shape[1])
    return (ordered[best, columns] + after[best, columns]) / 2

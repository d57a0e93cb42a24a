"""Reports as CVSE's baselines are fed with them: complete, abnormal sentences alone, in a shuffled order."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from negatoscope.settings import Settings
from negatoscope.studies.coco import references
from negatoscope.studies.study import Study
from negatoscope.text.abnormal import AbnormalSentences
from negatoscope.text.sentences import split_sentences
from negatoscope.text.words import Vocabulary


class ReportForm(Settings):
    keep: Literal["complete", "abnormal"] = "complete"
    """abnormal: learn from, and validate on, the sentences that tell of something abnormal, and the studies that have
    one."""
    wordings: Literal["first", "drawn"] = "first"
    """drawn: of a study that is told several times, as COCO's images are, another caption at each training epoch; the
    vocabulary is of all of them, and validation scores against all of them."""
    order: Literal["written", "shuffled"] = "written"
    """shuffled: a new order of a report's sentences at each training epoch, so that none is learned."""

    @property
    def changes(self) -> bool:
        return self != ReportForm()

    def wordings_of(self, study: Study) -> list[str]:
        """What a study's report says, by each of its wordings that may be learned."""
        return references(study) if self.wordings == "drawn" else [study.report]

    def wording(self, study: Study, epoch: int, seed: int) -> str:
        """That of this epoch."""
        among = self.wordings_of(study)
        if len(among) == 1:
            return among[0]
        return among[np.random.default_rng((seed, epoch, zlib.crc32(study.id.encode()), 1)).integers(len(among))]

    def kept(self, report: str) -> str:
        """Empty where nothing abnormal is said."""
        if self.keep == "complete":
            return report
        return " ".join(_abnormal(split_sentences(report)))

    def told(self, report: str, study: str, epoch: int, seed: int) -> str:
        """The sentences that are kept, in the order of this epoch."""
        if self.order == "written":
            return self.kept(report)
        sentences = split_sentences(self.kept(report))
        ended = [one if one.endswith((".", "!", "?")) else f"{one}." for one in sentences]
        order = np.random.default_rng((seed, epoch, zlib.crc32(study.encode()))).permutation(len(ended))
        return " ".join(ended[place] for place in order)


def _abnormal(sentences: list[str]) -> Iterable[str]:
    wanted = AbnormalSentences.default().abnormal(sentences)
    return (sentence for sentence, is_abnormal in zip(sentences, wanted, strict=True) if is_abnormal)


@dataclass(frozen=True)
class SentenceLabels:
    """Which sentences of a report are abnormal, as a loader hands it on: a full stop among the words ends one."""

    vocabulary: Vocabulary

    def __call__(self, study: Study) -> Mapping[str, list[float]]:
        """`abnormal` (max_words,): 1, 0, and NaN where there is no sentence, or one without a word."""
        words = " ".join(self.vocabulary.clean(study.report).split())
        sentences = [part.strip() for part in words.split(".")]  # whole, where the words are cut
        found = AbnormalSentences.default().abnormal(sentences)
        told = [float(abnormal) if text else np.nan for text, abnormal in zip(sentences, found, strict=True)]
        return {"abnormal": (told + [np.nan] * self.vocabulary.max_words)[: self.vocabulary.max_words]}

"""METEOR 1.5 for English without Java, equal to its program as the caption evaluation calls it (`-l en -norm`).

Denkowski and Lavie, "Meteor Universal", 2014: exact, stem, synonym and paraphrase matches, aligned by a beam search, weighted as tuned
for English. The paraphrase table and word lists are data inside the package pycocoevalcap, an extra of this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from negatoscope.errors import WrongUse
from negatoscope.metrics.meteor.candidates import Matcher
from negatoscope.metrics.meteor.corpus import read_corpus
from negatoscope.metrics.meteor.index import load_index
from negatoscope.metrics.meteor.score import count, meteor
from negatoscope.metrics.meteor.sources import find_sources, meteor_available
from negatoscope.watch import Watch, quiet

__all__ = ["Meteor", "meteor_available"]

_PAIRS_AT_ONCE = 2048


class Meteor:
    """A row: the 21 counts that METEOR's program adds up. Of several references the one with the best score gives the row."""

    name = "meteor"
    version = "meteor-1.5-wo-en-norm-0.85_0.2_0.6_0.75-ex_st_sy_pa-1.0_0.6_0.8_0.6"
    """The program's own name for this setting."""

    def __init__(self, cache: Path | None = None, watch: Watch = quiet) -> None:
        """`cache`: where the index of METEOR's data is kept, built at the first scoring (about a minute), else the user's cache.

        Raises Trouble where pycocoevalcap is not installed.
        """
        self._sources = find_sources()
        self._cache, self._watch = cache, watch

    def rows(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
        """(n, 21)"""
        if len(predictions) != len(references) or not all(references):
            raise WrongUse(f"METEOR got {len(predictions)} predictions for {len(references)} studies with references")
        index = load_index(self._sources, self._cache, self._watch)
        studies = [(_plain(said), [_plain(text) for text in texts]) for said, texts in zip(predictions, references)]
        texts = (text for said, asked in studies for text in (said, *asked))
        corpus = read_corpus(texts, self._sources, index.paraphrases)
        number = corpus.text_of
        pairs = np.array([(number[said], number[text]) for said, asked in studies for text in asked], np.int64).reshape(-1, 2)
        study = np.repeat(np.arange(len(studies)), [len(asked) for _, asked in studies])
        distinct, which = np.unique(pairs, axis=0, return_inverse=True)
        matcher = Matcher(corpus, index)
        parts = range(0, len(distinct), _PAIRS_AT_ONCE)
        counted = [count(matcher, *distinct[at : at + _PAIRS_AT_ONCE].T) for at in self._watch(parts, "METEOR", len(parts))]
        rows = np.concatenate(counted)[which.reshape(-1)] if counted else np.zeros((0, 21))
        return rows[_best_reference(study, meteor(rows))]

    def figures(self, totals: np.ndarray) -> dict[str, np.ndarray]:
        return {"METEOR": meteor(totals)}


def _plain(text: str) -> str:
    """Without what would be a separator in the program's input."""
    return text.replace("|||", "")


def _best_reference(study: np.ndarray, score: np.ndarray) -> np.ndarray:
    """(studies,) number of each study's best row; of equals, the first."""
    order = np.lexsort((-score, study))
    return order[np.searchsorted(study, np.unique(study))]

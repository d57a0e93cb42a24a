"""METEOR 1.5 for English without Java, equal to its program as the caption evaluation calls it (`-l en -norm`).

Denkowski and Lavie, "Meteor Universal", 2014: exact, stem, synonym and paraphrase matches, aligned by a beam search,
weighted as tuned for English. The paraphrase table and word lists are data inside the package pycocoevalcap, an extra
of this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from negatoscope.errors import WrongUse
from negatoscope.metrics.meteor.candidates import Matcher
from negatoscope.metrics.meteor.corpus import read_corpus
from negatoscope.metrics.meteor.index import Index, load_index
from negatoscope.metrics.meteor.score import COLUMNS, count, meteor
from negatoscope.metrics.meteor.sources import find_sources, meteor_available
from negatoscope.watch import Watch, quiet

__all__ = ["Meteor", "meteor_available"]

_PAIRS_AT_ONCE = 2048
_CELLS_AT_ONCE = 8_000_000
"""Words of the prediction times words of the reference: what bounds the memory."""


class Meteor:
    """A row: the 21 counts that METEOR's program adds up, against the reference with the best score."""

    name = "meteor"
    version = "meteor-1.5-wo-en-norm-0.85_0.2_0.6_0.75-ex_st_sy_pa-1.0_0.6_0.8_0.6"
    """The program's own name for this setting."""

    def __init__(self, cache: Path | None = None, watch: Watch = quiet) -> None:
        """`cache`: where the index of METEOR's data is kept (else the user's cache); the first scoring builds it,
        within a minute.

        Raises Trouble where pycocoevalcap is not installed.
        """
        self._sources = find_sources()
        self._cache, self._watch = cache, watch

    def rows(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
        """(n, 21)"""
        if len(predictions) != len(references) or not all(references):
            raise WrongUse(f"METEOR got {len(predictions)} predictions for {len(references)} studies with references")
        studies = [(_plain(said), [_plain(text) for text in texts]) for said, texts in zip(predictions, references)]
        texts = (text for said, asked in studies for text in (said, *asked))
        corpus = read_corpus(texts, self._sources, self._index.paraphrases)
        number = corpus.text_of
        pairs = [(number[said], number[text]) for said, asked in studies for text in asked]
        study = np.repeat(np.arange(len(studies)), [len(asked) for _, asked in studies])
        distinct, which = np.unique(np.array(pairs, np.int64).reshape(-1, 2), axis=0, return_inverse=True)
        matcher = Matcher(corpus, self._index)
        parts = _parts(*corpus.length[distinct].T)
        counted = [count(matcher, *distinct[part].T) for part in self._watch(parts, "METEOR", len(parts))]
        rows = np.concatenate([np.zeros((0, COLUMNS)), *counted])[which.reshape(-1)]
        return rows[_best_reference(study, meteor(rows))]

    @cached_property
    def _index(self) -> Index:
        return load_index(self._sources, self._cache, self._watch)

    def figures(self, totals: np.ndarray) -> dict[str, np.ndarray]:
        return {"METEOR": meteor(totals)}


def _parts(hyp_length: np.ndarray, ref_length: np.ndarray) -> list[slice]:
    """The pairs in runs that fit into memory together."""
    cells = np.cumsum(hyp_length * ref_length)
    parts, start = [], 0
    while start < len(cells):
        before = cells[start - 1] if start else 0
        stop = min(int(np.searchsorted(cells, before + _CELLS_AT_ONCE, "right")), start + _PAIRS_AT_ONCE)
        parts.append(slice(start, max(stop, start + 1)))
        start = parts[-1].stop
    return parts


def _plain(text: str) -> str:
    """Without what would be a separator in the program's input."""
    return text.replace("|||", "")


def _best_reference(study: np.ndarray, score: np.ndarray) -> np.ndarray:
    """(studies,) number of each study's best row; of equals, the first."""
    order = np.lexsort((-score, study))
    return order[np.searchsorted(study, np.unique(study))]

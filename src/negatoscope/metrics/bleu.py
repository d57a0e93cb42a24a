"""BLEU-1 to BLEU-4 as pycocoevalcap 1.2 computes them.

Papineni et al., 2002: BLEU-n = BP * (p_1 ... p_n)^(1/n), with p_k the clipped precision of k-grams over the corpus and
BP = exp(1 - r/c) where the corpus c is shorter than its references r. Of several references the one closest in length
counts for r, the shorter one of two that are equally close. A precision of nothing is tiny, not zero: (matched +
1e-15) / (k-grams + 1e-9)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from negatoscope.metrics.ngrams import count_ngrams, flatten, look_up

LONGEST = 4
_TINY, _SMALL = 1e-15, 1e-9


class Bleu:
    """A row: clipped matches of 1- to 4-grams, 1- to 4-grams written, words written, words of the closest reference."""

    name = "bleu"
    version = "pycocoevalcap-1.2"

    def rows(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
        """(n, 10)"""
        n = len(predictions)
        flat, study = flatten(references)
        matched, written, lengths = np.zeros((n, LONGEST)), np.zeros((n, LONGEST)), np.zeros(len(flat))
        for grams in count_ngrams([*predictions, *flat], LONGEST):
            said, asked = grams.of(0, n), grams.of(n, n + len(flat))
            k = grams.n - 1
            written[:, k] = said.totals(n)
            if k == 0:
                lengths = asked.totals(len(flat))
            allowed, most = _most_in_one(asked.keys(study), asked.count)
            place, there = look_up(said.keys(), allowed)
            clipped = np.minimum(said.count[there], most[place[there]])
            matched[:, k] = np.bincount(said.text[there], weights=clipped, minlength=n)
        closest = _closest_length(written[:, 0], lengths, study)
        return np.column_stack([matched, written, written[:, 0], closest])

    def figures(self, totals: np.ndarray) -> dict[str, np.ndarray]:
        matched, written = totals[..., :LONGEST], totals[..., LONGEST : 2 * LONGEST]
        words, asked = totals[..., 8], totals[..., 9]
        precision = (matched + _TINY) / (written + _SMALL)
        ratio = (words + _TINY) / (asked + _SMALL)
        brevity = np.exp(np.minimum(0.0, 1 - 1 / ratio))
        product = np.cumprod(precision, axis=-1)
        return {f"BLEU-{k}": product[..., k - 1] ** (1 / k) * brevity for k in range(1, LONGEST + 1)}


def _most_in_one(keys: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sorted (study, n-gram) keys and the largest count in any one of the study's references."""
    unique, where = np.unique(keys, return_inverse=True)
    most = np.zeros(len(unique), np.int64)
    np.maximum.at(most, where, counts)
    return unique, most


def _closest_length(words: np.ndarray, lengths: np.ndarray, study: np.ndarray) -> np.ndarray:
    """(n,) of each study's references the length closest to the prediction's; of two equally close the shorter."""
    order = np.lexsort((lengths, np.abs(lengths - words[study]), study))
    first = np.searchsorted(study[order], np.arange(len(words)))
    return lengths[order[first]]

"""ROUGE-L (Lin, 2004) as pycocoevalcap 1.2 computes it.

F = (1 + beta^2) P R / (R + beta^2 P) with beta = 1.2, P = LCS / words written, R = LCS / words of the reference; with
several references the best P and the best R, each by itself. Words are what stands between single blanks, so that an
empty report is one empty word."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

BETA = 1.2
# Words that stand in more places than this have their bit mask kept; a 100,000-word report has few such words.
_KEEP = 32


class Rouge:
    """A row: the study's score, and 1."""

    name = "rouge"
    version = "pycocoevalcap-1.2"

    def rows(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
        """(n, 2)"""
        scores = [rouge_l(said, asked) for said, asked in zip(predictions, references)]
        return np.column_stack([scores, np.ones(len(scores))])

    def figures(self, totals: np.ndarray) -> dict[str, np.ndarray]:
        return {"ROUGE-L": totals[..., 0] / totals[..., 1]}


def rouge_l(prediction: str, references: Sequence[str]) -> float:
    said = prediction.split(" ")
    precision = recall = 0.0
    for reference in references:
        asked = reference.split(" ")
        common = longest_common_subsequence(said, asked)
        precision = max(precision, common / len(said))
        recall = max(recall, common / len(asked))
    if not precision or not recall:
        return 0.0
    return (1 + BETA**2) * precision * recall / (recall + BETA**2 * precision)


def longest_common_subsequence(a: Sequence[str], b: Sequence[str]) -> int:
    """Its length. Bit-parallel after Crochemore et al., 2001: bit i of `row` is 0 where the table's row grows at place
    i of the shorter text, so that a whole row of the table is four operations on one large integer."""
    short, long = (a, b) if len(a) <= len(b) else (b, a)
    places: dict[str, list[int]] = {}
    for place, word in enumerate(short):
        places.setdefault(word, []).append(place)
    kept: dict[str, int] = {}
    full = (1 << len(short)) - 1
    row = full
    for word in long:
        at = places.get(word)
        if at is None:
            continue
        mask = kept.get(word)
        if mask is None:
            mask = 0
            for place in at:
                mask |= 1 << place
            if len(short) <= 64 * _KEEP or len(at) > _KEEP:
                kept[word] = mask
        hit = row & mask
        row = ((row + hit) | (row - hit)) & full
    return len(short) - row.bit_count()

"""CIDEr (Vedantam et al., 2015) as pycocoevalcap 1.2 computes it.

Texts are vectors of n-gram counts, each weighted by log(studies / studies whose references have it). The score of a
study is the mean over n = 1 ... 4 of the cosine with its references, times 10. CIDEr-D cuts each n-gram's weight in
the prediction to the reference's, against saying one word again and again, and multiplies by exp(-(difference in
length)^2 / (2 * 6^2)). What pycocoevalcap and with it every paper calls CIDEr is CIDEr-D: so the figures "CIDEr" and
"CIDEr-D" are one number here. The first definition, which does neither, is "CIDEr, uncut".

Document frequencies come from the references that are scored. A single study has no rare n-grams: its score is 0,
there as here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from negatoscope.metrics.ngrams import Grams, count_ngrams, flatten, look_up

SIGMA = 6.0
LONGEST = 4


class Cider:
    """A row: the study's CIDEr-D, its first-definition CIDEr, and 1."""

    name = "cider"
    version = "pycocoevalcap-1.2"

    def rows(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
        """(n, 3)"""
        n = len(predictions)
        flat, study = flatten(references)
        cut, uncut = np.zeros(len(flat)), np.zeros(len(flat))
        shorter = np.zeros(len(flat))
        for grams in count_ngrams([*predictions, *flat], LONGEST):
            said, asked = grams.of(0, n), grams.of(n, n + len(flat))
            if grams.n == 2:
                # The published code takes the number of 2-grams for the length.
                shorter = said.totals(n)[study] - asked.totals(len(flat))
            clipped, plain = _cosines(said, asked, study, n)
            cut += clipped
            uncut += plain
        cut *= np.exp(-(shorter**2) / (2 * SIGMA**2))
        several = np.bincount(study, minlength=n)
        scores = [10 / LONGEST * np.bincount(study, weights=part, minlength=n) / several for part in (cut, uncut)]
        return np.column_stack([*scores, np.ones(n)])

    def figures(self, totals: np.ndarray) -> dict[str, np.ndarray]:
        cut, uncut = totals[..., 0] / totals[..., 2], totals[..., 1] / totals[..., 2]
        return {"CIDEr": cut, "CIDEr-D": cut, "CIDEr, uncut": uncut}


def _cosines(said: Grams, asked: Grams, study: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """(references,) each: the prediction's cosine with the reference for one n-gram length, cut and uncut."""
    seen_in = np.unique(asked.keys(study)) % asked.kinds
    frequency = np.bincount(seen_in, minlength=asked.kinds)
    weight = np.log(n) - np.log(np.maximum(1, frequency))

    in_said, in_asked = said.count * weight[said.gram], asked.count * weight[asked.gram]
    norms = np.sqrt(np.bincount(said.text, weights=in_said**2, minlength=n))[study] * np.sqrt(
        np.bincount(asked.text, weights=in_asked**2, minlength=len(study))
    )
    place, there = look_up(asked.keys(study), said.keys())
    text, ours, theirs = asked.text[there], in_said[place[there]], in_asked[there]
    products = (np.minimum(ours, theirs) * theirs, ours * theirs)
    cut, uncut = (np.bincount(text, weights=product, minlength=len(study)) for product in products)
    scale = np.divide(1.0, norms, out=np.ones_like(norms), where=norms > 0)
    return cut * scale, uncut * scale

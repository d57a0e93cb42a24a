"""What sets CIDEr apart from its clipped form; the figures themselves are beside pycocoevalcap's in test_bleu.py."""

from __future__ import annotations

import numpy as np
import pytest

from negatoscope.metrics.cider import Cider

PREDICTIONS = ["no effusion no effusion no effusion", "the heart is large"]
REFERENCES = [["no effusion"], ["the heart is large"]]


def figures(predictions: list[str]) -> dict[str, float]:
    metric = Cider()
    return {name: float(value) for name, value in metric.figures(metric.rows(predictions, REFERENCES).sum(0)).items()}


def test_saying_it_three_times_pays_only_without_the_cut() -> None:
    scored = figures(PREDICTIONS)
    assert scored["CIDEr"] == scored["CIDEr-D"] < scored["CIDEr, uncut"]


def test_uncut_is_the_mean_of_plain_cosines() -> None:
    """By hand, for one study of two, with log(2/1) as every n-gram's weight: cosines of count vectors."""
    metric = Cider()
    uncut = metric.rows(PREDICTIONS, REFERENCES)[0, 1]
    unigrams = np.array([3, 3]) @ np.array([1, 1]) / (np.hypot(3, 3) * np.hypot(1, 1))
    bigrams = 3 / np.hypot(3, 2)  # three times 'no effusion', twice 'effusion no'
    assert uncut == pytest.approx(10 * (unigrams + bigrams) / 4)


def test_a_single_study_has_no_rare_ngrams() -> None:
    metric = Cider()
    assert metric.rows(["the heart"], [["the heart"]])[0, 0] == 0

from __future__ import annotations

import numpy as np
import pytest

from negatoscope.metrics.diversity import Copied, Diversity
from negatoscope.metrics.lengths import Lengths, histograms


def figures(predictions: list[str]) -> dict[str, float]:
    metric = Diversity()
    rows = metric.rows(predictions, [["x"]] * len(predictions))
    return {name: float(value) for name, value in metric.figures(rows.sum(axis=0)).items()}


def test_diversity_of_a_report_by_hand() -> None:
    """'a b a b a': 2-grams ab ba ab ba (2 of 4 unique), 3-grams aba bab aba (2 of 3), 4-grams abab baba (2 of 2)."""
    scored = figures(["a b a b a"])
    assert scored["rep-2"] == pytest.approx(50)
    assert scored["rep-3"] == pytest.approx(100 / 3)
    assert scored["rep-4"] == 0
    assert scored["diversity"] == pytest.approx(0.5 * 2 / 3)
    assert scored["reports with repetition"] == 0


def test_diversity_is_a_mean_over_reports_and_short_ones_repeat_nothing() -> None:
    assert figures(["a b a b a", "", "heart"])["diversity"] == pytest.approx((1 / 3 + 1 + 1) / 3)
    assert figures(["a b c d a b c d"])["reports with repetition"] == 1


def test_distinct_counts_are_exact_over_the_corpus() -> None:
    scored = figures(["no effusion .", "no effusion .", "heart is large ."])
    assert scored["distinct reports"] == pytest.approx(2)
    assert scored["distinct-1"] == pytest.approx(6 / 10)
    assert scored["distinct-2"] == pytest.approx(5 / 7)


def test_a_model_that_writes_one_report_is_seen() -> None:
    assert figures(["the heart is normal ."] * 590)["distinct reports"] == pytest.approx(1)


def test_copied_is_word_for_word_and_says_the_same_of_the_references() -> None:
    metric = Copied(["no effusion .", "heart normal .", ""])
    rows = metric.rows(["no effusion .", "no effusion", ""], [["heart normal ."], ["x"], ["y"]])
    scored = metric.figures(rows.sum(axis=0))
    assert scored["copied"] == pytest.approx(1 / 3)
    assert scored["copied, references"] == pytest.approx(1 / 3)


def words(count: int) -> str:
    return " ".join(["x"] * count)


def test_lengths_in_bins_of_five() -> None:
    metric = Lengths()
    rows = metric.rows([words(0), words(4), words(5), words(100), words(500)], [[words(99)]] * 5)
    said, asked = histograms(rows.sum(axis=0))
    np.testing.assert_allclose(said[[0, 1, 19]], [0.4, 0.2, 0.4])
    assert asked[19] == 1


def test_two_distances_tell_near_from_far() -> None:
    metric = Lengths()
    near = metric.figures(metric.rows([words(12)], [[words(7)]]).sum(axis=0))
    far = metric.figures(metric.rows([words(52)], [[words(7)]]).sum(axis=0))
    assert near["length, total variation"] == far["length, total variation"] == 1
    assert near["length, earth mover's"] == 5
    assert far["length, earth mover's"] == 45
    same = metric.figures(metric.rows([words(12)], [[words(11)]]).sum(axis=0))
    assert same["length, total variation"] == same["length, earth mover's"] == 0

"""ROUGE-L beside pycocoevalcap is in test_bleu.py; here its formula, by hand."""

from __future__ import annotations

import pytest

from negatoscope.metrics.rouge import BETA, rouge_l


def test_by_hand() -> None:
    precision, recall = 2 / 3, 2 / 4
    wanted = (1 + BETA**2) * precision * recall / (recall + BETA**2 * precision)
    assert rouge_l("heart is large", ["the heart was large"]) == pytest.approx(wanted)


def test_best_precision_and_best_recall_may_be_of_different_references() -> None:
    both = rouge_l("a b", ["a b c d e f", "a"])
    assert both > max(rouge_l("a b", ["a b c d e f"]), rouge_l("a b", ["a"]))


def test_an_empty_report_is_one_empty_word() -> None:
    assert rouge_l("", [""]) == 1.0
    assert rouge_l("", ["heart"]) == 0.0

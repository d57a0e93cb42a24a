"""BLEU, ROUGE-L and CIDEr beside pycocoevalcap 1.2, on corpora of any size, to 1e-6 in total and for each study."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from negatoscope.metrics.bleu import Bleu
from negatoscope.metrics.cider import Cider
from negatoscope.metrics.rouge import Rouge, longest_common_subsequence, rouge_l

WORDS = ("the", "heart", "is", "normal", ".", "no", "effusion", "<unk>", "lungs", "2\u00a01/2")
TEXT = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
CORPUS = st.lists(st.tuples(TEXT, st.lists(TEXT, min_size=1, max_size=3)), min_size=1, max_size=6)


def theirs(predictions: list[str], references: list[list[str]]) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    bleu = pytest.importorskip("pycocoevalcap.bleu.bleu", reason="needs the extra: pip install negatoscope[meteor]")
    from pycocoevalcap.cider.cider_scorer import CiderScorer
    from pycocoevalcap.rouge.rouge import Rouge as TheirRouge

    said, asked = dict(enumerate([text] for text in predictions)), dict(enumerate(references))
    totals, each = bleu.Bleu(4).compute_score(asked, said, verbose=0)
    figures = {f"BLEU-{k}": totals[k - 1] for k in range(1, 5)}
    rows = {f"BLEU-{k}": np.array(each[k - 1]) for k in range(1, 5)}
    figures["ROUGE-L"], rows["ROUGE-L"] = TheirRouge().compute_score(asked, said)
    cider = CiderScorer()
    for text, wordings in zip(predictions, references):
        cider += (text, wordings)
    if any(text.split() for wordings in references for text in wordings):
        figures["CIDEr"], rows["CIDEr"] = cider.compute_score()
    else:  # their own check stumbles over references without any word
        figures["CIDEr"], rows["CIDEr"] = 0.0, np.zeros(len(predictions))
    return figures, rows


def ours(predictions: list[str], references: list[list[str]]) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    figures, rows = {}, {}
    for metric in (Bleu(), Rouge(), Cider()):
        counts = metric.rows(predictions, references)
        assert counts.shape[0] == len(predictions)
        figures |= metric.figures(counts.sum(axis=0))
        rows |= metric.figures(counts)
    return figures, rows


def assert_equal(predictions: list[str], references: list[list[str]]) -> None:
    (figures, rows), (our_figures, our_rows) = theirs(predictions, references), ours(predictions, references)
    for name, figure in figures.items():
        assert our_figures[name] == pytest.approx(figure, abs=1e-6), name
        np.testing.assert_allclose(our_rows[name], rows[name], atol=1e-6, err_msg=name)


@settings(max_examples=150, deadline=None)
@given(CORPUS)
def test_any_corpus_scores_as_pycocoevalcap_does(corpus: list[tuple[str, list[str]]]) -> None:
    assert_equal([text for text, _ in corpus], [wordings for _, wordings in corpus])


@pytest.mark.parametrize(
    ("predictions", "references"),
    [
        (["the heart is normal ."], [["the heart is normal ."]]),
        ([""], [["the heart is normal ."]]),
        (["the heart"], [[""]]),
        ([""], [[""]]),
        (["a"], [["a", "a a a"]]),
        (["a a a a"], [["a a", "a a a a a a"]]),
        (["the " * 40], [["the heart"]]),
    ],
)
def test_a_single_study(predictions: list[str], references: list[list[str]]) -> None:
    assert_equal([text.strip() for text in predictions], references)


def test_real_reports_against_shuffled_ones(shared) -> None:
    from negatoscope.metrics.forms import read_reports

    reports = read_reports(shared("data/iu-xray/annotation.json"), role="reference", split="val").texts
    texts = [" ".join(text.lower().replace(".", " .").split()) for text in reports]
    predictions = list(np.random.default_rng(3).permutation(texts))
    assert_equal(predictions, [[text] for text in texts])


def test_a_bootstrap_draw_is_the_corpus_it_draws() -> None:
    predictions = ["the heart is normal .", "no effusion .", "lungs clear ."]
    references = [["heart normal ."], ["no effusion ."], ["the lungs are clear ."]]
    draw = np.array([2.0, 0.0, 1.0])
    for metric in (Bleu(), Rouge()):
        drawn = metric.figures(draw @ metric.rows(predictions, references))
        again = [0, 0, 2]
        rows = metric.rows([predictions[k] for k in again], [references[k] for k in again])
        for name, figure in metric.figures(rows.sum(axis=0)).items():
            assert drawn[name] == pytest.approx(figure), name


def test_figures_take_many_draws_at_once() -> None:
    metric = Bleu()
    rows = metric.rows(["the heart", "no effusion"], [["the heart"], ["effusion"]])
    draws = np.random.default_rng(0).multinomial(2, [0.5, 0.5], size=(3, 5))
    figures = metric.figures(draws @ rows)
    assert figures["BLEU-4"].shape == (3, 5)
    assert figures["BLEU-1"][0, 0] == pytest.approx(metric.figures(draws[0, 0] @ rows)["BLEU-1"])


@given(st.lists(st.sampled_from("abcd"), max_size=30), st.lists(st.sampled_from("abcd"), max_size=30))
def test_longest_common_subsequence_against_the_table(a: list[str], b: list[str]) -> None:
    table = np.zeros((len(a) + 1, len(b) + 1), int)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1, j + 1] = table[i, j] + 1 if x == y else max(table[i, j + 1], table[i + 1, j])
    assert longest_common_subsequence(a, b) == table[-1, -1]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=5, deadline=None)
def test_longest_common_subsequence_of_texts_too_long_to_keep_masks(seed: int) -> None:
    """Beyond 2,048 words masks of rare words are made anew each time: the answer must not change."""
    rng = np.random.default_rng(seed)
    words = [str(w) for w in rng.integers(0, 400, 2200)]
    kept = np.sort(rng.choice(len(words), 700, replace=False))
    assert longest_common_subsequence(words, [words[k] for k in kept]) == 700


def test_a_report_of_a_hundred_thousand_words_is_scored() -> None:
    rng = np.random.default_rng(1)
    long = " ".join(f"w{k}" for k in rng.zipf(1.3, 100_000) % 50_000)
    figures, _ = ours([long, "no effusion"], [[long], ["no effusion"]])
    assert figures["BLEU-4"] == pytest.approx(1.0)
    assert rouge_l(long, [long]) == pytest.approx(1.0)

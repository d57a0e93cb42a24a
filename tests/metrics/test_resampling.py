"""Intervals and tests: draws by matrix product are the same as scoring again, and they say what they should."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from negatoscope.errors import WrongUse
from negatoscope.metrics import resampling
from negatoscope.metrics.evaluate import Evaluation, score
from negatoscope.metrics.pairs import Pairs
from negatoscope.metrics.resampling import (
    Counts,
    bootstrap,
    bootstrap_intervals,
    interval,
    paired_permutation,
    permutation_test,
)

WORDS = ("the", "heart", "is", "normal", "no", "effusion", "lungs", "are", "clear", "edema")
METRICS = ("bleu", "rouge", "lengths", "clinical")


def pairs(said: list[str], asked: list[str]) -> Pairs:
    return Pairs(tuple(map(str, range(len(said)))), tuple(said), tuple((text,) for text in asked), by="id")


def reports(n: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(3, 9))) + " ." for _ in range(n)]


def scored(said: list[str], asked: list[str]) -> Evaluation:
    return score(pairs(said, asked), metrics=METRICS)


@pytest.fixture(scope="module")
def two() -> tuple[Evaluation, Evaluation]:
    asked = reports(40, 0)
    better = [text if k % 2 else other for k, (text, other) in enumerate(zip(asked, reports(40, 1)))]
    return scored(better, asked), scored(reports(40, 2), asked)


def test_a_draw_is_the_same_as_scoring_the_drawn_studies_again(two: tuple[Evaluation, Evaluation]) -> None:
    first = two[0]
    drawn = bootstrap([Counts.of(first)], draws=3, seed=5)[0]
    studies = np.random.default_rng(5).integers(0, first.n, (3, first.n))
    for k, draw in enumerate(studies):
        again = scored([first.pairs.predictions[i] for i in draw], [first.pairs.references[i][0] for i in draw])
        for figure, value in again.figures.items():
            assert drawn[figure][k] == pytest.approx(value, abs=1e-12), figure


def test_blocks_do_not_change_the_draws(two: tuple[Evaluation, Evaluation], monkeypatch: pytest.MonkeyPatch) -> None:
    counts = [Counts.of(one) for one in two]
    whole = bootstrap(counts, draws=20, seed=1), paired_permutation(*counts, draws=20, seed=1)
    monkeypatch.setattr(resampling, "_CELLS_AT_ONCE", 7 * 40)
    parts = bootstrap(counts, draws=20, seed=1), paired_permutation(*counts, draws=20, seed=1)
    for one, other in zip(whole[0], parts[0]):
        assert all(one[figure] == pytest.approx(other[figure]) for figure in one)
    assert whole[1] == parts[1]


def test_intervals_hold_the_figure_and_narrow_with_studies(two: tuple[Evaluation, Evaluation]) -> None:
    few = bootstrap_intervals(two[0], draws=300)
    for low, high in few.values():
        assert low - 1e-9 <= high
    low, high = few["BLEU-1"]
    assert low < two[0].figures["BLEU-1"] < high
    asked = reports(400, 0)
    many = bootstrap_intervals(
        scored([text if k % 2 else other for k, (text, other) in enumerate(zip(asked, reports(400, 1)))], asked),
        draws=300,
    )
    assert many["BLEU-1"][1] - many["BLEU-1"][0] < (high - low) / 2


def test_the_mean_of_a_known_distribution() -> None:
    """Of 0 and 1 with mean m the interval is m +- 1.96 sqrt(m (1 - m) / n)."""

    class Mean:
        name, version = "mean", "1"

        def rows(self, predictions: list[str], references: list[list[str]]) -> np.ndarray:
            return np.zeros((0, 2))

        def figures(self, totals: np.ndarray) -> dict[str, np.ndarray]:
            return {"mean": totals[..., 0] / totals[..., 1]}

    values = np.arange(1000) < 300
    counts = Counts(np.column_stack([values, np.ones(1000)]), ((Mean(), slice(0, 2)),))
    low, high = interval(bootstrap([counts], draws=4000)[0]["mean"])
    assert (low, high) == pytest.approx((0.3 - 0.0284, 0.3 + 0.0284), abs=0.003)


def test_equal_models_have_p_one_and_unlike_models_a_small_one(two: tuple[Evaluation, Evaluation]) -> None:
    assert set(permutation_test(two[0], two[0], draws=50).values()) == {1.0}
    p = permutation_test(*two, draws=500)
    assert p["BLEU-4"] == pytest.approx(1 / 501)
    assert p["words, references"] == 1


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 1000))
def test_p_has_two_sides_and_does_not_care_which_is_first(seed: int) -> None:
    asked = reports(12, seed)
    a, b = (Counts.of(scored(reports(12, seed + k), asked)) for k in (1, 2))
    one, other = paired_permutation(a, b, 100, seed), paired_permutation(b, a, 100, seed)
    assert one == pytest.approx(other)
    assert all(1 / 101 <= p <= 1 for p in one.values())


def test_p_is_uniform_where_there_is_no_difference() -> None:
    """Of models that write the same kind of report, about one in ten tests says p <= 0.1."""
    found = []
    for seed in range(60):
        asked = reports(15, 3 * seed)
        a, b = (Counts.of(score(pairs(reports(15, 3 * seed + k), asked), metrics=["rouge"])) for k in (1, 2))
        found.append(paired_permutation(a, b, 200, seed)["ROUGE-L"])
    assert sum(p <= 0.1 for p in found) <= 14
    assert 0.3 < float(np.mean(found)) < 0.7


def test_what_cannot_be_drawn_is_refused(two: tuple[Evaluation, Evaluation]) -> None:
    counts = Counts.of(two[0])
    with pytest.raises(WrongUse, match="different numbers of studies"):
        bootstrap([counts, counts.only(np.arange(3))])
    with pytest.raises(WrongUse, match="0 draws"):
        bootstrap([counts], draws=0)
    with pytest.raises(WrongUse, match="no studies"):
        bootstrap([counts.only(np.zeros(40, bool))])
    other = score(two[1].pairs, metrics=["clinical"], ready=None)
    shorter = score(other.pairs.subset(range(10)), metrics=["clinical"])
    with pytest.raises(WrongUse, match="differ in number of studies"):
        permutation_test(other, shorter)


def test_a_figure_that_no_draw_has_is_not_a_number() -> None:
    low, high = interval(np.full(5, np.nan))
    assert np.isnan(low)
    assert np.isnan(high)
    assert interval(np.array([1.0, np.nan, 1.0])) == (1.0, 1.0)

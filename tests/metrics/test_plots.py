from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from negatoscope.metrics.plots import Bar, bars, grouped, histogram, round_ticks


@pytest.mark.parametrize(
    ("most", "ticks"),
    [
        (0.78, [0, 0.2, 0.4, 0.6]),
        (1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0.013, [0, 0.005, 0.01]),
        (25, [0, 5, 10, 15, 20, 25]),
    ],
)
def test_ticks_are_numbers_that_a_person_would_choose(most: float, ticks: list[float]) -> None:
    assert round_ticks(most) == ticks


@given(st.floats(1e-9, 1e9))
def test_ticks_are_few_and_on_the_axis(most: float) -> None:
    ticks = round_ticks(most)
    assert 3 <= len(ticks) <= 7
    assert ticks[0] == 0
    assert ticks[-1] <= most * (1 + 1e-6)


def test_a_bar_is_as_long_as_its_value_and_names_are_no_markup() -> None:
    drawn = bars("<b>", [Bar("a&b", 0.25), Bar("c", 1.0, 0.9, 1.0)])
    assert "<b>" not in drawn
    assert "a&amp;b" in drawn
    short, long = (float(part.split('width="')[1].split('"')[0]) for part in drawn.split("<rect")[1:])
    assert short == pytest.approx(long / 4, abs=0.1)


def test_nothing_to_show_is_drawn_all_the_same() -> None:
    assert grouped([("Edema", [Bar("a", 0.0, 0.0, 0.0)])]).startswith("<svg")
    assert "0 %" in histogram([("references", np.zeros(20), "#000")], list(range(0, 101, 5)), "words")

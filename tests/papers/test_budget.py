"""How long a budget is."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from negatoscope.errors import WrongUse
from negatoscope.papers.running import seconds_of

UNITS = {"h": 3600, "m": 60, "s": 1}
number = st.one_of(st.integers(0, 10_000).map(str), st.floats(0.25, 100).map(lambda x: f"{x:.2f}"))


@settings(deadline=None)
@given(st.lists(st.tuples(number, st.sampled_from("hms")), min_size=1, max_size=3), st.booleans())
def test_parts_add_up(parts: list[tuple[str, str]], upper: bool) -> None:
    said = "".join(count + unit for count, unit in parts)
    wanted = sum(float(count) * UNITS[unit] for count, unit in parts)
    if wanted <= 0:
        with pytest.raises(WrongUse):
            seconds_of(said)
    else:
        assert seconds_of(f" {said.upper() if upper else said} ") == pytest.approx(wanted)


@settings(deadline=None)
@given(st.integers(1, 10**9))
def test_a_bare_number_is_seconds(seconds: int) -> None:
    assert seconds_of(str(seconds)) == seconds == seconds_of(f"{seconds}s")


@settings(deadline=None)
@given(st.text(max_size=12))
def test_anything_else_is_wrong_use_and_nothing_worse(text: str) -> None:
    said = text.strip()
    if re.fullmatch(r"([0-9.]+[hmsHMS]?)+", said):
        return  # the tests above
    with pytest.raises(WrongUse, match="no length of time"):
        seconds_of(text)


@pytest.mark.parametrize(
    "text", ["", "h", "2x", "-5m", "1.2.3h", ".", "²h", "0", "0h", "nan", "inf", "1 h m", "9" * 400]
)
def test_what_is_no_length_of_time(text: str) -> None:
    with pytest.raises(WrongUse, match="for example 2h, 1h30m or 540s"):
        seconds_of(text)

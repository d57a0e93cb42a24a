"""Left and right in reports."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from negatoscope.vision.sides import swap_sides


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Left basilar opacity.", "Right basilar opacity."),
        ("LEFT lung, right hilum", "RIGHT lung, left hilum"),
        ("opacity/lung/base/left", "opacity/lung/base/right"),
        ("left-sided PICC, rightward shift", "right-sided PICC, leftward shift"),
        ("leftmost lead; rightsided arch", "rightmost lead; leftsided arch"),
        ("mild levoscoliosis", "mild dextroscoliosis"),
        ("Dextro-scoliosis and dextroconvex curvature", "Levo-scoliosis and levoconvex curvature"),
        ("dextrocardia", "levocardia"),
        ("RLL and LUL nodules, L>R", "LLL and RUL nodules, R>L"),
        ("L pleural effusion (R)", "R pleural effusion (L)"),
        ("R-sided chest tube", "L-sided chest tube"),
        ("the rt base, Lt hilum", "the lt base, Rt hilum"),
        ("chest tube on the left in place", "chest tube on the right in place"),
        ("right_lung", "left_lung"),
    ],
)
def test_sides_change_places(one: str, other: str):
    assert swap_sides(one) == other
    assert swap_sides(other) == one


@pytest.mark.parametrize(
    "text",
    [
        "bright upright cleft leftover brightness",
        "wedging of L1 and T12, L-spine, L spine, L4-5, L 2",
        "r/o pneumonia, R/O effusion, L/S spine",
        "levofloxacin, levothyroxine, dextrose",
        "on 2 L oxygen",
        "the tube was left in place",
        "all right",
        "bilateral and midline",
        "",
    ],
)
def test_what_is_no_side_stays(text: str):
    assert swap_sides(text) == text


WORDS = st.sampled_from(
    [
        "left",
        "Left",
        "RIGHT",
        "right",
        "l",
        "R",
        "L1",
        "spine",
        "-",
        "/",
        "o",
        "in",
        "place",
        "was",
        "all",
        "Lt",
        "rt",
        "RUL",
        "lll",
        "levoscoliosis",
        "Dextro",
        "cardia",
        "2",
        ".",
        ",",
        ">",
        "'",
        "’",
        "_",
        "é",
        "x",
        "wards",
        "sided",
    ]
)


@given(st.lists(st.tuples(WORDS, st.sampled_from(["", " ", "\n"]))))
def test_twice_is_the_same_text(parts: list[tuple[str, str]]):
    text = "".join(word + gap for word, gap in parts)
    twice = swap_sides(swap_sides(text))
    assert twice.lower() == text.lower()


@given(st.text(alphabet="lLrRefthgiıİ 1/-'dxtvoscuqj.", max_size=40))
def test_any_text_comes_back(text: str):
    """But for the case of words such as lEFt, which has no counterpart in a word of another length."""
    assert swap_sides(swap_sides(text)).lower() == text.lower()


@given(st.lists(st.sampled_from(["left", "Left", "LEFT", "right", "RLL", "base", "Opacity", "L", "dextroscoliosis"])))
def test_case_comes_back_too(words: list[str]):
    text = " ".join(words)
    assert swap_sides(swap_sides(text)) == text
    assert text == "" or swap_sides(text) != text or set(words) <= {"base", "Opacity"}

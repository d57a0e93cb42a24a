"""Cleaning and vocabulary, against what R2Gen's tokenizer made of the same lines and of IU X-Ray's training split."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from negatoscope.errors import BadInput, WrongUse
from negatoscope.text.words import CLEANINGS, UNKNOWN, Vocabulary, clean_iu_xray, clean_mimic_cxr, cleaning_named

# What R2Gen's own code printed for these lines, once.
IU_XRAY = {
    "Heart size normal. Lungs are clear.": "heart size normal . lungs are clear .",
    "1. No effusion. 2. Mild edema. 3. Done.": "no effusion . mild edema . done .",
    "No focal consolidation.. T-spine, 1.5 cm; x-XXXX (left).": "no focal consolidation . t-spine 15 cm x-xxxx left .",
    'A "quoted" word/two. It\'s [here]': "a quoted wordtwo . its here .",
    "": " .",
    "no full stop": "no full stop .",
    "Stable.  Two blanks. ": "stable . two blanks .",
    "5 ribs 3. fractured": "5 ribs . fractured .",
}
MIMIC_CXR = {
    "PA and\nlateral. ____ is  stable....  End": "pa and lateral .  is stable . end .",
    "1. One. 2. Two. 10. Ten.": "one . two . 10 . ten .",
}


@pytest.mark.parametrize(("report", "cleaned"), IU_XRAY.items())
def test_iu_xray_lines(report: str, cleaned: str) -> None:
    assert clean_iu_xray(report) == cleaned


@pytest.mark.parametrize(("report", "cleaned"), MIMIC_CXR.items())
def test_mimic_cxr_lines(report: str, cleaned: str) -> None:
    assert clean_mimic_cxr(report) == cleaned


@given(
    st.text(alphabet=st.sampled_from(" .,_-/\\\"'?;:[](){}AZaz019\n="), max_size=60),
    st.sampled_from(list(CLEANINGS)[:2]),
)
def test_cleaned_text_has_no_marks_and_ends_in_a_stop(report: str, name: str) -> None:
    cleaned = cleaning_named(name)(report)
    assert cleaned.endswith(" .")
    assert not set(cleaned) & set(",?;*!%^&+():<>@{}\"/\\'A")
    assert "_" not in cleaned


def test_iu_xrays_vocabulary_has_760_entries(shared: Callable[[str], Path]) -> None:
    reports = json.loads((shared("data/iu-xray") / "annotation.json").read_text())
    vocabulary = Vocabulary.build(one["report"] for one in reports["train"])
    assert len(vocabulary) == 760
    assert vocabulary.logits == 761


def test_numbers_and_back() -> None:
    vocabulary = Vocabulary.build(["the heart is normal . the heart"] * 3, cutoff=3, max_words=6)
    assert vocabulary.words == (".", UNKNOWN, "heart", "is", "normal", "the")
    numbers = vocabulary.encode("The heart is enlarged.")
    assert numbers == [0, 6, 3, 4, 2, 1]  # cut to six, so there is no end
    assert vocabulary.decode(numbers[1:]) == f"the heart is {UNKNOWN} ."
    assert vocabulary.as_scored("Heart.") == "heart ."
    assert vocabulary.encode("Heart.") == [0, 3, 1, 0]


@given(st.lists(st.text(alphabet="abc .", min_size=1, max_size=30), min_size=1), st.integers(1, 4), st.integers(2, 12))
def test_what_is_decoded_encodes_to_the_same_numbers(reports: list[str], cutoff: int, longest: int) -> None:
    vocabulary = (
        Vocabulary.build(reports, cleaning="none", cutoff=cutoff, max_words=longest)
        if " ".join(reports).split()
        else None
    )
    if vocabulary is None:
        return
    for report in reports:
        numbers = vocabulary.encode(report)
        assert len(numbers) <= longest
        assert all(0 <= number < vocabulary.logits for number in numbers)
        assert [vocabulary.number(word) for word in vocabulary.decode(numbers[1:]).split()] == [
            n for n in numbers[1:] if n
        ]


def test_saved_and_loaded(tmp_path: Path) -> None:
    vocabulary = Vocabulary.build(["b a a é"], cleaning="mimic-cxr", cutoff=1, max_words=100)
    vocabulary.save(tmp_path / "words.json")
    assert Vocabulary.load(tmp_path / "words.json") == vocabulary


@pytest.mark.parametrize(
    "damage", ["", "[1, 2]", '{"words": ["a"]}', '{"words": "abc"}', '{"words": ["<unk>", "a", "a"]}']
)
def test_a_damaged_vocabulary_is_one_line(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "words.json"
    path.write_text(damage)
    with pytest.raises(BadInput):
        Vocabulary.load(path)


def test_wrong_names_are_told_the_right_ones() -> None:
    with pytest.raises(WrongUse, match="did you mean 'mimic-cxr'"):
        cleaning_named("mimiccxr")
    with pytest.raises(BadInput, match="no words"):
        Vocabulary.build(["", " "], cleaning="none")

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from negatoscope.studies.sections import parse_sections, section_name

MIMIC_LIKE = """\
                                 FINAL REPORT
 EXAMINATION:  CHEST (PA AND LAT)

 INDICATION:  A person with a cough  // pneumonia?

 TECHNIQUE:  Chest PA and lateral

 COMPARISON:  None.

 FINDINGS:

 The heart is of usual size.  The lungs
 are clear.

 No effusion.

 IMPRESSION:

 Nothing acute.
"""


def test_a_report_as_most_of_them_are() -> None:
    assert parse_sections(MIMIC_LIKE) == {
        "preamble": "FINAL REPORT",
        "examination": "CHEST (PA AND LAT)",
        "indication": "A person with a cough  // pneumonia?",
        "technique": "Chest PA and lateral",
        "comparison": "None.",
        "findings": "The heart is of usual size.  The lungs\nare clear.\n\nNo effusion.",
        "impression": "Nothing acute.",
    }


@pytest.mark.parametrize(
    ("text", "sections"),
    [
        ("FINDINGS AND IMPRESSION: Clear.", {"impression": "Clear."}),
        (" FINDINGS/IMPRESSION:\n Clear.", {"impression": "Clear."}),
        (" CONCLUSION:  Clear.", {"impression": "Clear."}),
        (
            " FINDINGS:  Clear. IMPRESSION: Well.",
            {"findings": "Clear.", "impression": "Well."},
        ),
        ("Comparison: none\nFindings: clear", {"comparison": "none", "findings": "clear"}),
        # An archive that keeps a report on one line.
        (
            "COMPARISON: None. INDICATION: Pain. FINDINGS: Clear. IMPRESSION: Well.",
            {"comparison": "None.", "indication": "Pain.", "findings": "Clear.", "impression": "Well."},
        ),
        # Only the first heading of a line counts, but for the known ones.
        (" FINDINGS: CHEST, TWO VIEWS: clear", {"findings": "CHEST, TWO VIEWS: clear"}),
        # The title of a report looks like a heading and stands over nothing.
        (" CHEST, PA AND LATERAL:\n\n INDICATION: Pain\n\n FINDINGS: x", {"indication": "Pain", "findings": "x"}),
        (" CHEST, TWO VIEWS:  The lungs are clear.", {"findings": "The lungs are clear."}),
        (" IMPRESSON:  Misspelt.", {"impression": "Misspelt."}),
        (" FINDINGS:\n LUNGS: clear\n HEART: large\n", {"findings": "LUNGS: clear\nHEART: large"}),
        (" FINDINGS: a\n NOTE: b", {"findings": "a", "note": "b"}),
        (" FINDINGS: a\n COMPARISON: c\n FINDINGS: b", {"findings": "a\nb", "comparison": "c"}),
        ("   \n ", {}),
        ("", {}),
    ],
)
def test_known_exceptions(text: str, sections: dict[str, str]) -> None:
    assert parse_sections(text) == sections


def test_a_wet_read_ends_where_the_final_report_begins() -> None:
    text = " WET READ: 9 PM\n Clear.\n ______\n              FINAL REPORT\n FINDINGS: Not so clear.\n"
    sections = parse_sections(text)
    assert sections["wet read"] == "9 PM\nClear.\n______"
    assert sections["findings"] == "Not so clear."


def test_without_findings_and_impression_the_last_paragraph_speaks() -> None:
    text = " FINAL REPORT\n HISTORY:  Cough.\n \n The lungs are clear.\n \n The heart is large."
    sections = parse_sections(text)
    assert sections["history"] == "Cough."
    assert sections["last_paragraph"] == "The lungs are clear.\n\nThe heart is large."
    assert parse_sections("Title\n\nClear.") == {"full report": "Title", "last_paragraph": "Clear."}
    assert parse_sections("Clear lungs: no effusion.") == {"full report": "Clear lungs: no effusion."}


def test_line_ends_of_every_system() -> None:
    assert parse_sections(MIMIC_LIKE.replace("\n", "\r\n")) == parse_sections(MIMIC_LIKE)


@pytest.mark.parametrize(
    ("heading", "name"),
    [
        ("CLINICAL HISTORY", "history"),
        ("PROVISIONAL FINDINGS IMPRESSION (PFI)", "impression"),
        ("PORTABLE AP CHEST RADIOGRAPH", "findings"),
        ("COMPARISON STUDIES", "comparison"),
        ("FINDNGS", "findings"),
        ("NDICATION", "indication"),
        ("NOTE", "note"),
    ],
)
def test_what_a_heading_means(heading: str, name: str) -> None:
    assert section_name(heading) == name


def _words(text: str) -> list[str]:
    return sorted(re.findall(r"w\d+", text))


HEADINGS = (
    *("FINDINGS:", "IMPRESSION:", "Findings:", "CHEST, TWO VIEWS:", "NOTE:", "WET READ:", "FINAL REPORT", "LUNGS:"),
    *("HISTORY:", "COMPARISON:", "FINDINGS AND IMPRESSION:", "wet", "READ:", "ADDENDUM:", "DR.", "AP:", "()/,:"),
)
headings = st.sampled_from(HEADINGS)
bodies = st.integers(0, 99).map(lambda number: f"w{number}")
gaps = st.sampled_from([" ", "  ", "\n", "\n ", "\n \n ", ". ", ":\n"])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(headings, bodies, gaps), max_size=30).map("".join))
def test_no_word_is_lost_whatever_the_headings(text: str) -> None:
    assert _words(" ".join(parse_sections(text).values())) == _words(text)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), st.text(alphabet=string.ascii_uppercase[:6] + " :\n,()/-_"), st.text("\n :A\r")))
def test_never_raises_and_never_loses_small_letters_or_digits(text: str) -> None:
    sections = parse_sections(text)
    assert all(body.strip() for body in sections.values())
    assert all(name == name.lower() for name in sections)
    kept = "".join(sections.values())
    digits = [letter for letter in text if letter in string.digits]
    assert digits == [letter for letter in kept if letter in string.digits] or len(sections) > 1
    assert sorted(digits) == sorted(letter for letter in kept if letter in string.digits)


def _lines(words: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(words, st.sampled_from([" ", "\n ", "\n\n "]), bodies).map("".join)


def _written_out(sections: dict[str, str]) -> str:
    return "\n".join(f"{name.upper()}: {body}" for name, body in sections.items())


# "LUNGS:" is a line of the findings or a section, as it comes behind them or not: joining two sections of one name may
# move it, so it stands in the second property, where no name comes twice.
@settings(max_examples=300, deadline=None)
@given(st.lists(_lines(headings.filter(lambda heading: heading != "LUNGS:")), max_size=10))
def test_sections_written_out_again_are_read_as_they_were(lines: list[str]) -> None:
    once = parse_sections("\n".join(lines))
    assert parse_sections(_written_out(once)) == once


@settings(max_examples=300, deadline=None)
@given(
    st.lists(headings, max_size=10, unique_by=lambda heading: section_name(heading.rstrip(":"))),
    st.lists(bodies, min_size=10, max_size=10),
)
def test_organs_stay_where_they_are_when_no_section_comes_twice(names: list[str], texts: list[str]) -> None:
    once = parse_sections("\n".join(f"{name} {text}" for name, text in zip(names, texts)))
    assert parse_sections(_written_out(once)) == once


def test_a_long_line_of_capitals_takes_no_time() -> None:
    # 80 letters at most are tried from the head of each line: nothing here grows with the square of the length.
    assert parse_sections("A (" * 100_000) == {"full report": ("A (" * 100_000).strip()}

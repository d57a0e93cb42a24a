from __future__ import annotations

from pathlib import Path

import pytest

from negatoscope.errors import BadInput, WrongUse
from negatoscope.metrics.forms import Reports
from negatoscope.metrics.pairs import pair


def reports(said: dict[str, str], *, numbered: bool = False, name: str = "a.jsonl") -> Reports:
    return Reports(
        path=Path(name),
        form="jsonl",
        ids=tuple(said),
        wordings=tuple((text,) for text in said.values()),
        lines=tuple(range(1, len(said) + 1)),
        numbered=numbered,
        sha256="",
    )


REFERENCES = reports({"a": "one", "b": "two", "c": ""}, name="references.jsonl")


def test_pairs_are_in_the_order_of_the_references() -> None:
    pairs = pair(reports({"c": "z", "a": "x", "b": " "}), REFERENCES)
    assert pairs.ids == ("a", "b", "c")
    assert pairs.predictions == ("x", " ", "z")
    assert pairs.empty == ("b",)
    assert pairs.empty_references == ("c",)


def test_a_reference_without_a_prediction_is_an_error_or_an_empty_report() -> None:
    with pytest.raises(BadInput, match=r"2 studies \('b', 'c'\) of references\.jsonl without a prediction"):
        pair(reports({"a": "x"}), REFERENCES)
    pairs = pair(reports({"a": "x"}), REFERENCES, missing="empty")
    assert pairs.predictions == ("x", "", "")
    assert pairs.missing == ("b", "c")
    assert pairs.empty == ()


def test_a_prediction_without_a_reference_is_an_error_or_left_out_and_counted() -> None:
    said = reports({"a": "x", "b": "y", "c": "z", "d": "w"})
    with pytest.raises(BadInput, match=r"1 study \('d'\) of a\.jsonl without a reference"):
        pair(said, REFERENCES)
    pairs = pair(said, REFERENCES, unasked="leave-out")
    assert len(pairs) == 3
    assert pairs.unasked == ("d",)


def test_files_of_different_splits_are_told_so() -> None:
    with pytest.raises(BadInput, match="no study id in common"):
        pair(reports({"x": "x"}), REFERENCES, missing="empty")


def test_files_without_ids_are_paired_by_position_and_only_if_equally_long() -> None:
    pairs = pair(reports({"1": "x", "2": "y", "3": "z"}, numbered=True), REFERENCES)
    assert pairs.by == "position"
    assert pairs.ids == ("a", "b", "c")
    with pytest.raises(BadInput, match=r"2 predictions, 3 references, and a\.jsonl has no ids"):
        pair(reports({"1": "x", "2": "y"}, numbered=True), REFERENCES)


def test_the_hash_is_of_the_references_and_not_of_their_order_or_file() -> None:
    said = reports({"a": "x", "b": "y", "c": "z"})
    other_order = reports({"c": "", "b": "two", "a": "one"}, name="other.csv")
    assert pair(said, REFERENCES).references_hash == pair(said, other_order).references_hash
    assert (
        pair(said, REFERENCES).references_hash
        != pair(said, reports({"a": "one", "b": "two", "c": "."})).references_hash
    )


def test_a_part_of_the_studies() -> None:
    pairs = pair(reports({"a": "x"}), REFERENCES, missing="empty").subset([2, 0])
    assert pairs.ids == ("c", "a")
    assert pairs.missing == ("c",)


def test_settings_that_do_not_exist() -> None:
    with pytest.raises(WrongUse, match="missing is 'drop'; error or empty"):
        pair(REFERENCES, REFERENCES, missing="drop")

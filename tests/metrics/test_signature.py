from __future__ import annotations

from dataclasses import replace

import pytest

from negatoscope.errors import BadInput, WrongUse
from negatoscope.metrics.signature import Signature, difference, refuse_unlike

ONE = Signature("full", "ptb", (("bleu", "1"), ("cider", "2")), 590, "abc")


def test_it_is_one_line_of_names_and_values() -> None:
    assert str(ONE).startswith(
        "protocol:full|tokens:ptb|metrics:bleu=1,cider=2|n:590|references:abc|labels:none|negatoscope:"
    )
    assert "metrics:cider=2|" in str(ONE.of("cider"))


def test_it_comes_back_from_json() -> None:
    assert Signature.from_json(ONE.as_json()) == ONE
    with pytest.raises(BadInput, match="not a signature: lacks"):
        Signature.from_json({"protocol": "full"})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"protocol": "r2gen.iu-xray.60"}, r"protocol \(full and r2gen"),
        ({"tokens": "spaces"}, r"tokenisation \(ptb and spaces\)"),
        ({"n": 500}, r"number of studies \(590 and 500\)"),
        ({"references": "def"}, r"references \(abc and def\)"),
        ({"labels": "x"}, r"label policy \(none and x\)"),
        ({"metrics": (("bleu", "9"),)}, r"version of bleu \(1 and 9\)"),
    ],
)
def test_each_difference_is_refused_by_name(change: dict, words: str) -> None:
    with pytest.raises(WrongUse, match=f"ours and theirs cannot be compared: they differ in {words}"):
        refuse_unlike(ONE, replace(ONE, **change), ("ours", "theirs"))


def test_what_does_not_change_a_figure_keeps_nothing_apart() -> None:
    other = replace(ONE, negatoscope="9.9", metrics=(("bleu", "1"), ("rouge", "1")))
    assert difference(ONE, other) is None

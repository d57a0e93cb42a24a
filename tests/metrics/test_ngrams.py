from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from negatoscope.metrics.ngrams import count_ngrams, look_up

TEXTS = st.lists(st.lists(st.sampled_from("abc"), max_size=7).map(" ".join), min_size=1, max_size=5)


@given(TEXTS)
def test_counts_are_those_of_counting_by_hand(texts: list[str]) -> None:
    for grams in count_ngrams(texts, 4):
        by_hand = [
            Counter(tuple(w[i : i + grams.n]) for i in range(len(w) - grams.n + 1)) for w in map(str.split, texts)
        ]
        assert grams.totals(len(texts)).tolist() == [sum(counts.values()) for counts in by_hand]
        ours = sorted(zip(grams.text.tolist(), grams.count.tolist()))
        assert ours == sorted((t, c) for t, counts in enumerate(by_hand) for c in counts.values())
        number_of = {gram: n for n, gram in enumerate(set().union(*by_hand))}
        assert len(number_of) == len(set(grams.gram.tolist()))
        assert np.all(np.diff(grams.keys()) > 0), "sorted, each pair once"


@given(TEXTS)
def test_a_part_is_counted_as_it_is_in_the_whole(texts: list[str]) -> None:
    half = len(texts) // 2
    for grams in count_ngrams(texts, 2):
        assert grams.of(0, half).totals(half).tolist() == grams.totals(len(texts))[:half].tolist()
        later = grams.of(half, len(texts))
        assert later.totals(len(texts) - half).tolist() == grams.totals(len(texts))[half:].tolist()


def test_look_up_in_nothing() -> None:
    place, there = look_up(np.array([3, 4]), np.array([], int))
    assert place.tolist() == [0, 0]
    assert not there.any()

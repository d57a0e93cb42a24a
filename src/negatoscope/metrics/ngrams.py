"""All n-grams of a corpus as numbers, counted by sorting: what BLEU, CIDEr and diversity share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Grams:
    """The n-grams of one length in a list of texts: one entry for each pair of a text and an n-gram in it,
    sorted by text, then by n-gram."""

    n: int
    text: np.ndarray
    """(m,) which text."""
    gram: np.ndarray
    """(m,) which n-gram; the same number in all texts."""
    count: np.ndarray
    """(m,) how often."""
    kinds: int
    """Different n-grams in all texts together."""

    def of(self, first: int, stop: int) -> Grams:
        """Those of the texts first <= t < stop, renumbered from 0."""
        low, high = np.searchsorted(self.text, (first, stop))
        part = slice(low, high)
        return Grams(self.n, self.text[part] - first, self.gram[part], self.count[part], self.kinds)

    def totals(self, texts: int) -> np.ndarray:
        """(texts,) n-grams in each text, repetitions counted in."""
        return np.bincount(self.text, weights=self.count, minlength=texts)

    def keys(self, groups: np.ndarray | None = None) -> np.ndarray:
        """(m,) one number for each pair of a text (or of the group a text belongs to) and an n-gram."""
        owner = self.text if groups is None else groups[self.text]
        return owner * np.int64(self.kinds) + self.gram


def count_ngrams(texts: Sequence[str], longest: int = 4) -> Iterator[Grams]:
    """Yields the n-grams for n = 1 ... `longest`. Words are what stands between blanks."""
    number: dict[str, int] = {}
    words: list[int] = []
    lengths = np.empty(len(texts), np.int64)
    for position, text in enumerate(texts):
        split = text.split()
        words += [number.setdefault(word, len(number)) for word in split]
        lengths[position] = len(split)
    word = np.array(words, np.int64)
    owner = np.repeat(np.arange(len(texts)), lengths)
    stop = np.repeat(np.cumsum(lengths), lengths)

    start, gram, kinds = np.arange(len(word)), word, len(number)
    for n in range(1, longest + 1):
        if n > 1:
            # An n-gram is the (n-1)-gram at the same place and the word after it.
            fits = start + n <= stop[start]
            start = start[fits]
            longer = gram[fits] * np.int64(max(len(number), 1)) + word[start + n - 1]
            seen, gram = np.unique(longer, return_inverse=True)
            kinds = len(seen)
        key, count = np.unique(owner[start] * np.int64(max(kinds, 1)) + gram, return_counts=True)
        text, which = np.divmod(key, max(kinds, 1))
        yield Grams(n, text, which, count, max(kinds, 1))


def look_up(keys: np.ndarray, among: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each key its place in the sorted array `among`, and whether it is there at all."""
    if not len(among):
        return np.zeros(len(keys), np.int64), np.zeros(len(keys), bool)
    place = np.minimum(np.searchsorted(among, keys), len(among) - 1)
    return place, among[place] == keys


def flatten(references: Sequence[Sequence[str]]) -> tuple[list[str], np.ndarray]:
    """All references in one list, and for each the study it belongs to."""
    studies = np.repeat(np.arange(len(references)), [len(wordings) for wordings in references])
    return [text for wordings in references for text in wordings], studies.astype(np.int64)

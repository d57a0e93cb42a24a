"""The reports of one evaluation as arrays: each distinct text once, its words and the phrases that METEOR's table
knows.

A text's things (words, or phrases) stand sorted by what they are, so that "where in this text is that word?" is a
binary search.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from negatoscope.metrics.meteor.index import LONGEST_PHRASE, Table, fold, word_keys
from negatoscope.metrics.meteor.ranges import firsts
from negatoscope.metrics.meteor.sources import Sources
from negatoscope.metrics.meteor.tokenise import tokenise


@dataclass(frozen=True)
class Occurrences:
    """Words or phrases (here: "kinds") in texts, sorted by text, then kind, then place."""

    first: np.ndarray
    """(texts + 1,) where each text's occurrences begin."""
    kind: np.ndarray
    start: np.ndarray
    """Place of the first word in its text."""
    length: np.ndarray
    kinds: int

    @classmethod
    def of(
        cls, text: np.ndarray, kind: np.ndarray, start: np.ndarray, length: np.ndarray, texts: int, kinds: int
    ) -> Occurrences:
        order = np.lexsort((start, kind, text))
        return cls(firsts(text, texts), kind[order], start[order], length[order], kinds)


@dataclass(frozen=True)
class Corpus:
    text_of: dict[str, int]
    """Number of each text as it was given; texts with the same words have the same number."""
    vocabulary: list[str]
    words: Occurrences
    phrases: Occurrences
    phrase_rows: np.ndarray
    """(phrase kinds,) their rows in the paraphrase table, sorted."""
    first: np.ndarray
    """(texts + 1,) where each text's words begin in reading order."""
    function_words_before: np.ndarray
    """(words + 1,) how many function words stand before each word of all texts, in reading order."""

    @property
    def length(self) -> np.ndarray:
        """(texts,) number of words."""
        return np.diff(self.first)


def read_corpus(texts: Iterable[str], sources: Sources, paraphrases: Table) -> Corpus:
    nonbreaking = sources.nonbreaking()
    text_of: dict[str, int] = {}
    number_of: dict[tuple[str, ...], int] = {}
    for text in texts:
        if text not in text_of:
            text_of[text] = number_of.setdefault(tuple(tokenise(text, nonbreaking)), len(number_of))
    word_of: dict[str, int] = {}
    flat = np.array([word_of.setdefault(word, len(word_of)) for words in number_of for word in words], np.int64)
    lengths = np.array([len(words) for words in number_of], np.int64)
    first = np.concatenate([[0], np.cumsum(lengths)])
    text = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(len(flat)) - first[text]
    vocabulary = list(word_of)
    function_words = set(sources.function_words())
    is_function = np.array([word in function_words for word in vocabulary], bool)
    phrases, rows = _known_phrases(word_keys(vocabulary)[flat], text, place, lengths, paraphrases)
    return Corpus(
        text_of=text_of,
        vocabulary=vocabulary,
        words=Occurrences.of(text, flat, place, np.ones_like(flat), len(lengths), len(vocabulary)),
        phrases=phrases,
        phrase_rows=rows,
        first=first,
        function_words_before=np.concatenate([[0], np.cumsum(is_function[flat])]),
    )


def _known_phrases(
    keys: np.ndarray, text: np.ndarray, place: np.ndarray, lengths: np.ndarray, paraphrases: Table
) -> tuple[Occurrences, np.ndarray]:
    """Every run of 1 to 7 words of a text that stands in the table, and the rows of those that occur."""
    found_at, found_row, found_length = [], [], []
    phrase = keys[:0]
    for n in range(1, LONGEST_PHRASE + 1):
        fits = np.flatnonzero(place + n <= lengths[text])
        phrase = keys.copy() if n == 1 else fold(phrase[fits], keys[fits + n - 1])
        unique, inverse = np.unique(phrase, return_inverse=True)
        row = paraphrases.find(unique)[inverse]
        known = np.flatnonzero(row >= 0)
        found_at.append(fits[known])
        found_row.append(row[known])
        found_length.append(np.full(len(known), n))
        whole = np.zeros(len(keys), np.uint64)
        whole[fits] = phrase
        phrase = whole
    at, length = np.concatenate(found_at), np.concatenate(found_length)
    rows, kind = np.unique(np.concatenate(found_row), return_inverse=True)
    return Occurrences.of(text[at], kind, place[at], length, len(lengths), len(rows)), rows

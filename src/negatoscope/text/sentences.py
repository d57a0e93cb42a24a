"""A report into its sentences, as radiologists write them: numbered lists, measurements, levels of the spine.

A full stop ends a sentence unless something says otherwise: digits on both sides ("1.5 cm"), a title ("Dr. Smith"), the
number of an image ("No. 3"), letters apart ("p.m."). With no space behind it, it ends one where a word stands on both
sides ("clear.Heart"). A line break is a space, unless a blank line or the item of a list follows it. The number of an
item is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TITLES = frozenset(("dr", "drs", "mr", "mrs", "ms", "prof", "st"))
_GOES_ON = _TITLES | frozenset(("vs", "approx", "ca", "cf", "e.g", "i.e", "incl", "resp"))
_BEFORE_NUMBER = frozenset(("no", "nos", "nr", "image", "im", "se", "ser", "series", "vol", "level"))

# A blank line, or a line that starts as an item does: "2. ", "(3) ", "- ".
_BREAK = re.compile(r"\n[^\S\n]*\n|\n(?=\s*(?:\(?\d{1,2}[.)]\s|[-*•]\s))")
_NUMBER = re.compile(r"\s*\(?\d{1,2}[.)]\s*(?=[^\W\d_])")
_AFTER_COLON = re.compile(r"(?<=:) (?=\(?\d{1,2}[.)] [^\W\d_])")
_STOP = re.compile(r"[.!?]+[\"')\]]*")
_LAST_WORD = re.compile(r"[^\W_](?:[\w.]*\w)?$")
_NEXT_LETTERS = re.compile(r"[^\W\d_]+")
_FIRST_ITEM = re.compile(r"\(?1[.)] ")
_SPACE = re.compile(r"\s+")
_HAS_WORD = re.compile(r"\w")


def split_sentences(report: str) -> list[str]:
    """The sentences in order, white space made single.

    No character is lost but white space and the numbers of a list's items; splitting a sentence again gives itself.
    """
    found: list[str] = []
    for block in _BREAK.split(report.replace("\r\n", "\n").replace("\r", "\n")):
        parts = _AFTER_COLON.split(_SPACE.sub(" ", block).strip())
        for item in (item for part in parts for item in _items(part)):
            for sentence in _of_line(item):
                if found and not _HAS_WORD.search(sentence):
                    found[-1] += sentence.replace(" ", "")  # a stray stop belongs to what it follows
                elif sentence:
                    found.append(sentence)
    return found


def _items(text: str) -> Iterator[str]:
    """A list within a line, whether or not its items end with a stop: "1. Small effusion 2. Clear lungs"."""
    start, number = 0, 1
    if _FIRST_ITEM.match(text):
        while following := re.compile(rf" (?=\(?{number + 1}[.)] [^\W\d_])").search(text, start):
            yield text[start : following.start()]
            start, number = following.end(), number + 1
    yield text[start:]


def _of_line(text: str) -> Iterator[str]:
    first = start = _past_numbers(text, 0)
    for stop in _STOP.finditer(text):
        stray = start > first and text[start : stop.end() + 1].strip() == stop[0]  # a stop by itself after a sentence
        if stop.start() >= start and (stray or _ends(text, start, stop)):
            yield text[start : stop.end()].strip()
            start = _past_numbers(text, stop.end())
    yield text[start:].strip()


def _past_numbers(text: str, at: int) -> int:
    while number := _NUMBER.match(text, at):
        at = number.end()
    return at


def _ends(text: str, start: int, stop: re.Match[str]) -> bool:
    """Whether a sentence that began at `start` ends with this stop."""
    before, after = text[start : stop.start()], text[stop.end() :]
    if not _HAS_WORD.search(before):
        return False
    if not after:
        return True
    if stop[0] != ".":
        return not (stop[0][0] == "?" and before[-1:] in (" ", "("))  # "? pneumonia" asks within a sentence
    word = _LAST_WORD.search(before)
    last = word[0].lower() if word else ""
    if after[0] != " ":
        return _ends_without_space(last, after)
    before_number = last in _BEFORE_NUMBER and after[1:2].isdigit()
    return not (last in _GOES_ON or before_number or _is_initial(last, before))


def _is_initial(last: str, before: str) -> bool:
    """The J of "Dr. J. Smith"."""
    if len(last) != 1 or not last.isalpha():
        return False
    return before[:-1].rstrip(" .").rsplit(" ", 1)[-1].lower() in _TITLES


def _ends_without_space(last: str, after: str) -> bool:
    if after[0].isdigit():
        return len(last) > 1 and last.isalpha() and last not in _BEFORE_NUMBER
    letters = _NEXT_LETTERS.match(after)
    if letters:
        return len(last) > 1 and "." not in last and last not in _GOES_ON and len(letters[0]) > 1
    return after[0] == "("

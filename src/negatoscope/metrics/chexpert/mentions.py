"""Where a sentence mentions a finding: terms of `rules/observations.yaml`, minus what overlaps their exclusions."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

from negatoscope.errors import BadInput, nearest_names
from negatoscope.studies.study import OBSERVATIONS

OTHER = "other findings"
_LONGEST = 80
_BRACES = re.compile(r"\{([^{}]*)\}")


class Mention(NamedTuple):
    observation: str
    """One of the 14, or 'other findings', which only keep a report from being No Finding."""
    start: int
    end: int
    text: str
    hint: str = ""
    """An observation that this mention, unless negated, makes uncertain."""


class _Term(NamedTuple):
    text: str
    observation: str
    unless: tuple[str, ...]
    """A mention that overlaps one of these is none."""
    hint: str


class Vocabulary:
    """The terms of all observations."""

    def __init__(self, table: Mapping[str, Any], where: str = "observations.yaml") -> None:
        """From the content of the YAML file. Raises BadInput for an observation or a key that does not exist."""
        self.terms: list[_Term] = []
        for name, entry in table.items():
            if name == OTHER:
                self.terms += [_Term(text, name, (), "") for terms in entry.values() for text in _spelled(terms, where)]
            elif name in OBSERVATIONS:
                self.terms += _terms_of(name, entry, f"{where}, {name}")
            else:
                raise BadInput(
                    f"no observation {name!r}", where=where, remedy=nearest_names(str(name), (*OBSERVATIONS, OTHER))
                )

    def find(self, sentence: str) -> list[Mention]:
        """Every mention in a cleaned, lower-case sentence, the same place more than once where several terms fit."""
        found: list[Mention] = []
        for term in self.terms:
            if term.text in sentence:
                spans = _spans(term.text, sentence)
                if never := sorted(span for text in term.unless if text in sentence for span in _spans(text, sentence)):
                    spans = [span for span in spans if not _overlaps(span, never)]
                found += [Mention(term.observation, start, end, term.text, term.hint) for start, end in spans]
        return found


def _terms_of(name: str, entry: Mapping[str, Any], where: str) -> Iterator[_Term]:
    hints: dict[str, str] = {}
    for key, value in entry.items():
        if key.startswith("hints at "):
            hints |= dict.fromkeys(value, key.removeprefix("hints at "))
        elif key not in ("terms", "not", "not behind"):
            raise BadInput(
                f"no such key: {key!r}", where=where, remedy="terms, not, not behind, hints at <observation>"
            )
    terms = _spelled(entry.get("terms") or [], where)
    never = _spelled(entry.get("not") or [], where)
    if places := entry.get("not behind"):
        never += _behind(places, terms)
    for text in terms:
        yield _Term(text, name, tuple(never), hints.get(text, ""))


def _spans(text: str, sentence: str) -> list[tuple[int, int]]:
    found, at = [], sentence.find(text)
    while at >= 0:
        found.append((at, at + len(text)))
        at = sentence.find(text, at + len(text))
    return found


def _overlaps(span: tuple[int, int], others: list[tuple[int, int]]) -> bool:
    """`others` sorted by their start. None is longer than a few words, so only near ones are looked at."""
    at = bisect_left(others, (span[1], 0)) - 1
    while at >= 0 and others[at][0] > span[0] - _LONGEST:
        if others[at][1] > span[0]:
            return True
        at -= 1
    return False


def _spelled(terms: list[str], where: str) -> list[str]:
    """'nodular {density|opacity}' -> both; '_' -> a space."""
    found = []
    for term in terms:
        parts = _BRACES.split(str(term))
        choices = [part.split("|") if number % 2 else [part] for number, part in enumerate(parts)]
        found += ["".join(one).replace("_", " ").lower() for one in product(*choices)]
    if not all(text.strip() for text in found):
        raise BadInput("an empty term would be found everywhere", where=where)
    return found


def _behind(places: Mapping[str, Any], terms: list[str]) -> list[str]:
    """'over the left heart': a place for something else."""
    return [
        " ".join(filter(None, (words, side, term.removeprefix("the "))))
        for words in places["words"]
        for side in places["sides"]
        for term in terms
        if term not in places.get("but never", ())
    ]

"""Where a sentence mentions a finding: terms of `rules/observations.yaml`, minus what overlaps their exclusions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

from negatoscope.errors import BadInput
from negatoscope.studies.study import OBSERVATIONS

OTHER = "other findings"
_BRACES = re.compile(r"\{([^{}]*)\}")


class Mention(NamedTuple):
    observation: str
    """One of the 14, or 'other findings', which only keep a report from being No Finding."""
    start: int
    end: int
    text: str
    hint: str = ""
    """An observation that this mention, unless negated, makes uncertain."""


class Vocabulary:
    """The terms of all observations in one regular expression each, so that a sentence is read once an observation."""

    def __init__(self, table: Mapping[str, Any], where: str = "observations.yaml") -> None:
        self.patterns: list[tuple[str, re.Pattern[str], re.Pattern[str] | None]] = []
        self.hints: dict[tuple[str, str], str] = {}
        for name, entry in table.items():
            if name == OTHER:
                self._add(name, [term for terms in entry.values() for term in terms], [])
            elif name in OBSERVATIONS:
                self._observation(name, entry)
            else:
                raise BadInput(f"no such observation: {name!r}", where=where, remedy=f"known: {', '.join(OBSERVATIONS)}")
        every = sorted({term for _, pattern, _ in self.patterns for term in pattern.pattern[4:-2].split("|")}, key=len)
        self.anything = re.compile("|".join(re.escape(t) if "\\" not in t else t for t in every))

    def _observation(self, name: str, entry: Mapping[str, Any]) -> None:
        terms = entry["terms"]
        never = list(entry.get("not") or [])
        self._add(name, terms, never, entry.get("not behind"))
        for key, hinting in entry.items():
            if key.startswith("hints at "):
                self.hints |= {(name, term): key.removeprefix("hints at ") for term in hinting}

    def _add(self, name: str, terms: list[str], never: list[str], places: Mapping[str, Any] | None = None) -> None:
        spelled = [one for term in terms for one in _spelled(term)]
        unless = [one for term in never for one in _spelled(term)]
        if places:
            unless += _behind(places, spelled)
        for term in spelled:
            self.patterns.append((name, re.compile(re.escape(term)), _either(unless)))

    def find(self, sentence: str) -> list[Mention]:
        """Every mention in a cleaned, lower-case sentence."""
        if not self.anything.search(sentence):
            return []
        return list(self._find(sentence))

    def _find(self, sentence: str) -> Iterator[Mention]:
        for name, pattern, unless in self.patterns:
            for match in pattern.finditer(sentence):
                start, end = match.span()
                if unless and any(start < no.end() and end > no.start() for no in unless.finditer(sentence)):
                    continue
                yield Mention(name, start, end, match.group(), self.hints.get((name, match.group()), ""))


def _spelled(term: str) -> list[str]:
    """'nodular {density|opacity}' -> both; '_' -> a space."""
    parts = _BRACES.split(term)
    choices = [part.split("|") if number % 2 else [part] for number, part in enumerate(parts)]
    return ["".join(one).replace("_", " ") for one in product(*choices)]


def _behind(places: Mapping[str, Any], terms: list[str]) -> list[str]:
    """'over the left heart': a place for something else."""
    return [
        " ".join(f"{words} {side} {term.removeprefix('the ')}".split(" ")) if side else f"{words} {term.removeprefix('the ')}"
        for words in places["words"]
        for side in places["sides"]
        for term in terms
        if term not in ("cardiomegaly", "cardiac enlargement")
    ]


def _either(terms: list[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(map(re.escape, sorted(terms, key=len, reverse=True)))) if terms else None

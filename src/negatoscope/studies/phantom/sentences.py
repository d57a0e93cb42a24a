"""The grammar's sentences, read from `sentences.txt`: what may be said of a healthy chest, and of each finding."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from negatoscope.errors import BadInput
from negatoscope.studies.phantom.settings import FINDINGS
from negatoscope.studies.study import OBSERVATIONS

Labels = dict[str, int]

_FILE = "sentences.txt"
_MARKS = {"+": 1, "?": -1}


@dataclass(frozen=True, slots=True)
class Healthy:
    """A sentence that denies disease, or calls something normal."""

    pattern: str
    topics: frozenset[str]
    labels: Labels
    weight: float


@dataclass(frozen=True, slots=True)
class Ill:
    """A sentence that tells a finding."""

    pattern: str
    labels: Labels
    kind: str
    """The kind of finding it fits; empty for any."""
    hedged: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A finding's line of the impression, or its term."""

    finding: str
    kind: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Grammar:
    healthy: tuple[Healthy, ...]
    forbids: dict[str, frozenset[str]]
    ill: dict[str, tuple[Ill, ...]]
    impression: tuple[Line, ...]
    tags: tuple[Line, ...]
    indications: dict[str, tuple[str, ...]]
    """Finding, or empty for none in particular -> patterns."""
    phrases: dict[str, tuple[str, ...]]
    """Sections of plain patterns: new, unchanged, larger, smaller, all clear, nothing else."""


@lru_cache(maxsize=1)
def the_grammar() -> Grammar:
    text = files("negatoscope.studies.phantom").joinpath(_FILE).read_text(encoding="utf-8")
    return parse_grammar(text)


def parse_grammar(text: str) -> Grammar:
    """Raises `BadInput` naming the line that cannot be read, or the finding that nothing is said of."""
    healthy: list[Healthy] = []
    lines: dict[str, list[Line]] = {"impression": [], "tags": []}
    forbids: dict[str, frozenset[str]] = dict.fromkeys(FINDINGS, frozenset())
    ill: dict[str, tuple[Ill, ...]] = dict.fromkeys(FINDINGS, ())
    indications: dict[str, tuple[str, ...]] = {}
    phrases: dict[str, tuple[str, ...]] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("["):
            section = line.strip(" []")
            continue
        columns = [column.strip() for column in line.split("::")]
        try:
            if section == "healthy":
                weight, topics, denied, pattern = columns
                healthy.append(Healthy(pattern, frozenset(_listed(topics)), _labels(denied, 0), float(weight)))
            elif section == "forbids":
                finding, topics = columns
                forbids[finding] = frozenset(_listed(topics))
            elif section in ill:
                kind, labels, pattern = columns
                hedged = kind.startswith("hedged")
                ill[section] += (Ill(pattern, _labels(labels), kind.removeprefix("hedged").strip(), hedged),)
            elif section in lines:
                lines[section].append(Line(*columns))
            elif section == "indication":
                finding, pattern = columns
                indications[finding] = (*indications.get(finding, ()), pattern)
            else:
                (pattern,) = columns
                phrases[section] = (*phrases.get(section, ()), pattern)
        except (ValueError, TypeError, KeyError) as error:
            raise BadInput(f"not a line of section [{section}]", where=f"{_FILE}, line {number}") from error
    for finding in FINDINGS:
        if not ill[finding] or any(finding not in {line.finding for line in said} for said in lines.values()):
            raise BadInput(
                f"too little is said of {finding!r}", where=_FILE, remedy="add sentences, impression and tag"
            )
    return Grammar(
        healthy=tuple(healthy),
        forbids=forbids,
        ill=ill,
        impression=tuple(lines["impression"]),
        tags=tuple(lines["tags"]),
        indications=indications,
        phrases=phrases,
    )


def _listed(column: str) -> list[str]:
    return [part.strip() for part in column.split(",") if part.strip()]


def _labels(column: str, value: int | None = None) -> Labels:
    """'Edema+, Pneumonia?' -> {Edema: 1, Pneumonia: -1}; all of them `value` where one is given."""
    labels = {}
    for part in _listed(column):
        name, worth = (part, value) if value is not None else (part[:-1], _MARKS[part[-1]])
        if name not in OBSERVATIONS:
            raise ValueError(f"no observation {name!r}")
        labels[name] = worth
    return labels

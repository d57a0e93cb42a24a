"""A report from the findings: as a radiologist dictates it, healthy sentences in the majority.

What is drawn is told, with its side, size and severity; what is not drawn is denied or passed over. Which healthy
sentences are said, in which words and in which order, is chance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from negatoscope.studies.phantom.findings import Finding
from negatoscope.studies.phantom.sentences import Healthy, Ill, Labels, the_grammar
from negatoscope.studies.study import OBSERVATIONS

T = TypeVar("T")

# In the order in which most radiologists go through a chest.
_TOPICS = ("heart", "mediastinum", "lungs", "airspace", "volume", "nodules", "vessels", "pleura", "pneumothorax")
# Findings that are left in doubt are slight ones; these are about 72% of all.
_SLIGHT, _SHARE_OF_SLIGHT = 0.55, 0.72


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of the findings section."""

    text: str
    finding: str = ""
    """The finding it tells; empty for a healthy sentence."""


@dataclass(frozen=True, slots=True)
class Report:
    sentences: tuple[Sentence, ...]
    impression: str
    indication: str
    comparison: str
    labels: Labels
    """Of the findings section, as the CheXpert labeler would give them."""
    tags: tuple[str, ...]

    @property
    def findings(self) -> str:
        return " ".join(sentence.text for sentence in self.sentences)

    @property
    def sections(self) -> dict[str, str]:
        told = {
            "indication": self.indication,
            "comparison": self.comparison,
            "findings": self.findings,
            "impression": self.impression,
        }
        return {name: text for name, text in told.items() if text}


@dataclass(frozen=True, slots=True)
class Person:
    age: int
    woman: bool


def write_report(
    rng: np.random.Generator, findings: tuple[Finding, ...], person: Person, hedged: float, visit: int = 0
) -> Report:
    """The report of a study with these findings. `hedged`: share of hedgeable findings worded as uncertain."""
    told = [(finding, _choose_ill(rng, finding, hedged)) for finding in findings]
    healthy = _choose_healthy(rng, findings)
    lines = [Sentence(_worded(rng, sentence.pattern)) for sentence in healthy]
    if rng.random() < 0.5:  # some always go through a chest in the same order, some do not
        lines = [lines[k] for k in rng.permutation(len(lines))]
    for finding, sentence in told:
        first = "Support Devices" in sentence.labels and rng.random() < 0.6
        line = Sentence(_tell(rng, finding, sentence), finding.name)
        lines.insert(0 if first else int(rng.integers(0, len(lines) + 1)), line)
    return Report(
        sentences=tuple(lines),
        impression=_impression(rng, told),
        indication=_indication(rng, findings, person),
        comparison="Prior chest radiograph." if visit else "None." if rng.random() < 0.15 else "",
        labels=_labels([sentence.labels for _, sentence in told], [sentence.labels for sentence in healthy], findings),
        tags=tuple(tag for finding in findings for tag in _tags(finding)) or ("normal",),
    )


def _labels(told: list[Labels], denied: list[Labels], findings: tuple[Finding, ...]) -> Labels:
    """A positive mention outweighs an uncertain one, and that a denial; No Finding as CheXpert has it."""
    rank = {1: 2, -1: 1, 0: 0}
    merged: Labels = {}
    for name, value in (item for labels in (*told, *denied) for item in labels.items()):
        if name not in merged or rank[value] > rank[merged[name]]:
            merged[name] = value
    spoken = any(value for name, value in merged.items() if name != "Support Devices")
    # The labeler has no observation for hyperinflation, but does not call it No Finding either.
    if not spoken and not any(finding.name == "hyperinflation" for finding in findings):
        merged["No Finding"] = 1
    return {name: merged[name] for name in OBSERVATIONS if name in merged}


def _choose_healthy(rng: np.random.Generator, findings: tuple[Finding, ...]) -> list[Healthy]:
    """Sentences on what is healthy, until enough is said; no topic comes twice."""
    grammar = the_grammar()
    spent: set[str] = set().union(*(grammar.forbids[finding.name] for finding in findings))
    wanted = int(rng.integers(4, 7)) + (len(findings) > 1)
    chosen: list[Healthy] = []
    while len(chosen) < wanted:
        fitting = [sentence for sentence in grammar.healthy if not sentence.topics & spent]
        if not fitting:
            break
        edges = np.cumsum([sentence.weight * len(sentence.topics) for sentence in fitting])
        place = int(np.searchsorted(edges, rng.random() * edges[-1], side="right"))
        chosen.append(fitting[min(place, len(fitting) - 1)])
        spent |= chosen[-1].topics
    rank = {topic: k for k, topic in enumerate(_TOPICS)}
    return sorted(chosen, key=lambda sentence: min(rank.get(topic, len(rank)) for topic in sentence.topics))


def _choose_ill(rng: np.random.Generator, finding: Finding, hedged: float) -> Ill:
    kinds = _kinds(finding)
    fitting = [ill for ill in the_grammar().ill[finding.name] if not ill.kind or ill.kind in kinds]
    unsure = [ill for ill in fitting if ill.hedged]
    doubt = unsure and finding.amount < _SLIGHT and rng.random() < hedged / _SHARE_OF_SLIGHT
    return _any(rng, unsure if doubt else [ill for ill in fitting if not ill.hedged])


def _kinds(finding: Finding) -> set[str]:
    """What the grammar may call this finding's kind."""
    sides = "two" if finding.side == "bilateral" else "one"
    kinds = {finding.kind, sides, f"{finding.kind} {sides}"}
    if sides == "one" and finding.severity == "small":
        kinds.add("little")
    return kinds


def _tell(rng: np.random.Generator, finding: Finding, sentence: Ill) -> str:
    text = _worded(rng, sentence.pattern, _slots(finding))
    if finding.change and rng.random() < 0.4:
        change = _worded(rng, _any(rng, the_grammar().phrases[finding.change]), capital=False)
        text = f"{text[:-1]}, {change}."
    return text


def _impression(rng: np.random.Generator, told: list[tuple[Finding, Ill]]) -> str:
    """As sure of each finding as the findings section is."""
    phrases = the_grammar().phrases
    if not told:
        return _worded(rng, _any(rng, phrases["all clear"]))
    lines = []
    for finding, sentence in told:
        kinds = _kinds(finding) | set(sentence.labels) | {""}
        short = next(s for s in the_grammar().impression if s.finding == finding.name and s.kind in kinds)
        lines.append(_worded(rng, f"{'possible ' if sentence.hedged else ''}{short.pattern}", _slots(finding)))
    if rng.random() < 0.3:
        lines.append(_worded(rng, _any(rng, phrases["nothing else"])))
    return lines[0] if len(lines) == 1 else " ".join(f"{k}. {line}" for k, line in enumerate(lines, 1))


def _indication(rng: np.random.Generator, findings: tuple[Finding, ...], person: Person) -> str:
    indications = the_grammar().indications
    choices = indications[""]
    for finding in findings:
        if finding.name in indications and rng.random() < 0.5:
            choices = indications[finding.name]
            break
    slots = {"age": str(person.age), "person": "woman" if person.woman else "man"}
    return _worded(rng, _any(rng, choices), slots)


def _any(rng: np.random.Generator, choices: Sequence[T]) -> T:
    return choices[int(rng.integers(len(choices)))]


def _slots(finding: Finding) -> dict[str, str]:
    part = finding.where.removeprefix(f"{finding.side} ")
    return {
        "side": finding.side,
        "severe": finding.severity,
        "severely": f"{finding.severity}ly",
        "lobe": finding.where,
        "end": finding.where,
        "rib": finding.where,
        "part": part,
        "zone": "base" if part == "lower lobe" else part,
        "mm": f"{finding.millimetres:.0f}",
        "cm": f"{finding.millimetres / 10:.1f}".removesuffix(".0"),
        "leads": {"dual": "dual leads", "single": "a single lead"}.get(finding.kind, ""),
    }


_INNERMOST = re.compile(r"\{([^{}]*)\}")
_SLOT = re.compile(r"<(\w+)>")
_EIGHT = re.compile(r"\b([Aa]) (?=(?:8|11|18)\b)")


def _worded(
    rng: np.random.Generator, pattern: str, slots: dict[str, str] | None = None, *, capital: bool = True
) -> str:
    """A pattern as words: alternatives chosen, the innermost first, then slots filled."""
    while found := _INNERMOST.search(pattern):
        pattern = pattern[: found.start()] + _any(rng, found.group(1).split("|")) + pattern[found.end() :]
    text = _SLOT.sub(lambda slot: (slots or {})[slot.group(1)], pattern)
    text = _EIGHT.sub(r"\1n ", " ".join(text.split()))
    return text[:1].upper() + text[1:] if capital else text


def _tags(finding: Finding) -> Iterator[str]:
    """As the indexers of Open-i write them: heading, then place, side and degree."""
    kinds = _kinds(finding) | {""}
    for tag in the_grammar().tags:
        if tag.finding == finding.name and tag.kind in kinds:
            yield _SLOT.sub(lambda slot: _slots(finding)[slot[1]], tag.pattern).removesuffix("/")

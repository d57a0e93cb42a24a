"""A report from the findings: as a radiologist dictates it, healthy sentences in the majority.

What is drawn is told, with its side, size and severity; what is not drawn is denied or passed over. Which healthy
sentences are said, in which words and in which order, is chance.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from negatoscope.studies.phantom import sentences as said
from negatoscope.studies.phantom.findings import Finding
from negatoscope.studies.study import OBSERVATIONS


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
    labels: dict[str, int]
    tags: tuple[str, ...]

    @property
    def findings(self) -> str:
        return " ".join(sentence.text for sentence in self.sentences)

    @property
    def sections(self) -> dict[str, str]:
        told = {"indication": self.indication, "comparison": self.comparison, "findings": self.findings, "impression": self.impression}  # fmt: skip
        return {name: text for name, text in told.items() if text}


@dataclass(frozen=True, slots=True)
class Person:
    age: int
    woman: bool


def write_report(
    rng: np.random.Generator, findings: tuple[Finding, ...], person: Person, hedged: float, visit: int = 0
) -> Report:
    """The report of a study with these findings. `hedged`: share of hedgeable findings worded as uncertain."""
    labels: dict[str, int] = {}
    told, impressions = [], []
    for finding in findings:
        sentence = _choose_ill(rng, finding, hedged)
        text = _fill(_expand(rng, sentence.pattern), finding, person)
        if finding.change and rng.random() < 0.4:
            text = f"{text[:-1]}, {_expand(rng, _any(rng, said.CHANGES[finding.change]), capital=False)}."
        told.append((finding, text))
        impressions.append(_in_short(finding, sentence))
        _merge(labels, sentence.labels)
    healthy = _healthy(rng, findings)
    for sentence in healthy:
        _merge(labels, sentence.labels)
    # Devices first, then what is wrong and what is right in any order: every radiologist has a habit of his own.
    lines = [Sentence(_expand(rng, sentence.pattern)) for sentence in healthy]
    lines = _shuffled(rng, lines) if rng.random() < 0.5 else lines
    for finding, text in told:
        line = Sentence(_capital(text), finding.name)
        first = "Support Devices" in said.ILL[finding.name][0].labels
        lines.insert(0 if first and rng.random() < 0.6 else int(rng.integers(0, len(lines) + 1)), line)
    if not any(value for name, value in labels.items() if name != "Support Devices") and not any(
        finding.name in ("hyperinflation",) for finding in findings
    ):
        labels["No Finding"] = 1
    return Report(
        sentences=tuple(lines),
        impression=_impression(rng, findings, impressions, labels),
        indication=_indication(rng, findings, person),
        comparison="Prior chest radiograph." if visit else "None." if rng.random() < 0.15 else "",
        labels={name: labels[name] for name in OBSERVATIONS if name in labels},
        tags=tuple(tag for finding in findings for tag in _tags(finding)) or ("normal",),
    )


def _merge(labels: dict[str, int], more: dict[str, int]) -> None:
    """A positive mention outweighs an uncertain one, and that a denial, as in CheXpert."""
    rank = {1: 2, -1: 1, 0: 0}
    for name, value in more.items():
        if name not in labels or rank[value] > rank[labels[name]]:
            labels[name] = value


def _any(rng: np.random.Generator, choices: tuple[str, ...]) -> str:
    return choices[int(rng.integers(len(choices)))]


def _shuffled(rng: np.random.Generator, lines: list[Sentence]) -> list[Sentence]:
    return [lines[k] for k in rng.permutation(len(lines))]


_INNERMOST = re.compile(r"\{([^{}]*)\}")


def _expand(rng: np.random.Generator, pattern: str, capital: bool = True) -> str:
    """Chooses among alternatives, the innermost first."""
    while found := _INNERMOST.search(pattern):
        choices = found.group(1).split("|")
        pattern = pattern[: found.start()] + choices[int(rng.integers(len(choices)))] + pattern[found.end() :]
    text = " ".join(pattern.split())
    return _capital(text) if capital else text


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _healthy(rng: np.random.Generator, findings: tuple[Finding, ...]) -> list[said.Healthy]:
    """Sentences on what is healthy, until enough is covered; nothing is said twice."""
    spent: set[str] = set().union(*(said.FORBIDS[finding.name] for finding in findings))
    wanted = int(rng.integers(4, 7)) + (len(findings) > 1)
    chosen: list[said.Healthy] = []
    while len(chosen) < wanted:
        fitting = [sentence for sentence in said.HEALTHY if not sentence.topics & spent]
        if not fitting:
            break
        edges = np.cumsum([sentence.weight * len(sentence.topics) for sentence in fitting])
        sentence = fitting[
            int(np.searchsorted(edges, rng.random() * edges[-1], side="right").clip(0, len(fitting) - 1))
        ]
        chosen.append(sentence)
        spent |= sentence.topics
    order = ("heart", "mediastinum", "lungs", "airspace", "volume", "nodules", "vessels", "pleura", "pneumothorax")
    rank = {topic: k for k, topic in enumerate(order)}
    return sorted(chosen, key=lambda sentence: min(rank.get(topic, len(order)) for topic in sentence.topics))


def _choose_ill(rng: np.random.Generator, finding: Finding, hedged: float) -> said.Ill:
    kinds = _kinds(finding)
    fitting = [sentence for sentence in said.ILL[finding.name] if not sentence.kind or sentence.kind in kinds]
    unsure = [sentence for sentence in fitting if sentence.hedged]
    # Only what is slight is left in doubt.
    doubt = bool(unsure) and finding.amount < 0.55 and rng.random() < hedged / 0.72
    fitting = unsure if doubt else [sentence for sentence in fitting if not sentence.hedged]
    return fitting[int(rng.integers(len(fitting)))]


def _kinds(finding: Finding) -> set[str]:
    count = "two" if finding.side == "bilateral" else "one"
    kinds = {finding.kind, count, f"{finding.kind} {count}"}
    if finding.name == "effusion" and count == "one" and finding.severity == "small":
        kinds.add("little")
    return kinds - {""}


_SLOT = re.compile(r"<(\w+)>")


def _fill(pattern: str, finding: Finding, person: Person) -> str:
    words = {
        "side": finding.side,
        "severe": finding.severity,
        "severely": f"{finding.severity}ly".replace("largely", "markedly"),
        "lobe": finding.where,
        "mm": f"{finding.millimetres:.0f}",
        "cm": f"{finding.millimetres / 10:.1f}".removesuffix(".0"),
        "end": finding.where,
        "rib": finding.where,
        "leads": {"dual": "dual leads", "single": "a single lead"}.get(finding.kind, ""),
    }

    def word(slot: re.Match[str]) -> str:
        name = slot.group(1)
        value = words[name.lower()]
        return _capital(value) if name[0].isupper() else value

    text = _SLOT.sub(word, pattern)
    # "a 8 mm nodule" and "a upper lobe mass" are not English.
    text = re.sub(r"\b([Aa]) (?=(8|11|18)(\.\d)? )", r"\1n ", text)
    return _capital(" ".join(text.split()))


def _impression(
    rng: np.random.Generator, findings: tuple[Finding, ...], short: list[str], labels: dict[str, int]
) -> str:
    if not findings:
        return _expand(rng, _any(rng, said.ALL_CLEAR))
    lines = [_capital(line) for line in short]
    if rng.random() < 0.3:
        lines.append("No other acute abnormality.")
    return lines[0] if len(lines) == 1 else " ".join(f"{k}. {line}" for k, line in enumerate(lines, 1))


def _in_short(finding: Finding, sentence: said.Ill) -> str:
    """One line of the impression; as unsure as the findings section was."""
    side, severity, where = finding.side, finding.severity, finding.where
    line = {
        "cardiomegaly": f"{severity} cardiomegaly",
        "effusion": f"{severity} {side} pleural effusion{'s' if side == 'bilateral' else ''}",
        "atelectasis": f"{where} atelectasis"
        if finding.kind == "lobar"
        else f"{severity} {'bibasilar' if side == 'bilateral' else side + ' basilar'} atelectasis",
        "consolidation": f"{where} consolidation"
        if "Consolidation" in sentence.labels
        else f"{where} pneumonia"
        if sentence.labels.get("Pneumonia")
        else f"{where} airspace disease",
        "hyperinflation": f"{severity} hyperinflation",
        "nodule": f"{finding.millimetres:.0f} mm {where} nodule",
        "mass": f"{where} mass",
        "edema": f"{severity} pulmonary edema",
        "central line": f"{side} central venous catheter with tip in the {where}",
        "surgical clips": "postsurgical changes",
        "pacemaker": f"{side} pacemaker in place",
        "fracture": f"displaced {side} {where} fracture",
        "pneumothorax": f"{severity} {side} pneumothorax",
        "endotracheal tube": "endotracheal tube in expected position",
        "nasogastric tube": "enteric tube in the stomach",
    }[finding.name]
    return f"{'possible ' if sentence.hedged else ''}{line}."


def _indication(rng: np.random.Generator, findings: tuple[Finding, ...], person: Person) -> str:
    choices = said.INDICATIONS
    for finding in findings:
        if finding.name in said.INDICATIONS_OF and rng.random() < 0.5:
            choices = said.INDICATIONS_OF[finding.name]
            break
    text = _expand(rng, _any(rng, choices))
    return text.replace("<Age>", str(person.age)).replace("<man>", "woman" if person.woman else "man")


def _tags(finding: Finding) -> Iterable[str]:
    """As indexers of Open-i write them: heading, then place, side and degree."""
    side, severity = finding.side, finding.severity
    lobe = finding.where.removeprefix("right ").removeprefix("left ")
    name = finding.name
    if name == "consolidation":
        yield f"Consolidation/lung/{lobe}/{side}"
        yield f"Opacity/lung/{'base' if 'lower' in lobe else lobe}/{side}"
    elif name in ("nodule", "mass"):
        yield f"{_capital(name)}/lung/{lobe}/{side}"
    elif name == "atelectasis":
        yield f"Pulmonary Atelectasis/{lobe}/{side}/{severity}"
        if finding.kind == "linear":
            yield f"Opacity/lung/base/{side}/streaky"
    else:
        yield {
            "cardiomegaly": f"Cardiomegaly/{severity}",
            "effusion": f"Pleural Effusion/{side}/{severity}",
            "hyperinflation": f"Lung/hyperdistention/{severity}",
            "edema": f"Pulmonary Edema/{severity}",
            "central line": f"Catheters, Indwelling/{side}",
            "surgical clips": f"Surgical Instruments/{'abdomen' if 'quadrant' in finding.where else finding.where}{'/' if side else ''}{side}",
            "pacemaker": f"Implanted Medical Device/{side}",
            "fracture": f"Fractures, Bone/{'ribs' if finding.kind == 'rib' else 'clavicle'}/{side}",
            "pneumothorax": f"Pneumothorax/{side}/{severity}",
            "endotracheal tube": "Tube, Inserted/trachea",
            "nasogastric tube": "Tube, Inserted/stomach",
        }[name]

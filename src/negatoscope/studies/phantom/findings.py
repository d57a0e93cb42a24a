"""Which findings a study has: names, sides, sizes, severities and places, drawn by their frequencies."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from negatoscope.studies.phantom.anatomy import Place
from negatoscope.studies.phantom.settings import PhantomSettings

# Middle of each lobe as fractions of half width, half depth and height, told for its own side (x outwards), and how far
# a finding may lie from there. Both views use the same point.
LOBES: dict[str, tuple[str, Place]] = {
    "right upper lobe": ("right", (0.5, 0.1, 0.25)),
    "right middle lobe": ("right", (0.42, 0.5, 0.62)),
    "right lower lobe": ("right", (0.55, -0.5, 0.72)),
    "left upper lobe": ("left", (0.5, 0.15, 0.25)),
    "lingula": ("left", (0.6, 0.5, 0.62)),
    "left lower lobe": ("left", (0.5, -0.5, 0.74)),
}
# What tends to come with what: factors on the frequency of a further finding.
_COMPANIONS: dict[str, dict[str, float]] = {
    "edema": {"cardiomegaly": 5, "effusion": 4, "central line": 2},
    "cardiomegaly": {"edema": 4, "effusion": 2, "pacemaker": 3, "surgical clips": 2},
    "endotracheal tube": {
        "nasogastric tube": 25,
        "central line": 6,
        "consolidation": 2,
        "effusion": 2,
        "pneumothorax": 2,
    },
    "nasogastric tube": {"endotracheal tube": 12, "central line": 4},
    "fracture": {"pneumothorax": 6},
    "pacemaker": {"cardiomegaly": 2},
    "effusion": {"atelectasis": 2.5, "edema": 2},
    "pneumothorax": {"fracture": 3, "hyperinflation": 1.5},
}
_EXCLUDED = {
    frozenset(("hyperinflation", "edema")),
    frozenset(("hyperinflation", "cardiomegaly")),
    frozenset(("nodule", "mass")),
}
CHRONIC = ("cardiomegaly", "hyperinflation", "nodule", "mass", "pacemaker", "surgical clips")
ALWAYS_BEDSIDE = ("endotracheal tube", "nasogastric tube")


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding as drawn, and as the report will tell it."""

    name: str
    side: str = ""
    """left, right, bilateral, or empty where a side means nothing."""
    severity: str = ""
    """mild, moderate, severe; of effusions and pneumothoraces small, moderate, large."""
    amount: float = 0.5
    """Where between the least and the most the drawing stands, 0 to 1; severity is its name."""
    millimetres: float = 0.0
    where: str = ""
    """A lobe, a vessel's end, a rib: as the report names it."""
    kind: str = ""
    at: Place = (0.0, 0.0, 0.0)
    """Its middle as fractions of half width, half depth and height (see `anatomy`)."""
    shape: int = 0
    """Seed of its irregularities."""
    change: str = ""
    """Against the visit before: new, unchanged, larger, smaller; empty on a first visit."""

    @property
    def sides(self) -> tuple[int, ...]:
        """-1 for the patient's right, 1 for the left."""
        return {"left": (1,), "right": (-1,)}.get(self.side, (-1, 1))


def draw_findings(rng: np.random.Generator, settings: PhantomSettings) -> tuple[Finding, ...]:
    """The findings of an abnormal study: one by frequency, then perhaps more, of which some keep company."""
    weights = {name: weight for name, weight in settings.weights.items() if weight > 0}
    names: list[str] = []
    for chance in (1.0, *settings.more_findings):
        if not weights or rng.random() >= chance:
            break
        order = list(weights)
        share = np.array([weights[name] for name in order])
        name = order[
            int(np.searchsorted(np.cumsum(share / share.sum()), rng.random(), side="right").clip(0, len(order) - 1))
        ]
        names.append(name)
        del weights[name]
        for other, factor in _COMPANIONS.get(name, {}).items():
            if other in weights:
                weights[other] *= factor
        for other in [other for other in weights if frozenset((name, other)) in _EXCLUDED]:
            del weights[other]
    return tuple(draw_finding(rng, name) for name in names)


def next_visit(rng: np.random.Generator, settings: PhantomSettings, before: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """What a later study of the same patient shows: the chronic stays, the acute changes, heals, or something comes."""
    now = []
    for finding in before:
        if finding.name in CHRONIC:
            now.append(replace(finding, change="unchanged"))
        elif rng.random() < 0.55:
            changed = float(np.clip(finding.amount + rng.normal(0, 0.3), 0.02, 0.98))
            change = (
                "unchanged"
                if abs(changed - finding.amount) < 0.12
                else "larger"
                if changed > finding.amount
                else "smaller"
            )
            if finding.name in _GRADED:
                amount = finding.amount if change == "unchanged" else changed
                now.append(replace(finding, amount=amount, severity=_grade(finding.name, amount), change=change))
            else:
                now.append(replace(finding, change="unchanged"))
    if not now or rng.random() < 0.2:
        names = {finding.name for finding in now}
        for fresh in draw_findings(rng, settings):
            fits = not any(frozenset((fresh.name, name)) in _EXCLUDED for name in names)
            if fresh.name not in names and fits:
                now.append(replace(fresh, change="new"))
                names.add(fresh.name)
    return tuple(now) or before


_MILD = ("mild", "moderate", "severe")
_SMALL = ("small", "moderate", "large")
_GRADED = {
    "cardiomegaly": _MILD,
    "edema": _MILD,
    "hyperinflation": _MILD,
    "effusion": _SMALL,
    "pneumothorax": _SMALL,
    "atelectasis": _MILD,
    "consolidation": _MILD,
}


def _grade(name: str, amount: float) -> str:
    return _GRADED[name][0 if amount < 0.45 else 1 if amount < 0.78 else 2]


def _pick(rng: np.random.Generator, **shares: float) -> str:
    names = list(shares)
    edges = np.cumsum(list(shares.values()))
    return names[int(np.searchsorted(edges, rng.random() * edges[-1], side="right").clip(0, len(names) - 1))].replace(
        "_", " "
    )


def _in_lobe(rng: np.random.Generator, lobe: str, spread: float) -> tuple[str, Place]:
    side, (x, y, z) = LOBES[lobe]
    sign = -1 if side == "right" else 1
    dx, dy, dz = (float(shift) for shift in rng.normal(0, spread, 3).clip(-2 * spread, 2 * spread))
    return side, (sign * (x + dx), y + dy, z + 0.7 * dz)


def draw_finding(rng: np.random.Generator, name: str) -> Finding:
    """One finding of this name, at random in everything else."""
    amount = float(rng.beta(1.3, 1.9))
    finding = Finding(name, amount=amount, shape=int(rng.integers(2**31)))
    if name in _GRADED:
        finding = replace(finding, severity=_grade(name, amount))
    return _DETAILS[name](rng, finding)


def _plain(rng: np.random.Generator, finding: Finding) -> Finding:
    return replace(finding, side="bilateral" if finding.name in ("edema", "hyperinflation") else "")


def _effusion(rng: np.random.Generator, finding: Finding) -> Finding:
    side = _pick(rng, left=0.37, right=0.35, bilateral=0.28)
    sign = {"left": 1, "right": -1}.get(side, 0)
    return replace(finding, side=side, where="pleural space", at=(0.85 * sign, -0.6, 0.93))


def _pneumothorax(rng: np.random.Generator, finding: Finding) -> Finding:
    side = _pick(rng, left=0.48, right=0.52)
    return replace(finding, side=side, where="apex", at=(0.5 if side == "left" else -0.5, 0.0, 0.06))


def _nodule(rng: np.random.Generator, finding: Finding) -> Finding:
    lobe = _pick(
        rng,
        right_upper_lobe=3,
        right_middle_lobe=1,
        right_lower_lobe=2.4,
        left_upper_lobe=2.4,
        lingula=0.8,
        left_lower_lobe=2,
    )
    side, at = _in_lobe(rng, lobe, 0.1)
    x, y, z = at
    at = (x, y, min(z, 0.7))  # clear of the dome
    size = 7 + 20 * finding.amount if finding.name == "nodule" else 32 + 34 * finding.amount
    return replace(finding, side=side, where=lobe, at=at, millimetres=round(size))


def _consolidation(rng: np.random.Generator, finding: Finding) -> Finding:
    lobe = _pick(
        rng,
        right_upper_lobe=1.3,
        right_middle_lobe=1.6,
        right_lower_lobe=2.6,
        left_upper_lobe=1,
        lingula=1,
        left_lower_lobe=2.6,
    )
    side, at = _in_lobe(rng, lobe, 0.05)
    return replace(finding, side=side, where=lobe, at=at, millimetres=round(26 + 34 * finding.amount))


def _atelectasis(rng: np.random.Generator, finding: Finding) -> Finding:
    if rng.random() < 0.22:
        lobe = _pick(rng, right_upper_lobe=1, left_lower_lobe=1.4)
        side, at = _in_lobe(rng, lobe, 0.0)
        return replace(
            finding,
            kind="lobar",
            side=side,
            where=lobe,
            at=at,
            severity="moderate" if finding.amount < 0.6 else "severe",
        )
    side = _pick(rng, left=0.36, right=0.34, bilateral=0.3)
    sign = {"left": 1, "right": -1}.get(side, 0)
    severity = finding.severity if finding.severity != "severe" else "moderate"
    return replace(
        finding,
        kind="linear",
        side=side,
        where="base",
        severity=severity,
        at=(0.55 * sign, float(rng.normal(-0.15, 0.2)), float(rng.normal(0.73, 0.02))),
    )


def _fracture(rng: np.random.Generator, finding: Finding) -> Finding:
    side = _pick(rng, left=0.5, right=0.5)
    sign = 1 if side == "left" else -1
    if rng.random() < 0.35:
        return replace(
            finding, side=side, kind="clavicle", where="clavicle", at=(sign * float(rng.uniform(0.55, 0.75)), 0.7, 0.08)
        )
    rib = int(rng.integers(4, 8))
    x = float(rng.uniform(0.66, 0.86))
    y = -0.95 * float(np.sqrt(1 - x * x))
    ordinal = {4: "fourth", 5: "fifth", 6: "sixth", 7: "seventh"}[rib]
    return replace(finding, side=side, kind="rib", where=f"{ordinal} rib", at=(sign * x, y, float(rib)))


def _central_line(rng: np.random.Generator, finding: Finding) -> Finding:
    side = _pick(rng, right=0.68, left=0.32)
    kind = _pick(rng, jugular=0.6, port=0.22, PICC=0.18)
    end = _pick(rng, SVC=0.55, cavoatrial_junction=0.3, right_atrium=0.15)
    depth = {"SVC": 0.36, "cavoatrial junction": 0.47, "right atrium": 0.58}[end] + float(rng.normal(0, 0.01))
    return replace(finding, side=side, kind=kind, where=end, at=(-0.2, 0.14, depth))


def _pacemaker(rng: np.random.Generator, finding: Finding) -> Finding:
    side = _pick(rng, left=0.85, right=0.15)
    kind = _pick(rng, single=0.35, dual=0.65)
    sign = 1 if side == "left" else -1
    return replace(
        finding,
        side=side,
        kind=kind,
        where="chest wall",
        at=(sign * float(rng.uniform(0.66, 0.8)), 0.9, float(rng.uniform(0.16, 0.24))),
    )


def _clips(rng: np.random.Generator, finding: Finding) -> Finding:
    kind = _pick(rng, right_upper_quadrant=0.4, sternotomy=0.38, axilla=0.22)
    side = (
        {"right upper quadrant": "right", "sternotomy": ""}.get(kind)
        if kind != "axilla"
        else _pick(rng, left=0.5, right=0.5)
    )
    sign = 1 if side == "left" else -1
    at = {
        "right upper quadrant": (-0.32, 0.2, 0.98),
        "sternotomy": (0.0, 0.9, 0.45),
        "axilla": (1.12 * sign, 0.1, 0.24),
    }[kind]
    where = {"right upper quadrant": "right upper quadrant", "sternotomy": "mediastinum", "axilla": "axilla"}[kind]
    return replace(finding, side=side or "", kind=kind, where=where, at=at)


def _tracheal(rng: np.random.Generator, finding: Finding) -> Finding:
    above = float(rng.uniform(2, 6))  # centimetres above the carina
    return replace(finding, where="trachea", millimetres=round(above * 10), at=(-0.01, -0.05, 0.33))


def _gastric(rng: np.random.Generator, finding: Finding) -> Finding:
    return replace(finding, where="stomach", at=(0.48, 0.1, 0.96))


_DETAILS = {
    "cardiomegaly": _plain,
    "edema": _plain,
    "hyperinflation": _plain,
    "effusion": _effusion,
    "pneumothorax": _pneumothorax,
    "nodule": _nodule,
    "mass": _nodule,
    "consolidation": _consolidation,
    "atelectasis": _atelectasis,
    "fracture": _fracture,
    "central line": _central_line,
    "pacemaker": _pacemaker,
    "surgical clips": _clips,
    "endotracheal tube": _tracheal,
    "nasogastric tube": _gastric,
}

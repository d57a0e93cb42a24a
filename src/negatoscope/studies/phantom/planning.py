"""What study number `i` shows and says, before a line of it is drawn.

A study depends on the seed, its number and the settings, on nothing else: not on the studies before it, nor on how many
processes draw. Patients with several studies lie within one block of numbers, and a block is shared out afresh from the
seed whenever one of its studies is asked for.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from negatoscope.errors import WrongUse
from negatoscope.studies.phantom.anatomy import Anatomy, Pose, draw_anatomy, draw_pose
from negatoscope.studies.phantom.findings import ALWAYS_BEDSIDE, Finding, draw_findings, next_visit
from negatoscope.studies.phantom.grammar import Person, Report, write_report
from negatoscope.studies.phantom.settings import PhantomSettings

_BLOCK = 24

# The first number of every stream of chance, so that no two share one.
_SHARING, _PATIENT, _VISIT, _TAKING, _TELLING = range(5)


@dataclass(frozen=True, slots=True)
class Plan:
    """All of a study but its pixels."""

    id: str
    patient: str
    visit: int
    """0 for the first study of a patient."""
    anatomy: Anatomy
    findings: tuple[Finding, ...]
    poses: dict[str, Pose]
    """By view; a study whose lateral is missing has no entry for it."""
    report: Report

    @property
    def truth(self) -> dict[str, Any]:
        """What was drawn, as plain values: findings with side, size and place, and how each view was taken."""
        return {
            "findings": [asdict(finding) for finding in self.findings],
            "poses": {view: asdict(pose) for view, pose in self.poses.items()},
            "visit": self.visit,
            "age": self.anatomy.age,
            "woman": self.anatomy.woman,
        }


def plan_study(seed: int, index: int, settings: PhantomSettings) -> Plan:
    """Patient, findings, poses and report of study `index`. Raises `WrongUse` for a number below 0."""
    if index < 0:
        raise WrongUse(f"no phantom study {index}", where="index", remedy="numbers start at 0")
    block, place = divmod(index, _BLOCK)
    patient, visit = _patients_of_block(seed, block, settings.returning)[place]
    person = np.random.default_rng([_PATIENT, seed, block, patient])
    anatomy = draw_anatomy(person)
    findings = _findings(person, seed, (block, patient), visit, settings)
    rng = np.random.default_rng([_TAKING, seed, index])
    present = {finding.name for finding in findings}
    bedside = bool(present & set(ALWAYS_BEDSIDE)) or rng.random() < (0.22 if findings else 0.06)
    breath = float(rng.normal(1.0 if not bedside else 0.93, 0.025))
    poses = {view: draw_pose(rng, settings, view, bedside, breath) for view in ("frontal", "lateral")}
    if rng.random() < settings.missing_lateral:
        del poses["lateral"]
    report = write_report(
        np.random.default_rng([_TELLING, seed, index]),
        findings,
        Person(anatomy.age, anatomy.woman),
        settings.hedged,
        visit,
    )
    return Plan(
        f"phantom-{index:06d}", f"phantom-patient-{block:05d}-{patient:02d}", visit, anatomy, findings, poses, report
    )


@lru_cache(maxsize=16)
def _patients_of_block(seed: int, block: int, returning: float) -> tuple[tuple[int, int], ...]:
    """(patient, visit) of each of the block's studies; visits of a patient in rising order."""
    rng = np.random.default_rng([_SHARING, seed, block])
    owners: list[int] = []
    patient = 0
    while len(owners) < _BLOCK:
        studies = 1 if rng.random() >= returning else 2 if rng.random() < 0.7 else 3
        owners += [patient] * min(studies, _BLOCK - len(owners))
        patient += 1
    seen: dict[int, int] = {}
    shared = []
    for owner in (owners[k] for k in rng.permutation(_BLOCK)):
        shared.append((owner, seen.get(owner, 0)))
        seen[owner] = seen.get(owner, 0) + 1
    return tuple(shared)


def _findings(
    person: np.random.Generator, seed: int, patient: tuple[int, int], visit: int, settings: PhantomSettings
) -> tuple[Finding, ...]:
    """A patient is healthy at all visits or ill at all, so the share of normal studies is that of healthy patients."""
    if person.random() < settings.normal_share:
        return ()
    findings = draw_findings(person, settings)
    for number in range(1, visit + 1):
        findings = next_visit(np.random.default_rng([_VISIT, seed, *patient, number]), settings, findings)
    return findings

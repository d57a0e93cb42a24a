"""Phantoms whose reports say what was drawn and nothing else.

Four in five sentences of a phantom's report are healthy ones. They make nine tenths of what a reporter has to learn and
tell nothing of the questions asked here, so they are left out: the report is the sentences that tell a finding, and of
a normal study one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from negatoscope.studies.phantom.planning import Plan, plan_study
from negatoscope.studies.phantom.source import Phantom, drawing_of, study_of
from negatoscope.studies.sources import Damaged, Found

NORMAL = "Normal chest."
MENTIONED = {
    "cardiomegaly": r"cardiomegaly|cardiac enlargement|cardiac silhouette|heart",
    "effusion": r"effusions?",
    "atelectasis": r"atelectasis|collapse",
    "consolidation": r"consolidation|pneumonia|airspace",
    "hyperinflation": r"hyperinflat(?:ed|ion)",
    "nodule": r"nodule",
    "edema": r"edema",
    "central line": r"central|jugular|port|picc",
    "surgical clips": r"clips",
    "pacemaker": r"pacemaker",
    "fracture": r"fracture",
    "pneumothorax": r"pneumothorax",
    "endotracheal tube": r"endotracheal",
    "nasogastric tube": r"nasogastric|enteric",
    "mass": r"mass",
}
"""What of a sentence tells which finding, where nothing is ever denied."""
_MENTIONED = {name: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for name, words in MENTIONED.items()}


def short_report(plan: Plan) -> str:
    return " ".join(sentence.text for sentence in plan.report.sentences if sentence.finding) or NORMAL


def findings_in(report: str) -> set[str]:
    """What a short report, or one written after its model, tells of."""
    return {name for name, words in _MENTIONED.items() if words.search(report)}


class ShortPhantom(Phantom):
    """The same pictures, masks and labels."""

    report_sections = ("findings, those that are ill",)

    def examinations(self) -> Iterator[Found | Damaged]:
        settings = self.settings
        for index in range(settings.studies):
            plan = plan_study(settings.seed, index, settings)
            study = replace(study_of(plan, settings), report=short_report(plan))
            where = f"phantom seed {settings.seed}, study {index}"
            yield Found(study, draw=partial(drawing_of, plan, settings), where=where)

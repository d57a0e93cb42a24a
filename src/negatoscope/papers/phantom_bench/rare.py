"""Do WCL and ITHN raise the recall of rare findings? What is written of held-out studies against what was drawn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from negatoscope.papers.phantom_bench.ready import Ready, place_of
from negatoscope.papers.phantom_bench.short import findings_in
from negatoscope.studies.phantom.planning import Plan
from negatoscope.studies.phantom.settings import FINDINGS
from negatoscope.training.checkpoint import load_reporter
from negatoscope.training.writing import save_jsonl, write_reports

Array = NDArray[np.float64]
REPORTS = "reports-held-out.jsonl"


def reports_of(ready: Ready, run: Path) -> list[str]:
    """Of each held-out study, in the store's order; written once and kept beside the run."""
    path = run / REPORTS
    if not path.exists():
        reporter, loaded = load_reporter(run)
        written = write_reports(reporter, ready.batches(loaded.recipe), loaded.vocabulary, loaded.recipe.decode)
        save_jsonl(path, sorted(written, key=lambda row: place_of(str(row["id"]))))
    return [json.loads(line)["report"] for line in path.read_text(encoding="utf-8").splitlines()]


def told_in(reports: Sequence[str]) -> Array:
    """(n, F): 1 where a report tells of the finding, whatever side and size it says."""
    found = [findings_in(report) for report in reports]
    return np.array([[float(name in those) for name in FINDINGS] for those in found])


def drawn_in(plans: Sequence[Plan]) -> Array:
    """(n, F): 1 where the finding was drawn."""
    found = [{finding.name for finding in plan.findings} for plan in plans]
    return np.array([[float(name in those) for name in FINDINGS] for those in found])


def split_by_frequency(frequency: Array, measured: Array, rare: float) -> tuple[list[int], list[int]]:
    """Which findings are rare and which are not, of those that a training study has and a held-out study too."""
    known = [place for place in range(len(frequency)) if frequency[place] > 0 and measured[:, place].any()]
    return [one for one in known if frequency[one] < rare], [one for one in known if frequency[one] >= rare]

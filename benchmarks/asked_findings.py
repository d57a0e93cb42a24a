"""What a drafter asks for, before a word is written: F1 of the findings asked for, cross-fitted.

    python benchmarks/asked_findings.py data/iu-xray runs/drafter

RUN was trained with `--set folds=5`: its parts hold the evidence of each training study by a recogniser that did not
learn from it. Calibration and limits are fitted on four fifths of that and judged on the last, in six ways to split.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from safetensors.numpy import load_file

from negatoscope.drafting.author import NO_FINDING, best_limits
from negatoscope.drafting.calibration import fit
from negatoscope.studies.store import Store
from negatoscope.studies.study import OBSERVATIONS

SPLITS, PARTS = 6, 5


def main(store: Path, run: Path) -> None:
    studies = [study for study in Store.open(store).studies("train") if study.pictures and study.report.strip()]
    truth = np.array([[study.labels.get(name) == 1 for name in OBSERVATIONS] for study in studies])
    evidence = np.full(truth.shape, np.nan)
    for path in sorted(run.glob("part-*[0-9].safetensors")):
        part = load_file(path)
        evidence[part["place"]] = part["evidence"]
    assert np.isfinite(evidence).all(), f"{run} has no whole set of parts"
    table = Table("common", "macro-F1, 14 observations", "micro-F1, 13 findings", "findings asked for in a study")
    for common in (0.0, 0.25, 0.5, 0.75, 1.0, 2.0):
        found = np.array([figures(evidence, truth, common, seed) for seed in range(SPLITS)]).mean(0)
        table.add_row(f"{common:g}", *(f"{value:.3f}" for value in found))
    Console().print(table)


def figures(evidence: np.ndarray, truth: np.ndarray, common: float, seed: int) -> tuple[float, float, float]:
    fold = np.random.default_rng(seed).permutation(len(truth)) % PARTS
    asked = np.zeros(truth.shape, bool)
    for one in range(PARTS):
        known, new = fold != one, fold == one
        calibration = fit(evidence[known], truth[known], OBSERVATIONS)
        limits = best_limits(calibration.probability(evidence[known])[0], common)
        asked[new] = calibration.probability(evidence[new])[0] > limits
    findings = [k for k, name in enumerate(OBSERVATIONS) if name not in ("No Finding", "Support Devices")]
    asked[:, NO_FINDING] = ~asked[:, findings].any(1)
    right, said, there = (asked & truth).sum(0), asked.sum(0), truth.sum(0)
    macro = float(np.mean(2 * right / np.maximum(said + there, 1)))
    micro = 2 * right[1:].sum() / (said[1:].sum() + there[1:].sum())
    return macro, float(micro), float(asked[:, 1:].sum() / len(asked))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

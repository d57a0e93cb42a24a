"""What a trained CVSE tells of a study: sentences, how well each fits, where it looked, who else said so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from negatoscope.errors import WrongUse
from negatoscope.models.cvse import Regions
from negatoscope.retrieval.retriever import Retriever, seen_by
from negatoscope.settings import Settings
from negatoscope.studies.study import Study
from negatoscope.vision.features import FeatureCache
from negatoscope.watch import Watch, quiet
from negatoscope.whole_files import whole_file

SLOTS = ("frontal", "lateral")


class Telling(Settings):
    """How many groups are told for a study."""

    top: int | None = Field(default=None, ge=1)
    """As many of the best; None: as many as the recipe says, which is 3 in the paper."""
    calibrated: bool = False
    """In place of a fixed number, every group whose probability reaches the calibrated threshold."""
    fewest: int = Field(default=0, ge=0)
    """With `calibrated`: at least so many, the likeliest."""
    most: int = Field(default=8, ge=1)
    """With `calibrated`: at most so many."""
    studies: int = Field(default=5, ge=0)
    """Training studies that said the same, named with each finding."""


@dataclass(frozen=True)
class Finding:
    sentence: str
    score: float
    """d of equation 3: at most 0, higher fits better."""
    probability: float | None
    """Where the model was calibrated."""
    group: int
    side: str
    severity: str
    labels: tuple[str, ...]
    attention: dict[str, list[list[float]]]
    """View -> its map, rows from the top; each adds up to 1. A view that the study lacks is not named."""
    said_by: int
    """Training studies that said the same, and"""
    studies: tuple[str, ...]
    """the first few of them."""

    def as_json(self) -> dict[str, Any]:
        return {**self.__dict__, "labels": list(self.labels), "studies": list(self.studies)}


@dataclass(frozen=True)
class StudyFindings:
    id: str
    findings: tuple[Finding, ...]

    @property
    def report(self) -> str:
        return " ".join(finding.sentence for finding in self.findings)


def find(
    retriever: Retriever,
    studies: Sequence[Study],
    cache: FeatureCache,
    telling: Telling | None = None,
    watch: Watch = quiet,
) -> Iterator[StudyFindings]:
    """The findings of each study, best first. Raises WrongUse for a cache of other features, BadInput for a study that
    the cache does not hold."""
    telling = telling or Telling()
    retriever.must_fit(cache)
    if telling.calibrated and retriever.calibration is None:
        raise WrongUse("this model has no calibrated threshold", remedy="train with a larger train.held_out, or --top")
    v = retriever.sentences()  # (G, d)
    number = iter(studies)
    for regions in seen_by(retriever, studies, cache, watch):
        with torch.inference_mode():
            scores = retriever.model.scores(regions, v)  # (B, G)
        chosen, probability = _chosen(retriever, scores.numpy(), telling)
        for row, groups in enumerate(chosen):
            maps = _maps(retriever, regions, row, v[groups])  # (k, V, N)
            findings = tuple(
                _finding(retriever, group, float(scores[row, group]), probability, row, maps[place], telling)
                for place, group in enumerate(groups)
            )
            yield StudyFindings(next(number).id, findings)


def write_findings(found: Iterator[StudyFindings], out: Path | str) -> tuple[int, int]:
    """JSONL that `negatoscope evaluate` reads: `id`, `report`, `findings`; how many studies and findings."""
    studies = findings = 0
    with whole_file(out) as part, part.open("w", encoding="utf-8") as file:
        for one in found:
            row = {"id": one.id, "report": one.report, "findings": [finding.as_json() for finding in one.findings]}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            studies, findings = studies + 1, findings + len(one.findings)
    return studies, findings


def _chosen(
    retriever: Retriever, scores: NDArray[np.float32], telling: Telling
) -> tuple[list[list[int]], NDArray[np.float64] | None]:
    """The groups of each study, best first; (B, G) probabilities where there are any."""
    calibration = retriever.calibration
    probability = None if calibration is None else calibration.probability(scores)
    if not telling.calibrated or probability is None or calibration is None:
        top = min(telling.top or retriever.recipe.top, scores.shape[1])
        return np.argsort(-scores, axis=1, kind="stable")[:, :top].tolist(), probability
    chosen = []
    for row in probability:
        order = np.argsort(-row, kind="stable")
        count = int((row >= calibration.least).sum())
        chosen.append(order[: max(min(count, telling.most), telling.fewest)].tolist())
    return chosen, probability


def _finding(
    retriever: Retriever,
    group: int,
    score: float,
    probability: NDArray[np.float64] | None,
    row: int,
    maps: dict[str, list[list[float]]],
    telling: Telling,
) -> Finding:
    kind = retriever.kinds[group]
    return Finding(
        kind.sentence,
        round(score, 5),
        None if probability is None else round(float(probability[row, group]), 5),
        group,
        kind.side,
        kind.severity,
        kind.labels,
        maps,
        len(kind.studies),
        kind.studies[: telling.studies],
    )


def _maps(retriever: Retriever, regions: Regions, row: int, v: Tensor) -> list[dict[str, list[list[float]]]]:
    """For each of k groups the map over each view that the study has."""
    alone = Regions(regions.places[row : row + 1], regions.present[row : row + 1])
    with torch.inference_mode():
        maps = retriever.model.maps(alone, v)[0].double().numpy().round(5)  # (k, V, N)
    there = [slot for slot in range(maps.shape[1]) if bool(alone.present[0, slot])]
    high = isqrt(maps.shape[2])
    shape = (high, high) if high * high == maps.shape[2] else (1, maps.shape[2])
    return [{SLOTS[slot]: one[slot].reshape(shape).tolist() for slot in there} for one in maps]

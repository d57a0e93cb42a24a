"""Phantom studies: one by its number, or all of them in order on several processes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from negatoscope.studies.phantom.drawing import draw_picture
from negatoscope.studies.phantom.grammar import Sentence
from negatoscope.studies.phantom.planning import Plan, plan_study
from negatoscope.studies.phantom.settings import PhantomSettings
from negatoscope.studies.phantom.vessels import draw_tree
from negatoscope.watch import Watch, quiet


@dataclass(frozen=True, slots=True)
class DrawnStudy:
    """A whole phantom study in memory."""

    id: str
    patient: str
    views: dict[str, NDArray[np.uint8]]
    """frontal, and as a rule lateral: (size, size) grey values."""
    masks: dict[str, dict[str, NDArray[np.bool_]]]
    """Finding -> view -> (size, size); all False where a finding cannot be seen in that view."""
    report: str
    """The findings section."""
    sections: dict[str, str]
    sentences: tuple[Sentence, ...]
    labels: dict[str, int]
    tags: tuple[str, ...]
    plan: Plan

    @property
    def truth(self) -> dict[str, Any]:
        """What was drawn, as plain values: findings with side, size and place, and how each view was taken."""
        return self.plan.truth


def draw_study(seed: int, index: int, settings: PhantomSettings | None = None) -> DrawnStudy:
    """Study `index`. The same seed, index and settings give the same bytes. `seed` wins over `settings.seed`."""
    settings = settings or PhantomSettings()
    return draw_plan(plan_study(seed, index, settings), settings)


def draw_plan(plan: Plan, settings: PhantomSettings) -> DrawnStudy:
    """The pictures and masks of a study that is planned."""
    tree = draw_tree(plan.anatomy.vessels)
    views, masks = {}, {finding.name: {} for finding in plan.findings}
    for name, pose in plan.poses.items():
        views[name], of_view = draw_picture(name, plan.anatomy, pose, plan.findings, tree, settings.size)
        for finding, mask in of_view.items():
            masks[finding][name] = mask
    report = plan.report
    return DrawnStudy(
        id=plan.id,
        patient=plan.patient,
        views=views,
        masks=masks,
        report=report.findings,
        sections=report.sections,
        sentences=report.sentences,
        labels=report.labels,
        tags=report.tags,
        plan=plan,
    )


def phantom_studies(settings: PhantomSettings, processes: int = 2, watch: Watch = quiet) -> Iterator[DrawnStudy]:
    """All studies in order. Memory holds a few batches, however many studies there are."""
    if processes <= 1:
        numbers = watch(range(settings.studies), "drawing studies", settings.studies)
        yield from (draw_study(settings.seed, index, settings) for index in numbers)
        return
    batches = [range(start, min(start + 8, settings.studies)) for start in range(0, settings.studies, 8)]
    yield from watch(_drawn_by_many(settings, batches, processes), "drawing studies", settings.studies)


def _drawn_by_many(settings: PhantomSettings, batches: list[range], processes: int) -> Iterator[DrawnStudy]:
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        waiting: deque[Any] = deque()
        try:
            for batch in batches:
                waiting.append(pool.submit(_draw_batch, settings, batch))
                if len(waiting) > 2 * processes:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _draw_batch(settings: PhantomSettings, batch: range) -> list[DrawnStudy]:
    return [draw_study(settings.seed, index, settings) for index in batch]

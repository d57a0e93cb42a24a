"""Phantom studies as a source of the store: `negatoscope data import phantom --into STORE --set studies=2000`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from negatoscope.studies.phantom.planning import Plan, plan_study
from negatoscope.studies.phantom.settings import PhantomSettings
from negatoscope.studies.phantom.studying import draw_plan
from negatoscope.studies.sources import Damaged, Drawing, Found, Source
from negatoscope.studies.splits import seeded_split
from negatoscope.studies.study import Picture, Study, View

SHARES = (0.8, 0.1, 0.1)
_VIEWS: tuple[View, ...] = ("frontal", "lateral")


class Phantom(Source):
    """Drawn while they are imported: nothing is read, so it takes no path."""

    name: ClassVar[str] = "phantom"
    Settings: ClassVar = PhantomSettings
    needs_path: ClassVar[bool] = False

    def __len__(self) -> int:
        return self.settings.studies

    def examinations(self) -> Iterator[Found | Damaged]:
        settings: PhantomSettings = self.settings
        for index in range(settings.studies):
            plan = plan_study(settings.seed, index, settings)
            where = f"phantom seed {settings.seed}, study {index}"
            yield Found(study_of(plan, settings), draw=partial(drawing_of, plan, settings), where=where)


def study_of(plan: Plan, settings: PhantomSettings) -> Study:
    """The study without its pixels; split by patient, 80 : 10 : 10."""
    pictures = (
        Picture(f"{plan.id}/{view}.png", view, plan.poses[view].projection, settings.size, settings.size)
        for view in _VIEWS
        if view in plan.poses
    )
    return Study(
        id=plan.id,
        pictures=tuple(pictures),
        report=plan.report.findings,
        split=seeded_split(plan.patient, settings.seed, SHARES),
        patient=plan.patient,
        sections=MappingProxyType(plan.report.sections),
        labels=MappingProxyType(plan.report.labels),
        tags=plan.report.tags,
    )


def drawing_of(plan: Plan, settings: PhantomSettings) -> Drawing:
    """Pictures, and the masks of what can be seen on them."""
    drawn = draw_plan(plan, settings)
    views = [view for view in _VIEWS if view in drawn.views]
    masks: dict[str, np.ndarray] = {}
    for finding, by_view in drawn.masks.items():
        masks |= {f"{finding}@{number}": by_view[view] for number, view in enumerate(views) if by_view[view].any()}
    return Drawing(tuple(drawn.views[view] for view in views), masks)

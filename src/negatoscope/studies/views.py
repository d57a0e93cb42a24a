"""Which picture of a study stands in which view slot: 0 frontal, 1 lateral."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from negatoscope.studies.study import Picture, Study

Arranging = Literal["by-view", "by-order"]


def by_view(study: Study, slots: int) -> tuple[Picture | None, ...]:
    """Frontal first, lateral second, whatever their order in the source; pictures of unknown view fill what stays
    empty.

    A second frontal does not take the lateral's place: the slot stays empty, and is masked. One slot takes the
    frontal, or any.
    """
    wanted = ("frontal", "lateral")[:slots]
    chosen: list[Picture | None] = [next(iter(study.pictures_seen_from(view)), None) for view in wanted]  # pyright: ignore[reportArgumentType]
    chosen += [None] * (slots - len(chosen))
    spare = [picture for picture in study.pictures if picture not in chosen and picture.view in ("unknown", "other")]
    if all(picture is None for picture in chosen) and not spare:
        spare = list(study.pictures)  # one slot, and only a lateral: better than nothing
    filled = [picture if picture is not None or not spare else spare.pop(0) for picture in chosen]
    return tuple(filled)


def by_order(study: Study, slots: int) -> tuple[Picture | None, ...]:
    """As R2Gen reads IU X-Ray: the first picture, the second, whatever they show."""
    return (*study.pictures[:slots], *(None for _ in range(slots - len(study.pictures))))


ARRANGE: dict[str, Callable[[Study, int], tuple[Picture | None, ...]]] = {"by-view": by_view, "by-order": by_order}

"""From what a report says of each mention to one label an observation."""

from __future__ import annotations

from collections.abc import Iterable

from negatoscope.metrics.chexpert.classify import NEGATIVE, POSITIVE, UNCERTAIN
from negatoscope.metrics.chexpert.mentions import OTHER, Mention
from negatoscope.studies.study import OBSERVATIONS

NO_FINDING, SUPPORT_DEVICES = "No Finding", "Support Devices"


def aggregate(labelled: Iterable[tuple[Mention, int]]) -> dict[str, int]:
    """Observation -> 1, 0 or -1, in the order of the 14; what is not mentioned is left out.

    No Finding is 1 if nothing but support devices is present or uncertain. It is never 0.
    """
    said: dict[str, set[int]] = {}
    nothing = True
    for mention, label in labelled:
        if label != NEGATIVE:
            nothing = nothing and mention.observation == SUPPORT_DEVICES
            if mention.hint:
                said.setdefault(mention.hint, set()).add(UNCERTAIN)
        if mention.observation != OTHER:
            said.setdefault(mention.observation, set()).add(label)
    if nothing:
        said[NO_FINDING] = {POSITIVE}
    return {name: _one(said[name]) for name in OBSERVATIONS if name in said}


def _one(labels: set[int]) -> int:
    """Of several mentions: absent here and uncertain there is uncertain, whatever else is said; else present wins."""
    if {NEGATIVE, UNCERTAIN} <= labels:
        return UNCERTAIN
    return POSITIVE if POSITIVE in labels else labels.pop()

"""From which side a picture was taken, by what the file says of it: PA, AP, LL, 'CHEST LATERAL', 'postero-anterior'."""

from __future__ import annotations

import re

from negatoscope.studies.study import View

# Lying on the side, from an angle, or leaning back (lordotic): no view that a report generator was made for.
_OTHER = re.compile(
    r"\b(lld|rld|decub\w*|oblique|obl|[lr][ap]o|[lr]lo|axial|lordotic|swimmers?|apical|tangential|pa llo|abdomen|kub)\b"
)
_LATERAL = re.compile(r"\b(lat|lateral|left lateral|right lateral|ll|rl|llat|rlat|l lat|r lat|xtable)\b")
_FRONTAL = re.compile(
    r"\b(pa|ap|frontal|posteroanterior|postero[- ]anterior|anteroposterior|antero[- ]posterior|dv|vd)\b"
)


def view_from_words(*said: str) -> View:
    """The first text that tells the view decides; one that names two ('CHEST PA AND LAT') tells nothing."""
    for text in said:
        words = text.lower().replace("_", " ")
        if _OTHER.search(words):
            return "other"
        lateral, frontal = bool(_LATERAL.search(words)), bool(_FRONTAL.search(words))
        if lateral != frontal:
            return "lateral" if lateral else "frontal"
    return "unknown"

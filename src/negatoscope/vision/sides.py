"""Left and right in a report, changed for each other: what must happen to the text of an image that was mirrored."""

from __future__ import annotations

import re

_PAIRS = {
    "left": "right",
    "lt": "rt",
    "l": "r",
    "levo": "dextro",
    "lul": "rul",
    "lml": "rml",
    "lll": "rll",
    "luq": "ruq",
    "llq": "rlq",
    "lij": "rij",
    "lv": "rv",
}
_OTHER = _PAIRS | {right: left for left, right in _PAIRS.items()}

# Not beside a letter; a digit or a stroke may stand there: `base/left`, `right_lung`.
_BEFORE, _AFTER = r"(?<![^\W\d_])", r"(?![^\W\d_])"
_WORD = rf"{_BEFORE}(?:left|right)(?=(?:wards?|most|sided|sidedly|handed)?{_AFTER})"
_SHORT = rf"{_BEFORE}(?:[lr]t|[lr]ul|[lr]ml|[lr]ll|[lr]uq|[lr]lq|[lr]ij|[lr]v){_AFTER}"
_BEND = rf"{_BEFORE}(?:levo|dextro)(?=[ -]?(?:scoli|rotoscoli|rot|curv|convex|concav|cardi|posit|version))"
# A letter alone is a side, unless it counts vertebrae (L1, L-spine) or litres (2 L), means "rule out" (R/O) or a
# lumbosacral spine (L/S), or is part of a word (l', d-l).
_LETTER = r"(?<![\w'’])(?<!\w-)(?<!\d )[lr](?![\w'’])(?!\s*/\s*[os]\b)(?!\s?-?\s?(?:\d|spine|vertebra))"
# "The tube was left in place" is no side, "the tube on the left in place" is one; "all right" is none.
_STAYED = r"(?:(?<=\bis )|(?<=\bwas )|(?<=\bare )|(?<=\bwere )|(?<=\bbeen ))[a-z]+\s+in\s+(?:place|situ)"
_NO_SIDE = rf"(?<!\ball )(?!{_STAYED})"
_SIDES = re.compile(rf"(?:{_NO_SIDE}{_WORD}|{_BEND}|{_SHORT}|{_LETTER})", re.IGNORECASE)


def swap_sides(text: str) -> str:
    """'Left base, R>L, levoscoliosis' -> 'Right base, L>R, dextroscoliosis'. Case is kept; twice gives the text back.

    Words are swapped, not anatomy: a right middle lobe becomes a left one, as in a patient with situs inversus. That
    is one reason why mirroring is off unless asked for.
    """
    return _SIDES.sub(_other, text)


def _other(found: re.Match[str]) -> str:
    said = found[0]
    # Python lets a dotless i pass for an i: such a word is left alone.
    return _with_case_of(said, _OTHER.get(said.lower(), said))


def _with_case_of(model: str, word: str) -> str:
    if model.isupper():
        return word.upper()
    return word.capitalize() if model[0].isupper() else word

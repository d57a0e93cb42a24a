"""A report into its sentences, as radiologists write them: numbered lists, measurements, levels of the spine, hidden names.

A full stop ends a sentence unless something says otherwise: a digit on both sides ("1.5 cm"), a title ("Dr. Smith"), the number
of an image ("No. 3"), an abbreviation that goes on ("approx. 2 cm"). A stop without a space behind it ends one too where a word
of two letters or more goes before and a capital or a longer word comes after ("clear.Heart", "clear.heart size").
The number of a list's item is dropped; nothing else but white space is.
"""

from __future__ import annotations

import re

# Words after which a full stop does not end a sentence. `no.` only before a number: "Effusion: no." ends one.
_GOES_ON = frozenset(
    "dr drs mr mrs ms prof st vs approx ca cf e.g i.e eg ie fig figs incl resp".split()
)
_BEFORE_NUMBER = frozenset("no nos nr image im se ser series vol pg p ca approx level".split())

_SPACE = re.compile(r"\s+")
# At a line's start, after the end of a sentence, or after a colon: "1. ", "2) ", "(3) ".
_ITEM = re.compile(r"(?:(?<=^)|(?<=[.!?:;]\s))\(?(?:\d{1,2}[.)])\s+(?=[^\W\d_])")
_LINE_ITEM = re.compile(r"^\s*(?:\(?\d{1,2}[.)]|[-*•])\s+", re.MULTILINE)
_END = re.compile(r"[.!?]+[\"')\]]*")
_TAIL = re.compile(r"[^\W_](?:[\w./'-]*[^\W_])?$")
_LETTERS = re.compile(r"[^\W\d_]+")


def split_sentences(report: str) -> list[str]:
    """The sentences, in order, white space made single, numbers of list items left out. Splitting one again gives itself."""
    parts = [
        sentence
        for block in _items(report)
        for sentence in _split(_SPACE.sub(" ", block).strip())
    ]
    return [part for part in parts if part]

"""Words as they are scored, 'heart is normal . no effusion .', to text as it is read: 'Heart is normal. No
effusion.'"""

from __future__ import annotations

LEFT_OUT = "xxxx"
"""What IU X-Ray has in the place of words that might have named a patient. A writer learns it like any word, and is not
let write it."""
_AS_WRITTEN = {"picc": "PICC", "copd": "COPD", "ij": "IJ", "svc": "SVC", "ap": "AP", "pa": "PA", "ct": "CT", "cm": "cm"}


def sentences_of(report: str) -> list[str]:
    """The sentences in words, each without its full stop."""
    return [said for part in report.split(" . ") if (said := part.removesuffix(" .").strip(" ."))]


def as_text(report: str) -> str:
    return " ".join(sentence_as_text(one) for one in sentences_of(report))


def sentence_as_text(sentence: str) -> str:
    words = [_AS_WRITTEN.get(word, _level(word)) for word in sentence.split()]
    said = " ".join(words)
    return f"{said[:1].upper()}{said[1:]}."


def _level(word: str) -> str:
    """t11 and l1 are vertebrae."""
    return word.upper() if len(word) > 1 and word[0] in "tlc" and word[1:].isdigit() else word

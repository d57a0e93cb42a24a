"""What can be wrong with a report's letters and words."""

from __future__ import annotations

import re

_DAMAGE = {
    "letters were lost": re.compile("\ufffd"),
    "bytes that are no UTF-8": re.compile("[\ud800-\udfff]"),
    "UTF-8 read as Latin-1": re.compile("[ÃÂÐÑ][\u0080-\u00bf]|â€|ï»¿"),
    "control characters": re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"),
    "markup": re.compile(r"&(?:amp|lt|gt|quot|nbsp|#\d+);|</?(?:p|br|b|i|div|span|text|abstracttext)\b[^>]*>", re.I),
    "escape sequences": re.compile(r"\\[nrt]|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}"),
}
_WORD = re.compile(r"[^\W\d_]+")
_BLANKED = re.compile(r"\bX{3,}\b|_{3,}|\[\*\*.*?\*\*\]")
# Function words that no other language of these shares; radiologists drop articles, so few are enough.
_ENGLISH = re.compile("the|of|and|no|is|are|in|with|there|for|on|at|or|not|seen|within|without|has|have|been")
_FOREIGN = re.compile(
    "der|und|keine|kein|nicht|mit|ist|sind|im|beidseits|ohne|zeigt"  # German
    "|les|avec|sans|est|sont|une|dans|aux"  # French
    "|los|las|sin|del|y|derecho|izquierdo"  # Spanish
    "|não|sem|com|uma|dos|das|à|direita|esquerda"  # Portuguese
    "|nei|senza|alla|della|sono|il"  # Italian
    "|het|een|geen|niet|zijn|van"  # Dutch
    "|nie|jest|bez|oraz|ve|yok|olarak|och|inga|ej"  # Polish, Turkish, Swedish
)


def letter_damage(text: str) -> str | None:
    """What happened to the letters of a text, or None."""
    for what, damage in _DAMAGE.items():
        if found := damage.search(text):
            return f"{what} ({_shown(found[0])})"
    return None


def _shown(letters: str) -> str:
    """Letters that can be printed, whatever they are."""
    return letters if letters.isprintable() else letters.encode("unicode_escape").decode("ascii")


def looks_foreign(text: str) -> bool:
    """Whether a text is hardly English: other letters, or more function words of other languages than of English."""
    words = _WORD.findall(text.lower())
    letters = "".join(words)
    if len(letters) < 12:
        return False
    if sum(letter > "\u024f" for letter in letters) > 0.2 * len(letters):
        return True
    foreign = sum(_FOREIGN.fullmatch(word) is not None for word in words)
    return foreign >= 2 and foreign > sum(_ENGLISH.fullmatch(word) is not None for word in words)


def blanked_share(text: str) -> float:
    """The share of words that whoever took the names out replaced by XXXX or ___."""
    blanked = len(_BLANKED.findall(text))
    words = len(_WORD.findall(_BLANKED.sub(" ", text)))
    return blanked / max(blanked + words, 1)


def has_words(text: str) -> bool:
    return bool(_WORD.search(text))

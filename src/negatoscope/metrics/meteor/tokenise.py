"""METEOR's `-norm`: Moses-like tokenisation of English with quotes, dashes and dots made alike, then lower case.

The rules are applied in the program's order, because later ones see what earlier ones wrote. Each `sub` goes left to
right without overlap, as Java's `replaceAll` does: "a-b-c" becomes "a b-c".
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_ALPHA = "A-Za-zŠŽšžŸÀ-ÖØ-öø-žЀ-ӿԀ-ԧꙀ-ꙮ꙾-ꚗᴀ-ᵿ"
_ALNUM = "0-9" + _ALPHA
_ASCII_SPACE = " \\t\\n\\x0b\\f\\r"  # Java's \s
_UP_TO_SPACE = "".join(map(chr, range(33)))  # what Java's trim() takes off

_SYMBOL = re.compile(f"([^{_ALNUM}{_ASCII_SPACE}.'`,\\-‘’])")
_DOTS = re.compile(r"\.(\.+)")
_LAST_OF_DOTS = re.compile(r"DOTMULTI\.([^.])")
_COMMAS = [re.compile(rule) for rule in (r"([^0-9]),([^0-9])", r"([0-9]),([^0-9])", r"([^0-9]),([0-9])")]
_SINGLE_QUOTE = re.compile("[`‘’]")
_DOUBLE_QUOTE = re.compile("[“”]|''")
_DASH_IN_WORD = re.compile(f"([{_ALNUM}.])-([{_ALNUM}])")
_LONE_APOSTROPHES = [
    re.compile(f"([^{_ALPHA}])'([^{_ALPHA}])"),
    re.compile(f"([^{_ALPHA}0-9])'([{_ALPHA}])"),
    re.compile(f"([{_ALPHA}])'([^{_ALPHA}])"),
]
_CONTRACTIONS = [re.compile(f"([{_ALPHA}])'([{_ALPHA}])"), re.compile("([0-9])'(s)")]
_WORD = re.compile(r"[^ \t\n\r\f]+")  # Java's StringTokenizer
_LETTER = re.compile(f"[{_ALPHA}]")
_BROAD_SPACES = re.compile("[\u2000-\u200a\u202f\u205f\u3000\u00a0]")


def tokenise(text: str, nonbreaking: Mapping[str, bool]) -> list[str]:
    """The lower-case words that METEOR aligns. Line breaks count as spaces.

    `nonbreaking` holds the abbreviations whose dot stays with them; True for those that keep it only before a number
    ("No. 5").
    """
    line = _SYMBOL.sub(r" \1 ", f" {text.strip(_UP_TO_SPACE)} ")
    line = _escape_dots(line)
    if "," in line:
        for rule in _COMMAS:
            line = rule.sub(r"\1 , \2", line)
    line = _DOUBLE_QUOTE.sub(' " ', _SINGLE_QUOTE.sub("'", line))
    line = line.replace("–", "-").replace("--", "-")
    if "-" in line:
        line = _DASH_IN_WORD.sub(r"\1 \2", line)
    if "'" in line:
        for rule in _LONE_APOSTROPHES:
            line = rule.sub(r"\1 ' \2", line)
        for rule in _CONTRACTIONS:
            line = rule.sub(r"\1 '\2", line)
    line = _unescape_dots(" ".join(_split_final_dots(_WORD.findall(line), nonbreaking)))
    return _WORD.findall(_BROAD_SPACES.sub(" ", line).strip(_UP_TO_SPACE).lower())


def _escape_dots(line: str) -> str:
    """Two dots and more become one word of their own that the rule for final dots leaves alone."""
    if ".." in line:
        line = _DOTS.sub(r" DOTMULTI\1", line)
    while "DOTMULTI." in line:
        line = _LAST_OF_DOTS.sub(r"DOTDOTMULTI \1", line).replace("DOTMULTI.", "DOTDOTMULTI")
    return line


def _unescape_dots(line: str) -> str:
    while "DOTDOTMULTI" in line:
        line = line.replace("DOTDOTMULTI", "DOTMULTI.")
    return line.replace("DOTMULTI", ".")


def _split_final_dots(words: list[str], nonbreaking: Mapping[str, bool]) -> list[str]:
    """Separates the dot that ends a sentence. "U.S." becomes "US"; "Dr." and dots before a small letter stay."""
    separate: list[str] = []
    for word, following in zip(words, [*words[1:], ""]):
        if word[-1] != "." or word == ".":
            separate.append(word)
            continue
        stem = word[:-1]
        if "." in stem and _LETTER.search(stem):
            separate.append(word.replace(".", ""))
        elif _keeps_dot(nonbreaking.get(stem), following[:1]):
            separate.append(word)
        else:
            separate += [stem, "."]
    return separate


def _keeps_dot(only_before_number: bool | None, next_letter: str) -> bool:
    if only_before_number is False or "a" <= next_letter <= "z":
        return True
    return only_before_number is True and "0" <= next_letter <= "9"

"""The English stemmer of Snowball in the version inside METEOR 1.5 (Porter2 as of 2005).

R1 is what follows the first consonant after a vowel, R2 the same within R1. A rule looks only at the longest suffix
of its list: if that one's condition fails, no shorter one is tried.
"""

from __future__ import annotations

_VOWELS = frozenset("aeiouy")  # a "Y" that stands for a consonant is written in upper case
_NOT_AFTER_SHORT = _VOWELS | frozenset("wxY")
_BEFORE_LI = frozenset("cdeghkmnrt")

_IRREGULAR = {
    "skis": "ski", "skies": "sky", "dying": "die", "lying": "lie", "tying": "tie", "idly": "idl", "gently": "gentl",
    "ugly": "ugli", "early": "earli", "only": "onli", "singly": "singl",
} | {same: same for same in ("sky", "news", "howe", "atlas", "cosmos", "bias", "andes")}  # fmt: skip
_DONE_AFTER_PLURAL = frozenset(("inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed"))

_POSSESSIVES = ("'s'", "'s", "'")
_PLURALS = ("sses", "ied", "ies", "us", "ss", "s")
_PAST_AND_ING = ("eedly", "ingly", "edly", "eed", "ing", "ed")
_DOUBLES = ("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt")
_STEP_2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "abli": "able", "entli": "ent",
    "ization": "ize", "izer": "ize", "ation": "ate", "ator": "ate", "alism": "al", "aliti": "al", "alli": "al",
    "fulness": "ful", "ousness": "ous", "ousli": "ous", "iveness": "ive", "iviti": "ive", "biliti": "ble",
    "bli": "ble", "fulli": "ful", "lessli": "less", "ogi": "og", "li": "",
}  # fmt: skip
_STEP_3 = {
    "ational": "ate", "tional": "tion", "alize": "al", "icate": "ic", "iciti": "ic", "ical": "ic",
    "ative": "", "ful": "", "ness": "",
}  # fmt: skip
_STEP_4 = (
    "ic", "ance", "ence", "able", "ible", "ate", "ive", "ize", "iti", "al", "ism", "ion", "er", "ous", "ant", "ent",
    "ment", "ement",
)  # fmt: skip


def stem(word: str) -> str:
    """The stem of a lower-case word."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) < 3:
        return word
    word = _mark_consonant_y(word.removeprefix("'"))
    r1, r2 = _regions(word)
    word = _plural(word)
    if word not in _DONE_AFTER_PLURAL:
        word = _past_and_ing(word, r1)
        if len(word) > 2 and word[-1] in "yY" and word[-2] not in _VOWELS:
            word = word[:-1] + "i"
        word = _step_2(word, r1)
        word = _step_3(word, r1, r2)
        word = _step_4(word, r2)
        word = _final_e_or_l(word, r1, r2)
    return word.replace("Y", "y")


def _mark_consonant_y(word: str) -> str:
    letters = list(word)
    for place, letter in enumerate(letters):
        if letter == "y" and (place == 0 or letters[place - 1] in _VOWELS):
            letters[place] = "Y"
    return "".join(letters)


def _regions(word: str) -> tuple[int, int]:
    for prefix in ("gener", "commun", "arsen"):
        if word.startswith(prefix):
            r1 = len(prefix)
            break
    else:
        r1 = _past_vowel_and_consonant(word, 0)
    return r1, _past_vowel_and_consonant(word, r1)


def _past_vowel_and_consonant(word: str, place: int) -> int:
    for here in range(place + 1, len(word)):
        if word[here] not in _VOWELS and word[here - 1] in _VOWELS:
            return here + 1
    return len(word)


def _ends_short(word: str) -> bool:
    """A short syllable: consonant, vowel, consonant other than w, x, Y; or vowel and consonant as the whole word."""
    if len(word) > 2 and word[-1] not in _NOT_AFTER_SHORT and word[-2] in _VOWELS and word[-3] not in _VOWELS:
        return True
    return len(word) == 2 and word[-1] not in _VOWELS and word[-2] in _VOWELS


def _longest_suffix(word: str, suffixes: tuple[str, ...] | dict[str, str]) -> str:
    return max((suffix for suffix in suffixes if word.endswith(suffix)), key=len, default="")


def _has_vowel(letters: str) -> bool:
    return not _VOWELS.isdisjoint(letters)


def _plural(word: str) -> str:
    word = word.removesuffix(_longest_suffix(word, _POSSESSIVES))
    match _longest_suffix(word, _PLURALS):
        case "sses":
            return word[:-2]
        case "ied" | "ies":
            return word[:-2] if len(word) > 4 else word[:-1]
        case "s" if _has_vowel(word[:-2]):
            return word[:-1]
    return word


def _past_and_ing(word: str, r1: int) -> str:
    suffix = _longest_suffix(word, _PAST_AND_ING)
    base = word.removesuffix(suffix)
    if suffix in ("eed", "eedly"):
        return base + "ee" if len(base) >= r1 else word
    if not suffix or not _has_vowel(base):
        return word
    if base.endswith(("at", "bl", "iz")):
        return base + "e"
    if base.endswith(_DOUBLES):
        return base[:-1]
    return base + "e" if len(base) == r1 and _ends_short(base) else base


def _step_2(word: str, r1: int) -> str:
    suffix = _longest_suffix(word, _STEP_2)
    base = word.removesuffix(suffix)
    if not suffix or len(base) < r1:
        return word
    if (suffix == "ogi" and not base.endswith("l")) or (suffix == "li" and base[-1:] not in _BEFORE_LI):
        return word
    return base + _STEP_2[suffix]


def _step_3(word: str, r1: int, r2: int) -> str:
    suffix = _longest_suffix(word, _STEP_3)
    base = word.removesuffix(suffix)
    if not suffix or len(base) < (r2 if suffix == "ative" else r1):
        return word
    return base + _STEP_3[suffix]


def _step_4(word: str, r2: int) -> str:
    suffix = _longest_suffix(word, _STEP_4)
    base = word.removesuffix(suffix)
    if len(base) < r2 or (suffix == "ion" and not base.endswith(("s", "t"))):
        return word
    return base


def _final_e_or_l(word: str, r1: int, r2: int) -> str:
    base = word[:-1]
    if word.endswith("e") and (len(base) >= r2 or (len(base) >= r1 and not _ends_short(base))):
        return base
    if word.endswith("ll") and len(base) >= r2:
        return base
    return word

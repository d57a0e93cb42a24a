"""A report as the original labeler reads it: lower case, spaced, cut into sentences."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

_BETWEEN_LETTERS = re.compile(r"(?<=[a-zA-Z])/(?=[a-zA-Z])")
_EMPTY_SENTENCE = re.compile(r"\.\s+\.")
_NOT_PRINTABLE = re.compile(f"[^{re.escape(string.printable)}]")
_END = re.compile(r"[.?!][\"')\]]* (?=\S)")
# Words whose full stop does not end a sentence when a small letter follows.
_SHORT = frozenset(("dr.", "mr.", "mrs.", "ms.", "st.", "vs.", "etc.", "no.", "jr.", "sr.", "prof."))


def clean(report: str) -> str:
    """The report on one line, with a space after every comma and full stop; 'and/or' is 'or', 'a/b' is 'a or b'."""
    text = report.lower().replace("and/or", "or")
    text = _BETWEEN_LETTERS.sub(" or ", text).replace("..", ".")
    text = " ".join(text.replace(".", ". ").replace(",", ", ").split())
    return _NOT_PRINTABLE.sub("", _EMPTY_SENTENCE.sub(".", text))


def sentences(cleaned: str) -> Iterator[str]:
    """Cut after . ? or !, but not after a list's number, an initial or an abbreviation that a small letter follows."""
    begin = 0
    for match in _END.finditer(cleaned):
        end = match.end() - 1
        if not _goes_on(cleaned[max(begin, cleaned.rfind(" ", begin, match.start()) + 1) : end], cleaned[match.end()]):
            yield cleaned[begin:end]
            begin = match.end()
    if begin < len(cleaned):
        yield cleaned[begin:]


def _goes_on(word: str, following: str) -> bool:
    """Whether the sentence goes on after a word with a full stop, seen the letter that comes next."""
    if not following.islower() or not word.endswith("."):
        return following in ",;:.?!)"
    stem = word[:-1].lstrip("(\"'")
    return stem.isdigit() or (len(stem) == 1 and stem.isalpha()) or word in _SHORT

"""From a report to word numbers and back: the cleaning and the vocabulary of R2Gen and all that score like it.

Number 0 is padding, start and end at once, as in the literature; real words count from 1. So a vocabulary of W
entries (the unknown word among them) needs W + 1 logits: IU X-Ray's training split gives 760 entries with cut-off 3.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from negatoscope.errors import BadInput, WrongUse, nearest_names
from negatoscope.whole_files import write_json

UNKNOWN = "<unk>"
END = 0
"""Padding, start and end of a report."""

Cleaning = Literal["iu-xray", "mimic-cxr", "none"]

# The published pattern reads `[.,?;*!%^&_+():-\[\]{}]`, in which `:-\[` is a range: from ':' over '=', '@' and
# 'A'-'Z' to '['.
# A hyphen therefore stays in a word. Text is lower-cased before, so the letters of the range never meet one.
# Quotes and slashes go before the ends are stripped, the rest after: a blank that stood inside a bracket stays, as it
# does there.
_QUOTES = re.compile(r"""["/\\']""")
_NOT_IN_WORDS = re.compile(r"[.,?;*!%^&_+():;<=>?@\[\]{}]")
_LIST_NUMBERS = ("1. ", ""), *((f"{lead} {n}. ", ". ") for lead in (".", "") for n in (2, 3, 4, 5))


def clean_iu_xray(report: str) -> str:
    """'Heart is normal. No effusion.' -> 'heart is normal . no effusion .', the form in which IU X-Ray is scored."""
    return _clean(_collapse(report, ".", rounds=3))


def clean_mimic_cxr(report: str) -> str:
    """The same for MIMIC-CXR: line breaks, blanks for removed names and longer runs of full stops besides."""
    report = _collapse(report.replace("\n", " "), "_", rounds=7)
    return _clean(_collapse(_collapse(report, " ", rounds=6), ".", rounds=8))


def clean_not(report: str) -> str:
    """For text that is words already."""
    return report


CLEANINGS: dict[str, Callable[[str], str]] = {
    "iu-xray": clean_iu_xray,
    "mimic-cxr": clean_mimic_cxr,
    "none": clean_not,
}


def _collapse(text: str, mark: str, rounds: int) -> str:
    """Halves runs of a mark, a fixed number of rounds: a run that is longer than that stays one in the literature
    too."""
    for _ in range(rounds):
        text = text.replace(mark * 2, mark)
    return text


def _clean(report: str) -> str:
    for number, instead in _LIST_NUMBERS:
        report = report.replace(number, instead)
    sentences = report.strip().lower().split(". ")
    return " . ".join(_NOT_IN_WORDS.sub("", _QUOTES.sub("", sentence).strip()) for sentence in sentences) + " ."


@dataclass(frozen=True)
class Vocabulary:
    """The words a reporter can write, and how a report becomes words. Frozen, saved as JSON with the run and in each
    checkpoint."""

    words: tuple[str, ...]
    """In the order of their numbers: word k has number k + 1."""
    cleaning: Cleaning = "iu-xray"
    max_words: int = 60
    """Longest report in words, the start mark counted in, as the literature counts."""
    cutoff: int = 3
    _number: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if UNKNOWN not in self.words:
            raise BadInput(f"no {UNKNOWN} among the words", where="vocabulary")
        if len(set(self.words)) != len(self.words):
            twice = [word for word, count in Counter(self.words).items() if count > 1]
            raise BadInput(f"word {twice[0]!r} stands twice", where="vocabulary")
        object.__setattr__(self, "_number", {word: number for number, word in enumerate(self.words, start=1)})

    @classmethod
    def build(
        cls, reports: Iterable[str], *, cleaning: Cleaning = "iu-xray", cutoff: int = 3, max_words: int = 60
    ) -> Vocabulary:
        """From TRAINING reports only: words seen at least `cutoff` times, sorted, with the unknown word among them."""
        clean = cleaning_named(cleaning)
        seen = Counter(word for report in reports for word in clean(report).split())
        if not seen:
            raise BadInput(
                "no words in the training reports", where="vocabulary", remedy="check the store's train split"
            )
        kept = {word for word, count in seen.items() if count >= cutoff}
        return cls(tuple(sorted(kept | {UNKNOWN})), cleaning, max_words, cutoff)

    def __len__(self) -> int:
        return len(self.words)

    @property
    def logits(self) -> int:
        """Width of a reporter's last layer: each word, and the end."""
        return len(self.words) + 1

    @property
    def unknown(self) -> int:
        return self._number[UNKNOWN]

    def number(self, word: str) -> int:
        return self._number.get(word, self.unknown)

    def clean(self, report: str) -> str:
        return cleaning_named(self.cleaning)(report)

    def encode(self, report: str) -> list[int]:
        """Start, words, end, cut to `max_words` numbers: a report that is cut has no end, as in the literature."""
        numbers = [self.number(word) for word in self.clean(report).split()]
        return [END, *numbers, END][: self.max_words]

    def decode(self, numbers: Iterable[int]) -> str:
        """The words up to the first end mark."""
        words = []
        for number in numbers:
            if number == END:
                break
            words.append(self.words[int(number) - 1])
        return " ".join(words)

    def as_scored(self, report: str) -> str:
        """A reference as R2Gen and its descendants score it: cleaned, cut, rare words unknown."""
        return self.decode(self.encode(report)[1:])

    def as_json(self) -> dict[str, Any]:
        return {
            "words": list(self.words),
            "cleaning": self.cleaning,
            "max_words": self.max_words,
            "cutoff": self.cutoff,
        }

    @classmethod
    def from_json(cls, value: Any, *, where: object = "vocabulary") -> Vocabulary:
        if not isinstance(value, dict) or not _is_words(value.get("words")):
            raise BadInput("not a vocabulary: needs a list of words under 'words'", where=where)
        cleaning_named(value.get("cleaning", "iu-xray"))
        return cls(
            tuple(value["words"]),
            value.get("cleaning", "iu-xray"),
            int(value.get("max_words", 60)),
            int(value.get("cutoff", 3)),
        )

    def save(self, path: Path | str) -> None:
        write_json(path, self.as_json())

    @classmethod
    def load(cls, path: Path | str) -> Vocabulary:
        try:
            value = json.loads(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise BadInput("no such vocabulary file", where=path) from error
        except ValueError as error:
            raise BadInput(f"not JSON ({error})", where=path) from error
        return cls.from_json(value, where=path)


def cleaning_named(name: str) -> Callable[[str], str]:
    try:
        return CLEANINGS[name]
    except KeyError:
        raise WrongUse(f"unknown cleaning {name!r}", remedy=nearest_names(name, CLEANINGS)) from None


def _is_words(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(word, str) for word in value)

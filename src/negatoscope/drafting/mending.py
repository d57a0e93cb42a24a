"""What a draft was asked to name and does not: said in a sentence more. What it says twice: said once.

Training reports name one finding or two; a writer that is asked for five at once loses its way. So it is asked for few
at once, and for each of the others alone, in the way of the nearest studies that had it. That sentence joins the draft,
in the place of the first one that says the opposite.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from negatoscope.decoding import Written
from negatoscope.studies.study import OBSERVATIONS

if TYPE_CHECKING:
    from negatoscope.drafting.author import Author, Authored

_WAYS = 3
"""Nearest studies with the finding, in whose ways it is said."""
_LIKELY, _STRANGE = 0.1, 0.1
"""How much the mean log-probability of a sentence's words, and each run of words that reports do not have, count beside
the report's phi^ . phi."""
_OF_THE_LUNGS = {"Lung Lesion", "Lung Opacity", "Edema", "Consolidation", "Pneumonia", "Atelectasis"}
_CLEAR = re.compile(r"\blungs?\b.*\bclear\b|\bclear\b.*\blungs?\b")
"""A labeler reads no single finding's absence here; a reader does."""


@dataclass(frozen=True)
class Said:
    """A sentence, its full stop among its words."""

    text: str
    words: tuple[int, ...]
    log_probabilities: tuple[float, ...]

    @property
    def likely(self) -> float:
        return float(np.mean(self.log_probabilities))


def said_once(author: Author, draft: Authored) -> Authored:
    """Each sentence once, and none that names nothing but what others of the draft name as well; the least likely goes
    first. What the draft names as a whole stays the same."""
    different: dict[str, Said] = {}
    for one in sentences_in(author, draft.words, draft.log_probabilities):
        different.setdefault(one.text, one)
    sentences = list(different.values())
    named = author.named([one.text for one in sentences])
    named[:, OBSERVATIONS.index("No Finding")] = False
    left = list(range(len(sentences)))
    for one in sorted(left, key=lambda place: sentences[place].likely):
        others = [place for place in left if place != one]
        if named[one].any() and others and (named[one] <= named[others].any(0)).all():
            left = others
    return _of(author, draft, [sentences[place] for place in left])


def mended(
    author: Author,
    drafts: Sequence[Authored],
    asked: np.ndarray,
    cosines: Tensor,
    expected: np.ndarray,
    write: Callable[[np.ndarray, Tensor], list[list[Written]]],
) -> list[Authored]:
    """Drafts of n studies, asked (n, 14), cosines (n, N) with the library's studies, phi^ (n, E).

    `write(asked (m, 14), places (m, E))` gives some ways to say each.
    """
    kept = list(drafts)
    named = author.named([one.report for one in kept])
    lacking = [
        (int(row), int(k), near)
        for row, k in np.argwhere(asked & ~named)
        if OBSERVATIONS[k] != "No Finding" and len(near := author.library.nearest_with(cosines[row], int(k), _WAYS))
    ]
    if not lacking:
        return kept
    alone = np.zeros((sum(len(near) for _, _, near in lacking), len(OBSERVATIONS)), bool)
    alone[np.arange(len(alone)), np.repeat([k for _, k, _ in lacking], [len(near) for _, _, near in lacking])] = True
    ways = iter(write(alone, author.library.places[torch.cat([near for _, _, near in lacking])]))
    for row, k, near in lacking:
        written = [one for _ in near for one in next(ways)]
        sentences = {
            said.text: said for one in written for said in sentences_in(author, one.words, one.log_probabilities)
        }
        fitting = [said for said in sentences.values() if _names(author, said.text, k, asked[row])]
        if fitting:
            joined = [_joined(author, kept[row], said, OBSERVATIONS[k]) for said in fitting]
            scores = author.space.meaning([one.report for one in joined]) @ expected[row]
            scores += [_LIKELY * one.likely - _STRANGE * author.space.strange(one.text) for one in fitting]
            kept[row] = joined[int(scores.argmax())]
    return kept


def sentences_in(author: Author, words: Sequence[int], log_probabilities: Sequence[float]) -> list[Said]:
    full_stop, found, start = author.vocabulary.number("."), [], 0
    for place, word in enumerate(words):
        if word == full_stop or place == len(words) - 1:
            part = slice(start, place + 1)
            found.append(
                Said(author.vocabulary.decode(words[part]), tuple(words[part]), tuple(log_probabilities[part]))
            )
            start = place + 1
    return found


def _names(author: Author, sentence: str, k: int, asked: np.ndarray) -> bool:
    """This finding, and none that was not asked for."""
    named = author.named([sentence])[0]
    return bool(named[k]) and not (named & ~asked).any()


def _joined(author: Author, draft: Authored, new: Said, finding: str) -> Authored:
    sentences = sentences_in(author, draft.words, draft.log_probabilities)
    opposite = [_says_the_opposite(author, one.text, finding) for one in sentences]
    place = opposite.index(True) if any(opposite) else len(sentences)
    left = [one for one, against in zip(sentences, opposite, strict=True) if not against]
    left.insert(place, new)
    return _of(author, draft, left)


def _of(author: Author, draft: Authored, sentences: Sequence[Said]) -> Authored:
    from negatoscope.drafting.author import Authored

    words = tuple(word for one in sentences for word in one.words)
    log_probabilities = tuple(value for one in sentences for value in one.log_probabilities)
    return Authored(author.vocabulary.decode(words), draft.asked, words, log_probabilities)


def _says_the_opposite(author: Author, sentence: str, finding: str) -> bool:
    if author.reader.label(sentence).get(finding) == 0:
        return True
    return finding in _OF_THE_LUNGS and _CLEAR.search(sentence) is not None

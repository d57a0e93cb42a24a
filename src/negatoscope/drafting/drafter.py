"""Images in, a draft report out: what ships with the package, whole.

images --look--> maps, stages --doubt--> warnings
                   \\--sides--> frontal, lateral --Recogniser--> findings, phi^, narrow --Author--> report
                                                                                    \\--Library--> who is near
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from negatoscope.drafting.author import Author, Authored
from negatoscope.drafting.calibration import in_words
from negatoscope.drafting.doubt import Doubt
from negatoscope.drafting.draft import Draft, Observed, Sentence, View
from negatoscope.drafting.look import look
from negatoscope.drafting.views import Sides, told_apart
from negatoscope.drafting.wording import as_text, sentence_as_text, sentences_of
from negatoscope.errors import BadInput
from negatoscope.models.recogniser import Recogniser
from negatoscope.studies.study import OBSERVATIONS
from negatoscope.vision.prepare import prepare, read_grey

BATCH = 16
"""Studies at a time."""
_LONGEST_PHRASE = 4

_Named = tuple[str, Sequence[Path | str]]
"""A study's name and its images."""


@dataclass(frozen=True)
class Drafter:
    recogniser: Recogniser
    author: Author
    doubt: Doubt
    phrases: tuple[str, ...]
    """The runs of words that the Recogniser answers to, in the order of its answers."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Where it comes from: data, licence, command, seeds."""

    def draft(self, images: Sequence[Path | str], study: str = "") -> Draft:
        """One study, with a map for each sentence. Raises BadInput for an image that cannot be read."""
        if not images:
            raise BadInput("no image", where=study or None)
        return next(self.draft_many([(study, images)], heat=True))

    @torch.inference_mode()
    def draft_many(
        self,
        studies: Iterable[tuple[str, Sequence[Path | str]]],
        *,
        heat: bool = False,
        readers: int = 2,
        on_bad: Callable[[str, BadInput], None] | None = None,
    ) -> Iterator[Draft]:
        """Drafts in the order of the studies, `BATCH` at a time; files of the next ones are read meanwhile.

        A study with an image that cannot be read raises BadInput, or is left out and told to `on_bad`.
        """
        waiting = iter(studies)
        with ThreadPoolExecutor(readers) as pool:

            def begin() -> list[tuple[_Named, list[Future[Tensor]]]]:
                return [
                    ((name, paths), [pool.submit(self._read, path) for path in paths])
                    for name, paths in islice(waiting, BATCH)
                ]

            following = begin()
            while following:
                reading, following = following, begin()
                studies_read: list[_Named] = []
                images: list[Tensor] = []
                for named, futures in reading:
                    try:
                        read = [one.result() for one in futures]
                    except BadInput as bad:
                        if on_bad is None:
                            raise
                        on_bad(named[0], bad)
                        continue
                    studies_read.append(named)
                    images += read
                if studies_read:
                    yield from self._drafts(studies_read, torch.stack(images), heat)

    def _read(self, path: Path | str) -> Tensor:
        return prepare(read_grey(path), self.recogniser.settings.encoder.image_size)

    def _drafts(self, studies: Sequence[_Named], images: Tensor, heat: bool) -> Iterator[Draft]:
        looked = look(self.recogniser, images)
        study = torch.tensor([row for row, (_, paths) in enumerate(studies) for _ in paths])
        sides = told_apart(self.recogniser, looked.pooled)
        beside = self.recogniser.together(looked.pooled, study, sides.lateral, len(studies))
        answers, vectors = self.recogniser(beside), self.recogniser.narrow(beside)
        cosines = self.author.library.cosines(vectors)
        evidence = self.author.evidence(answers.findings, cosines)
        authored = self.author.write(evidence, cosines)
        doubts = self.doubt.warnings(looked.stages)
        for row, (name, paths) in enumerate(studies):
            mine = (study == row).nonzero().squeeze(1).tolist()
            views = _views(paths, mine, sides, doubts)
            maps = {one: looked.maps[one] for one in mine} if heat else {}
            sentences = self._sentences(authored[row], cosines[row], maps, sides, views, mine)
            yield Draft(
                name,
                authored[row].report,
                as_text(authored[row].report),
                sentences,
                self._observed(evidence[row : row + 1], authored[row]),
                tuple(self.author.library.normals(cosines[row])),
                views,
                _warnings(views),
            )

    def _observed(self, evidence: np.ndarray, authored: Authored) -> tuple[Observed, ...]:
        """Evidence (1, 14)."""
        said, low, high = self.author.calibration.probability(evidence)
        return tuple(
            Observed(
                name,
                round(float(said[0, k]), 4),
                round(float(low[0, k]), 4),
                round(float(high[0, k]), 4),
                in_words(float(said[0, k])),
                name in authored.asked,
            )
            for k, name in enumerate(OBSERVATIONS)
        )

    def _sentences(
        self,
        authored: Authored,
        cosines: Tensor,
        maps: Mapping[int, Tensor],
        sides: Sides,
        views: Sequence[View],
        mine: Sequence[int],
    ) -> tuple[Sentence, ...]:
        told = []
        library = self.author.library
        likely = _each_sentence(authored, self.author.vocabulary.number("."))
        for number, words in enumerate(sentences_of(authored.report)):
            labels = self.author.reader.label(sentence_as_text(words))
            named = tuple(name for name in OBSERVATIONS if labels.get(name) == 1 and name != "No Finding")
            similar = library.with_finding(cosines, named[0]) if named else library.normals(cosines)
            heat = self._heat(words, named, maps, sides)
            told.append(
                Sentence(
                    sentence_as_text(words),
                    named,
                    round(likely[number], 4) if number < len(likely) else 0.0,
                    {
                        f"{views[mine.index(image)].view}: {views[mine.index(image)].file}": one
                        for image, one in heat.items()
                    },
                    tuple(similar),
                )
            )
        return tuple(told)

    def _heat(
        self, words: str, named: Sequence[str], maps: Mapping[int, Tensor], sides: Sides
    ) -> dict[int, list[list[float]]]:
        """Class activation maps of what the sentence names; where it names nothing, of its phrases."""
        rows = [OBSERVATIONS.index(name) for name in named] or self._phrase_rows(words)
        if not rows or not maps:
            return {}
        asked = torch.tensor(rows)
        found = {
            image: self.recogniser.heat(map_.float(), bool(sides.lateral[image]), asked).mean(0).clamp_min(0)
            for image, map_ in maps.items()
        }
        highest = max(float(one.max()) for one in found.values()) or 1.0
        return {image: (one / highest).numpy().round(3).tolist() for image, one in found.items()}

    def _phrase_rows(self, words: str) -> list[int]:
        first = sum(self.recogniser.sizes[:2])
        said = words.split()
        inside = {" ".join(said[i : i + n]) for n in range(2, _LONGEST_PHRASE + 1) for i in range(len(said) - n + 1)}
        return [first + place for place, phrase in enumerate(self.phrases) if phrase in inside]


def _each_sentence(authored: Authored, full_stop: int) -> list[float]:
    """The geometric mean of the probabilities of each sentence's words, its full stop among them."""
    means, gathered = [], []
    for word, log_p in zip(authored.words, authored.log_probabilities):
        gathered.append(log_p)
        if word == full_stop:
            means.append(float(np.exp(np.mean(gathered))))
            gathered = []
    return [*means, float(np.exp(np.mean(gathered)))] if gathered else means


def _views(
    paths: Sequence[Path | str], mine: Sequence[int], sides: Sides, doubts: Sequence[str | None]
) -> tuple[View, ...]:
    return tuple(
        View(Path(path).name, sides.name(image), round(float(sides.certainty[image]), 4), doubts[image])
        for path, image in zip(paths, mine, strict=True)
    )


def _warnings(views: Sequence[View]) -> tuple[str, ...]:
    told = [f"{one.file}: {one.warning}" for one in views if one.warning]
    if not any(one.view == "frontal" for one in views):
        told.append("no frontal image: the report rests on the lateral one alone")
    return tuple(told)

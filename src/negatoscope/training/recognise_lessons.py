"""From a store to what a Recogniser learns from: its images in memory, and what each study is to be recognised as."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from pydantic import Field
from scipy import sparse

from negatoscope.errors import BadInput
from negatoscope.settings import Settings
from negatoscope.studies.store import Store
from negatoscope.studies.study import OBSERVATIONS, Study
from negatoscope.text.tags import NOT_INDEXED
from negatoscope.text.words import CLEANINGS, Cleaning
from negatoscope.training.recognise import Gallery, Lessons
from negatoscope.vision.prepare import prepare, read_grey
from negatoscope.watch import Watch, quiet

LONGEST = 4


class SubjectSettings(Settings):
    """What is told apart; learned from the training split alone."""

    cleaning: Cleaning = "iu-xray"
    tags_least: int = Field(default=8, ge=1)
    """Training studies that a tag must have."""
    phrases_least: int = Field(default=20, ge=1)
    """Training reports that must hold a phrase."""
    meaning: int = Field(default=256, ge=1)
    """Width of the reports' reduced n-gram vectors."""


@dataclass(frozen=True)
class Subjects:
    """The names of the answers, and how a report is placed among others."""

    settings: SubjectSettings
    tags: tuple[str, ...]
    phrases: tuple[str, ...]
    grams: tuple[str, ...]
    """All n-grams that `directions` knows."""
    rarity: np.ndarray  # (G,) log N / frequency
    directions: np.ndarray  # (G, E) float32

    @classmethod
    def learned(cls, studies: Sequence[Study], settings: SubjectSettings) -> Subjects:
        """Raises BadInput where there are too few reports to learn from."""
        from sklearn.utils.extmath import randomized_svd

        clean = CLEANINGS[settings.cleaning]
        reports = [clean(study.report) for study in studies if study.report.strip()]
        if len(reports) <= settings.meaning:
            raise BadInput(f"{len(reports)} training reports", remedy="at least one more than subjects.meaning")
        counted = [ngrams_of(report) for report in reports]
        frequency = Counter(gram for counts in counted for gram in counts)
        grams = tuple(sorted(gram for gram, often in frequency.items() if often >= 3))
        rarity = np.array([np.log(len(reports) / frequency[gram]) for gram in grams], np.float32)
        vectors = gram_vectors(counted, grams, rarity)
        directions = randomized_svd(vectors, settings.meaning, random_state=0)[2].T.astype(np.float32)
        tags = Counter(tag for study in studies for tag in set(study_tags(study)))
        return cls(
            settings,
            tuple(sorted(tag for tag, often in tags.items() if often >= settings.tags_least)),
            tuple(gram for gram in grams if settings.phrases_least <= frequency[gram] <= 0.95 * len(reports)),
            grams,
            rarity,
            directions,
        )

    def meaning(self, reports: Sequence[str]) -> np.ndarray:
        """Cleaned reports -> (n, E): the product of two is nearly their mean cosine over n-grams of four lengths."""
        counted = [ngrams_of(report) for report in reports]
        return np.asarray(gram_vectors(counted, self.grams, self.rarity) @ self.directions)

    def strange(self, text: str) -> int:
        """How many of its runs of two and three words hardly any training report has: where a sentence breaks."""
        return sum(gram not in self._known for gram in ngrams_of(text) if 1 <= gram.count(" ") <= 2)

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.grams)

    def lessons(self, studies: Sequence[Study]) -> Lessons:
        reports = [CLEANINGS[self.settings.cleaning](study.report) for study in studies]
        said = [ngrams_of(report) for report in reports]
        tagged = [set(study_tags(study)) for study in studies]
        findings = [[float(study.labels.get(name) == 1) for name in OBSERVATIONS] for study in studies]
        return Lessons(
            torch.tensor(findings),
            torch.tensor([[float(tag in tags) for tag in self.tags] for tags in tagged]),
            torch.tensor([[float(phrase in counts) for phrase in self.phrases] for counts in said]),
            torch.from_numpy(self.meaning(reports).astype(np.float32)),
        )

    def as_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps: names, no vectors."""
        return {"settings": self.settings.model_dump(), "tags": self.tags, "phrases": self.phrases}


def ngrams_of(report: str) -> Counter[str]:
    words = report.split()
    return Counter(
        " ".join(words[start : start + n]) for n in range(1, LONGEST + 1) for start in range(len(words) - n + 1)
    )


def gram_vectors(counted: Sequence[Counter[str]], grams: Sequence[str], rarity: np.ndarray) -> sparse.csr_matrix:
    """(n, G): CIDEr's vectors, those of each length of n-gram of length 1/2, so that a product is the mean of four
    cosines."""
    number = {gram: place for place, gram in enumerate(grams)}
    length = np.array([gram.count(" ") for gram in grams])
    rows, columns, values = [], [], []
    for row, counts in enumerate(counted):
        known = [(number[gram], often) for gram, often in counts.items() if gram in number]
        if not known:
            continue
        where = np.array([place for place, _ in known])
        weight = np.array([often for _, often in known]) * rarity[where]
        for n in range(LONGEST):
            of_n = length[where] == n
            total = np.linalg.norm(weight[of_n])
            if total > 0:
                rows += [row] * int(of_n.sum())
                columns += where[of_n].tolist()
                values += (weight[of_n] / total / np.sqrt(LONGEST)).tolist()
    shape = (len(counted), len(grams))
    return sparse.csr_matrix((np.array(values, np.float32), (rows, columns)), shape=shape)


def study_tags(study: Study) -> list[str]:
    """'Opacity/lung/base/left' -> 'opacity', 'opacity/lung', 'opacity/base', 'opacity/left': heads, and heads with
    each of their qualifiers."""
    found: list[str] = []
    for term in study.tags:
        head, *rest = (part.strip().lower() for part in term.split("/"))
        if head and head != NOT_INDEXED:
            found += [head, *(f"{head}/{qualifier}" for qualifier in rest if qualifier)]
    return found


def gallery_of(store: Store, studies: Iterable[Study], size: int, *, watch: Watch = quiet) -> Gallery:
    """The frontal and lateral images of the studies, squeezed to squares. Raises BadInput for an image that cannot be
    read."""
    images, rows, lateral = [], [], []
    listed = list(studies)
    for row, study in enumerate(watch(listed, "reading images", len(listed))):
        for picture in study.pictures:
            grey = read_grey(store.picture_path(picture), where=f"study {study.id}")
            images.append((prepare(grey, size)[0] * 255).round().to(torch.uint8))
            rows.append(row)
            lateral.append(picture.view == "lateral")
    return Gallery(torch.stack(images), torch.tensor(rows), torch.tensor(lateral), len(listed))


def describe(subjects: Subjects) -> str:
    return json.dumps({"tags": len(subjects.tags), "phrases": len(subjects.phrases), "grams": len(subjects.grams)})

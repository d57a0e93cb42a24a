"""The labeler itself: reports in, labels of the 14 CheXpert observations out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import yaml

from negatoscope.metrics.chexpert.aggregate import aggregate
from negatoscope.metrics.chexpert.classify import Classifier
from negatoscope.metrics.chexpert.grammar import sketch
from negatoscope.metrics.chexpert.mentions import Mention, Vocabulary
from negatoscope.metrics.chexpert.sentences import clean, sentences
from negatoscope.metrics.chexpert.words import Lexicon, tokens


def _rules(name: str) -> Any:
    return yaml.safe_load(files(__package__).joinpath("rules", name).read_text(encoding="utf-8"))


class Labeler:
    def __init__(self) -> None:
        self.vocabulary = Vocabulary(_rules("observations.yaml"))
        self.lexicon = Lexicon.of(_rules("words.yaml"))
        self.classifier = Classifier.of(_rules("statements.yaml"))
        self.cache: dict[str, Any] = {}

    def sentence(self, text: str):
        got = self.cache.get(text)
        if got is None:
            got = self.read(text)
            self.cache[text] = got
        return got

    def read(self, text: str):
        mentions = self.vocabulary.find(text)
        if not mentions:
            return ()
        drawn = sketch(tokens(text), self.lexicon)
        return tuple(zip(mentions, self.classifier.verdicts(drawn, mentions)))

    def label(self, report: str) -> dict[str, int]:
        return aggregate((m, v.label) for s in sentences(clean(report)) for m, v in self.sentence(s))

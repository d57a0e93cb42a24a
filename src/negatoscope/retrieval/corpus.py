"""What training studies found: their abnormal sentences, in groups; and to which group a new sentence belongs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from negatoscope.errors import BadInput
from negatoscope.studies.study import Study
from negatoscope.text.abnormal import SentenceClassifier
from negatoscope.text.embed import Embedder, Vectors
from negatoscope.text.group import Groups, GroupSettings, Labeller, group_sentences, poles_of
from negatoscope.text.sentences import split_sentences
from negatoscope.watch import Watch, quiet


@dataclass(frozen=True)
class Told:
    """A study with the abnormal sentences of its report, which may be none."""

    study: Study
    sentences: tuple[str, ...]


def findings_told(studies: Iterable[Study], classifier: SentenceClassifier) -> list[Told]:
    """Every study, with its abnormal sentences, white space made single."""
    studies = list(studies)
    split = [split_sentences(study.report) for study in studies]
    abnormal = iter(classifier.probability([said for sentences in split for said in sentences]))
    return [
        Told(study, tuple(" ".join(said.split()) for said in sentences if next(abnormal) >= classifier.threshold))
        for study, sentences in zip(studies, split, strict=True)
    ]


@dataclass(frozen=True)
class Corpus:
    """S different abnormal sentences of training studies, in G groups; R studies that have at least one."""

    groups: Groups
    sentences: tuple[str, ...]
    """S, each once."""
    vectors: Vectors
    """(S, e)."""
    group: NDArray[np.int64]
    """(S,) the group of each."""
    central: NDArray[np.int64]
    """(G,) the sentence that is written for each group."""
    studies: tuple[Study, ...]
    """R."""
    said: tuple[NDArray[np.int64], ...]
    """R times the numbers of the sentences that the study has."""

    def groups_of(self, study: int) -> set[int]:
        return set(self.group[self.said[study]].tolist())

    def studies_of_groups(self) -> list[list[str]]:
        """G times the ids of the studies that said so."""
        found: list[list[str]] = [[] for _ in self.groups.groups]
        for number, study in enumerate(self.studies):
            for group in sorted(self.groups_of(number)):
                found[group].append(study.id)
        return found


def build_corpus(
    told: Sequence[Told],
    embedder: Embedder,
    settings: GroupSettings,
    *,
    labeller: Labeller | None = None,
    watch: Watch = quiet,
) -> Corpus:
    """Groups of what training studies say. Raises BadInput where none of them has an abnormal sentence."""
    abnormal = [one for one in told if one.sentences]
    if not abnormal:
        raise BadInput(
            "no abnormal sentence in any training report", remedy="CVSE learns from findings: train on other reports"
        )
    groups = group_sentences(
        [said for one in abnormal for said in one.sentences], embedder, settings, labeller=labeller, watch=watch
    )
    of_sentence = groups.of_sentence()
    sentences = tuple(of_sentence)
    number = {said: place for place, said in enumerate(sentences)}
    return Corpus(
        groups,
        sentences,
        embedder.embed(sentences),
        np.array([of_sentence[said] for said in sentences], np.int64),
        np.array([number[group.sentence] for group in groups.groups], np.int64),
        tuple(one.study for one in abnormal),
        tuple(np.unique([number[said] for said in one.sentences]) for one in abnormal),
    )


def assign(corpus: Corpus, embedder: Embedder, sentences: Sequence[str]) -> NDArray[np.int64]:
    """(n,) the group of each new sentence: its own where it is known, else that of the nearest known sentence which
    names the same exclusive terms; -1 where nothing of it is known, or nothing fits."""
    known = dict(zip(corpus.sentences, corpus.group.tolist(), strict=True))
    found = np.array([known.get(said, -1) for said in sentences], np.int64)
    new = np.flatnonzero(found < 0)
    if not len(new):
        return found
    vectors = embedder.embed([sentences[k] for k in new.tolist()])
    exclusive = corpus.groups.settings.exclusive
    codes, asked = poles_of(corpus.sentences), poles_of([sentences[k] for k in new.tolist()])
    for place, vector, code in zip(new.tolist(), vectors, asked.tolist(), strict=True):
        close = corpus.vectors @ vector
        if exclusive:
            close = np.where(codes == code, close, 0.0)
        best = int(np.argmax(close))
        found[place] = corpus.group[best] if close[best] > 0 else -1
    return found

"""A store's abnormal-only sibling: MIMIC-ABN from MIMIC-CXR, IU-ABN from IU X-Ray.

The rule of Ni et al. (2020), section 4.2: studies with a frontal and a lateral view whose report has at least one
abnormal sentence; of the report the abnormal sentences alone. The rule, the classifier and its threshold, and what was
left out stand in the sibling's `store.json`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from negatoscope import __version__
from negatoscope.errors import BadInput
from negatoscope.settings import Settings
from negatoscope.studies.sibling import Images, must_be_new, with_pictures
from negatoscope.studies.store import STUDIES_A_PART, About, Store, write_about, write_part
from negatoscope.studies.study import Study
from negatoscope.text.abnormal import SentenceClassifier
from negatoscope.text.sentences import split_sentences
from negatoscope.watch import Watch, quiet

COMPLETE = "complete report"
"""The section in which the sibling keeps the report as it was."""
NO_VIEWS, NO_FINDING = "without a frontal and a lateral view", "without an abnormal sentence"


class AbnormalRule(Settings):
    """Which studies the sibling has."""

    views: Literal["both", "any"] = "both"
    """both: as in the paper, studies with a frontal and a lateral picture. any: studies with any picture."""


@dataclass(frozen=True)
class Extracted:
    """What `extract_abnormal` did."""

    store: str
    studies: int
    of_studies: int
    splits: dict[str, int]
    sentences: int
    """Of the studies that were kept: all of them,"""
    abnormal: int
    """and those kept."""
    left_out: dict[str, int]


def extract_abnormal(
    store: Store,
    into: Path | str,
    classifier: SentenceClassifier,
    rule: AbnormalRule | None = None,
    *,
    named: str = "default",
    images: Images = "reference",
    watch: Watch = quiet,
) -> Extracted:
    """Writes the sibling. `named` is how `store.json` calls the classifier.

    Labels stay those of the whole report, which itself stays among the sections. Raises WrongUse where a store lies at
    `into` already, BadInput where no study fits the rule.
    """
    rule, into = rule or AbnormalRule(), Path(into)
    must_be_new(into)
    tally = _Tally()
    parts, waiting = 0, []
    for study in watch(_fitting(store, classifier, rule, tally), "looking for abnormal sentences", len(store)):
        if study is None:
            continue
        waiting.append(with_pictures(study, store, into, images))
        tally.keep(study)
        if len(waiting) == STUDIES_A_PART:
            write_part(into, parts, waiting)
            parts, waiting = parts + 1, []
    if waiting:
        write_part(into, parts, waiting)
        parts += 1
    if not parts:
        raise BadInput(
            "no study fits the rule: " + _said(tally.left_out),
            where=store.path,
            remedy="are these reports in English, and do their pictures have views? see --views",
        )
    counts = {"studies": tally.studies, "pictures": tally.pictures, **tally.splits, "damaged": 0}
    settings: dict[str, Any] = {
        "rule": rule.model_dump(mode="json"),
        "classifier": {"name": named, "threshold": classifier.threshold},
        "sentences": {"of the studies kept": tally.sentences, "abnormal": tally.abnormal},
        "left out": dict(tally.left_out),
        "labels": "of the complete report",
        "from": store.about.model_dump(mode="json", include={"source", "path", "settings", "negatoscope"}),
    }
    about = About(
        complete=True,
        source=f"abnormal sentences of {store.about.source}",
        path=str(store.path.resolve()),
        settings=settings,
        images="reference" if images == "reference" else store.about.images,
        report_sections=store.about.report_sections,
        parts=parts,
        counts={**counts, "left_out": tally.left_out.total()},
        negatoscope=__version__,
    )
    write_about(into, about)
    return Extracted(
        str(into),
        tally.studies,
        len(store),
        dict(tally.splits),
        tally.sentences,
        tally.abnormal,
        dict(tally.left_out),
    )


class _Tally:
    def __init__(self) -> None:
        self.studies = self.pictures = self.sentences = self.abnormal = 0
        self.splits: Counter[str] = Counter({"train": 0, "val": 0, "test": 0, "none": 0})
        self.left_out: Counter[str] = Counter()

    def keep(self, study: Study) -> None:
        self.studies += 1
        self.pictures += len(study.pictures)
        self.splits[study.split] += 1


def _fitting(store: Store, classifier: SentenceClassifier, rule: AbnormalRule, tally: _Tally) -> Iterator[Study | None]:
    """One item a study: None where it is left out. The classifier reads some hundred studies at a time."""
    waiting: list[Study] = []
    for study in store:
        waiting.append(study)
        if len(waiting) == 512:
            yield from _of_some(waiting, classifier, rule, tally)
            waiting = []
    yield from _of_some(waiting, classifier, rule, tally)


def _of_some(
    studies: list[Study], classifier: SentenceClassifier, rule: AbnormalRule, tally: _Tally
) -> Iterator[Study | None]:
    split = [split_sentences(study.report) for study in studies]
    probabilities = iter(classifier.probability([said for sentences in split for said in sentences]))
    for study, sentences in zip(studies, split, strict=True):
        kept = [said for said in sentences if next(probabilities) >= classifier.threshold]
        if rule.views == "both" and not all(study.pictures_seen_from(view) for view in ("frontal", "lateral")):
            tally.left_out[NO_VIEWS] += 1
            yield None
        elif not kept:
            tally.left_out[NO_FINDING] += 1
            yield None
        else:
            tally.sentences += len(sentences)
            tally.abnormal += len(kept)
            yield replace(study, report=" ".join(kept), sections={**study.sections, COMPLETE: study.report})


def _said(left_out: Counter[str]) -> str:
    return ", ".join(f"{count:,} {why}" for why, count in left_out.items()) or "it is empty"

"""The loader that a recipe asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from negatoscope.errors import WrongUse
from negatoscope.studies.loader import Extra, Look, Seen, StudyLoader
from negatoscope.studies.store import Store
from negatoscope.studies.study import Picture, Split, Study
from negatoscope.text.report_forms import ReportForm, SentenceLabels
from negatoscope.text.tags import Tags
from negatoscope.text.words import Vocabulary
from negatoscope.training.recipe import Recipe
from negatoscope.vision.augment import LookAtFiles
from negatoscope.vision.colour import LookAtColours


def loader_for(
    recipe: Recipe,
    vocabulary: Vocabulary | None,
    store: Store,
    split: Split,
    *,
    rank: int = 0,
    world: int = 1,
    limit: int | None = None,
    chosen: Sequence[int] | None = None,
) -> StudyLoader:
    """Shuffled and augmented for the training split, in the store's order and as they are for the others, and for
    studies that were `chosen` by their places in the store."""
    learning = split == "train" and chosen is None
    look = look_of(recipe, learning=learning)
    if vocabulary is not None and recipe.data.reports.changes:
        look = LookWithForm(look, recipe.data.reports, recipe.train.seed, learning)
        chosen = _with_report(recipe.data.reports, store, split) if chosen is None else chosen
    return StudyLoader(
        store,
        split,
        look,
        encode=None if vocabulary is None else vocabulary.encode,
        batch=recipe.train.batch,
        slots=recipe.data.views,
        arrange=recipe.data.arrange,
        shuffle=learning,
        seed=recipe.train.seed,
        workers=recipe.data.workers,
        extra=Extras(()) if vocabulary is None else extras_of(recipe, vocabulary, store),
        limit=limit,
        chosen=chosen,
        rank=rank,
        world=world,
    )


def look_of(recipe: Recipe, *, learning: bool) -> Look:
    """From image files, changed at random while learning; or from the recipe's feature cache."""
    if recipe.data.features is not None:
        if recipe.data.colour:
            raise WrongUse(
                "cached features are of grey pictures", where="data.colour", remedy="leave data.features out"
            )
        from negatoscope.vision.features import LookAtFeatures

        return LookAtFeatures.open(recipe.data.features, recipe.encoder)
    encoder = recipe.encoder
    change = recipe.data.augment if learning else None
    kind = LookAtColours if recipe.data.colour else LookAtFiles
    return kind(encoder.image_size, encoder.fit, change, seed=recipe.train.seed)


def reports_of(recipe: Recipe, store: Store, split: Split) -> Iterator[str]:
    """Reports of a split as they are to be learned, empty ones left out."""
    form = recipe.data.reports
    if form.wordings == "first":
        reports = (row.as_py() for row in store.table(["report"], split=split)["report"])
    else:
        reports = (wording for study in store.studies(split) for wording in form.wordings_of(study))
    yield from (kept for report in reports if (kept := form.kept(report)))


def all_wordings(recipe: Recipe, vocabulary: Vocabulary, store: Store, split: Split) -> dict[str, list[str]]:
    """Of each study all that a written report is scored against; empty where that is its one report."""
    form = recipe.data.reports
    if form.wordings == "first":
        return {}
    return {
        study.id: [vocabulary.as_scored(kept) for one in form.wordings_of(study) if (kept := form.kept(one))]
        for study in store.studies(split)
    }


def _with_report(form: ReportForm, store: Store, split: Split) -> Sequence[int] | None:
    """Places in the store of the studies that have something left to report; None for all of them."""
    if form.keep == "complete":
        return None
    rows = store.table(["split", "report"]).to_pylist()
    return [place for place, row in enumerate(rows) if row["split"] == split and form.kept(row["report"])]


@dataclass(frozen=True)
class LookWithForm:
    """Looks at a study whose report has another form: only its abnormal sentences, or another order of them."""

    look: Look
    form: ReportForm
    seed: int
    learning: bool

    def __call__(self, store: Store, study: Study, pictures: Sequence[Picture | None], epoch: int) -> Seen:
        form = self.form
        if self.learning:
            told = form.told(form.wording(study, epoch, self.seed), study.id, epoch, self.seed)
        else:
            told = form.kept(study.report)
        return self.look(store, replace(study, report=told), pictures, epoch)


@dataclass(frozen=True)
class Extras:
    """Several things that losses need besides, as one."""

    parts: tuple[Extra, ...]

    def __call__(self, study: Study) -> Mapping[str, Any]:
        return {name: value for part in self.parts for name, value in part(study).items()}


def extras_of(recipe: Recipe, vocabulary: Vocabulary, store: Store) -> Extra:
    """What the recipe's losses learn from beside the words."""
    parts: list[Extra] = []
    tags = tags_of(recipe, store)
    if tags is not None:
        parts.append(tags)
    if _has_loss(recipe, "switch"):
        parts.append(SentenceLabels(vocabulary))
    return Extras(tuple(parts))


def tags_of(recipe: Recipe, store: Store) -> Tags | None:
    """The tags of the training studies, where the loss `tags` asks for them."""
    if not _has_loss(recipe, "tags"):
        return None
    return Tags.learned(recipe.data.tags, store.studies("train"))


def _has_loss(recipe: Recipe, name: str) -> bool:
    return any(loss.get("name") == name for loss in recipe.losses)

"""The loader that a recipe asks for."""

from __future__ import annotations

from negatoscope.studies.loader import Look, StudyLoader
from negatoscope.studies.store import Store
from negatoscope.studies.study import Split
from negatoscope.text.words import Vocabulary
from negatoscope.training.recipe import Recipe
from negatoscope.vision.augment import LookAtFiles


def loader_for(
    recipe: Recipe,
    vocabulary: Vocabulary | None,
    store: Store,
    split: Split,
    *,
    rank: int = 0,
    world: int = 1,
    limit: int | None = None,
) -> StudyLoader:
    """Shuffled and augmented for the training split, in the store's order and as they are for the others."""
    learning = split == "train"
    return StudyLoader(
        store,
        split,
        look_of(recipe, learning=learning),
        encode=None if vocabulary is None else vocabulary.encode,
        batch=recipe.train.batch,
        slots=recipe.data.views,
        arrange=recipe.data.arrange,
        shuffle=learning,
        seed=recipe.train.seed,
        workers=recipe.data.workers,
        limit=limit,
        rank=rank,
        world=world,
    )


def look_of(recipe: Recipe, *, learning: bool) -> Look:
    """From image files, changed at random while learning; or from the recipe's feature cache."""
    if recipe.data.features is not None:
        from negatoscope.vision.features import LookAtFeatures

        return LookAtFeatures.open(recipe.data.features, recipe.encoder)
    encoder = recipe.encoder
    change = recipe.data.augment if learning else None
    return LookAtFiles(encoder.image_size, encoder.fit, change, seed=recipe.train.seed)

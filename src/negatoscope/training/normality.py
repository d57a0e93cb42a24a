"""Keeps the normality pool of Contrastive Attention in step with the encoder while a run trains."""

from __future__ import annotations

from dataclasses import dataclass

from lightning_fabric import Fabric

from negatoscope.contrast.attention import AttentionSettings, ContrastiveAttention
from negatoscope.contrast.pool import Normals, choose_normals, look_at_normals
from negatoscope.models.base import Reporter
from negatoscope.studies.loader import StudyLoader
from negatoscope.studies.store import Store
from negatoscope.training.data import loader_for
from negatoscope.training.recipe import Recipe
from negatoscope.watch import Watch


@dataclass(frozen=True)
class Normality:
    settings: AttentionSettings
    normals: Normals
    loader: StudyLoader
    """The pool's studies, none of them augmented."""

    def due(self, contrast: ContrastiveAttention, epochs: int) -> bool:
        """Whether the pool is to be made anew, now that the reporter has learned for so many epochs."""
        made_after, every = int(contrast.made_after), self.settings.refresh
        return made_after < 0 or (every > 0 and epochs % every == 0 and made_after < epochs)

    def refresh(
        self, contrast: ContrastiveAttention, whole: Reporter | None, epochs: int, fabric: Fabric, watch: Watch
    ) -> None:
        """`whole` is the reporter in one piece on the first process, which looks for all of them."""
        vectors = None
        if whole is not None and fabric.is_global_zero:
            batches = (
                batch.to(fabric.device) for batch in watch(self.loader.epoch(), "normality pool", len(self.loader))
            )
            with fabric.autocast():
                vectors = look_at_normals(whole, self.settings, batches)
        vectors = fabric.broadcast(vectors)
        assert vectors is not None
        contrast.hold(vectors.pool, vectors.there, self.normals.as_json(), made_after=epochs)


def normality_of(recipe: Recipe, store: Store) -> Normality | None:
    """None where the recipe has no Contrastive Attention; raises BadInput where there are no normal studies."""
    settings = recipe.contrast.attention
    if settings is None:
        return None
    normals = choose_normals(store, settings)
    return Normality(settings, normals, loader_for(recipe, None, store, "train", chosen=normals.places))

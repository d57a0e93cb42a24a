"""What the bench stands on: phantoms to learn from and to measure on, an encoder, and what it saw of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from negatoscope.errors import WrongUse
from negatoscope.papers.grounds import Grounds
from negatoscope.papers.making import PHANTOM_BACKBONE, teach_encoder
from negatoscope.papers.phantom_bench.settings import BenchSettings
from negatoscope.papers.phantom_bench.short import ShortPhantom
from negatoscope.studies.batch import Batch
from negatoscope.studies.importing import import_studies
from negatoscope.studies.phantom.planning import Plan, plan_study
from negatoscope.studies.phantom.settings import PhantomSettings
from negatoscope.studies.store import Store, read_about
from negatoscope.training.data import loader_for
from negatoscope.training.recipe import Recipe, recipe_of
from negatoscope.vision.encoder import EncoderSettings
from negatoscope.vision.extract import extract_features
from negatoscope.vision.features import FeatureCache
from negatoscope.watch import Watch, quiet


@dataclass(frozen=True)
class Ready:
    folder: Path
    settings: BenchSettings

    @property
    def learned(self) -> Path:
        """The store of phantoms to learn from."""
        return self.folder / "phantoms"

    @property
    def features(self) -> Path:
        return self.folder / "features"

    @property
    def held_out(self) -> Path:
        """The store of phantoms to measure on."""
        return self.folder / "phantoms-held-out"

    @property
    def held_out_features(self) -> Path:
        return self.folder / "features-held-out"

    @property
    def grounds(self) -> Grounds:
        """What rows are trained on."""
        key = FeatureCache.open(self.features).key.model_dump(mode="json")
        about = {"studies": Store.open(self.learned).counts(), "tags": 0, "features": key}
        return Grounds("phantom", self.folder, self.learned, self.features, about)

    def plans(self) -> tuple[list[Plan], list[Plan]]:
        """What was drawn to learn from and to measure on, study by study, in the stores' order."""
        return plans_of(self.settings.to_learn()), plans_of(self.settings.to_measure())

    def batches(self, recipe: Recipe) -> Iterator[Batch]:
        """The held-out studies as a run's reporter takes them, each once. Their ids are not those of the training
        studies, which the normality pool knows."""
        said: dict[str, Any] = recipe.as_dict()
        said["data"] |= {"store": str(self.held_out), "features": str(self.held_out_features)}
        store = Store.open(self.held_out)
        place = {one: number for number, one in enumerate(store.ids())}
        other = recipe_of(said)
        for split in ("train", "val", "test"):
            if store.counts()[split]:
                # Chosen studies come as they are: neither shuffled nor changed.
                for batch in loader_for(other, None, store, split, chosen=range(len(store))).epoch():
                    yield replace(batch, ids=tuple(f"held-out/{place[one]}" for one in batch.ids))


def place_of(id: str) -> int:
    """Of a held-out study in its store."""
    return int(id.removeprefix("held-out/"))


def make_ready(
    folder: Path, settings: BenchSettings, threads: int, say: Callable[[str], None], watch: Watch = quiet
) -> Ready:
    """Draws, teaches and looks, whatever is not there yet. Raises WrongUse where phantoms of other settings lie."""
    ready = Ready(folder, settings)
    _draw(ready.learned, settings.to_learn(), say, watch)
    _draw(ready.held_out, settings.to_measure(), say, watch)
    weights = folder / "encoder.safetensors"
    if not weights.exists():
        teach_encoder(
            Store.open(ready.learned),
            weights,
            "cpu",
            say,
            watch,
            size=settings.image_size,
            epochs=settings.teach_epochs,
            threads=threads,
            low_precision=settings.low_precision,
        )
    looking = EncoderSettings(backbone=PHANTOM_BACKBONE, weights=weights, image_size=settings.image_size, fit="squash")
    for store, cache in ((ready.learned, ready.features), (ready.held_out, ready.held_out_features)):
        extract_features(Store.open(store), looking, cache, batch=32, watch=watch)
    return ready


def plans_of(settings: PhantomSettings) -> list[Plan]:
    return [plan_study(settings.seed, index, settings) for index in range(settings.studies)]


def _draw(store: Path, settings: PhantomSettings, say: Callable[[str], None], watch: Watch) -> None:
    about = read_about(store)
    if about is not None and about.complete:
        if about.settings.get("source") != settings.model_dump(mode="json"):
            raise WrongUse("holds phantoms of other settings", where=store, remedy="--into ANOTHER_FOLDER")
        return
    done = import_studies(ShortPhantom(None, settings), store, watch=watch)
    say(f"{store}: {done.studies:,} phantom studies drawn")

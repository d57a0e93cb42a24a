"""A store whose studies have labels: a sibling of one that has none, or somebody else's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from negatoscope import __version__
from negatoscope.errors import BadInput
from negatoscope.metrics.chexpert.labeler import Labeler
from negatoscope.metrics.chexpert.tables import count_labels
from negatoscope.studies.sibling import Images, must_be_new, with_pictures
from negatoscope.studies.store import STUDIES_A_PART, About, Store, write_about, write_part
from negatoscope.studies.study import Study
from negatoscope.watch import Watch, quiet


@dataclass(frozen=True)
class LabelledStore:
    store: str
    studies: int
    labels: dict[str, dict[str, int]]
    """Observation -> present, absent, uncertain, blank -> number of studies."""
    labeler: str


def label_store(
    store: Store,
    into: Path | str,
    *,
    labeler: Labeler | None = None,
    processes: int = 1,
    images: Images = "reference",
    watch: Watch = quiet,
) -> LabelledStore:
    """Writes the sibling at `into`: every study with the labels of its report, in place of those it had.

    Features cached for the store serve the sibling too. Raises WrongUse where something lies at `into` already.
    """
    labeler, into = labeler or Labeler(), Path(into)
    must_be_new(into)
    if not len(store):
        raise BadInput("holds no studies", where=store.path)
    labels = labeler.label_many(store.table(["report"])["report"].to_pylist(), processes, watch)
    parts, waiting = 0, list[Study]()
    for study, said in watch(zip(store, labels, strict=True), "writing", len(store)):
        waiting.append(with_pictures(replace(study, labels=said), store, into, images))
        if len(waiting) == STUDIES_A_PART:
            write_part(into, parts, waiting)
            parts, waiting = parts + 1, []
    if waiting:
        write_part(into, parts, waiting)
        parts += 1
    about: About = store.about.model_copy(
        update={
            "path": str(store.path.resolve()),
            "settings": {**store.about.settings, "labels": f"negatoscope's CheXpert labeler {labeler.version}"},
            "images": "reference" if images == "reference" else store.about.images,
            "parts": parts,
            "negatoscope": __version__,
        }
    )
    write_about(into, about)
    return LabelledStore(str(into), len(store), count_labels(labels), labeler.version)

"""A store beside another: the same pictures, something else said of the studies."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Literal

from negatoscope.errors import WrongUse
from negatoscope.studies.store import Store, read_about
from negatoscope.studies.study import Study

Images = Literal["reference", "copy"]
"""reference: pictures stay where they lie. copy: the sibling has its own, under the same names."""


def must_be_new(into: Path) -> None:
    """Raises WrongUse where a store, or anything but the rest of one that was broken off, lies at `into`."""
    if read_about(into) is not None or (
        into.exists() and {path.name for path in into.iterdir()} - {"studies", "images"}
    ):
        raise WrongUse("holds something already", where=into, remedy="name a new folder")


def with_pictures(study: Study, store: Store, into: Path, images: Images) -> Study:
    """The study with its pictures and masks as the sibling at `into` knows them."""

    def where(path: str) -> str:
        lies = store.picture_path(path)
        if images == "reference":
            return str(lies.resolve())
        if not Path(path).is_absolute():
            (into / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(lies, into / path)
        return path

    pictures = tuple(replace(picture, path=where(picture.path)) for picture in study.pictures)
    return replace(study, pictures=pictures, masks={name: where(path) for name, path in study.masks.items()})

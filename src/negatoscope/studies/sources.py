"""What a source is, and the sources there are.

A source reads examinations from wherever they lie, one after the other and always in the same order; `importing.py`
takes them into a store. A new source is one file with one class, and one line in `SOURCES`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from negatoscope.errors import Trouble, WrongUse, nearest_names
from negatoscope.settings import Settings, read_settings
from negatoscope.studies.study import Study
from negatoscope.watch import Watch, quiet

SOURCES = {
    "iu-xray": "negatoscope.studies.iu_xray:IuXray",
    "r2gen-json": "negatoscope.studies.r2gen_json:R2GenJson",
    "mimic-cxr": "negatoscope.studies.mimic_cxr:MimicCxr",
    "coco": "negatoscope.studies.coco:Coco",
    "dicom": "negatoscope.studies.dicom:DicomFolder",
    "phantom": "negatoscope.studies.phantom.source:Phantom",
}


@dataclass(frozen=True, slots=True)
class Drawing:
    """Pictures that no file holds."""

    pictures: tuple[np.ndarray, ...]
    """One (h, w) uint8 or uint16 array for each picture of the study."""
    masks: Mapping[str, np.ndarray] = field(default_factory=dict)
    """'<finding>@<picture number>' -> (h, w) bool."""


@dataclass(frozen=True, slots=True)
class Found:
    """One examination at its source."""

    study: Study
    """Its pictures' paths are those of the source's files; their size, bits and sha256 are filled in by the import."""
    draw: Callable[[], Drawing] | None = None
    """Makes the pictures, where no file holds them. Called in a worker thread, only if the store lacks the study."""
    where: str = ""
    """The file (and line or entry) that describes the study, for messages."""


@dataclass(frozen=True, slots=True)
class Damaged:
    """An examination that cannot be taken in: the import stops at it, or lists it with `--skip-bad` and goes on."""

    id: str
    what: str
    where: str = ""
    remedy: str = ""
    known: bool = False
    """Left out by the source's own rule (Open-i has reports without an image): counted, listed, no reason to stop."""

    @classmethod
    def of(cls, id: str, trouble: Trouble) -> Damaged:
        return cls(id, trouble.what, "" if trouble.where is None else str(trouble.where), trouble.remedy or "")


class Source(ABC):
    """Where examinations come from."""

    name: ClassVar[str]
    """As in `SOURCES`."""
    Settings: ClassVar[type[Settings]] = Settings
    """What can be set; `--set key=value` on the command line."""
    needs_path: ClassVar[bool] = True
    has_reports: ClassVar[bool] = True
    """Whether a study without one word of report is damaged; False for a folder of DICOM files."""
    colour: ClassVar[bool] = False
    """Whether a copy made at another size keeps its colours. Radiographs have none."""
    report_sections: tuple[str, ...] = ("findings",)
    """What `Study.report` is made of, for the store's notes; an instance may say otherwise after its settings."""

    def __init__(self, path: Path | None, settings: Any = None) -> None:
        self.path = path
        self.settings: Any = settings if settings is not None else self.Settings()

    def prepare(self, watch: Watch = quiet) -> None:  # noqa: B027 (most sources have nothing to do here)
        """Long work before the first examination: a download, unpacking. Done again, it does only what is missing."""

    @abstractmethod
    def examinations(self) -> Iterator[Found | Damaged]:
        """Every examination, lazily, in an order that is the same each time: a killed import goes on by it.

        Raises `BadInput` where nothing of the source can be read (the annotation file is missing or is no JSON). What
        concerns one study alone is yielded as `Damaged`. Images are neither opened nor decoded here.
        """

    def __len__(self) -> int:
        """How many examinations there are, for the progress bar; 0 where that is not known beforehand."""
        return 0


def open_source(name: str, path: Path | str | None = None, settings: Mapping[str, Any] | None = None) -> Source:
    """The source of that name over that path. Raises `WrongUse` for an unknown name or setting."""
    kind = source_class(name)
    if kind.needs_path and path is None:
        raise WrongUse(f"source {name!r} needs a path", remedy=f"negatoscope data import {name} PATH --into STORE")
    given = {key.replace("-", "_"): value for key, value in (settings or {}).items()}
    chosen = read_settings(kind.Settings, given, where=f"source {name}")
    return kind(None if path is None else Path(path), chosen)


def source_class(name: str) -> type[Source]:
    if name not in SOURCES:
        raise WrongUse(f"no source {name!r}", remedy=nearest_names(name, SOURCES))
    module, _, kind = SOURCES[name].partition(":")
    return getattr(import_module(module), kind)

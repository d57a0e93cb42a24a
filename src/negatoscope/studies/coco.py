"""COCO in Karpathy's split: dataset_coco.json beside the folders train2014/ and val2014/.

Every image has five captions or a few more. All are kept as sections 'caption-1', 'caption-2' ..., the first of them is
the study's report, and `references` gives them all back for scoring.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

from negatoscope.errors import BadInput
from negatoscope.settings import Settings
from negatoscope.studies.inside import file_inside
from negatoscope.studies.sources import Damaged, Found, Source
from negatoscope.studies.study import Picture, Split, Study


class CocoSettings(Settings):
    annotation: str = "dataset_coco.json"
    """Karpathy's file, inside the folder."""
    images: str = "."
    """The folder that holds train2014/ and val2014/."""
    restval: Literal["train", "none"] = "train"
    """What becomes of the 30,504 images that Karpathy calls restval: papers train on them."""


class Coco(Source):
    name: ClassVar[str] = "coco"
    Settings: ClassVar = CocoSettings
    colour: ClassVar[bool] = True
    report_sections: tuple[str, ...] = ("caption-1",)

    def __init__(self, path: Path, settings: Any = None) -> None:
        super().__init__(path, settings)
        self.folder = path if path.is_dir() else path.parent
        self.annotation = path / self.settings.annotation if path.is_dir() else path
        self._rows: list[Any] | None = None

    def __len__(self) -> int:
        return len(self._images())

    def examinations(self) -> Iterator[Found | Damaged]:
        folder = self.folder / self.settings.images
        for number, row in enumerate(self._images()):
            where = f"{self.annotation}, image {number}"
            try:
                yield Found(_study(row, folder, self.settings.restval), where=where)
            except BadInput as error:
                id = str(row.get("cocoid", where)) if isinstance(row, dict) else where
                yield Damaged(id, error.what, where, error.remedy or "")

    def _images(self) -> list[Any]:
        if self._rows is None:
            self._rows = _read_images(self.annotation)
        return self._rows


def references(study: Study) -> list[str]:
    """Every caption of an image of COCO; of any other study its one report."""
    captions = [text for name, text in study.sections.items() if name.startswith("caption-")]
    return captions or [study.report]


def _read_images(path: Path) -> list[Any]:
    remedy = "give a folder with Karpathy's dataset_coco.json"
    try:
        told = json.loads(path.read_bytes().decode("utf-8-sig", "surrogateescape"))
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", where=path, remedy=remedy) from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"is no JSON ({error})", where=path, remedy=remedy) from error
    if not isinstance(told, dict) or not isinstance(told.get("images"), list):
        raise BadInput("has no list of images", where=path, remedy=remedy)
    return told["images"]


def _study(row: Any, folder: Path, restval: Split) -> Study:
    remedy = "give it `cocoid`, `filename`, `split` and `sentences`, as Karpathy's file does"
    try:
        named = "/".join(filter(None, (row.get("filepath", ""), row["filename"])))
        captions = [" ".join(sentence["raw"].split()) for sentence in row["sentences"]]
        id, said = str(row["cocoid"]), row["split"]
    except (KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"is not a row of Karpathy's file ({type(error).__name__}: {error})", remedy=remedy) from error
    splits: dict[str, Split] = {"train": "train", "val": "val", "test": "test", "restval": restval}
    if said not in splits:
        raise BadInput(f"has the split {said!r}", remedy=f"known: {', '.join(splits)}")
    captions = [caption for caption in captions if caption]
    sections = {f"caption-{number}": caption for number, caption in enumerate(captions, start=1)}
    picture = Picture(str(file_inside(folder, named)), view="other")
    return Study(id, (picture,), captions[0] if captions else "", splits[said], sections=sections)

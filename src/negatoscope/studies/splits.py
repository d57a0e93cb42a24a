"""Who learns, who chooses, who is asked at the end: the source's split, R2Gen's for IU X-Ray, a file's, a seeded one.

The seeded split is made by patient, so that nobody stands on both sides, and by a hash of seed and patient alone, so
that it stays as it is when studies are added.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from negatoscope.errors import BadInput
from negatoscope.studies.study import Split, Study

SplitBy = Literal["source", "r2gen", "seeded", "file"]
SPLITS: tuple[Split, ...] = ("train", "val", "test", "none")


class Splitting(BaseModel):
    """How studies come to their split."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    by: SplitBy = "source"
    file: Path | None = None
    """annotation.json in R2Gen's form, or JSON lines or CSV with `id` and `split`; for `by: file`."""
    seed: int = 0
    shares: tuple[float, float, float] = Field(default=(0.7, 0.1, 0.2))
    """Train, val and test, for `by: seeded`."""

    @model_validator(mode="after")
    def _fits(self) -> Splitting:
        if self.by == "file" and self.file is None:
            raise ValueError("a split by file needs the file")
        if self.by != "file" and self.file is not None:
            raise ValueError("a split file fits only a split by file")
        if min(self.shares) < 0 or abs(sum(self.shares) - 1) > 1e-6:
            raise ValueError("the shares of train, val and test must add up to 1")
        return self


def splitter(splitting: Splitting) -> Callable[[Study], Split]:
    """The rule that gives each study its split."""
    if splitting.by == "seeded":
        return lambda study: seeded_split(study.patient or study.id, splitting.seed, splitting.shares)
    if splitting.by == "r2gen":
        return _by_id(r2gen_split_of_iu_xray())
    if splitting.by == "file":
        assert splitting.file is not None
        return _by_id(read_split_file(splitting.file))
    return lambda study: study.split


def seeded_split(patient: str, seed: int, shares: tuple[float, float, float]) -> Split:
    digest = hashlib.sha256(f"{seed}\0{patient}".encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    if place < shares[0]:
        return "train"
    return "val" if place < shares[0] + shares[1] else "test"


def r2gen_split_of_iu_xray() -> dict[str, Split]:
    """Open-i's id ('CXR2384') -> R2Gen's split, for train and val.

    The ids of its test split are not shipped: a study that stands in neither is 'none', until `--split-file` names the
    official annotation.json, which has all three.
    """
    text = files("negatoscope.studies").joinpath("data/iu_xray_r2gen.json").read_text(encoding="utf-8")
    return {f"CXR{number}": split for split, numbers in json.loads(text).items() for number in numbers}


def read_split_file(path: Path) -> dict[str, Split]:
    """Study id -> split, out of R2Gen's annotation.json, JSON lines, or CSV. Raises `BadInput`."""
    try:
        rows = list(_rows(path.read_text(encoding="utf-8-sig"), path.suffix.lower()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"no split can be read from it ({type(error).__name__}: {error})"
        remedy = "give R2Gen's annotation.json, or CSV or JSON lines with `id` and `split`"
        raise BadInput(what, where=path, remedy=remedy) from error
    split_of: dict[str, Split] = {}
    for id, said in rows:
        split = split_named(said)
        if split is None:
            raise BadInput(f"study {id!r} has the split {said!r}", where=path, remedy=f"known: {', '.join(SPLITS)}")
        if split_of.setdefault(id, split) != split:
            raise BadInput(f"study {id!r} stands in two splits", where=path, remedy="leave it in one")
    return split_of


def _rows(text: str, ending: str) -> Iterator[tuple[str, str]]:
    if ending == ".csv":
        for row in csv.DictReader(text.splitlines()):
            yield row["id"], row["split"]
    elif ending == ".jsonl":
        for row in map(json.loads, filter(str.strip, text.splitlines())):
            yield str(row["id"]), row["split"]
    else:
        for split, studies in json.loads(text).items():
            for study in studies:
                yield str(study["id"]), split


_SAID: dict[str, Split] = {
    "train": "train",
    "val": "val",
    "test": "test",
    "none": "none",
    "validate": "val",
    "validation": "val",
    "valid": "val",
    "dev": "val",
}


def split_named(said: str) -> Split | None:
    """MIMIC-CXR says 'validate', others 'valid' or 'dev'. None for a name that is no split's."""
    return _SAID.get(said.strip().lower())


def _by_id(split_of: Mapping[str, Split]) -> Callable[[Study], Split]:
    """By the id as it stands, else by Open-i's number: R2Gen's 'CXR2384_IM-0942' is Open-i's 'CXR2384'."""
    by_number: dict[str, Split] = {number: split for id, split in split_of.items() if (number := _open_i_number(id))}

    def split(study: Study) -> Split:
        of_its_id = split_of.get(study.id)
        return of_its_id if of_its_id is not None else by_number.get(_open_i_number(study.id), "none")

    return split


def _open_i_number(id: str) -> str:
    found = re.match(r"CXR(\d+)(?![^_])", id)
    return found[1] if found else ""

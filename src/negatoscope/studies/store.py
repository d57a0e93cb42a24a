"""The one place where studies of every source lie once imported: a Parquet table in parts, and the image files.

    store.json                   what it holds, where it came from, with which settings
    studies/part-00000.parquet   some thousand studies a part, their pictures nested
    images/3f/<study>-0.png      the files as they came, or grey PNG or JPEG made at the import
    bad.jsonl                    what was left out and why, if anything was

`store.json` names the number of parts. It is written last, so that a store is whole or is no store.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from negatoscope.errors import BadInput, WrongUse, nearest_names
from negatoscope.studies.splits import SPLITS
from negatoscope.studies.study import Picture, Split, Study
from negatoscope.whole_files import whole_file, write_text

FORMAT = 1
STUDIES_A_PART = 2048
STUDIES_A_GROUP = 256

_PICTURE = pa.struct(
    [
        ("path", pa.string()),
        ("view", pa.string()),
        ("position", pa.string()),
        ("width", pa.int32()),
        ("height", pa.int32()),
        ("bits", pa.int8()),
        ("sha256", pa.string()),
    ]
)
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("patient", pa.string()),
        ("split", pa.string()),
        ("report", pa.string()),
        ("sections", pa.map_(pa.string(), pa.string())),
        ("labels", pa.map_(pa.string(), pa.int8())),
        ("tags", pa.list_(pa.string())),
        ("pictures", pa.list_(_PICTURE)),
        ("masks", pa.map_(pa.string(), pa.string())),
    ]
)


class About(BaseModel):
    """What `store.json` says."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int = FORMAT
    complete: bool = False
    source: str
    path: str = ""
    """Where the source lay."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """All that decides what is in the store: the source's own settings, the splitting, the images' size and form."""
    images: Literal["copy", "reference"] = "copy"
    report_sections: tuple[str, ...] = ("findings",)
    """What `Study.report` was made of."""
    parts: int = 0
    counts: dict[str, int] = Field(default_factory=dict)
    """Studies, pictures, the studies of each split, and what was left out."""
    negatoscope: str = ""


class Store:
    """Studies that were imported, read lazily: no method but `table` holds more than a few hundred of them."""

    def __init__(self, path: Path, about: About) -> None:
        self.path, self.about = path, about
        self._part_paths = [part_path(path, part) for part in range(about.parts)]
        self._group = lru_cache(maxsize=64)(self._read_group)
        self._groups: list[tuple[int, int]] | None = None  # (part, row group) in order, with
        self._starts: list[int] = []  # the number of its first study
        self._ids: pa.ChunkedArray | None = None

    @classmethod
    def open(cls, path: Path | str) -> Store:
        """Raises `BadInput` where there is no store, or one whose import did not end."""
        path = Path(path)
        about = read_about(path)
        if about is None:
            remedy = "import studies into it first: negatoscope data import SOURCE PATH --into STORE"
            raise BadInput("no store of studies here", where=path, remedy=remedy)
        if not about.complete:
            raise BadInput("its import did not end", where=path, remedy="run the same import again to resume")
        for part in range(about.parts):
            if not part_path(path, part).is_file():
                raise BadInput("a part of the store is missing", where=part_path(path, part), remedy="import it anew")
        return cls(path, about)

    def __reduce__(self) -> tuple[type[Store], tuple[Path, About]]:
        return Store, (self.path, self.about)  # worker processes open the parts for themselves

    def __len__(self) -> int:
        return self.about.counts["studies"]

    def counts(self) -> dict[str, int]:
        return dict(self.about.counts)

    def table(self, columns: Sequence[str] = ("id", "split", "report"), split: Split | None = None) -> pa.Table:
        """Whole columns at once, as Arrow: the quick way to 400,000 ids, splits and reports."""
        unknown = [name for name in columns if name not in SCHEMA.names]
        if unknown:
            raise WrongUse(f"a store has no column {unknown[0]!r}", remedy=nearest_names(unknown[0], SCHEMA.names))
        wanted = list(columns) if split is None or "split" in columns else [*columns, "split"]
        empty = pa.schema([SCHEMA.field(name) for name in wanted]).empty_table()
        table = pa.concat_tables([empty, *(self._read(path, wanted) for path in self._part_paths)])
        if split is not None:
            table = table.filter(pc.field("split") == known_split(split))
        return table.select(list(columns))

    def studies(self, split: Split | None = None) -> Iterator[Study]:
        """Every study, or those of one split, in the store's order, some hundred in memory at a time."""
        if split is not None:
            known_split(split)
        for path in self._part_paths:
            with _opened(path) as part:
                for group in range(part.num_row_groups):
                    rows = part.read_row_group(group)
                    if split is not None:
                        rows = rows.filter(pc.field("split") == split)
                    yield from map(study_of_row, rows.to_pylist(maps_as_pydicts="strict"))

    def __iter__(self) -> Iterator[Study]:
        return self.studies()

    def ids(self) -> list[str]:
        return self._id_column().to_pylist()

    def study(self, id: str) -> Study:
        """The study of that id; the first call reads the column of ids."""
        number = pc.index(self._id_column(), id).as_py()
        if number < 0:
            raise WrongUse(
                f"no study {id!r} in this store", where=self.path, remedy="`data show STORE --ids` lists them"
            )
        return self.at(number)

    def at(self, number: int) -> Study:
        """The study that stands at a place of the store's order."""
        if not 0 <= number < len(self):
            raise WrongUse(f"no study number {number}", where=self.path, remedy=f"it holds {len(self)}")
        groups = self._group_list()
        which = _last_not_after(self._starts, number)
        rows = self._group(*groups[which])
        return study_of_row(rows.slice(number - self._starts[which], 1).to_pylist(maps_as_pydicts="strict")[0])

    def picture_path(self, picture: Picture | str) -> Path:
        """Where a picture's (or a mask's) file lies. Raises `BadInput` for a path that climbs out of the store."""
        path = picture if isinstance(picture, str) else picture.path
        if self.about.images == "reference" and Path(path).is_absolute():
            return Path(path)
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise BadInput(f"the picture {path!r} lies outside the store", where=self.path, remedy="import it anew")
        return self.path / path

    def _read(self, path: Path, columns: list[str]) -> pa.Table:
        with _opened(path) as part:
            return part.read(columns=columns).select(columns)

    def _read_group(self, part: int, group: int) -> pa.Table:
        with _opened(self._part_paths[part]) as opened:
            return opened.read_row_group(group)

    def _id_column(self) -> pa.ChunkedArray:
        if self._ids is None:
            self._ids = self.table(["id"])["id"]
        return self._ids

    def _group_list(self) -> list[tuple[int, int]]:
        if self._groups is None:
            self._groups, start = [], 0
            for number, path in enumerate(self._part_paths):
                with _opened(path) as part:
                    for group in range(part.num_row_groups):
                        self._groups.append((number, group))
                        self._starts.append(start)
                        start += part.metadata.row_group(group).num_rows
        return self._groups


def part_path(store: Path, number: int) -> Path:
    return store / "studies" / f"part-{number:05d}.parquet"


def read_about(store: Path) -> About | None:
    """What `store.json` says, or None where there is none."""
    path = store / "store.json"
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot be read ({error})", where=path, remedy="import the studies anew") from error
    try:
        about = json.loads(text)
        if isinstance(about, dict) and about.get("format", FORMAT) != FORMAT:
            remedy = "import the studies anew, or use the version of negatoscope that made it"
            raise BadInput(
                f"a store of format {about['format']}; this version reads {FORMAT}", where=path, remedy=remedy
            )
        return About.model_validate(about)
    except (ValueError, ValidationError) as error:
        raise BadInput(
            "this is not what a store says of itself", where=path, remedy="import the studies anew"
        ) from error


def write_about(store: Path, about: About) -> None:
    write_text(store / "store.json", about.model_dump_json(indent=1) + "\n")


def write_part(store: Path, number: int, studies: Sequence[Study]) -> None:
    table = pa.Table.from_pylist([row_of_study(study) for study in studies], schema=SCHEMA)
    with whole_file(part_path(store, number)) as part:
        pq.write_table(table, part, compression="zstd", row_group_size=STUDIES_A_GROUP)


def row_of_study(study: Study) -> dict[str, Any]:
    return {
        "id": study.id,
        "patient": study.patient,
        "split": study.split,
        "report": study.report,
        "sections": list(study.sections.items()),
        "labels": list(study.labels.items()),
        "tags": list(study.tags),
        "pictures": [{name: getattr(picture, name) for name in _PICTURE_FIELDS} for picture in study.pictures],
        "masks": list(study.masks.items()),
    }


_PICTURE_FIELDS = tuple(_PICTURE.field(number).name for number in range(_PICTURE.num_fields))


def study_of_row(row: dict[str, Any]) -> Study:
    """A row of `SCHEMA`, as `to_pylist(maps_as_pydicts="strict")` gives it, as a Study."""
    pictures = tuple(Picture(**picture) for picture in row["pictures"])
    return Study(**{**row, "pictures": pictures, "tags": tuple(row["tags"])})


def _opened(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except (OSError, pa.ArrowException) as error:
        raise BadInput("a part of the store cannot be read", where=path, remedy="import the studies anew") from error


def known_split(split: str) -> Split:
    if split not in SPLITS:
        raise WrongUse(f"no split {split!r}", remedy=nearest_names(split, SPLITS))
    return split


def _last_not_after(starts: list[int], number: int) -> int:
    return bisect_right(starts, number) - 1

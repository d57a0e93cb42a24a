"""What is kept of the studies and pictures that went by, and the forms in which faults are told."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from negatoscope.studies.audit.pictures import SIDE, Glance
from negatoscope.studies.audit.words import blanked_share, letter_damage, looks_foreign
from negatoscope.studies.study import Picture, Study

Gravity = Literal["wrong", "look", "know"]
"""wrong: scores or models are wrong by it. look: look at these. know: know it when you read your figures."""


@dataclass(frozen=True, slots=True)
class Example:
    """One place where something was found."""

    studies: tuple[str, ...]
    text: str = ""
    pictures: tuple[tuple[str, str], ...] = ()
    """(path, label) of what to look at."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One kind of fault, and where."""

    kind: str
    title: str
    gravity: Gravity
    count: int
    of: int
    """What was looked at: `count` of `of` `unit`."""
    unit: str
    why: str
    """What it does to results."""
    remedy: str
    note: str = ""
    examples: tuple[Example, ...] = ()
    checked: bool = True
    """False where the data lack what the check needs; `note` says what."""


class Gathered:
    """What is kept of the studies and pictures that went by."""

    def __init__(self, examples: int) -> None:
        self.examples = examples
        self.studies = self.pictures = 0
        self.database = sqlite3.connect("", check_same_thread=False)
        self.database.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            "CREATE TABLE studies (n INTEGER PRIMARY KEY, id, patient, split, report, findings, impression, blanked);"
            "CREATE TABLE pictures (n INTEGER PRIMARY KEY, study INTEGER, number, path, view, position, sha, blank,"
            " trouble, aspect);"
            "CREATE TABLE remarks (kind, study, text);"
        )
        self._glances = tempfile.TemporaryFile()  # noqa: SIM115, closed by __exit__

    def __enter__(self) -> Gathered:
        return self

    def __exit__(self, *_: object) -> None:
        self.database.close()
        self._glances.close()

    def ready(self) -> None:
        """After the last study: what the checks look up by."""
        self.database.executescript(
            "CREATE INDEX by_study ON pictures (study); CREATE INDEX by_sha ON pictures (sha);"
            "CREATE INDEX by_report ON studies (report);"
        )

    def ask(self, query: str, *values: Any) -> list[tuple]:
        return self.database.execute(query, values).fetchall()

    def count(self, query: str, *values: Any) -> int:
        return self.ask(f"SELECT count(*) FROM ({query})", *values)[0][0]

    def take(self, study: Study, glances: list[tuple[Picture, Path, Glance]]) -> None:
        """Keeps what the checks need of one study."""
        number, report = self.studies, " ".join(study.report.split())
        told = [bool(study.sections.get(name, "").strip()) for name in ("findings", "impression")]
        row = (number, study.id, study.patient, study.split, _storable(report), *told, blanked_share(report))
        self._insert("studies", row)
        self.studies += 1
        text = "\n".join((study.report, *study.sections.values()))
        if damage := letter_damage(text):
            self.remark("letters", study.id, damage)
        if looks_foreign(study.report):
            self.remark("language", study.id, _storable(report))
        for at, (picture, path, seen) in enumerate(glances):
            row = (self.pictures, number, at, str(path), picture.view, picture.position, seen.sha256, seen.blank)
            self._insert("pictures", (*row, seen.trouble, seen.aspect))
            self._glances.write(seen.small + seen.steps)
            self.pictures += 1

    def remark(self, kind: str, study: str, text: str) -> None:
        self._insert("remarks", (kind, _storable(study), _storable(text)))

    def _insert(self, table: str, row: tuple) -> None:
        self.database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)

    def smalls(self) -> np.ndarray:
        """(pictures, 256) uint8, read from disk as they are needed."""
        return self._of_glances()[:, : SIDE * SIDE]

    def steps(self) -> np.ndarray:
        """(pictures, 32) uint8."""
        return np.ascontiguousarray(self._of_glances()[:, SIDE * SIDE :])

    def _of_glances(self) -> np.ndarray:
        self._glances.flush()
        width = SIDE * SIDE + SIDE * SIDE // 8
        if not self.pictures:
            return np.zeros((0, width), np.uint8)
        return np.memmap(self._glances, np.uint8, "r", shape=(self.pictures, width))

    def columns(self, query: str, kinds: list[tuple[str, type]]) -> np.ndarray:
        """The rows of a query as a structured array."""
        return np.fromiter(self.database.execute(query), dtype=np.dtype(kinds))

    def picture(self, n: int) -> SeenPicture:
        query = "SELECT id, split, number, path, view, position, sha FROM pictures JOIN studies ON study = studies.n"
        id, split, number, path, view, position, sha = self.ask(f"{query} WHERE pictures.n = ?", n)[0]
        label = f"picture {number}: {view}" + (f" ({position})" if position and position.lower() != view else "")
        return SeenPicture(id, split, path, view, label, sha)

    def together(self, numbers: Iterable[int], text: str | None = None) -> Example:
        """Pictures that belong together as one example; without a text it names their splits."""
        rows = [self.picture(n) for n in numbers]
        studies = tuple(dict.fromkeys(row.study for row in rows))
        splits = " and ".join(dict.fromkeys(row.split for row in rows))
        return Example(studies, splits if text is None else text, tuple((row.path, row.label) for row in rows))

    def some_pictures(self, condition: str) -> tuple[Example, ...]:
        numbers = self.ask(f"SELECT n FROM pictures WHERE {condition} LIMIT ?", self.examples)
        return tuple(self.together([n]) for (n,) in numbers)

    def remarked(self, kind: str) -> tuple[Example, ...]:
        rows = self.ask("SELECT study, text FROM remarks WHERE kind = ? LIMIT ?", kind, self.examples)
        return tuple(Example((study,), text) for study, text in rows)


@dataclass(frozen=True, slots=True)
class SeenPicture:
    """One picture as an example tells of it."""

    study: str
    split: str
    path: str
    view: str
    label: str
    sha256: str


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")

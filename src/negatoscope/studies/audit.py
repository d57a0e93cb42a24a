"""What quietly ruins results, looked for in a store or at a source before anything learns from it.

Every study and picture is looked at once; what is kept of them lies in a temporary database, so that memory does not
grow with the data. `CHECKS` lists what is looked for: a new check is one function and one line there.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from negatoscope.errors import BadInput
from negatoscope.studies.audit_pictures import SIDE, Glance, glance
from negatoscope.studies.audit_text import blanked_share, letter_damage, looks_foreign
from negatoscope.studies.sources import Damaged, open_source
from negatoscope.studies.store import Store
from negatoscope.studies.study import Picture, Study
from negatoscope.watch import Watch, quiet

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


@dataclass(frozen=True)
class Audit:
    """What was found, gravest first; kinds of which nothing was found are there with a count of 0."""

    where: Path
    studies: int
    pictures: int
    splits: dict[str, int]
    findings: tuple[Finding, ...] = field(default=())

    def __getitem__(self, kind: str) -> Finding:
        return next(finding for finding in self.findings if finding.kind == kind)

    @property
    def faults(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.count)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "where": str(self.where)}


def audit(path: Store | Path | str, *, examples: int = 12, workers: int | None = None, watch: Watch = quiet) -> Audit:
    """Audits a store, or a folder as `data import` takes it (R2Gen's annotation.json, MIMIC-CXR, DICOM files).

    `examples` of each kind are kept for the page. Raises BadInput where there is neither store nor source.
    """
    with Gathered(examples) as seen:
        where = _gather(path, seen, workers or min(8, os.cpu_count() or 1), watch)
        findings = tuple(check(seen) for check in watch(_checks(), "checking", len(_checks())))
        order: dict[Gravity, int] = {"wrong": 0, "look": 1, "know": 2}
        ordered = sorted(findings, key=lambda finding: (order[finding.gravity], not finding.count))
        splits = dict(seen.ask("SELECT split, count(*) FROM studies GROUP BY split ORDER BY min(n)"))
        return Audit(where, seen.studies, seen.pictures, splits, tuple(ordered))


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
        self._glances = tempfile.TemporaryFile()

    def __enter__(self) -> Gathered:
        return self

    def __exit__(self, *_: object) -> None:
        self.database.close()
        self._glances.close()

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

    def smalls_and_steps(self) -> tuple[np.ndarray, np.ndarray]:
        """(pictures, 256) and (pictures, 32) uint8, read from disk as they are needed."""
        self._glances.flush()
        width = SIDE * SIDE + SIDE * SIDE // 8
        every = np.memmap(self._glances, np.uint8, "r", shape=(self.pictures, width))
        return every[:, : SIDE * SIDE], np.ascontiguousarray(every[:, SIDE * SIDE :])


def _gather(path: Store | Path | str, seen: Gathered, workers: int, watch: Watch) -> Path:
    """Looks at every study, its pictures in worker threads."""
    where, items, total, path_of, trust = _opened(path, watch)
    waiting: deque[tuple[Study, list[tuple[Picture, Path, Future[Glance]]]]] = deque()

    def settle() -> None:
        study, looks = waiting.popleft()
        seen.take(study, [(picture, place, look.result()) for picture, place, look in looks])

    pool = ThreadPoolExecutor(workers, thread_name_prefix="audit")
    try:
        for item in watch(items, "looking at studies", total or None):
            if isinstance(item, Damaged):
                seen.remark("left out" if item.known else "damaged", item.id, item.what)
                continue
            looks = []
            for picture in item.pictures:
                place = path_of(picture)
                looks.append((picture, place, pool.submit(glance, place, picture.sha256 if trust else "")))
            waiting.append((item, looks))
            if len(waiting) >= 16 * workers:
                settle()
        while waiting:
            settle()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    if not seen.studies and not seen.count("SELECT * FROM remarks"):
        raise BadInput("not one study found", where=where, remedy="give a store, or a folder as data import takes it")
    return where


Opened = tuple[Path, Iterator[Study | Damaged], int, Callable[[Picture], Path], bool]


def _opened(path: Store | Path | str, watch: Watch) -> Opened:
    """Where, the studies, how many, where their pictures lie, and whether their stored hashes count."""
    if isinstance(path, Store) or (Path(path) / "store.json").is_file():
        store = path if isinstance(path, Store) else Store.open(path)
        return store.path, iter(store), len(store), store.picture_path, True
    path = Path(path)
    if not path.exists():
        raise BadInput(
            "no such store or folder", where=path, remedy="give a store, or a folder as data import takes it"
        )
    if (path / "annotation.json").is_file() or path.suffix == ".json":
        name = "r2gen-json"
    elif any(path.glob("mimic-cxr-2.*-split.csv*")):
        name = "mimic-cxr"
    else:
        name = "dicom"
    source = open_source(name, path)
    source.prepare(watch)
    studies = (item if isinstance(item, Damaged) else item.study for item in source.examinations())
    return path, studies, len(source), lambda picture: Path(picture.path), False


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _checks() -> tuple[Callable[[Gathered], Finding], ...]:
    from negatoscope.studies import audit_checks

    return audit_checks.CHECKS

"""The audit itself: every study and picture looked at once, then asked about.

`CHECKS` lists what is looked for, a new check is one function and one line there.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from negatoscope.errors import BadInput
from negatoscope.studies.audit import faults, leaks, views
from negatoscope.studies.audit.gathered import Finding, Gathered
from negatoscope.studies.audit.pictures import Glance, glance
from negatoscope.studies.iu_xray import IMAGES, REPORTS
from negatoscope.studies.sources import Damaged, open_source
from negatoscope.studies.store import Store
from negatoscope.studies.study import Picture, Study
from negatoscope.watch import Watch, quiet

CHECKS: tuple[Callable[[Gathered], Finding], ...] = (
    leaks.report_in_two_splits,
    leaks.patient_in_two_splits,
    leaks.picture_in_two_splits,
    leaks.same_picture,
    faults.unreadable,
    faults.damaged,
    faults.no_picture,
    faults.blank,
    faults.empty_report,
    faults.letters,
    leaks.nearly_same_picture,
    views.same_view_twice,
    views.view_doubtful,
    views.view_unknown,
    faults.language,
    views.first_not_frontal,
    faults.empty_sections,
    faults.blanked_words,
    faults.repeated_reports,
    faults.left_out,
)
_REMEDY = "give a store, or a folder as data import takes it"
_GRAVEST_FIRST = ("wrong", "look", "know")


@dataclass(frozen=True)
class Audit:
    """What was found, gravest first; kinds of which nothing was found are there with a count of 0."""

    where: Path
    studies: int
    pictures: int
    splits: dict[str, int]
    findings: tuple[Finding, ...]

    def __getitem__(self, kind: str) -> Finding:
        return next(finding for finding in self.findings if finding.kind == kind)

    @property
    def faults(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.count)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "where": str(self.where)}


def audit(path: Store | Path | str, *, examples: int = 12, workers: int | None = None, watch: Watch = quiet) -> Audit:
    """Audits a store, or a folder as `data import` takes it (R2Gen's annotation.json, MIMIC-CXR, Open-i's IU X-Ray
    with its images unpacked, Karpathy's COCO, DICOM files).

    `examples` of each kind are kept for the page. Raises BadInput where there is neither store nor source.
    """
    with Gathered(examples) as seen:
        where = _gather(path, seen, workers or min(8, os.cpu_count() or 1), watch)
        seen.ready()
        findings = [check(seen) for check in watch(CHECKS, "checking", len(CHECKS))]
        ordered = sorted(findings, key=lambda found: (_GRAVEST_FIRST.index(found.gravity), not found.count))
        splits = dict(seen.ask("SELECT split, count(*) FROM studies GROUP BY split ORDER BY min(n)"))
        return Audit(where, seen.studies, seen.pictures, splits, tuple(ordered))


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
        raise BadInput("not one study found", where=where, remedy=_REMEDY)
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
    source = open_source(_source_of(path), path)
    source.prepare(watch)
    studies = (item if isinstance(item, Damaged) else item.study for item in source.examinations())
    return path, studies, len(source), lambda picture: Path(picture.path), False


def _source_of(path: Path) -> str:
    """Which source's folder (or annotation file) this is, by the files that only one has."""
    if path.name == "dataset_coco.json" or (path / "dataset_coco.json").is_file():
        return "coco"
    if path.suffix == ".json" or (path / "annotation.json").is_file():
        return "r2gen-json"
    if any(path.glob("mimic-cxr-2.*-split.csv*")):
        return "mimic-cxr"
    if (path / IMAGES).is_file() and not (path / "NLMCXR_png").is_dir():
        remedy = "an audit writes nothing there: import it first, and audit the store"
        raise BadInput(f"its images are still packed in {IMAGES}", where=path, remedy=remedy)
    if (path / REPORTS).is_file() or (path / "ecgen-radiology").is_dir():
        return "iu-xray"
    return "dicom"

"""From a source into a store: each picture decoded once, each study whole or not there, memory flat.

Studies are written in parts of 2,048. An import that was killed and is run again goes on after the last whole part and
ends with the same bytes as one that was not; an import into a whole store adds what the source has got since.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import pyarrow.parquet as pq

from negatoscope import __version__
from negatoscope.errors import BadInput, Trouble, WrongUse
from negatoscope.studies.image_files import Keeping, keep_grey, keep_masks, keep_picture
from negatoscope.studies.pixels import Pixels
from negatoscope.studies.seen_ids import SeenIds
from negatoscope.studies.sources import Damaged, Found, Source
from negatoscope.studies.splits import SPLITS, Splitting, splitter
from negatoscope.studies.store import STUDIES_A_PART, About, part_path, read_about, write_about, write_part
from negatoscope.studies.study import Study
from negatoscope.watch import Watch, quiet
from negatoscope.whole_files import make_folder, whole_file

TOLD = 1000  # damaged studies that the report of an import names; bad.jsonl names them all
_OURS = ("store.json", "images", "studies", "bad.jsonl")
_A_WORD = re.compile(r"[^\W\d_]")


@dataclass(frozen=True)
class ImportReport:
    """What an import did."""

    store: Path
    studies: int
    """In the store now."""
    pictures: int
    added: int
    splits: dict[str, int]
    damaged: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    """By the source's own rule: what -> how many."""
    bad: tuple[Damaged, ...] = ()
    """The first thousand damaged studies."""

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "store": str(self.store)}


def import_studies(
    source: Source,
    into: Path | str,
    *,
    skip_bad: bool = False,
    images: Literal["copy", "reference"] = "copy",
    short_side: int | None = None,
    form: Literal["png", "jpeg"] = "png",
    bits: Literal[8, 16] = 16,
    splitting: Splitting | None = None,
    studies_a_part: int = STUDIES_A_PART,
    workers: int | None = None,
    watch: Watch = quiet,
) -> ImportReport:
    """Takes every examination of a source into the store `into`.

    Raises `BadInput` at the first damaged study, or with `skip_bad` lists them in `bad.jsonl` and goes on; `WrongUse`
    where the store was begun with other settings. After that, Ctrl-C or a full disk the same call goes on from there.
    """
    if images == "reference" and short_side is not None:
        raise WrongUse("pictures that stay where they are cannot be made smaller", remedy="copy them: --images copy")
    splitting = splitting or Splitting()
    keeping = Keeping(images, short_side, form, bits, source.colour)
    into = Path(into)
    with ExitStack() as until_done:
        until_done.enter_context(_alone_in(into))
        about = _agreed_about(into, source, keeping, splitting, studies_a_part)
        _sweep(into)
        source.prepare(watch)
        rule = splitter(splitting)
        parts, finished = _finished(into)
        growing, tally = _Growing(into, parts, studies_a_part), _Tally(skip_bad)
        note_in_list = until_done.enter_context(_list_of_bad(into))
        taking = _Taking(source, into, keeping, finished, workers or min(8, os.cpu_count() or 1))
        studies = until_done.enter_context(closing(taking.studies()))
        for taken in watch(studies, f"importing {source.name}", len(source) or None):
            if isinstance(taken, Damaged):
                note_in_list(tally.note(taken))
            elif taken is not None:
                growing.add(replace(taken, split=rule(taken)))
        growing.end_part()
        counts = _counts(into, growing.parts)
        if not counts["studies"]:
            remedy = f"is this what source {source.name!r} reads?"
            raise BadInput("not one study found", where=source.path, remedy=remedy)
        counts |= {"damaged": tally.damaged, "left_out": sum(tally.left_out.values())}
        write_about(into, about.model_copy(update={"complete": True, "parts": growing.parts, "counts": counts}))
    splits = {split: counts[split] for split in SPLITS}
    left_out, bad = dict(tally.left_out), tuple(tally.bad)
    size = counts["studies"], counts["pictures"]
    return ImportReport(into, *size, growing.added, splits, tally.damaged, left_out, bad)


class _Growing:
    """The parts of a store as they are written."""

    def __init__(self, store: Path, parts: int, studies_a_part: int) -> None:
        self.store, self.parts, self.studies_a_part = store, parts, studies_a_part
        self.added = 0
        self._waiting: list[Study] = []

    def add(self, study: Study) -> None:
        self._waiting.append(study)
        if len(self._waiting) == self.studies_a_part:
            self.end_part()

    def end_part(self) -> None:
        """Writes a part, once the pictures that it names are on the disk for certain."""
        if self._waiting:
            os.sync()
            write_part(self.store, self.parts, self._waiting)
            self.parts += 1
            self.added += len(self._waiting)
            self._waiting = []


class _Tally:
    """What was left out and why."""

    def __init__(self, skip_bad: bool) -> None:
        self.skip_bad = skip_bad
        self.damaged = 0
        self.left_out: Counter[str] = Counter()
        self.bad: list[Damaged] = []

    def note(self, damaged: Damaged) -> Damaged:
        if damaged.known:
            self.left_out[damaged.what] += 1
            return damaged
        if not self.skip_bad:
            where = f"{damaged.where} (study {damaged.id})" if damaged.where else f"study {damaged.id}"
            remedy = f"{damaged.remedy or 'mend it'} and run the same import again, or go on without it: --skip-bad"
            raise BadInput(damaged.what, where=where, remedy=remedy)
        self.damaged += 1
        if len(self.bad) < TOLD:
            self.bad.append(damaged)
        return damaged


class _Taking:
    """The way of studies from source to store, some at a time in worker threads, out in the order they came in."""

    def __init__(self, source: Source, store: Path, keeping: Keeping, finished: SeenIds, workers: int) -> None:
        self.source, self.store, self.keeping = source, store, keeping
        self.finished, self.workers = finished, workers

    def studies(self) -> Generator[Study | Damaged | None]:
        """One item for each examination of the source: None where the store already has it."""
        waiting: deque[Future[Study | Damaged] | Damaged | None] = deque()
        seen = SeenIds()
        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="import")
        try:
            for item in self.source.examinations():
                found = _fault(item, self.source.has_reports, seen) or item
                if isinstance(found, Damaged):
                    waiting.append(_printable(found))
                elif found.study.id in self.finished:
                    waiting.append(None)
                else:
                    waiting.append(pool.submit(_take_in, found, self.store, self.keeping))
                if len(waiting) >= 16 * self.workers:
                    yield _settled(waiting.popleft())
            while waiting:
                yield _settled(waiting.popleft())
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _settled(item: Future[Study | Damaged] | Damaged | None) -> Study | Damaged | None:
    return item.result() if isinstance(item, Future) else item


def _take_in(found: Found, store: Path, keeping: Keeping) -> Study | Damaged:
    """In a worker thread: decodes and keeps the pictures of one study."""
    study = found.study
    try:
        if found.draw is None:
            pictures = [keep_picture(store, study.id, n, picture, keeping) for n, picture in enumerate(study.pictures)]
            return replace(study, pictures=tuple(pictures))
        drawing = found.draw()
        greys = zip(study.pictures, drawing.pictures, strict=True)
        drawn = [
            keep_grey(store, study.id, n, picture, Pixels(grey, 8 * grey.itemsize), keeping)
            for n, (picture, grey) in enumerate(greys)
        ]
        masks = keep_masks(store, study.id, drawing.masks, keeping)
        return replace(study, pictures=tuple(drawn), masks=MappingProxyType(masks))
    except BadInput as error:
        return _printable(Damaged.of(study.id, error))


def _fault(item: Found | Damaged, needs_report: bool, seen: SeenIds) -> Damaged | None:
    """What is wrong with an examination before its pictures are opened."""
    if isinstance(item, Damaged):
        return None
    study = item.study
    texts = (study.id, study.patient, study.report, *study.sections.values(), *study.tags)
    if not study.id.strip():
        what, remedy = "a study without an id", "give it one"
    elif any(_is_not_unicode(text) for text in texts):
        what, remedy = "its text is not UTF-8", "save the file as UTF-8"
    elif not seen.add(study.id):
        what, remedy = "its id is taken by an earlier study", "give each study its own id"
    elif not study.pictures:
        what, remedy = "a study without images", "add its images or leave it out of the source"
    elif needs_report and not _A_WORD.search(study.report):
        what, remedy = "its report is empty after cleaning", "leave it out of the source"
    else:
        return None
    return Damaged(study.id, what, item.where, remedy)


def _printable(damaged: Damaged) -> Damaged:
    """Names that are no UTF-8 can be neither printed nor written: their bytes are spelt out."""
    told = {
        key: value.encode("utf-8", "backslashreplace").decode()
        for key, value in asdict(damaged).items()
        if key != "known"
    }
    return Damaged(**told, known=damaged.known)


def _is_not_unicode(text: str) -> bool:
    """Whether bytes that were no UTF-8 were carried along as lone surrogates."""
    return not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text)


@contextmanager
def _alone_in(store: Path) -> Iterator[None]:
    """Makes the folder and keeps a second import out of it while this one runs."""
    make_folder(store)
    folder = os.open(store, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            remedy = "wait for it to end"
            raise Trouble("another import into this store is running", where=store, remedy=remedy) from error
        except OSError:
            pass  # a network disk that knows no locks
        yield
    finally:
        os.close(folder)


def _agreed_about(store: Path, source: Source, keeping: Keeping, splitting: Splitting, studies_a_part: int) -> About:
    """What the store says of itself, once it is certain that it was begun with these settings."""
    about = About(
        source=source.name,
        path=str(source.path.resolve()) if source.path is not None else "",
        settings={
            "source": source.settings.model_dump(mode="json"),
            "keeping": asdict(keeping),
            "splitting": splitting.model_dump(mode="json"),
            "studies_a_part": studies_a_part,
        },
        images=keeping.images,
        report_sections=tuple(source.report_sections),
        negatoscope=__version__,
    )
    before = read_about(store)
    begun = (store / "images").exists() or (store / "studies").exists()
    if before is None or not (before.complete or begun):  # nothing is there that other settings could contradict
        strangers = [path.name for path in store.iterdir() if path.name not in _OURS]
        if strangers:
            raise WrongUse(
                f"holds other things ({strangers[0]})", where=store, remedy="import into a folder of its own"
            )
        write_about(store, about)
        return about
    for what in ("source", "path", "settings"):
        old, new = getattr(before, what), getattr(about, what)
        if old != new:
            differs = f"{what} {_first_difference(old, new)}"
            raise WrongUse(f"this store was begun with another {differs}", where=store, remedy="choose another store")
    return before


def _first_difference(old: Any, new: Any) -> str:
    if isinstance(old, dict) and isinstance(new, dict):
        key = next(key for key in {**old, **new} if old.get(key) != new.get(key))
        return f"{key}: {_first_difference(old.get(key), new.get(key))}"
    return f"({json.dumps(old)}, now {json.dumps(new)})"


def _sweep(store: Path) -> None:
    """Takes away what a killed import left under temporary names."""
    for left_over in store.rglob(".*.part"):
        left_over.unlink(missing_ok=True)


def _finished(store: Path) -> tuple[int, SeenIds]:
    """How many parts are whole, and the ids in them."""
    parts, ids = 0, SeenIds()
    while part_path(store, parts).is_file():
        for id in pq.read_table(part_path(store, parts), columns=["id"])["id"]:
            ids.add(id.as_py())
        parts += 1
    return parts, ids


@contextmanager
def _list_of_bad(store: Path) -> Iterator[Callable[[Damaged], None]]:
    """Yields what writes one line of bad.jsonl. The file appears when the import has ended, if it has a line."""
    path, written = store / "bad.jsonl", False
    with whole_file(path) as part, part.open("w", encoding="utf-8") as file:

        def write(damaged: Damaged) -> None:
            nonlocal written
            written = True
            file.write(json.dumps(asdict(damaged), ensure_ascii=False) + "\n")

        yield write
    if not written:
        path.unlink()


def _counts(store: Path, parts: int) -> dict[str, int]:
    counts: Counter[str] = Counter({"studies": 0, "pictures": 0, **dict.fromkeys(SPLITS, 0)})
    for number in range(parts):
        part = pq.read_table(part_path(store, number), columns=["split", "pictures"])
        counts["studies"] += part.num_rows
        counts["pictures"] += len(part["pictures"].combine_chunks().flatten())
        for row in part["split"].value_counts().to_pylist():
            counts[row["values"]] += row["counts"]
    return dict(counts)

"""Memory and rate of an import as studies grow in number; beside it the plain way: a list of all rows, then one table.

    python benchmarks/import_memory.py --studies 400000

The rows are generated (reports of 60 words, two pictures each, 14 labels); every picture refers to one tiny PNG, which
is read, decoded and hashed each time, so that what is measured is the import and not the drawing.
"""

from __future__ import annotations

import argparse
import gc
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from negatoscope.studies.importing import import_studies
from negatoscope.studies.sources import Found, Source
from negatoscope.studies.store import SCHEMA, Store, row_of_study
from negatoscope.studies.study import OBSERVATIONS, Picture, Study

T = TypeVar("T")
_SENTENCE = "the heart is normal in size lungs are clear no effusion or pneumothorax seen mild left basal opacity"


class Generated(Source):
    """Studies from a seed, as many as are asked for."""

    name = "generated"
    needs_path = False

    def __init__(self, count: int, picture: Path, seed: int = 0) -> None:
        super().__init__(None)
        self.count, self.picture, self.seed = count, str(picture), seed

    def __len__(self) -> int:
        return self.count

    def examinations(self) -> Iterator[Found]:
        random, words = np.random.default_rng(self.seed), _SENTENCE.split()
        pictures = (Picture(self.picture, "frontal", "PA"), Picture(self.picture, "lateral", "LL"))
        for number in range(self.count):
            report = " ".join(words[word] for word in random.integers(len(words), size=60))
            labels = {
                name: int(value) for name, value in zip(OBSERVATIONS, random.integers(-1, 2, size=14), strict=True)
            }
            id, patient = f"s{number:08d}", f"p{number // 3:08d}"
            yield Found(Study(id, pictures, report, "train", patient, {"findings": report}, labels))


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


class Gauge:
    """A watch that notes memory and time every so many studies."""

    def __init__(self, every: int) -> None:
        self.every, self.marks, self.peak = every, [], 0.0

    def __call__(self, items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
        start = time.perf_counter()
        for number, item in enumerate(items, start=1):
            yield item
            if number % 1000 == 0:
                self.peak = max(self.peak, resident_mb())
            if number % self.every == 0:
                self.marks.append((number, resident_mb(), number / (time.perf_counter() - start)))


def plain_way(source: Generated, to: Path) -> float:
    """All rows, then one table. Returns the memory when both are there: that is its peak, or a little less."""
    rows = [row_of_study(found.study) for found in source.examinations()]
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    resident = resident_mb()
    pq.write_table(table, to)
    return resident


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--studies", type=int, default=400_000)
    arguments.add_argument("--seed", type=int, default=0)
    given = arguments.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="import-memory-"))
    try:
        picture = folder / "shared.png"
        Image.fromarray(np.random.default_rng(given.seed).integers(0, 255, (8, 8), dtype=np.uint8)).save(picture)
        source = Generated(given.studies, picture, given.seed)
        before = resident_mb()
        gauge = Gauge(max(1, given.studies // 8))
        import_studies(source, folder / "store", images="reference", watch=gauge)
        print(f"before: {before:.0f} MB resident")
        for number, resident, rate in gauge.marks:
            print(f"{number:>9,} studies  {resident:6.0f} MB resident  {rate:7,.0f} studies/s")
        grown = gauge.marks[-1][1] - gauge.marks[0][1]
        print(f"growth from the first mark to the last: {grown:+.0f} MB; peak {gauge.peak:.0f} MB")

        start = time.perf_counter()
        table = Store.open(folder / "store").table(["id", "split", "report"])
        print(f"ids, splits and reports of {table.num_rows:,} studies read in {time.perf_counter() - start:.2f} s")
        del table
        gc.collect()
        before_plain = resident_mb()
        plain = plain_way(source, folder / "plain.parquet") - before_plain
        ratio = plain / max(gauge.peak - before, 1)
        print(f"plain way: {plain:.0f} MB on top; the import {gauge.peak - before:.0f} MB: {ratio:.1f} times less")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

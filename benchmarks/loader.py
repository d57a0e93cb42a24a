"""Studies a second that the loader hands to training, from image files and from a feature cache, beside reading the
files with Pillow.

    python benchmarks/loader.py [--studies 400] [--workers 0 1 2]

Peer: Pillow opens, decodes and resizes the same files and stacks them, in the same process: what nobody can do without.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from negatoscope.studies.importing import import_studies
from negatoscope.studies.loader import StudyLoader
from negatoscope.studies.sources import open_source
from negatoscope.studies.store import Store
from negatoscope.text.words import Vocabulary
from negatoscope.vision.augment import AugmentSettings, LookAtFiles


def rate(studies: int, work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return studies / (time.perf_counter() - began)


def with_pillow(store: Store, numbers: list[int], size: int) -> None:
    for number in numbers:
        pictures = [Image.open(store.picture_path(one)).resize((size, size)) for one in store.at(number).pictures]
        torch.from_numpy(np.stack([np.asarray(picture, dtype=np.float32) / 255 for picture in pictures]))


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--studies", type=int, default=400)
    ask.add_argument("--size", type=int, default=224)
    ask.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2])
    asked = ask.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        import_studies(open_source("phantom", None, {"studies": asked.studies, "size": 256}), Path(folder) / "store")
        store = Store.open(Path(folder) / "store")
        reports = store.table(["report"], "train")["report"].to_pylist()
        vocabulary = Vocabulary.build(reports, cutoff=1)
        numbers = np.flatnonzero(np.array(store.table(["split"])["split"].to_pylist()) == "train").tolist()
        pillow = rate(len(numbers), lambda: with_pillow(store, numbers, asked.size))
        print(f"{len(numbers)} studies of two views, {asked.size} px\nPillow alone         {pillow:7.1f} studies/s")
        for workers in asked.workers:
            look = LookAtFiles(asked.size, change=AugmentSettings())
            loader = StudyLoader(store, "train", look, vocabulary.encode, shuffle=True, workers=workers)
            ours = rate(len(numbers), lambda loader=loader: [len(batch) for batch in loader.epoch(0)])
            print(f"loader, {workers} workers    {ours:7.1f} studies/s  {ours / pillow:5.2f} x")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()

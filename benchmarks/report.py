"""Draft reports for a folder of studies: studies a second, and what a single study costs with start-up.

    python benchmarks/report.py data/iu-xray --studies 200

The images are written as PNG files into a temporary folder first, one subfolder a study. The peer is the backbone alone
over the same images, already in memory, in the same process: what no reporter that looks at them can beat.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from PIL import Image

from negatoscope.drafting.folder import draft_folder
from negatoscope.drafting.kept import load_drafter
from negatoscope.drafting.look import look
from negatoscope.studies.store import Store


def main() -> None:
    said = argparse.ArgumentParser(description=__doc__)
    said.add_argument("store", type=Path)
    said.add_argument("--studies", type=int, default=200)
    said.add_argument("--split", default="val")
    asked = said.parse_args()
    store = Store.open(asked.store)
    chosen = [study for study in store.studies(asked.split) if len(study.pictures) == 2][: asked.studies]
    with tempfile.TemporaryDirectory() as held:
        folder = Path(held) / "in"
        for study in chosen:
            (folder / study.id).mkdir(parents=True)
            for number, picture in enumerate(study.pictures):
                Image.open(store.picture_path(picture)).save(folder / study.id / f"{number}.png")
        drafter = load_drafter()
        size = drafter.recogniser.settings.encoder.image_size
        look(drafter.recogniser, torch.rand(4, 1, size, size))
        began = time.perf_counter()
        for _ in range(len(chosen) // 16):
            look(drafter.recogniser, torch.rand(32, 1, size, size))
        peer = 16 * (len(chosen) // 16) / (time.perf_counter() - began)
        done = draft_folder(drafter, folder, Path(held) / "out.jsonl")
        rate = done.studies / done.seconds
        print(f"{done.studies} studies, {done.images} PNG files: {rate:.1f} studies/s")
        print(f"the backbone alone, images in memory: {peer:.1f} studies/s; ratio {rate / peer:.2f}")
        one = sorted((folder / chosen[0].id).iterdir())
        words = [sys.executable, "-m", "negatoscope", "report", *map(str, one), "--json"]
        spent = []
        for _ in range(3):
            began = time.perf_counter()
            subprocess.run(words, check=True, capture_output=True)
            spent.append(time.perf_counter() - began)
        print(f"one study, start-up included: {min(spent):.2f} s (best of 3)")
    print(f"most memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()

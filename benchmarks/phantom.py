"""How many phantom studies a second, on one process and on two; beside it, reading the same pictures from PNG files.

    python benchmarks/phantom.py --size 256 --studies 600

Reading is what an embedded data set would cost instead of drawing one. A study is two pictures with their masks and the
report. The first study of each process, which makes the bank of grain, is not counted.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from io import BytesIO

import numpy as np
from PIL import Image

from negatoscope.studies.phantom import PhantomSettings, draw_study, phantom_studies


def best_rate(settings: PhantomSettings, repeats: int) -> float:
    """Studies a second in this process, the best of a few repeats: other work on the machine only takes away."""
    draw_study(settings.seed, 0, settings)
    share = max(settings.studies // repeats, 1)
    rates = []
    for repeat in range(repeats):
        start = time.perf_counter()
        for index in range(repeat * share, (repeat + 1) * share):
            draw_study(settings.seed, index, settings)
        rates.append(share / (time.perf_counter() - start))
    return max(rates)


def rate_of_processes(settings: PhantomSettings, processes: int) -> float:
    """Studies a second as they arrive here, from the arrival of the first batches on."""
    skipped = 16 * processes
    studies = phantom_studies(settings.model_copy(update={"studies": settings.studies + skipped}), processes)
    for _ in range(skipped):
        next(studies)
    start = time.perf_counter()
    arrived = sum(1 for _ in studies)
    return arrived / (time.perf_counter() - start)


def png_times(settings: PhantomSettings, studies: int) -> tuple[float, float, float]:
    """Seconds a study to write both pictures as PNG, to read them again, and kilobytes."""
    drawn = [draw_study(settings.seed, index, settings) for index in range(studies)]
    start = time.perf_counter()
    files = []
    for study in drawn:
        for grey in study.views.values():
            held = BytesIO()
            Image.fromarray(grey).save(held, "PNG", compress_level=1)
            files.append(held)
    writing = (time.perf_counter() - start) / studies
    start = time.perf_counter()
    for held in files:
        held.seek(0)
        np.asarray(Image.open(held))
    reading = (time.perf_counter() - start) / studies
    return writing, reading, sum(held.getbuffer().nbytes for held in files) / studies / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--studies", type=int, default=600)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    settings = PhantomSettings(size=given.size, studies=given.studies, seed=given.seed)
    one = best_rate(settings, repeats=6)
    writing, reading, kilobytes = png_times(settings, min(100, given.studies))
    many = rate_of_processes(settings, given.processes)
    here, there = (resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    figures = {
        "size": given.size,
        "studies a second, one process": round(one),
        f"studies a second, {given.processes} processes": round(many),
        "ratio of the two": round(many / one, 2),
        "milliseconds a study to draw": round(1000 / one, 2),
        "milliseconds a study to write as PNG": round(1000 * writing, 2),
        "milliseconds a study to read from PNG (peer)": round(1000 * reading, 2),
        "ratio of drawing to reading": round(1 / one / reading, 1),
        "kilobytes a study as PNG": round(kilobytes),
        "peak megabytes, this process": round(here),
        "peak megabytes, largest worker": round(there),
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()

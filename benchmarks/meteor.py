"""METEOR here and in its Java program, both from a standing start: time, memory, and whether the scores agree.

    python benchmarks/meteor.py [--pairs 590 4000] [--shared ../shared] [--build]

Each side is a fresh process that reads the same pairs: ours starts Python, loads the index and scores; theirs is
the jar inside pycocoevalcap, fed line by line as pycocoevalcap does. Pairs are drawn (seeded) twice: reports of the
length of MIMIC-CXR's made of sentence frames, and IU X-Ray's impressions where the shared data is at hand.
`--build` also times the building of the index, which happens once on a machine.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from negatoscope.metrics.meteor import Meteor
from negatoscope.metrics.meteor.index import load_index
from negatoscope.metrics.meteor.sources import find_sources

Pair = tuple[str, str]

FRAMES = (
    "the {side} lung is clear .",
    "there is {no} {size} {side} pleural effusion .",
    "{no} pneumothorax is seen on the {side} .",
    "the cardiac silhouette is {size} and the mediastinal contours are {change} .",
    "{size} opacity at the {side} base may represent atelectasis or pneumonia .",
    "heart size is {size} , {change} compared with the prior study .",
    "the endotracheal tube ends {n} cm above the carina .",
    "{no} focal consolidation , effusion , or edema is present .",
    "degenerative changes of the thoracic spine are {change} .",
    "the {side} picc line ends in the mid svc , {change} since the previous radiograph .",
    "lung volumes are low with {size} bibasilar opacities , likely atelectasis .",
    "there is {size} vascular congestion without overt edema .",
)
SLOTS = {
    "side": ("left", "right"),
    "size": ("small", "moderate", "large", "mild", "minimal", "normal"),
    "no": ("no", "no evidence of", "a", "a persistent"),
    "change": ("unchanged", "stable", "improved", "increased", "within normal limits"),
    "n": tuple("2345678"),
}


def made_up(pairs: int, seed: int) -> list[Pair]:
    """Reports of 4 to 10 sentences, some 60 words."""
    rng = np.random.default_rng(seed)

    def report() -> str:
        frames = rng.choice(FRAMES, rng.integers(4, 11))
        return " ".join(f.format(**{slot: rng.choice(words) for slot, words in SLOTS.items()}) for f in frames)

    return [(report(), report()) for _ in range(pairs)]


def impressions(shared: Path, pairs: int, seed: int) -> list[Pair]:
    """One study's impression against another's, drawn with repetition."""
    with (shared / "data" / "iu-xray" / "studies.csv").open(encoding="utf-8", newline="") as file:
        reports = [" ".join(row["impression"].split()) for row in csv.DictReader(file)]
    rng = np.random.default_rng(seed)
    return [(reports[a], reports[b]) for a, b in rng.integers(0, len(reports), (pairs, 2))]


def score_here(pairs: list[Pair]) -> list[float]:
    """Each pair's score, then the total."""
    meteor = Meteor()
    rows = meteor.rows([said for said, _ in pairs], [[asked] for _, asked in pairs])
    return [*meteor.figures(rows)["METEOR"].tolist(), float(meteor.figures(rows.sum(axis=0))["METEOR"])]


def build_here() -> None:
    with tempfile.TemporaryDirectory() as folder:
        clock, work = time.perf_counter(), time.process_time()
        load_index(find_sources(), Path(folder))
        clock, work = time.perf_counter() - clock, time.process_time() - work
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"index built in {clock:.1f} s ({work:.1f} s of CPU), {memory:.0f} MB", flush=True)


def run_ours(pairs: list[Pair]) -> tuple[list[float], subprocess.Popen]:
    process = subprocess.Popen(
        [sys.executable, __file__, "--score"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps(pairs))
    process.stdin.close()
    return json.load(process.stdout), process


def run_java(pairs: list[Pair]) -> tuple[list[float], subprocess.Popen]:
    command = ["java", "-jar", "-Xmx2G", str(find_sources().jar), "-", "-", "-stdio", "-l", "en", "-norm"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8", bufsize=1
    )
    assert process.stdin
    assert process.stdout
    counts = []
    for said, asked in pairs:
        process.stdin.write(f"SCORE ||| {asked} ||| {said}\n")
        counts.append(process.stdout.readline().strip())
    process.stdin.write(" ||| ".join(["EVAL", *counts]) + "\n")
    scores = [float(process.stdout.readline()) for _ in range(len(pairs) + 1)]
    process.stdin.close()
    return scores, process


def timed(run: Callable[[list[Pair]], tuple[list[float], subprocess.Popen]], pairs: list[Pair]):
    """(scores, seconds, peak MB) of a fresh process."""
    start = time.perf_counter()
    scores, process = run(pairs)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return np.array(scores), time.perf_counter() - start, usage.ru_maxrss / 1024


def compare(name: str, pairs: list[Pair]) -> None:
    ours, our_seconds, our_memory = timed(run_ours, pairs)
    theirs, their_seconds, their_memory = timed(run_java, pairs)
    words = np.mean([len(text.split()) for pair in pairs for text in pair])
    print(
        f"{name:12} {len(pairs):5} pairs of {words:4.0f} words: {our_seconds:6.2f} s, Java {their_seconds:6.2f} s,"
        f" {their_seconds / our_seconds:5.1f} times as fast; {our_memory:4.0f} MB, Java {their_memory:4.0f} MB;"
        f" largest difference {np.abs(ours - theirs).max():.1e}, total {ours[-1]:.6f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, nargs="+", default=[590, 4000])
    parser.add_argument("--shared", type=Path, default=Path(__file__).resolve().parents[2] / "shared")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--build", action="store_true", help="also time the building of the index")
    # What the fresh processes do. This one stays small: a child's peak memory counts from its parent's.
    parser.add_argument("--score", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--build-here", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.score:
        json.dump(score_here(json.load(sys.stdin)), sys.stdout)
        return
    if asked.build_here:
        build_here()
        return
    if asked.build:
        subprocess.run([sys.executable, __file__, "--build-here"], check=True)
    run_ours([("", "")])  # builds the index where there is none
    for pairs in asked.pairs:
        compare("made up", made_up(pairs, asked.seed))
        if asked.shared.is_dir():
            compare("impressions", impressions(asked.shared, pairs, asked.seed))


if __name__ == "__main__":
    main()

"""How fast the labeler is, and how often it agrees with the original.

    python benchmarks/labeler.py [--reports 20000] [--processes 2] [--shared ../shared]

The original parses every sentence, of the order of a second a report, and cannot be run beside ours; so the peer is
ours with every sentence worked out anew. Reports are drawn (seeded) from sentence frames in MIMIC-CXR's style, with
sizes, sides, lobes and numbers that keep sentences from repeating. Rates of one process are by CPU time, of several by
the clock. With the shared data at hand: the agreement on the training split of IU X-Ray, where the rules were made
(`--split val` says it for the split that nobody looked at).
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from negatoscope.metrics.chexpert.labeler import Labeler
from negatoscope.metrics.chexpert.sentences import clean, sentences
from negatoscope.studies.study import OBSERVATIONS

FRAMES = (
    "In comparison with the study of ___, there is {little} change in the {size} {side} pleural effusion.",
    "The {size} {side} pneumothorax measures {n} mm, previously {n} mm.",
    "{Size} opacity in the {side} {zone} may represent atelectasis versus pneumonia in the proper clinical setting.",
    "The endotracheal tube terminates {n} cm above the carina, and the {side} picc line tip is in the mid SVC.",
    "There is no focal consolidation, pleural effusion, or pneumothorax.",
    "There is {size} cardiomegaly, and the mediastinal contours are stable.",
    "Cardiac and mediastinal silhouettes are unremarkable.",
    "{Size} pulmonary vascular congestion with {size} interstitial edema, {little} changed since ___ at {n}:{n}.",
    "Linear {side} {zone} opacities, likely atelectasis, though infection cannot be excluded.",
    "No displaced rib fracture is seen; degenerative changes of the spine are {size}.",
    "A {n} mm calcified granuloma in the {side} {zone} is unchanged.",
    "There has been interval removal of the {side} chest tube without evidence of pneumothorax.",
    "Lungs are hyperinflated without focal airspace disease, {n} ribs are seen above the diaphragm.",
    "As compared to the previous radiograph, the {side} {zone} nodule of {n} mm is no longer seen.",
)
SLOTS: dict[str, tuple[str, ...]] = {
    "size": ("mild", "moderate", "small", "large", "minimal", "severe", "slight"),
    "Size": ("Mild", "Moderate", "Patchy", "Hazy", "Minimal", "Severe", "Dense"),
    "side": ("right", "left", "bilateral"),
    "zone": ("upper lobe", "lower lobe", "base", "mid lung", "perihilar region", "apex"),
    "little": ("little", "no significant", "minimal", "some"),
    "n": tuple(map(str, range(1, 60))),
}


def drawn(count: int, seed: int) -> list[str]:
    """Reports of 5 to 9 sentences, sections with headers, lines broken inside sentences."""
    rng = np.random.default_rng(seed)

    def filled(frame: str) -> str:
        parts = frame.split("{")
        return parts[0] + "".join(
            str(rng.choice(SLOTS[slot])) + rest for slot, rest in (part.split("}", 1) for part in parts[1:])
        )

    def report() -> str:
        found = [filled(FRAMES[at]) for at in rng.choice(len(FRAMES), rng.integers(5, 10), replace=False)]
        text = "FINDINGS:  " + "  ".join(found[:-1]) + "\n\n IMPRESSION:\n\n 1.  " + found[-1]
        return text.replace(", ", ",\n ", 1)

    return [report() for _ in range(count)]


def rate(work: Callable[[], object], count: int, clock: Callable[[], float] = time.process_time) -> float:
    start = clock()
    work()
    return count / (clock() - start)


def print_speed(reports: Sequence[str], processes: int) -> None:
    cut = [list(sentences(clean(report))) for report in reports]
    every = [sentence for of_one in cut for sentence in of_one]
    unique = list(dict.fromkeys(every))
    words = sum(len(report.split()) for report in reports) / len(reports)
    share = len(unique) / len(every)
    print(f"{len(reports):,} reports of {words:.0f} words, {len(every):,} sentences, {share:.0%} unique")
    fresh, labeler = Labeler(), Labeler()
    anew = rate(lambda: [fresh.read_sentence(s) for report in reports for s in sentences(clean(report))], len(reports))
    alone = rate(lambda: [fresh.read_sentence(sentence) for sentence in unique], len(unique))
    first = rate(lambda: labeler.label_many(reports), len(reports))
    again = rate(lambda: labeler.label_many(reports), len(reports))
    print(f"every sentence anew          {anew:10,.0f} reports/s   x 1.0   ({1e6 / alone:.0f} us a unique sentence)")
    print(f"sentences remembered         {first:10,.0f} reports/s   x {first / anew:.1f}")
    print(f"the same reports once more   {again:10,.0f} reports/s   x {again / anew:.1f}")
    if processes > 1:
        many = rate(lambda: labeler.label_many(reports, processes), len(reports), time.perf_counter)
        print(f"{processes} processes, by the clock    {many:10,.0f} reports/s   x {many / anew:.1f}")
        print(f"250,000 reports so take {250_000 / many:.0f} s")
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {own:,.0f} MiB")


def labelled(folder: Path, split: str) -> Iterator[tuple[str, dict[str, int]]]:
    """The reports of IU X-Ray with the labels that the original gave to exactly that text."""
    entries = json.loads((folder / "annotation.json").read_text(encoding="utf-8"))[split]
    text_of = {entry["id"]: entry["report"] for entry in entries}
    with (folder / "studies.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["id"] in text_of and row["labels_from_same_text"] == "1":
                yield text_of[row["id"]], {name: int(float(row[name])) for name in OBSERVATIONS if row[name]}


def print_agreement(folder: Path, split: str) -> None:
    labeler, pairs, studies = Labeler(), Counter[tuple[int | None, int | None]](), 0
    for text, theirs in labelled(folder, split):
        ours = labeler.label(text)
        pairs.update((theirs.get(name), ours.get(name)) for name in OBSERVATIONS)
        studies += 1
    f1 = {state: f1_of(pairs, state) for state in (1, 0, -1, None)}
    same = sum(count for (theirs, ours), count in pairs.items() if theirs == ours) / pairs.total()
    print(f"\nIU X-Ray {split}, {studies:,} reports: {same:.4f} of all cells as the original")
    print(f"F1 present {f1[1]:.3f}, absent {f1[0]:.3f}, uncertain {f1[-1]:.3f}, blank {f1[None]:.3f}")
    print(f"macro-F1 of the four states {sum(f1.values()) / 4:.4f}, micro-F1 of present {f1[1]:.4f}")


def f1_of(pairs: Counter[tuple[int | None, int | None]], state: int | None) -> float:
    both = pairs[state, state]
    theirs = sum(count for (label, _), count in pairs.items() if label == state)
    ours = sum(count for (_, label), count in pairs.items() if label == state)
    return 2 * both / (theirs + ours)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--reports", type=int, default=20_000)
    arguments.add_argument("--processes", type=int, default=2)
    arguments.add_argument("--split", default="train")
    arguments.add_argument("--shared", type=Path, default=Path(os.environ.get("NEGATOSCOPE_SHARED", "../shared")))
    said = arguments.parse_args()
    print_speed(drawn(said.reports, seed=1), said.processes)
    folder = said.shared / "data" / "iu-xray"
    if folder.is_dir():
        print_agreement(folder, said.split)
    else:
        print(f"\nno agreement measured: no {folder}; --shared says where it is")


if __name__ == "__main__":
    main()

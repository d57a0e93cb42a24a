"""What stands where it should not stand twice: reports, patients and pictures."""

from __future__ import annotations

import numpy as np

from negatoscope.studies.audit.gathered import Example, Finding, Gathered
from negatoscope.studies.audit.pictures import near_pairs

_PAIRS = 100_000  # more are not counted


def report_in_two_splits(seen: Gathered) -> Finding:
    held_out = (
        "SELECT s.id, s.split, s.report, t.id FROM studies s JOIN "
        "(SELECT report, min(id) id FROM studies WHERE split = 'train' GROUP BY report) t ON s.report = t.report "
        "WHERE s.split IN ('val', 'test') AND s.report != ''"
    )
    longest_first = "ORDER BY length(s.report) DESC LIMIT ?"
    between = "SELECT v.id FROM studies v JOIN (SELECT DISTINCT report FROM studies WHERE split = 'test') t "
    between += "ON v.report = t.report WHERE v.split = 'val' AND v.report != ''"
    parts = seen.ask(f"SELECT split, count(*) FROM ({held_out}) GROUP BY split ORDER BY split DESC")
    totals = dict(seen.ask("SELECT split, count(*) FROM studies GROUP BY split"))
    notes = [f"{count} of {totals[split]} {split} reports stand in train" for split, count in parts]
    if shared := seen.count(between):
        notes.append(f"{shared} of {totals['val']} val reports stand in test")
    return Finding(
        "report-in-two-splits",
        "Reports that stand word for word in train and in val or test",
        "wrong",
        seen.count(held_out),
        totals.get("val", 0) + totals.get("test", 0),
        "held-out reports",
        "A model that learned them by heart scores full marks on them without looking at the picture. Short normal "
        "reports repeat by chance, so some are no leak; all of them lift BLEU and CIDEr.",
        "Give scores with and without these studies; make sure that they are not the same examinations.",
        "; ".join(notes),
        tuple(
            Example((id, twin), f"{split} and train: {report}")
            for id, split, report, twin in seen.ask(f"{held_out} {longest_first}", seen.examples)
        ),
    )


def patient_in_two_splits(seen: Gathered) -> Finding:
    known = seen.count("SELECT DISTINCT patient FROM studies WHERE patient != ''")
    twice = (
        "SELECT patient, group_concat(DISTINCT split) splits, group_concat(id, ' ') ids FROM studies "
        "WHERE patient != '' AND split != 'none' GROUP BY patient HAVING count(DISTINCT split) > 1"
    )
    return Finding(
        "patient-in-two-splits",
        "Patients in two splits",
        "wrong",
        seen.count(twice),
        known,
        "patients",
        "The same heart, scars and wires are learned in train and recognised in test.",
        "Split by patient: data import ... --split seeded.",
        "" if known else "the studies name no patients",
        tuple(
            Example(tuple(ids.split(" ")[:6]), f"in {splits.replace(',', ' and ')}")
            for _, splits, ids in seen.ask(f"{twice} LIMIT ?", seen.examples)
        ),
        checked=known > 0,
    )


def picture_in_two_splits(seen: Gathered) -> Finding:
    twice = (
        "SELECT sha FROM pictures JOIN studies ON study = studies.n WHERE sha != '' AND NOT blank AND split != 'none' "
        "GROUP BY sha HAVING count(DISTINCT split) > 1"
    )
    return Finding(
        "picture-in-two-splits",
        "The same picture in two splits",
        "wrong",
        seen.count(twice),
        seen.pictures,
        "pictures",
        "What was learned is asked again.",
        "Leave one of the studies out, or put them into one split.",
        examples=_same_pictures(seen, twice),
    )


def same_picture(seen: Gathered) -> Finding:
    twice = "SELECT sha FROM pictures WHERE sha != '' AND NOT blank GROUP BY sha HAVING count(*) > 1"
    return Finding(
        "same-picture",
        "The same picture twice",
        "wrong",
        seen.count(twice),
        seen.pictures,
        "pictures",
        "Within a study one view stands for two; between studies one picture has two reports.",
        "Find out which file is the right one; leave the other out.",
        examples=_same_pictures(seen, twice),
    )


def nearly_same_picture(seen: Gathered) -> Finding:
    looked_at = seen.columns("SELECT n FROM pictures WHERE NOT blank AND trouble = ''", [("n", np.int64)])["n"]
    pairs: dict[tuple[int, int], int] = {}
    for first, second, bits in near_pairs(seen.steps()[looked_at]):
        pair = int(looked_at[first]), int(looked_at[second])
        if len(pairs) < _PAIRS and seen.picture(pair[0]).sha256 != seen.picture(pair[1]).sha256:
            pairs[pair] = bits  # the very same ones are told elsewhere
    nearest = sorted(pairs.items(), key=lambda pair: pair[1])[: seen.examples]
    return Finding(
        "nearly-same-picture",
        "Nearly the same picture twice",
        "look",
        len(pairs),
        seen.pictures,
        "pictures, in pairs",
        "Mostly one exposure processed in two ways, or stored at two sizes: a leak where it crosses splits.",
        "Look at the pairs; keep one of each.",
        examples=tuple(seen.together(pair) for pair, _ in nearest),
    )


def _same_pictures(seen: Gathered, query: str) -> tuple[Example, ...]:
    shared = [sha for (sha,) in seen.ask(f"{query} LIMIT ?", seen.examples)]
    numbers = [[n for (n,) in seen.ask("SELECT n FROM pictures WHERE sha = ? LIMIT 6", sha)] for sha in shared]
    return tuple(seen.together(group) for group in numbers)

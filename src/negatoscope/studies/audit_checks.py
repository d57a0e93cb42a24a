"""The checks of an audit, one function each: a question to what was gathered, and what its answer means for results."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from negatoscope.studies.audit import Example, Finding, Gathered
from negatoscope.studies.audit_pictures import near_pairs, view_doubts

_DOUBT = 0.75  # how sure the classifier has to be before it contradicts a label


def report_in_two_splits(seen: Gathered) -> Finding:
    held_out = (
        "SELECT s.n, s.id, s.split, s.report, t.id FROM studies s JOIN "
        "(SELECT report, min(id) id FROM studies WHERE split = 'train' GROUP BY report) t ON s.report = t.report "
        "WHERE s.split IN ('val', 'test') AND s.report != ''"
    )
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
        "look",
        seen.count(held_out),
        totals.get("val", 0) + totals.get("test", 0),
        "held-out reports",
        "A model that learned them by heart scores full marks on them without looking at the picture. Short normal "
        "reports repeat by chance, so some are no leak; all of them lift BLEU and CIDEr.",
        "Give scores with and without these studies; for new data split by patient and check that they are not the same.",
        "; ".join(notes),
        tuple(
            Example((id, twin), f"{split}: {report}")
            for _, id, split, report, twin in seen.ask(
                f"{held_out} ORDER BY length(s.report) DESC LIMIT ?", seen.examples
            )
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


def unreadable(seen: Gathered) -> Finding:
    broken = "SELECT id, number, path, trouble FROM pictures JOIN studies ON study = studies.n WHERE trouble != ''"
    return Finding(
        "unreadable",
        "Pictures that cannot be read",
        "wrong",
        seen.count(broken),
        seen.pictures,
        "pictures",
        "Training stops at them, or a loader puts black in their place and says nothing.",
        "Fetch the files again, or import with --skip-bad.",
        examples=tuple(
            Example((id,), f"picture {number}, {path}: {trouble}")
            for id, number, path, trouble in seen.ask(f"{broken} LIMIT ?", seen.examples)
        ),
    )


def damaged(seen: Gathered) -> Finding:
    return Finding(
        "damaged",
        "Studies that an import will not take",
        "wrong",
        seen.count("SELECT * FROM remarks WHERE kind = 'damaged'"),
        seen.studies + seen.count("SELECT * FROM remarks WHERE kind = 'damaged'"),
        "studies",
        "They are missing from everything that follows.",
        "Mend them, or import with --skip-bad.",
        examples=_remarks(seen, "damaged"),
    )


def blank(seen: Gathered) -> Finding:
    return Finding(
        "blank",
        "Blank pictures",
        "wrong",
        seen.count("SELECT * FROM pictures WHERE blank"),
        seen.pictures,
        "pictures",
        "A report is learned from, or asked of, nothing.",
        "Leave the picture out; a study with another view can stay.",
        examples=_pictures(seen, "blank"),
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
    _, steps = seen.smalls_and_steps() if seen.pictures else (None, np.zeros((0, 32), np.uint8))
    looked_at = np.array([n for (n,) in seen.ask("SELECT n FROM pictures WHERE NOT blank AND trouble = ''")], dtype=int)
    pairs: dict[tuple[int, int], int] = {}
    for first, second, bits in near_pairs(steps[looked_at]):
        if len(pairs) < 100_000:
            pairs[int(looked_at[first]), int(looked_at[second])] = bits
    examples, count = [], 0
    for (first, second), bits in sorted(pairs.items(), key=lambda pair: pair[1]):
        one, other = _picture(seen, first), _picture(seen, second)
        if one["sha"] == other["sha"]:
            continue  # told as the same picture
        count += 1
        if len(examples) < seen.examples:
            labels = ((one["path"], one["label"]), (other["path"], other["label"]))
            splits = " and ".join(sorted({one["split"], other["split"]}))
            text = f"{bits} of 256 coarse steps differ; split {splits}"
            examples.append(Example(tuple(dict.fromkeys((one["id"], other["id"]))), text, labels))
    return Finding(
        "nearly-same-picture",
        "Nearly the same picture twice",
        "look",
        count,
        seen.pictures,
        "pairs among the pictures",
        "Mostly one exposure processed in two ways, or stored at two sizes: a leak where it crosses splits.",
        "Look at the pairs; keep one of each.",
        examples=tuple(examples),
    )


def same_view_twice(seen: Gathered) -> Finding:
    twice = (
        "SELECT study, view, group_concat(n) pictures FROM pictures WHERE view IN ('frontal', 'lateral') "
        "GROUP BY study, view HAVING count(*) > 1"
    )
    examples = []
    for _, view, pictures in seen.ask(f"{twice} LIMIT ?", seen.examples):
        rows = [_picture(seen, int(n)) for n in pictures.split(",")]
        examples.append(
            Example((rows[0]["id"],), f"{len(rows)} x {view}", tuple((r["path"], r["label"]) for r in rows))
        )
    return Finding(
        "same-view-twice",
        "Studies with one view twice",
        "look",
        len({study for study, _, _ in seen.ask(twice)}),
        seen.studies,
        "studies",
        "Who takes the first two pictures for frontal and lateral feeds a second frontal where a lateral belongs.",
        "Choose pictures by view (data.arrange: by-view masks what is missing).",
        examples=tuple(examples),
    )


def view_unknown(seen: Gathered) -> Finding:
    return Finding(
        "view-unknown",
        "Pictures of unknown or other view",
        "look",
        seen.count("SELECT * FROM pictures WHERE view IN ('unknown', 'other')"),
        seen.pictures,
        "pictures",
        "They fill the place of a frontal or lateral picture, or are passed over.",
        "Give their view at the source, or leave them out.",
        examples=_pictures(seen, "view IN ('unknown', 'other')"),
    )


def view_doubtful(seen: Gathered) -> Finding:
    rows = seen.ask("SELECT n, view, aspect, study FROM pictures WHERE NOT blank AND trouble = ''")
    numbers = np.array([row[0] for row in rows], dtype=int)
    lateral = np.array([{"frontal": 0, "lateral": 1}.get(row[1], -1) for row in rows], dtype=int)
    doubts = None
    if rows:
        smalls, _ = seen.smalls_and_steps()
        aspects, studies = np.array([row[2] for row in rows]), np.array([row[3] for row in rows])
        doubts = view_doubts(smalls[numbers], aspects, lateral, studies)
    told = {
        "kind": "view-doubtful",
        "title": "Pictures that do not look like the view they are said to be",
        "gravity": "look",
        "of": int((lateral >= 0).sum()),
        "unit": "labelled pictures",
        "why": "Wrong labels, pictures stored upside down or turned by 90 degrees, or unusual positions.",
        "remedy": "Look at each: correct the label, turn the picture, or leave it as it is.",
    }
    if doubts is None:
        return Finding(
            **told, count=0, note="too few pictures labelled frontal and lateral (25 of each)", checked=False
        )
    against = np.where(lateral == 1, 1 - doubts.lateral, doubts.lateral)
    wrong = [at for at in np.argsort(-against) if lateral[at] >= 0 and against[at] >= _DOUBT]
    examples = []
    for at in wrong[: seen.examples]:
        row, other = _picture(seen, int(numbers[at])), "frontal" if lateral[at] else "lateral"
        text = f"said to be {row['view']}, looks {other} ({against[at]:.0%})"
        examples.append(Example((row["id"],), text, ((row["path"], row["label"]),)))
    note = (
        f"judged by a logistic regression on 16 x 16 copies, fitted on {doubts.fitted_on:,} of these very labels and "
        f"cross-validated over studies: it tells {doubts.accuracy:.1%} as they are labelled"
    )
    return Finding(**told, count=len(wrong), note=note, examples=tuple(examples))


def first_not_frontal(seen: Gathered) -> Finding:
    turned = (
        "SELECT study FROM pictures p WHERE number = 0 AND view != 'frontal' AND EXISTS "
        "(SELECT * FROM pictures q WHERE q.study = p.study AND q.view = 'frontal')"
    )
    examples = []
    for (study,) in seen.ask(f"{turned} LIMIT ?", seen.examples):
        rows = [_picture(seen, n) for (n,) in seen.ask("SELECT n FROM pictures WHERE study = ? ORDER BY number", study)]
        examples.append(Example((rows[0]["id"],), "", tuple((row["path"], row["label"]) for row in rows)))
    return Finding(
        "first-not-frontal",
        "Studies whose first picture is not the frontal one",
        "know",
        seen.count(turned),
        seen.studies,
        "studies",
        "Who takes picture 0 for the frontal one, as much published code does, mixes the views.",
        "Choose pictures by view (data.arrange: by-view); by-order repeats what that code does.",
        examples=tuple(examples),
    )


def no_picture(seen: Gathered) -> Finding:
    bare = "SELECT id FROM studies WHERE n NOT IN (SELECT study FROM pictures)"
    return _of_studies(
        seen,
        bare,
        ("no-picture", "Studies without a picture", "wrong"),
        "There is nothing to report on.",
        "Leave them out.",
    )


def empty_report(seen: Gathered) -> Finding:
    rows = [
        id for id, report in seen.ask("SELECT id, report FROM studies WHERE length(report) < 40") if not _words(report)
    ]
    return Finding(
        "empty-report",
        "Empty reports",
        "wrong",
        len(rows),
        seen.studies,
        "studies",
        "A reporter learns to say nothing, and a score against nothing is 0 or undefined.",
        "Leave them out, or make the report of another section as well.",
        examples=tuple(Example((id,)) for id in rows[: seen.examples]),
    )


def empty_sections(seen: Gathered) -> Finding:
    counts = [(name, seen.count(f"SELECT * FROM studies WHERE NOT {name}")) for name in ("findings", "impression")]
    none = "SELECT id FROM studies WHERE NOT findings OR NOT impression"
    return _of_studies(
        seen,
        none,
        ("empty-section", "Studies without findings or without impression", "know"),
        "A report made of both sections differs in length and content from one that is made of one.",
        "Make reports of the section that all studies have, and say which.",
        "; ".join(f"{count} without {name}" for name, count in counts if count),
    )


def letters(seen: Gathered) -> Finding:
    return Finding(
        "letters",
        "Damaged letters",
        "wrong",
        seen.count("SELECT * FROM remarks WHERE kind = 'letters'"),
        seen.studies,
        "studies",
        "Words fall apart into pieces that no vocabulary knows.",
        "Read the source in its true encoding and import again.",
        examples=_remarks(seen, "letters"),
    )


def language(seen: Gathered) -> Finding:
    return Finding(
        "language",
        "Reports that hardly look English",
        "look",
        seen.count("SELECT * FROM remarks WHERE kind = 'language'"),
        seen.studies,
        "studies",
        "Cleaning, labelers and the published scores are made for English.",
        "Leave them out, or keep to scores that know no language.",
        examples=_remarks(seen, "language"),
    )


def blanked_words(seen: Gathered) -> Finding:
    some = seen.count("SELECT * FROM studies WHERE blanked > 0")
    much = "SELECT id, report, blanked FROM studies WHERE blanked >= 0.1 ORDER BY blanked DESC"
    return Finding(
        "blanked-words",
        "Reports in which a tenth or more of the words is blanked out (XXXX, ___)",
        "know",
        seen.count(much),
        seen.studies,
        "studies",
        "The reporter learns to write XXXX; whether it counts in scores differs from code to code.",
        "Know it; leave the worst out.",
        f"{some} reports hold at least one blanked word",
        tuple(Example((id,), f"{s:.0%}: {text}") for id, text, s in seen.ask(f"{much} LIMIT ?", seen.examples)),
    )


def repeated_reports(seen: Gathered) -> Finding:
    again = "SELECT report, count(*) times, min(id) id FROM studies WHERE report != '' GROUP BY report HAVING times > 1"
    count = seen.ask(f"SELECT coalesce(sum(times), 0) FROM ({again})")[0][0]
    return Finding(
        "repeated-report",
        "Reports that are not the only ones of their words",
        "know",
        count,
        seen.studies,
        "studies",
        "Templates for the normal case: a model that writes the commonest one for everybody scores well.",
        "Compare every score with that of the commonest report for everybody.",
        examples=tuple(
            Example((id,), f"{times} x: {report}")
            for report, times, id in seen.ask(f"{again} ORDER BY times DESC LIMIT ?", seen.examples)
        ),
    )


def left_out(seen: Gathered) -> Finding:
    kinds = seen.ask("SELECT text, count(*) FROM remarks WHERE kind = 'left out' GROUP BY text ORDER BY 2 DESC")
    return Finding(
        "left-out",
        "Left out by the source's rule",
        "know",
        sum(count for _, count in kinds),
        seen.studies,
        "left out, beside the studies taken",
        "Figures hold for what is left.",
        "Know it, and say it with the figures.",
        "; ".join(f"{count} x {text}" for text, count in kinds[:10]),
        _remarks(seen, "left out"),
    )


CHECKS: tuple[Callable[[Gathered], Finding], ...] = (
    *(unreadable, damaged, no_picture, blank, same_picture, picture_in_two_splits, patient_in_two_splits),
    *(empty_report, letters, report_in_two_splits, nearly_same_picture, same_view_twice, view_doubtful, view_unknown),
    *(language, first_not_frontal, empty_sections, blanked_words, repeated_reports, left_out),
)


def _words(report: str) -> bool:
    from negatoscope.studies.audit_text import has_words

    return has_words(report)


def _of_studies(
    seen: Gathered, query: str, told: tuple[str, str, str], why: str, remedy: str, note: str = ""
) -> Finding:
    kind, title, gravity = told
    examples = tuple(Example((id,)) for (id,) in seen.ask(f"{query} LIMIT ?", seen.examples))
    return Finding(kind, title, gravity, seen.count(query), seen.studies, "studies", why, remedy, note, examples)


def _remarks(seen: Gathered, kind: str) -> tuple[Example, ...]:
    rows = seen.ask("SELECT study, text FROM remarks WHERE kind = ? LIMIT ?", kind, seen.examples)
    return tuple(Example((study,), text) for study, text in rows)


def _pictures(seen: Gathered, condition: str) -> tuple[Example, ...]:
    numbers = seen.ask(f"SELECT n FROM pictures WHERE {condition} LIMIT ?", seen.examples)
    rows = [_picture(seen, n) for (n,) in numbers]
    return tuple(Example((row["id"],), row["split"], ((row["path"], row["label"]),)) for row in rows)


def _same_pictures(seen: Gathered, query: str) -> tuple[Example, ...]:
    examples = []
    for (sha,) in seen.ask(f"{query} LIMIT ?", seen.examples):
        rows = [_picture(seen, n) for (n,) in seen.ask("SELECT n FROM pictures WHERE sha = ? LIMIT 6", sha)]
        text = " and ".join(dict.fromkeys(row["split"] for row in rows))
        studies = tuple(dict.fromkeys(row["id"] for row in rows))
        examples.append(Example(studies, text, tuple((row["path"], row["label"]) for row in rows)))
    return tuple(examples)


def _picture(seen: Gathered, n: int) -> dict[str, str]:
    query = "SELECT id, split, number, path, view, position, sha FROM pictures JOIN studies ON study = studies.n"
    id, split, number, path, view, position, sha = seen.ask(f"{query} WHERE pictures.n = ?", n)[0]
    label = f"picture {number}: {view}" + (f" ({position})" if position and position.lower() != view else "")
    return {"id": id, "split": split, "path": path, "view": view, "sha": sha, "label": label}

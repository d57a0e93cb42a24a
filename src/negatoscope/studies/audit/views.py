"""Whether pictures show what they are said to show."""

from __future__ import annotations

import numpy as np

from negatoscope.studies.audit.gathered import Finding, Gathered
from negatoscope.studies.audit.pictures import view_doubts

_OTHER = {"frontal": "lateral", "lateral": "frontal"}


def same_view_twice(seen: Gathered) -> Finding:
    twice = (
        "SELECT study, view, group_concat(n) pictures FROM pictures WHERE view IN ('frontal', 'lateral') "
        "GROUP BY study, view HAVING count(*) > 1"
    )
    groups = seen.ask(f"{twice} LIMIT ?", seen.examples)
    return Finding(
        "same-view-twice",
        "Studies with one view twice",
        "look",
        seen.count(f"SELECT DISTINCT study FROM ({twice})"),
        seen.studies,
        "studies",
        "Who takes the first two pictures for frontal and lateral feeds a second frontal where a lateral belongs.",
        "Choose pictures by view; a missing one is masked.",
        examples=tuple(seen.together(map(int, numbers.split(",")), f"{view} twice") for _, view, numbers in groups),
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
        examples=seen.some_pictures("view IN ('unknown', 'other')"),
    )


def view_doubtful(seen: Gathered) -> Finding:
    query = (
        "SELECT study, aspect, CASE WHEN blank OR trouble != '' THEN -1 WHEN view = 'frontal' THEN 0 "
        "WHEN view = 'lateral' THEN 1 ELSE -1 END FROM pictures ORDER BY n"
    )
    rows = seen.columns(query, [("study", np.int64), ("aspect", np.float32), ("lateral", np.int8)])
    lateral = rows["lateral"]
    doubts = view_doubts(seen.smalls(), rows["aspect"], lateral, rows["study"])
    if doubts is None:
        against, wrong, note = np.zeros(0), [], "too few pictures labelled frontal and lateral (25 of each)"
    else:
        against = np.where(lateral == 1, 1 - doubts.lateral, doubts.lateral) * (lateral >= 0)
        wrong = [int(n) for n in np.argsort(-against, kind="stable") if against[n] > 0.5]
        note = (
            f"judged by a logistic regression on 16 x 16 copies, fitted on {doubts.fitted_on:,} of these very labels "
            f"and cross-validated over studies: it tells {doubts.accuracy:.1%} as they are labelled"
        )
    return Finding(
        "view-doubtful",
        "Pictures that do not look like the view they are said to be",
        "look",
        len(wrong),
        int((lateral >= 0).sum()),
        "labelled pictures",
        "Wrong labels, pictures stored upside down or turned by 90 degrees, or unusual positions.",
        "Look at each: correct the label, turn the picture, or leave it as it is.",
        note,
        tuple(
            seen.together([n], f"looks {_OTHER[seen.picture(n).view]} ({against[n]:.0%})")
            for n in wrong[: seen.examples]
        ),
        checked=doubts is not None,
    )


def first_not_frontal(seen: Gathered) -> Finding:
    turned = (
        "SELECT study FROM pictures p WHERE number = 0 AND view != 'frontal' AND EXISTS "
        "(SELECT * FROM pictures q WHERE q.study = p.study AND q.view = 'frontal')"
    )
    studies = [study for (study,) in seen.ask(f"{turned} LIMIT ?", seen.examples)]
    pictures = "SELECT n FROM pictures WHERE study = ? ORDER BY number"
    return Finding(
        "first-not-frontal",
        "Studies whose first picture is not the frontal one",
        "know",
        seen.count(turned),
        seen.studies,
        "studies",
        "Who takes picture 0 for the frontal one, as much published code does, mixes the views.",
        "Choose pictures by view; choosing by order repeats what that code does.",
        examples=tuple(seen.together((n for (n,) in seen.ask(pictures, study)), "") for study in studies),
    )

"""What is missing, damaged, or odd about pictures and reports taken one by one."""

from __future__ import annotations

from negatoscope.studies.audit.gathered import Example, Finding, Gathered, Gravity
from negatoscope.studies.audit.words import has_words


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
        examples=seen.remarked("damaged"),
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
        examples=seen.some_pictures("blank"),
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
    short = seen.ask("SELECT id, report FROM studies WHERE length(report) < 40")
    rows = [id for id, report in short if not has_words(report)]
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
        examples=seen.remarked("letters"),
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
        examples=seen.remarked("language"),
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
        "studies beside them",
        "Figures hold for what is left.",
        "Know it, and say it with the figures.",
        "; ".join(f"{count} x {text}" for text, count in kinds[:10]),
        seen.remarked("left out"),
    )


def _of_studies(
    seen: Gathered, query: str, told: tuple[str, str, Gravity], why: str, remedy: str, note: str = ""
) -> Finding:
    kind, title, gravity = told
    examples = tuple(Example((id,)) for (id,) in seen.ask(f"{query} LIMIT ?", seen.examples))
    return Finding(kind, title, gravity, seen.count(query), seen.studies, "studies", why, remedy, note, examples)

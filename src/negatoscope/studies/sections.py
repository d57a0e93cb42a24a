"""A radiologist's free text, taken apart at its headings.

    FINAL REPORT                      -> preamble
    INDICATION:  Cough.               -> indication
    FINDINGS:  The lungs are clear.   -> findings
    IMPRESSION:  No acute process.    -> impression

The rules are those by which MIMIC-CXR's makers cut their reports (what counts as a heading, which headings mean the
same, a last paragraph where there is neither findings nor impression). Three things differ, each so that nothing is
lost: two sections of one name are joined instead of the later one kept, a known heading counts in the middle of a line
too ("... stable. IMPRESSION: No change"), and "LUNGS:" inside the findings is a line of the findings.
"""

from __future__ import annotations

import re
from difflib import get_close_matches

# Heading, lower case -> name of its section.
_MEANS = {
    **dict.fromkeys(("findings", "finding", "reference findings", "report"), "findings"),
    **dict.fromkeys(("impression", "impressions", "conclusion", "conclusions", "opinion"), "impression"),
    **dict.fromkeys(("findings and impression", "findings/impression", "findings/ impression"), "impression"),
    **dict.fromkeys(("indication", "indications", "clinical indication", "reason for exam"), "indication"),
    **dict.fromkeys(("reason for examination", "reason for study", "reason for this examination"), "indication"),
    **dict.fromkeys(("history", "clinical history", "patient history", "clinical information"), "history"),
    **dict.fromkeys(
        ("comparison", "comparisons", "comparison exam", "comparison film", "reference exam"), "comparison"
    ),
    **dict.fromkeys(("examination", "exam", "type of examination", "study", "procedure"), "examination"),
    **dict.fromkeys(("technique", "techniques"), "technique"),
    **dict.fromkeys(("recommendation", "recommendations", "recommendation(s)"), "recommendations"),
    **dict.fromkeys(("wet read", "wetread", "preliminary report", "pfi"), "wet read"),
    **{name: name for name in ("notification", "addendum", "comment", "date", "preamble", "full report")},
    **dict.fromkeys(("last paragraph", "last_paragraph"), "last_paragraph"),
}
_MAIN = ("impression", "findings", "history", "comparison", "addendum")  # in this order: "HISTORY AND COMPARISON"
# A heading that names the picture, "CHEST, PA AND LATERAL:", stands over the findings.
_A_PICTURE = re.compile(
    r"\b(chest|portable|ribs?|bone window|(one|two|frontal|lateral|pa|ap) views?|(pa|ap|frontal) and lat(eral)?"
    r"|lateral and (pa|ap)|frontal and|frontal (semi-)?upright)\b"
)
# Subheadings of structured findings.
_ORGAN = re.compile(
    r"lungs?|heart|mediastinum|hil[ai]|hilum|pleura|pleural|spaces?|bones?|osseous|structures|soft|tissues?|lines?|tubes?"
    r"|airways?|diaphragm|abdomen|upper|devices?|support|vessels|vasculature|pulmonary|cardiac|cardiomediastinal"
    r"|silhouette|aorta|trachea|spine|thorax|catheters|hardware|other|and|or|the|of"
)
_CAPITAL_NAMES = "|".join(re.escape(name.upper()) for name in sorted(_MEANS, key=len, reverse=True))
_HEADING = re.compile(
    rf"^[ \t]*(?P<capitals>[A-Z][A-Z ()/,&'-]{{1,80}})[ \t]*:(?=\s|\Z)"  # any words in capitals at the head of a line
    rf"|^[ \t]*(?P<known>(?i:{_CAPITAL_NAMES}))[ \t]*:"  # a known heading in any letters
    rf"|(?<=[\s.;])(?P<inside>{_CAPITAL_NAMES})[ \t]*:"  # a known heading in capitals in the middle of a line
    r"|^[ \t]*(?P<final>FINAL (?:REPORT|ADDENDUM))[ \t]*$",  # ends a wet read; its words stay
    re.MULTILINE,
)


def parse_sections(text: str) -> dict[str, str]:
    """Section name, lower case -> its text, in the order of the report; sections without a word are left out.

    Text before the first heading is the `preamble`; text without any heading is the `full report`. Where neither
    findings nor impression is found, what follows the first paragraph of the last section is the `last_paragraph`.
    """
    pieces = [(name, _tidy(body)) for name, body in _cut(text.replace("\r\n", "\n").replace("\r", "\n"))]
    sections: dict[str, str] = {}
    for name, body in pieces:
        if not body:
            continue
        if name in sections:
            # A body that starts like a heading must not come to stand at the head of a line.
            between = " " if _HEADING.match(body) else "\n"
            sections[name] += between + body
        else:
            sections[name] = body
    return _with_last_paragraph_apart(sections)


def section_name(heading: str) -> str:
    """What a heading means: 'CLINICAL HISTORY' -> 'history'; a heading that nobody knows keeps its own name."""
    name = " ".join(heading.lower().split())
    if name in _MEANS:
        return _MEANS[name]
    for main in _MAIN:
        if main in name:
            return main
    if _A_PICTURE.search(name):
        return "findings"
    near = get_close_matches(name, _MEANS, n=1, cutoff=0.86)  # IMPRESSON, FINDINS, NDICATION
    return _MEANS[near[0]] if near else name


def _cut(text: str) -> list[tuple[str, str]]:
    """(name, body) of every section, empty ones included."""
    pieces: list[tuple[str, str]] = []
    name, start = "preamble", 0
    for heading in _HEADING.finditer(text):
        if heading["final"]:
            if name in ("preamble", "full report", "last_paragraph"):
                continue
            pieces.append((name, text[start : heading.start()]))
            name, start = "preamble", heading.start()
            continue
        words = heading["capitals"] or heading["known"] or heading["inside"]
        if name in ("findings", "impression") and _is_organ(words):
            continue
        pieces.append((name, text[start : heading.start()]))
        name, start = section_name(words), heading.end()
    pieces.append((name, text[start:]))
    if all(name == "preamble" for name, _ in pieces):
        return [("full report", text)]
    return pieces


def _is_organ(heading: str) -> bool:
    return all(_ORGAN.fullmatch(word) for word in re.findall(r"[a-z]+", heading.lower()))


def _tidy(body: str) -> str:
    """Lines without their margins, at most one blank line between two."""
    lines = "\n".join(line.strip() for line in body.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", lines).strip()


def _with_last_paragraph_apart(sections: dict[str, str]) -> dict[str, str]:
    if not sections or sections.keys() & {"findings", "impression", "last_paragraph"}:
        return sections
    name = list(sections)[-1]
    first, *rest = sections[name].split("\n\n", maxsplit=1)
    return sections | {name: first, "last_paragraph": rest[0]} if rest else sections

"""A page of studies: their pictures, what was written about them and what should have been."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path

from negatoscope.pages import picture, table, text, write_page
from negatoscope.studies.store import Store
from negatoscope.studies.study import Study
from negatoscope.vision.prepare import read_grey

STYLE = """
.study { display: grid; grid-template-columns: auto minmax(16rem, 1fr); gap: 1.25rem; }
.views { display: flex; gap: .5rem; align-items: start; } .study p { margin: .1rem 0 .8rem; }
mark { background: none; color: var(--good); } @media (max-width: 56rem) { .study { grid-template-columns: 1fr; } }
"""


def side_by_side(
    path: Path | str,
    title: str,
    store: Store,
    reports: Sequence[Mapping[str, str]],
    *,
    scores: Sequence[tuple[str, Mapping[str, float]]] = (),
    note: str = "",
    most: int = 24,
) -> Path:
    """`reports` as `negatoscope generate` writes them; `scores` are rows of a table: a name and its figures."""
    parts = [f"<p class=soft>{text(note)}</p>"] if note else []
    if scores:
        columns = list(scores[0][1])
        parts.append(table(["", *columns], [[name, *(float(figures[c]) for c in columns)] for name, figures in scores]))
    shown = reports[:most]
    parts.append(f"<h2>{len(shown)} of {len(reports)} studies</h2>")
    parts.append("<p class=soft>Green: words that the reference has in the same order.</p>")
    parts += [_card(store, store.study(one["id"]), one["report"]) for one in shown]
    return write_page(path, title, "".join(parts), style=STYLE)


def _card(store: Store, study: Study, written: str) -> str:
    views = "".join(
        picture(read_grey(store.picture_path(one)), alt=f"{one.view} of {study.id}") for one in study.pictures
    )
    return (
        f"<div class='card study'><div class=views>{views}</div><div>"
        f"<p class=soft>{text(study.id)}</p>"
        f"<b>Written</b><p>{_marked(written, study.report)}</p>"
        f"<b>Reference</b><p>{text(study.report)}</p></div></div>"
    )


def _marked(written: str, reference: str) -> str:
    said = written.split()
    wanted = reference.lower().replace(".", " .").replace(",", " ").split()
    pieces = []
    for kind, start, end, _, _ in SequenceMatcher(None, said, wanted, autojunk=False).get_opcodes():
        words = text(" ".join(said[start:end]))
        pieces.append(f"<mark>{words}</mark>" if kind == "equal" else words)
    return " ".join(piece for piece in pieces if piece)

"""A draft as a page: the images, each sentence with where it comes from, the observations, what there is to doubt."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from negatoscope.drafting.draft import NOTICE, Draft, Sentence
from negatoscope.drafting.library import Near
from negatoscope.pages import picture, table, text, write_page
from negatoscope.reading_room.explanation import overlay
from negatoscope.vision.prepare import read_grey

STYLE = """
.views { display: flex; gap: .75rem; flex-wrap: wrap; } figure { margin: 0; } figcaption { font-size: .85rem; }
.warning { border-left: 4px solid var(--bad); padding-left: .75rem; color: var(--bad); }
.bar { background: var(--line); border-radius: .2rem; height: .55rem; width: 10rem; position: relative; }
.bar i { position: absolute; top: 0; bottom: 0; background: var(--blue); opacity: .35; border-radius: .2rem; }
.bar b { position: absolute; top: -.15rem; bottom: -.15rem; width: 3px; background: var(--blue); }
"""


def draft_page(path: Path | str, draft: Draft, images: Sequence[Path | str]) -> Path:
    """`images` are those that the draft was made of, in their order."""
    greys = {Path(image).name: read_grey(image) for image in images}
    parts = [f"<p class=warning>{text(one)}</p>" for one in draft.warnings]
    parts.append(f"<div class=card>{text(draft.text)}</div><p class=soft>{text(NOTICE)}</p><div class=views>")
    for view in draft.views:
        caption = f"{view.file}: {view.view}, certainty {view.certainty:.2f}"
        parts.append(_figure(picture(greys[view.file], alt=caption), caption))
    parts.append("</div><h2>On what each sentence rests</h2>")
    parts.append(
        "<p class=soft>Red: where in the images the answer comes from that the sentence puts into words. Maps are "
        "coarse: a region, never an outline.</p>"
    )
    parts += [_sentence(one, greys) for one in draft.sentences]
    parts.append("<h2>Observations</h2>")
    parts.append(_observations(draft))
    parts.append("<h2>Nearest normal training studies</h2>")
    parts.append(_near(draft.nearest_normals))
    return write_page(path, f"Draft report {draft.id}".strip(), "".join(parts), style=STYLE)


def _sentence(sentence: Sentence, greys: dict[str, np.ndarray]) -> str:
    names = ", ".join(sentence.observations) or "nothing abnormal"
    figures = []
    for where, heat in sentence.heat.items():
        file = where.split(": ", 1)[1]
        shown = overlay(greys[file], torch.tensor(heat), 1.0)
        figures.append(_figure(picture(shown, side=220, alt=f"{sentence.text} on {where}"), where))
    read = f"CheXpert's rules read: {text(names)}. Words' probability {sentence.likely:.2f}."
    said = f"<b>{text(sentence.text)}</b><p class=soft>{read}</p>"
    near = _near(sentence.similar)
    return f"<div class=card>{said}<div class=views>{''.join(figures)}<div>{near}</div></div></div>"


def _observations(draft: Draft) -> str:
    rows = []
    for one in sorted(draft.observations, key=lambda one: -one.probability):
        interval = f"<i style='left:{one.low:.1%};width:{one.high - one.low:.1%}'></i>"
        bar = f"<div class=bar>{interval}<b style='left:{one.probability:.1%}'></b></div>"
        asked = "asked for" if one.asked else ""
        rows.append(
            f"<tr><td>{text(one.name)}</td><td>{bar}</td><td class=figure>{one.probability:.2f}</td>"
            f"<td>{text(one.in_words)}</td><td>{asked}</td></tr>"
        )
    head = "<tr><th>observation</th><th>95 % interval</th><th class=figure>probability</th><th></th><th></th></tr>"
    return f"<div class=wide><table>{head}{''.join(rows)}</table></div>"


def _near(near: Sequence[Near]) -> str:
    return table(["training study", "closeness"], [[one.id, one.closeness] for one in near])


def _figure(image: str, caption: str) -> str:
    return f"<figure>{image}<figcaption class=soft>{text(caption)}</figcaption></figure>"

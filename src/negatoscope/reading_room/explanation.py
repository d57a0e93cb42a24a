"""What a report of a reporter with Contrastive Attention was based on, as JSON, pictures and a page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor

from negatoscope.contrast.explain import Explanation, explain
from negatoscope.decoding import write
from negatoscope.pages import picture, table, text, write_page
from negatoscope.studies.store import Store
from negatoscope.studies.study import Picture, Study
from negatoscope.studies.views import ARRANGE
from negatoscope.training.checkpoint import load_reporter
from negatoscope.training.data import loader_for
from negatoscope.training.recipe import recipe_of
from negatoscope.vision.prepare import Fit, read_grey
from negatoscope.whole_files import whole_file, write_json

STYLE = """
.views { display: flex; gap: .75rem; flex-wrap: wrap; } figure { margin: 0; } figcaption { font-size: .85rem; }
"""
SLOTS = ("frontal", "lateral")


@dataclass(frozen=True)
class Explained:
    explanation: Explanation
    report: str
    """As the reporter writes it."""
    page: Path
    pictures: tuple[Path, ...]
    """One overlay a view."""
    json: Path


def explain_study(
    checkpoint: Path | str,
    study: str,
    out: Path | str,
    *,
    store: Path | str | None = None,
    nearest: int = 5,
    device: str = "cpu",
) -> Explained:
    """Explains one study: `explanation.json`, an overlay a view and `index.html` in the folder `out`.

    Without a store, the one that the run learned from. The page shows the nearest normal studies where they lie in the
    same store. Raises WrongUse for a study that is not there or a reporter without Contrastive Attention.
    """
    reporter, loaded = load_reporter(checkpoint, device)
    said = loaded.recipe.as_dict()
    said["data"] |= {"features": None, **({} if store is None else {"store": str(store)})}
    recipe = recipe_of(said)
    studies = Store.open(recipe.data.store)
    ours = studies.study(study)
    place = studies.ids().index(study)
    loader = loader_for(recipe, None, studies, ours.split, chosen=[place])
    batch = next(loader.epoch()).to(device)
    found = explain(reporter, batch, nearest=nearest)[0]
    written = write(reporter, batch, recipe.decode, loaded.vocabulary.unknown)[0][0]
    report = loaded.vocabulary.decode(written.words)

    out = Path(out)
    pictures = ARRANGE[recipe.data.arrange](ours, recipe.data.views)
    views = _views(studies, ours, found, pictures, recipe.encoder.fit)
    overlays = []
    for view in views:
        path = out / f"{view.name}.png"
        with whole_file(path) as part:
            Image.fromarray(view.overlay).save(part, "PNG")
        overlays.append(path)
    about = getattr(reporter.contrast, "about_pool", {})
    write_json(out / "explanation.json", _as_json(found, ours, report, views, about))
    page = _page(out / "index.html", found, ours, report, views, studies)
    return Explained(found, report, page, tuple(overlays), out / "explanation.json")


@dataclass(frozen=True)
class _View:
    name: str
    grey: np.ndarray
    heat: Tensor
    overlay: np.ndarray


def _views(
    store: Store, study: Study, found: Explanation, pictures: tuple[Picture | None, ...], fit: Fit
) -> list[_View]:
    """All views on one scale of colour, so that they can be compared."""
    seen = [(slot, shown, heat) for slot, (shown, heat) in enumerate(zip(pictures, found.heat)) if shown is not None]
    highest = max((heat.max().item() for _, _, heat in seen if heat is not None), default=0.0)
    views = []
    for slot, shown, heat in seen:
        if heat is not None:
            grey = read_grey(store.picture_path(shown), where=f"study {study.id}")
            views.append(_View(SLOTS[slot], grey, heat, overlay(grey, heat, highest, fit)))
    return views


def overlay(grey: np.ndarray, heat: Tensor, highest: float, fit: Fit = "squash") -> np.ndarray:
    """(H, W) uint8 under a map (h, w), as (H, W, 3) uint8: clear where heat is 0 or less, full red at `highest`.

    The map covers the square that the backbone saw, which by `fit` is all of the picture, its middle, or more than it.
    """
    height, width = grey.shape
    left, top, right, bottom = seen_square(width, height, fit)
    field = Image.fromarray(heat.clamp_min(0).numpy().astype(np.float32))
    canvas = Image.new("F", (width, height))
    canvas.paste(field.resize((right - left, bottom - top), Image.Resampling.BILINEAR), (left, top))
    large = np.asarray(canvas)
    strength = np.clip(large / max(highest, 1e-12), 0, 1)[..., None]  # (H, W, 1)
    yellow, red = np.array([255.0, 210.0, 0.0]), np.array([255.0, 30.0, 0.0])
    colour = yellow + (red - yellow) * strength
    share = 0.65 * strength
    return ((1 - share) * grey[..., None] + share * colour).round().astype(np.uint8)


def seen_square(width: int, height: int, fit: Fit) -> tuple[int, int, int, int]:
    """Left, top, right, bottom of the backbone's square, in the picture's own pixels."""
    if fit == "squash":
        return 0, 0, width, height
    side = min(width, height) if fit == "crop" else max(width, height)
    left, top = round((width - side) / 2), round((height - side) / 2)
    return left, top, left + side, top + side


def _as_json(found: Explanation, study: Study, report: str, views: list[_View], pool: dict[str, Any]) -> dict[str, Any]:
    return {
        "study": study.id,
        "report": report,
        "reference": study.report,
        "strength": found.strength,
        "common": found.common,
        "heads": [[vars(one) for one in head] for head in found.heads],
        "heat": {view.name: [[round(value, 6) for value in row] for row in view.heat.tolist()] for view in views},
        "pool": {key: value for key, value in pool.items() if key != "ids"} | {"studies": len(pool.get("ids", ()))},
    }


def _page(path: Path, found: Explanation, study: Study, report: str, views: list[_View], store: Store) -> Path:
    parts = [
        f"<p class=soft>Length of the contrastive information {found.strength:.3f}, of what the study has in common "
        f"with normal ones {found.common:.3f}.</p><div class='card'><b>Written</b><p>{text(report)}</p>"
        f"<b>Reference</b><p>{text(study.report or 'none')}</p></div>",
        "<h2>Contrastive information</h2><p class=soft>How far each patch goes along what sets this study apart from "
        "the normal ones; red is the most of both views, clear is none. Patches are coarse: a map shows a region, "
        "never an outline.</p><div class=views>",
    ]
    for view in views:
        parts.append(_figure(picture(view.grey, alt=f"{view.name} of {study.id}"), view.name))
        parts.append(_figure(picture(view.overlay, alt=f"contrast over {view.name}"), f"{view.name}, contrast"))
    parts.append("</div><h2>Nearest normal studies</h2>")
    known = set(store.ids())
    for number, head in enumerate(found.heads, start=1):
        shown = []
        for one in head[:3]:
            other = store.study(one.id) if one.id in known else Study(one.id)
            frontal = next(iter(other.pictures_seen_from("frontal") or other.pictures), None)
            if frontal is not None:
                grey = read_grey(store.picture_path(frontal))
                shown.append(
                    _figure(picture(grey, side=140, alt=f"normal study {one.id}"), f"{one.share:.3f} {one.id}")
                )
        rows: list[list[object]] = [[one.id, one.share] for one in head]
        title = f"Head {number}" if len(found.heads) > 1 else "Differentiate Attention"
        inside = f"<div class=views>{table(['study', 'share'], rows)}{''.join(shown)}</div>"
        parts.append(f"<div class=card><b>{title}</b>{inside}</div>")
    return write_page(path, f"What sets {study.id} apart", "".join(parts), style=STYLE)


def _figure(image: str, caption: str) -> str:
    return f"<figure>{image}<figcaption class=soft>{text(caption)}</figcaption></figure>"

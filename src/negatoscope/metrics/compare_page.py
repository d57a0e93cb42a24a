"""A comparison written out: CSV, LaTeX, Markdown, JSON, and one HTML page that needs nothing beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from negatoscope.errors import WrongUse
from negatoscope.metrics import plots
from negatoscope.metrics.clinical import STATES, Clinical, each_observation, tables
from negatoscope.metrics.compare import NEAREST, Comparison, Part
from negatoscope.metrics.compare_tables import as_csv, as_latex, as_markdown, cell_text, digits
from negatoscope.metrics.evaluate import Evaluation
from negatoscope.metrics.lengths import BINS, WIDTH, histograms
from negatoscope.metrics.resampling import interval
from negatoscope.pages import picture, text, write_page
from negatoscope.studies.study import OBSERVATIONS
from negatoscope.whole_files import write_json, write_text

if TYPE_CHECKING:
    from negatoscope.studies.store import Store

MOST_STUDIES = 12
_PLOTTED = (
    *("BLEU-4", "METEOR", "ROUGE-L", "CIDEr", "CE F1 (r2gen)", "CE F1, micro 14 (chexbert)"),
    *("CE F1, micro 13 (findings)", "CE F1, micro 5 (chexbert)"),
    *("missed abnormality", "invented abnormality", "diversity"),
)
_IN_SPLITS = (
    "BLEU-4",
    "CIDEr",
    "CE F1 (r2gen)",
    "CE F1, micro 13 (findings)",
    "missed abnormality",
    "invented abnormality",
)

STYLE = """
svg { font: 12px system-ui, sans-serif; max-width: 100%; height: auto; } svg text { fill: var(--ink); }
svg .title { font-weight: 600; font-size: 13px; } svg .soft { fill: var(--soft); }
svg .number { fill: var(--soft); font-size: 11px; font-variant-numeric: tabular-nums; }
svg .whisker { stroke: var(--ink); stroke-width: 1.2; fill: none; } svg .grid { stroke: var(--line); fill: none; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(21rem, 1fr)); gap: 1.2rem 1.6rem; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; font-size: .9rem; }
.legend i { display: inline-block; width: .8rem; height: .8rem; border-radius: .15rem; margin-right: .4rem; }
td.figure small { display: block; color: var(--soft); font-size: .78rem; white-space: nowrap; }
th.figure { white-space: nowrap; } td.name { white-space: nowrap; } .signature { overflow-wrap: anywhere; }
.study { display: grid; grid-template-columns: auto minmax(16rem, 1fr); gap: 1.25rem; }
.study p { margin: .1rem 0 .8rem; } .views { display: flex; gap: .5rem; align-items: start; }
.three { display: grid; grid-template-columns: repeat(3, 1fr); gap: 1rem; }
@media (max-width: 60rem) { .study, .three { grid-template-columns: 1fr; } }
.tag { display: inline-block; font-size: .78rem; border: 1px solid currentColor; border-radius: .6rem; padding: 0 .5rem;
       margin: 0 .3rem .2rem 0; }
"""


def write_comparison(
    done: Comparison, folder: Path | str, *, figures: Sequence[str] | None = None, store: Store | None = None
) -> list[Path]:
    """compare.csv, compare.tex, compare.md, compare.json and compare.html in `folder`. With a store the studies in the
    page have their pictures."""
    folder = Path(folder)
    texts = {
        "compare.csv": as_csv(done),
        "compare.tex": as_latex(done, figures),
        "compare.md": as_markdown(done, figures),
    }
    for name, said in texts.items():
        write_text(folder / name, said)
    write_json(folder / "compare.json", done.as_json())
    write_page(folder / "compare.html", f"{done.n:,} studies, {_count(done)}", _body(done, figures, store), style=STYLE)
    return [folder / name for name in (*texts, "compare.json", "compare.html")]


def _count(done: Comparison) -> str:
    models = sum(kind == "model" for kind in done.kinds.values())
    return f"{models} model{'s' * (models != 1)} compared"


def _body(done: Comparison, figures: Sequence[str] | None, store: Store | None) -> str:
    colours = _colours(done)
    names = plots.legend(list(colours.items()))
    parts = [
        f"<p class=soft>Small print: 95 % intervals from {done.draws:,} bootstrap draws of studies. Stars: paired "
        f"permutation test against <b>{text(done.against)}</b>, * p &lt; 0.05, ** p &lt; 0.01, *** p &lt; 0.001.</p>"
    ]
    if done.constant is not None:
        parts.append(
            f"<div class=card><b>The constant report</b>, written for everybody, needs no image. "
            f"Best of {done.constant.candidates:,} candidates"
            f"{' on validation' if done.constant.validation_bleu is not None else ' on training'}:"
            f"<p>{text(done.constant.report)}</p></div>"
        )
    parts.append(_table(done.parts[0], done.headline(figures)))
    parts += [f"<p class=soft>{text(note)}</p>" for note in done.notes]
    parts += ["<h2>Figures with their intervals</h2>", names, f"<div class=plots>{_metric_bars(done, colours)}</div>"]
    if len(done.parts) > 1:
        parts += ["<h2>By kind of study</h2>", _splits(done)]
    clinical = {row: one for row, one in done.evaluations.items() if "clinical" in one.rows}
    if clinical:
        parts += ["<h2>Each observation: F1, uncertain as positive</h2>", names, _observations(done, colours)]
    if all("lengths" in one.rows for one in done.evaluations.values()):
        parts += ["<h2>Length of the reports</h2>", _lengths(done, colours)]
    if clinical:
        parts += ["<h2>What the labels became</h2>"]
        parts.append("<p class=soft>14 cells a study. Rows: the reference; the colour is the share of the row.</p>")
        parts.append(f"<div class=plots>{_confusions(clinical)}</div>")
    parts.append(_differences(done, store))
    parts.append(f"<p class='soft signature'>signature: <code>{text(done.signature)}</code></p>")
    return "".join(parts)


def _colours(done: Comparison) -> dict[str, str]:
    models = [row for row, kind in done.kinds.items() if kind == "model"]
    own = {row: plots.COLOURS[k % len(plots.COLOURS)] for k, row in enumerate(models)}
    grey = {row: "#b4b8bf" if row == NEAREST else plots.GREY for row in done.kinds if row not in own}
    return {**own, **grey}


def _table(part: Part, figures: Sequence[str]) -> str:
    head = "".join(f"<th class=figure>{text(row)}</th>" for row in part.rows)
    lines = []
    for figure in figures:
        if not any(figure in cells for cells in part.rows.values()):
            continue
        cells = (cell_text(figure, of_row.get(figure), between="–") for of_row in part.rows.values())
        said = "".join(
            f"<td class=figure>{text(value)}<small>{text(low_high)}</small></td>" for value, low_high in cells
        )
        lines.append(f"<tr><td class=name>{text(figure)}</td>{said}</tr>")
    return f"<div class=wide><table><tr><th>{part.n:,} studies</th>{head}</tr>{''.join(lines)}</table></div>"


def _metric_bars(done: Comparison, colours: dict[str, str]) -> str:
    rows = done.parts[0].rows
    drawn = []
    for figure in _PLOTTED:
        cells = {row: of_row[figure] for row, of_row in rows.items() if figure in of_row}
        said = [
            plots.Bar(row, cell.value, cell.low, cell.high, colours[row], digits(figure, cell.value) + cell.mark)
            for row, cell in cells.items()
        ]
        if said:
            drawn.append(f"<div>{plots.bars(figure, said)}</div>")
    return "".join(drawn)


def _splits(done: Comparison) -> str:
    figures = [figure for figure in _IN_SPLITS if figure in done.headline()]
    head = "".join(
        f"<th class=figure>{text(part.name)}<br><small>{part.n:,} studies</small></th>" for part in done.parts
    )
    lines = []
    for figure in figures:
        lines.append(f"<tr><th colspan={len(done.parts) + 1}>{text(figure)}</th></tr>")
        for row in done.evaluations:
            cells = (cell_text(figure, part.rows[row].get(figure), between="–") for part in done.parts)
            said = "".join(
                f"<td class=figure>{text(value)}<small>{text(low_high)}</small></td>" for value, low_high in cells
            )
            lines.append(f"<tr><td class=name>{text(row)}</td>{said}</tr>")
    note = "Normal and abnormal, and whether the reference stands word for word in training, go by the reference alone."
    return f"<p class=soft>{note}</p><div class=wide><table><tr><th></th>{head}</tr>{''.join(lines)}</table></div>"


def _observations(done: Comparison, colours: dict[str, str]) -> str:
    of_rows = {}
    for row, one in done.evaluations.items():
        own = one.rows["clinical"]
        rng = np.random.default_rng(done.seed)
        weights = rng.multinomial(one.n, np.full(one.n, 1 / one.n), size=min(done.draws, 300)).astype(float)
        of_rows[row] = (
            each_observation(own.sum(axis=0), "positive"),
            each_observation(weights @ own, "positive")["F1"],
        )
    support = next(iter(of_rows.values()))[0]["in references"]
    groups = []
    for k in np.argsort(-support, kind="stable"):
        drawn = []
        for row, (values, draws) in of_rows.items():
            low, high = interval(draws[:, k])
            value = float(values["F1"][k])
            drawn.append(plots.Bar(row, value, low, high, colours[row], f"{value:.3f} ({low:.3f}–{high:.3f})"))
        groups.append((f"{OBSERVATIONS[k]} ({int(support[k]):,})", drawn))
    return plots.grouped(groups) + "<p class=soft>In brackets: studies whose reference has it.</p>"


def _lengths(done: Comparison, colours: dict[str, str]) -> str:
    lines = []
    for row, one in done.evaluations.items():
        said, asked = histograms(one.rows["lengths"].sum(axis=0))
        if not lines:
            lines.append(("references", asked, plots.GREY))
        if done.kinds[row] != "constant":  # one bin that dwarfs the others
            lines.append((row, said, colours[row]))
    names = [(label, colour) for label, _, colour in lines]
    return plots.legend(names) + plots.histogram(lines, [k * WIDTH for k in range(BINS + 1)], "words")


def _confusions(clinical: dict[str, Evaluation]) -> str:
    drawn = []
    for row, one in clinical.items():
        counts = tables(one.rows["clinical"].sum(axis=0)).sum(axis=0)
        drawn.append(f"<div>{plots.heat(row, STATES, STATES, counts)}</div>")
    return "".join(drawn)


# ---- the studies where two models differ most ----


def _differences(done: Comparison, store: Store | None) -> str:
    two = _two_to_show(done)
    if two is None:
        return ""
    first, second = two
    one, other = done.evaluations[first], done.evaluations[second]
    gain = _gain(other) - _gain(one)
    order = np.argsort(-np.abs(gain), kind="stable")[:MOST_STUDIES]
    shown = [int(k) for k in order if gain[k]]
    cards = [_card(done, first, second, k, store) for k in shown]
    head = f"<h2>Where {text(first)} and {text(second)} differ most</h2>"
    how = (
        f"{len(shown)} of {done.n:,} studies, by the difference in observations that agree with the reference, "
        "then by ROUGE-L. Labels named are those on which prediction and reference disagree."
    )
    return f"{head}<p class=soft>{how}</p>{''.join(cards)}" if cards else ""


def _two_to_show(done: Comparison) -> tuple[str, str] | None:
    """The chosen row and the next model; rows without a model only where there are not two models."""
    rows = sorted(done.evaluations, key=lambda row: (done.kinds[row] != "model", row != done.against))
    return (rows[0], rows[1]) if len(rows) > 1 else None


def _gain(one: Evaluation) -> np.ndarray:
    """(n,) of each study: observations read alike in prediction and reference, and ROUGE-L to order those that tie."""
    gain = np.zeros(one.n)
    if "clinical" in one.rows:
        met = tables(one.rows["clinical"])
        present = (0, 2)  # uncertain counts as positive
        agree = met[:, :, present][..., present].sum(axis=(-1, -2)) + met[:, :, (1, 3)][..., (1, 3)].sum(axis=(-1, -2))
        gain += agree.sum(axis=1)
    if "rouge" in one.rows:
        gain += 0.5 * one.rows["rouge"][:, 0]
    return gain


def _card(done: Comparison, first: str, second: str, study: int, store: Store | None) -> str:
    pairs = done.evaluations[first].pairs
    views = _views(store, pairs.ids[study]) if store is not None else ""
    columns = [("reference", pairs.references[study][0], "")]
    for row in (first, second):
        one = done.evaluations[row]
        rouge = f"ROUGE-L {one.rows['rouge'][study, 0]:.2f}" if "rouge" in one.rows else ""
        columns.append(
            (row, one.pairs.predictions[study], f"<p>{_labels(one, study)}<span class=soft>{rouge}</span></p>")
        )
    texts = "".join(
        f"<div><b>{text(name)}</b><p>{text(said) or '<i>empty</i>'}</p>{more}</div>" for name, said, more in columns
    )
    inside = (
        f"<div class=study><div class=views>{views}</div><div class=three>{texts}</div></div>"
        if views
        else f"<div class=three>{texts}</div>"
    )
    return f"<div class=card><p class=soft>{text(pairs.ids[study])}</p>{inside}</div>"


def _labels(one: Evaluation, study: int) -> str:
    """What the prediction invents and misses."""
    if "clinical" not in one.rows or not isinstance(one.metrics["clinical"], Clinical):
        return ""
    met = tables(one.rows["clinical"][study])
    tags = []
    for k, name in enumerate(OBSERVATIONS):
        asked, said = (int(place) for place in np.unravel_index(int(met[k].argmax()), met[k].shape))
        if name != "No Finding" and (asked in (0, 2)) != (said in (0, 2)):
            how = "missed" if asked in (0, 2) else "invented"
            tags.append(f"<span class='tag bad'>{how}: {text(name)}</span>")
    return "".join(tags) or "<span class='tag good'>labels agree</span>"


def _views(store: Store, study: str) -> str:
    from negatoscope.vision.prepare import read_grey

    try:
        found = store.study(study)
    except WrongUse:
        return f"<p class=soft>{text(study)} is not in the store</p>"
    frontal_first = sorted(found.pictures, key=lambda one: one.view != "frontal")
    return "".join(
        picture(read_grey(store.picture_path(one)), side=200, alt=f"{one.view} of {study}") for one in frontal_first
    )

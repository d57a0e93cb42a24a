"""The shell of every HTML page: one look, no script from elsewhere, pictures inside the file, all text escaped."""

from __future__ import annotations

import base64
import io
from html import escape
from pathlib import Path

import numpy as np
from PIL import Image

from negatoscope import __version__
from negatoscope.whole_files import write_text

STYLE = """
:root { color-scheme: light dark; --paper: #fafaf8; --ink: #1c1d20; --soft: #62656c; --line: #d9d9d4; --card: #fff;
        --good: #1a7f4b; --bad: #b3261e; --blue: #2a5db0; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #131416; --ink: #e8e8e6; --soft: #9a9da5; --line: #303238; --card: #1b1d20;
          --good: #5fc98f; --bad: #f2857d; --blue: #8ab4f8; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 2rem 1.25rem 4rem; background: var(--paper); color: var(--ink);
       font: 16px/1.55 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
.soft { color: var(--soft); font-size: .9rem; } .good { color: var(--good); } .bad { color: var(--bad); }
table { border-collapse: collapse; } th, td { padding: .3rem .8rem .3rem 0; text-align: left; vertical-align: top;
        border-bottom: 1px solid var(--line); } td.figure, th.figure { text-align: right; font-variant-numeric:
        tabular-nums; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: 1rem; margin: 0 0 1rem; }
.wide { overflow-x: auto; } img { background: #000; border-radius: .25rem; max-width: 100%; }
code { font: .88em ui-monospace, monospace; }
"""


def write_page(path: Path | str, title: str, body: str, *, style: str = "") -> Path:
    """A whole page around `body`, which is HTML already: escape what came from data with `text`."""
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    foot = f'<p class="soft">negatoscope {__version__}. Research use, not for diagnosis.</p>'
    head += f"<style>{STYLE}{style}</style>"
    page = f"<html lang=en><head>{head}</head><body><h1>{escape(title)}</h1>{body}{foot}</body></html>"
    write_text(path, f"<!doctype html>\n{page}\n")
    return Path(path)


def text(value: object) -> str:
    """Anything from data, safe inside a page."""
    return escape(str(value))


def table(columns: list[str], rows: list[list[object]]) -> str:
    """Cells are escaped; numbers stand to the right, with three digits behind the point."""
    numeric = [bool(rows) and all(isinstance(row[i], int | float) for row in rows) for i in range(len(columns))]

    def cell(tag: str, value: object, figure: bool) -> str:
        said = f"{value:.3f}" if isinstance(value, float) else text(value)
        return f"<{tag}{' class=figure' if figure else ''}>{said}</{tag}>"

    head = "".join(cell("th", name, figure) for name, figure in zip(columns, numeric, strict=True))
    body = "".join(
        "<tr>" + "".join(cell("td", value, figure) for value, figure in zip(row, numeric, strict=True)) + "</tr>"
        for row in rows
    )
    return f"<div class=wide><table><tr>{head}</tr>{body}</table></div>"


def picture(grey: np.ndarray, *, side: int = 280, alt: str = "") -> str:
    """An <img> with an 8-bit picture inside it, as JPEG, its longer side at most `side`."""
    image = Image.fromarray(grey)
    image.thumbnail((side, side))
    held = io.BytesIO()
    image.convert("RGB" if image.mode == "RGB" else "L").save(held, "JPEG", quality=82)
    data = base64.b64encode(held.getvalue()).decode()
    size = f"width={image.width} height={image.height}"
    return f'<img alt="{escape(alt, quote=True)}" {size} src="data:image/jpeg;base64,{data}">'

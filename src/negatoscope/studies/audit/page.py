"""The audit as one HTML file that needs nothing else: what was found, why it matters, and the pictures themselves."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterator
from pathlib import Path

from negatoscope.errors import BadInput
from negatoscope.studies.audit.gathered import Example, Finding
from negatoscope.studies.audit.run import Audit
from negatoscope.studies.pixels import read_pixels, to_8bit
from negatoscope.whole_files import write_text

_THUMBNAIL = 180  # pixels, the longer side
_THUMBNAILS = 240  # in all: some 8 kB each
_GRAVITY = {"wrong": "makes results wrong", "look": "look at these", "know": "know this"}

_STYLE = """
:root { color-scheme: light dark; --line: #d9dee3; --soft: #5b6670; --ground: #fff; --panel: #f5f7f9; --text: #1c2329;
  --wrong: #b3261e; --look: #9a5b00; --know: #2a5db0; --fine: #2e7d4f; }
@media (prefers-color-scheme: dark) { :root { --line: #363e46; --soft: #9aa6b1; --ground: #14181c; --panel: #1d2329;
  --text: #e6eaee; --wrong: #ff8a80; --look: #f0b455; --know: #8ab4f8; --fine: #81c995; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1120px; padding: 32px 24px 64px; background: var(--ground); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 26px; margin: 0 0 4px; }
h2 { font-size: 18px; margin: 0; }
.soft { color: var(--soft); }
.where { overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; margin: 24px 0 40px; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: 13px; }
th, td { padding: 7px 12px 7px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.count, th.count { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td a { color: inherit; }
.badge { display: inline-block; padding: 1px 9px; border-radius: 10px; font-size: 12.5px; white-space: nowrap;
  border: 1px solid currentColor; }
.wrong { color: var(--wrong); } .look { color: var(--look); } .know { color: var(--know); }
.fine { color: var(--fine); }
section { border: 1px solid var(--line); border-radius: 10px; padding: 18px 20px; margin: 0 0 22px; }
section header { display: flex; gap: 12px; align-items: baseline; flex-wrap: wrap; }
section p { margin: 8px 0; max-width: 80ch; }
.number { font-size: 18px; font-weight: 650; font-variant-numeric: tabular-nums; }
.examples { display: flex; flex-wrap: wrap; gap: 14px; margin: 14px 0 0; padding: 0; list-style: none; }
.examples li { background: var(--panel); border-radius: 8px; padding: 10px; max-width: 100%; }
.examples.texts li { width: 100%; }
.pictures { display: flex; gap: 8px; flex-wrap: wrap; }
figure { margin: 0; width: 180px; }
figure img { display: block; width: 180px; height: 180px; object-fit: contain; background: #000; border-radius: 4px; }
figure .missing { display: grid; place-items: center; width: 180px; height: 180px; background: #000; color: #aaa;
  border-radius: 4px; font-size: 13px; text-align: center; padding: 10px; }
figcaption, .ids, .text { font-size: 13px; overflow-wrap: anywhere; }
.ids { font-weight: 600; margin-top: 6px; } .text { color: var(--soft); max-height: 9em; overflow: auto; }
@media print { section { break-inside: avoid; } }
"""


def write_audit_page(audit: Audit, path: Path | str) -> None:
    """Writes one HTML file: a table of everything looked for, then what was found, with thumbnails inside the file."""
    write_text(path, "".join(_page(audit)))


def _page(audit: Audit) -> Iterator[str]:
    splits = ", ".join(f"{name} {count:,}" for name, count in audit.splits.items())
    faults = audit.faults
    wrong = sum(finding.gravity == "wrong" for finding in faults)
    title = f"Audit of {audit.where.name or audit.where}"
    yield "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n"
    yield "<meta name=viewport content='width=device-width, initial-scale=1'>\n"
    yield f"<title>{_safe(title)}</title>\n<style>{_STYLE}</style>\n"
    yield f"<h1>{_safe(title)}</h1>\n<p class='soft where'>{_safe(audit.where)}</p>\n"
    yield f"<p>{audit.studies:,} studies ({_safe(splits)}), {audit.pictures:,} pictures. "
    yield f"{len(audit.findings)} things were looked for, {len(faults)} found"
    yield f", {wrong} of them of the kind that makes results wrong.</p>\n" if wrong else ".</p>\n"
    yield from _table(audit)
    left = _THUMBNAILS
    for finding in faults:
        yield from _section(finding, left)
        left -= sum(len(example.pictures) for example in finding.examples)
    yield "</html>\n"


def _table(audit: Audit) -> Iterator[str]:
    yield "<table>\n<tr><th>What was looked for<th class=count>Found<th>Of<th>\n"
    for finding in audit.findings:
        title = _safe(finding.title)
        if finding.count:
            badge = f"<span class='badge {finding.gravity}'>{_GRAVITY[finding.gravity]}</span>"
            row = f"<a href='#{finding.kind}'>{title}</a><td class=count><b>{finding.count:,}</b>"
        elif not finding.checked:
            badge, row = f"<span class=soft>not checked: {_safe(finding.note)}</span>", f"{title}<td class=count>-"
        else:
            badge, row = "<span class='badge fine'>none</span>", f"{title}<td class=count>0"
        yield f"<tr><td>{row}<td class=soft>{finding.of:,} {_safe(finding.unit)}<td>{badge}\n"
    yield "</table>\n"


def _section(finding: Finding, thumbnails: int) -> Iterator[str]:
    yield f"<section id='{finding.kind}'>\n<header><h2>{_safe(finding.title)}</h2>"
    yield f"<span class='number {finding.gravity}'>{finding.count:,}</span>"
    yield f"<span class=soft>of {finding.of:,} {_safe(finding.unit)}</span></header>\n"
    yield f"<p>{_safe(finding.why)} <b>{_safe(finding.remedy)}</b></p>\n"
    if finding.note:
        yield f"<p class=soft>{_safe(finding.note)}</p>\n"
    if finding.examples:
        texts_only = "" if any(example.pictures for example in finding.examples) else " texts"
        yield f"<ul class='examples{texts_only}'>\n"
        for example in finding.examples:
            yield from _example(example, thumbnails)
            thumbnails -= len(example.pictures)
        yield "</ul>\n"
    shown = len(finding.examples)
    if shown < finding.count:
        yield f"<p class=soft>{shown:,} of {finding.count:,} shown.</p>\n"
    yield "</section>\n"


def _example(example: Example, thumbnails: int) -> Iterator[str]:
    yield "<li>"
    if example.pictures and thumbnails > 0:
        yield "<div class=pictures>"
        for path, label in example.pictures:
            yield f"<figure>{_thumbnail(Path(path))}<figcaption class=soft>{_safe(label)}</figcaption></figure>"
        yield "</div>"
    yield f"<div class=ids>{_safe(', '.join(example.studies))}</div>"
    if example.text:
        yield f"<div class=text>{_safe(example.text)}</div>"
    yield "</li>\n"


def _thumbnail(path: Path) -> str:
    from PIL import Image

    try:
        picture = Image.fromarray(to_8bit(read_pixels(path)))
    except BadInput as error:
        return f"<div class=missing>{_safe(error.what)}</div>"
    picture.thumbnail((_THUMBNAIL, _THUMBNAIL))
    data = io.BytesIO()
    picture.save(data, "JPEG", quality=80)
    return f"<img alt='' src='data:image/jpeg;base64,{base64.b64encode(data.getvalue()).decode('ascii')}'>"


def _safe(text: object) -> str:
    return html.escape(str(text).encode("utf-8", "backslashreplace").decode("utf-8"))

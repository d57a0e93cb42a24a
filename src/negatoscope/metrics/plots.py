"""Four small plots as SVG inside a page: text takes the page's colours, so that they are read by day and by night."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from negatoscope.pages import text

COLOURS = ("#4c78a8", "#e4803b", "#54a24b", "#b279a2", "#d45b5b", "#8c6d4f")
"""Of models, told apart by daylight, by night and by most of the colour-blind."""
GREY = "#8d9199"
"""Of rows that need no model."""


@dataclass(frozen=True)
class Bar:
    label: str
    value: float
    low: float | None = None
    high: float | None = None
    colour: str = COLOURS[0]
    said: str = ""


def bars(title: str, drawn: Sequence[Bar], *, width: int = 360) -> str:
    """Lying bars from zero, one a model, each with its interval as a whisker."""
    left, right, step = 140, 62, 24
    most = max([1e-9, *(bar.high if bar.high is not None else bar.value for bar in drawn)])
    scale = (width - left - right) / most
    parts = [_said(0, 14, title, looks="title")]
    for k, bar in enumerate(drawn):
        y = 26 + k * step
        parts.append(_said(left - 8, y + 12, _short(bar.label, 22), "end"))
        parts.append(_rect(left, y, max(bar.value, 0) * scale, 15, bar.colour, f"{bar.label}: {bar.said}"))
        if bar.low is not None and bar.high is not None:
            low, high, middle = left + max(bar.low, 0) * scale, left + bar.high * scale, y + 7.5
            parts.append(
                f'<path d="M{low:.1f} {middle}H{high:.1f}M{low:.1f} {y + 4}v7M{high:.1f} {y + 4}v7" class="whisker"/>'
            )
        parts.append(_said(width, y + 12, bar.said, "end", looks="number"))
    return _svg(width, 30 + step * len(drawn), parts, title)


def grouped(groups: Sequence[tuple[str, Sequence[Bar]]], *, width: int = 760) -> str:
    """Lying bars in groups: observations, and in each one bar a model."""
    left, right, thin = 236, 60, 11
    most = max([1e-9, *(bar.high or bar.value for _, drawn in groups for bar in drawn)])
    scale = (width - left - right) / most
    parts, y = [], 4.0
    for label, drawn in groups:
        height = thin * len(drawn)
        parts.append(_said(left - 10, y + height / 2 + 4, label, "end"))
        for bar in drawn:
            parts.append(_rect(left, y, bar.value * scale, thin - 3, bar.colour, f"{label}, {bar.label}: {bar.said}"))
            if bar.low is not None and bar.high is not None and bar.high > 0:
                middle = y + (thin - 3) / 2
                low, high = left + bar.low * scale, left + bar.high * scale
                parts.append(f'<path d="M{low:.1f} {middle:.1f}H{high:.1f}" class="whisker"/>')
            y += thin
        y += 9
    for share in round_ticks(most):
        x = left + share * scale
        parts.insert(0, f'<path d="M{x:.1f} 0V{y:.0f}" class="grid"/>')
        parts.append(_said(x, y + 12, f"{share:g}", "middle", looks="number"))
    return _svg(width, y + 18, parts, "each observation")


def histogram(
    lines: Sequence[tuple[str, np.ndarray, str]], edges: Sequence[int], unit: str, *, width: int = 760
) -> str:
    """Shares by bin as steps, one line a model; the first, the references, as a filled ground."""
    left, bottom, height = 44, 34, 220
    most = max(float(shares.max()) for _, shares, _ in lines) or 1.0
    bins = len(edges) - 1
    step, tall = (width - left - 10) / bins, height - bottom - 10
    parts = []
    for share in round_ticks(most):
        y = height - bottom - share / most * tall
        parts.append(f'<path d="M{left} {y:.1f}H{width - 10}" class="grid"/>')
        parts.append(_said(left - 6, y + 4, f"{100 * share:g} %", "end", looks="number"))
    for k, (label, shares, colour) in enumerate(lines):
        points = [f"M{left} {height - bottom}"]
        for b, share in enumerate(shares):
            points.append(f"V{height - bottom - share / most * tall:.1f}H{left + (b + 1) * step:.1f}")
        path = "".join([*points, f"V{height - bottom}"])
        looks = (
            f'fill="{colour}" fill-opacity=".3" stroke="none"'
            if k == 0
            else f'fill="none" stroke="{colour}" stroke-width="2"'
        )
        parts.append(f'<path d="{path}" {looks}><title>{text(label)}</title></path>')
    for b in range(0, bins + 1, 2):
        parts.append(_said(left + b * step, height - bottom + 16, edges[b], "middle", looks="number"))
    parts.append(_said(width / 2, height - 2, unit, "middle"))
    return _svg(width, height, parts, "lengths")


def round_ticks(most: float) -> list[float]:
    """From 0 up to `most` in steps of 1, 2 or 5 times a power of ten: three to six of them."""
    power = 10 ** np.floor(np.log10(most))
    step = next(step for step in (power / 5, power / 2, power, 2 * power) if most / step < 6)
    return [float(f"{k * step:.6g}") for k in range(int(most / step + 1e-9) + 1)]


def heat(title: str, rows: Sequence[str], columns: Sequence[str], counts: np.ndarray) -> str:
    """A table of counts: each cell as dark as its share of its row."""
    left, top, wide, high = 96, 58, 74, 30
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    parts = [
        _said(0, 14, title, looks="title"),
        _said(left, 34, "in the prediction", looks="soft"),
    ]
    for c, name in enumerate(columns):
        parts.append(_said(left + c * wide + wide / 2, top - 6, name, "middle"))
    for r, name in enumerate(rows):
        y = top + r * high
        parts.append(_said(left - 8, y + 19, name, "end"))
        for c in range(len(columns)):
            colour = COLOURS[2] if r == c else COLOURS[4]
            x = left + c * wide
            parts.append(
                f'<rect x="{x}" y="{y}" width="{wide - 2}" height="{high - 2}" fill="{colour}" '
                f'fill-opacity="{0.06 + 0.6 * shares[r, c]:.2f}"><title>{text(name)} in the reference, '
                f"{text(columns[c])} in the prediction: {100 * shares[r, c]:.1f} %</title></rect>"
            )
            parts.append(_said(x + wide / 2 - 1, y + 18, f"{int(counts[r, c]):,}", "middle", looks="number"))
    return _svg(left + wide * len(columns), top + high * len(rows), parts, title)


def legend(names: Sequence[tuple[str, str]]) -> str:
    """Names with their colours, as HTML."""
    items = "".join(f'<span><i style="background:{colour}"></i>{text(name)}</span>' for name, colour in names)
    return f'<p class="legend">{items}</p>'


def _svg(width: float, height: float, parts: Sequence[str], title: str) -> str:
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{text(title)}">{"".join(parts)}</svg>'
    )


def _rect(x: float, y: float, width: float, height: float, colour: str, said: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height}" rx="1.5" fill="{colour}">'
        f"<title>{text(said)}</title></rect>"
    )


def _said(x: float, y: float, said: object, anchor: str = "start", looks: str = "") -> str:
    style = f' class="{looks}"' if looks else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}>{text(said)}</text>'


def _short(label: str, most: int) -> str:
    return label if len(label) <= most else label[: most - 1] + "…"

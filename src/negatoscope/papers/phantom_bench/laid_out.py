"""What the bench found, as Markdown tables and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from negatoscope.papers.intervals import Figure
from negatoscope.papers.phantom_bench.bench import Benched
from negatoscope.papers.phantom_bench.heat import COMPARED, WAYS
from negatoscope.papers.phantom_bench.nearest import ALL_HEADS, BEST, BY_FEATURES, CHOICES
from negatoscope.papers.phantom_bench.settings import ROWS
from negatoscope.whole_files import write_json, write_text

_LOOKING = ("share", "chance", "share over chance", "hit", "order")
_HEADS = {ALL_HEADS: "all heads' shares", BEST: "each head's first normal", BY_FEATURES: "six nearest by features"}


def as_dict(done: Benched) -> dict[str, Any]:
    """As JSON has it, without the maps."""
    said = asdict(done)
    del said["pictured"]
    return {**said, "settings": done.settings.model_dump(mode="json"), "held_out": str(done.held_out)}


def as_markdown(done: Benched) -> str:
    seeds = ", ".join(map(str, done.seeds))
    return "\n".join(
        [
            f"Mean over seeds {seeds}, ± the 95 % interval over seeds (Student), [95 % interval over studies, "
            f"{done.settings.draws:,} bootstrap draws].",
            "",
            "## Where is the finding?",
            "",
            f"{done.masked} held-out studies with one finding that can be seen; {_said(done.uniform['uniform'])} of a "
            f"view lies inside the mask, {_said(done.uniform['hit_by_any'])} of the patches touch it.",
            "",
            *_looking(done),
            "",
            "`order` by finding:",
            "",
            *_by_finding(done),
            "",
            "## Which normals are near?",
            "",
            f"How far the chosen normals are, a random one of the pool of {done.pool} being 1. A head spreads its "
            f"attention over {_said(done.spread)} of the pool.",
            "",
            *_normals(done),
            "",
            "## Are rare findings told?",
            "",
            "Rare: "
            + ", ".join(f"{name} ({share:.1%} of the training studies)" for name, share in done.rare.items())
            + ". Held-out studies that have it: "
            + ", ".join(f"{name} {count}" for name, count in done.asked.items())
            + ".",
            "",
            *_recall(done),
            "",
        ]
    )


def save(done: Benched, folder: Path) -> list[Path]:
    paths = [folder / "phantom-bench.md", folder / "phantom-bench.json"]
    write_text(paths[0], as_markdown(done))
    write_json(paths[1], as_dict(done))
    return paths


def _looking(done: Benched) -> list[str]:
    rows = []
    for way, figures in done.looking.items():
        rows.append([WAYS[way], *(_said(figures[name]) for name in _LOOKING)])
        against = [figures[name].difference for name in _LOOKING]
        if way != COMPARED:
            rows.append([f"... less {COMPARED}", *(_apart(difference) for difference in against)])
    return _table(["way of looking", *_LOOKING], rows)


def _by_finding(done: Benched) -> list[str]:
    rows = [[finding, *(f"{figures[way].value:.2f}" for way in WAYS)] for finding, figures in done.by_finding.items()]
    return _table(["finding", *WAYS], rows)


def _normals(done: Benched) -> list[str]:
    rows = [[name, *(_said(figures[choice]) for choice in CHOICES)] for name, figures in done.normals.items()]
    return _table(["", *(_HEADS[choice] for choice in CHOICES)], rows)


def _recall(done: Benched) -> list[str]:
    columns = list(next(iter(done.recall.values())))
    rows = []
    for row in ROWS:
        figures = done.recall[row.name]
        rows.append([row.label, *(_said(figures[name]) for name in columns)])
        if row.against is not None:
            label = next(other.label for other in ROWS if other.name == row.against)
            rows.append([f"... less {label}", *(_apart(figures[name].difference) for name in columns)])
    return _table(["", *columns], rows)


def _said(one: Figure) -> str:
    seeds = "" if one.seeds is None else f" ±{one.seeds:.3f}"
    return f"{one.value:.3f}{seeds} [{one.low:.3f}, {one.high:.3f}]"


def _apart(difference: tuple[float, float] | None) -> str:
    return "" if difference is None else f"[{difference[0]:+.3f}, {difference[1]:+.3f}]"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [columns, ["---"] * len(columns), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]

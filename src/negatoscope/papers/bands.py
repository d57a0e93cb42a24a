"""The band that a row's figures should fall in, made of finished runs; `reproduce --check` fails where a run leaves it.

A band holds for one recipe (its digest), whatever the seed. It is a prediction interval for one more run: around the
mean over S >= 3 seeds,

    +- t_{.995, f} s sqrt(1 + 1/S)

where s is the larger of the row's own standard deviation and that of all rows of the table pooled (three seeds tell
little of a spread), and f are the degrees of freedom of the pooled one. It is never narrower than 1 % of the mean or
.002: sums in another order, on another machine, move a beam here and there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from pydantic import Field
from scipy.stats import t as student

from negatoscope.errors import WrongUse
from negatoscope.papers.scoring import Result
from negatoscope.papers.work import state_of
from negatoscope.settings import Settings, read_settings, read_yaml
from negatoscope.whole_files import write_text

LEAST_SEEDS = 3
_HEAD = """# What rows of {paper} came to here, and the band of one more run. Written by `negatoscope reproduce {paper}
# --write-bands` from finished runs; nobody's published figures. Rows: table, data set, row.
"""


class RowBand(Settings):
    digest: str
    """Of the recipe without its seed."""
    seeds: tuple[int, ...]
    where: str
    """On what it was measured, with which --set."""
    figures: dict[str, tuple[float, float, float]]
    """Lowest, mean, highest."""


class Bands(Settings):
    tables: dict[str, dict[str, dict[str, RowBand]]] = Field(default_factory=dict)
    """Table -> data set -> row."""


@dataclass(frozen=True)
class Checked:
    figures: int
    """That were held against a band."""
    left: tuple[str, ...]
    """One line for each that left it."""
    without: tuple[str, ...]
    """Rows of ours that no band is known of, and why."""


def shipped_bands(paper: str) -> Path:
    return Path(str(files("negatoscope.papers") / "bands" / f"{paper}.yaml"))


def read_bands(path: Path) -> Bands:
    return read_settings(Bands, {"tables": read_yaml(path)}, where=path) if path.exists() else Bands()


def check(results: Sequence[Result], bands: Mapping[str, RowBand]) -> Checked:
    """A row with a band and without a figure counts as one that left it: it could not be reproduced."""
    held, left, without = 0, [], []
    for result in results:
        if result.kind != "ours":
            continue
        band = bands.get(result.name)
        if band is None:
            without.append(f"{result.name}: no band")
            continue
        if band.digest != result.digest:
            without.append(f"{result.name}: its band is of another recipe ({band.where})")
            continue
        if not result.figures:
            left.append(f"{result.name}: no figures, {'; '.join(result.notes) or 'not trained'}")
            continue
        for figure, (low, mean, high) in band.figures.items():
            if figure not in result.figures:
                left.append(f"{result.name}: no {figure}")
                continue
            for seed, value in zip(result.seeds, result.figures[figure].each, strict=True):
                held += 1
                if not low <= value <= high:
                    left.append(
                        f"{result.name}, seed {seed}: {figure} {value:.4f} is not within {low:.4f} to {high:.4f} "
                        f"(mean {mean:.4f})"
                    )
    return Checked(held, tuple(left), tuple(without))


def bands_of(
    results: Sequence[Result], columns: Sequence[str], settings: str, runs: Path = Path()
) -> dict[str, RowBand]:
    """Of each row with three seeds or more, its runs in the folder `runs`; `settings` as they were said.

    Raises WrongUse where there is no such row.
    """
    ready = [one for one in results if one.kind == "ours" and len(one.seeds) >= LEAST_SEEDS and one.figures]
    if not ready:
        raise WrongUse(f"no row was run with {LEAST_SEEDS} seeds", remedy="--seeds 1,2,3")
    made: dict[str, RowBand] = {}
    pooled = {
        column: _pooled([one.figures[column].each for one in ready if column in one.figures]) for column in columns
    }
    for result in ready:
        figures: dict[str, tuple[float, float, float]] = {}
        for column in columns:
            if column not in result.figures:
                continue
            each = np.array(result.figures[column].each)
            spread, freedom = pooled[column]
            s = max(float(each.std(ddof=1)), spread)
            half = float(student.ppf(0.995, freedom) * s * np.sqrt(1 + 1 / len(each)))
            mean = float(each.mean())
            half = max(half, 0.01 * abs(mean), 0.002)
            figures[column] = (round(mean - half, 4), round(mean, 4), round(mean + half, 4))
        where = "; ".join(part for part in (_machines([runs / run for run in result.runs]), settings) if part)
        made[result.name] = RowBand(digest=result.digest, seeds=result.seeds, where=where, figures=figures)
    return made


def _machines(runs: Sequence[Path]) -> str:
    """What the runs themselves wrote down, not what this machine is."""
    said = [state_of(run).about for run in runs]
    return ", ".join(sorted({f"{one['device']} (torch {one['torch']})" for one in said if "device" in one}))


def write_bands(path: Path, paper: str, table: str, data: str, bands: Mapping[str, RowBand]) -> None:
    """Into a paper's file; other tables, data sets and rows stay."""
    said: dict[str, Any] = read_bands(path).model_dump(mode="json")["tables"]
    rows = said.setdefault(table, {}).setdefault(data, {})
    rows |= {name: band.model_dump(mode="json") for name, band in bands.items()}
    text = yaml.safe_dump(said, sort_keys=False, allow_unicode=True, width=116, default_flow_style=None)
    write_text(path, _HEAD.format(paper=paper) + text)


def _pooled(groups: Sequence[Sequence[float]]) -> tuple[float, int]:
    """The standard deviation within groups, and its degrees of freedom."""
    freedom = sum(len(group) - 1 for group in groups)
    squares = sum(float(np.square(np.array(group) - np.mean(group)).sum()) for group in groups)
    return float(np.sqrt(squares / max(freedom, 1))), max(freedom, 1)

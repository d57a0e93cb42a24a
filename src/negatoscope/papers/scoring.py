"""A table's rows scored from the small files that runs leave: validation reports against references, nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from negatoscope.errors import BadInput
from negatoscope.metrics.clinical import Clinical
from negatoscope.metrics.evaluate import Evaluation, score
from negatoscope.metrics.forms import Reports, read_reports
from negatoscope.metrics.metric import Metric
from negatoscope.metrics.pairs import pair
from negatoscope.metrics.protocol import Protocol
from negatoscope.metrics.resampling import Counts
from negatoscope.papers.grounds import MODELLESS, REPORTS, Grounds
from negatoscope.papers.intervals import DRAWS, Figure, figures_of_rows
from negatoscope.papers.paper import Row, Table
from negatoscope.papers.rows import RowRun
from negatoscope.papers.work import RunState, state_of
from negatoscope.watch import Watch, quiet

METRICS = ("bleu", "meteor", "rouge", "cider", "diversity", "lengths", "clinical")
ALWAYS = ("BLEU-4", "CIDEr", "CE F1 (r2gen)", "CE F1, micro 13 (findings)", "distinct reports")
"""Shown of every row besides the paper's own columns: language scores alone prove nothing."""
_CLINICAL = re.compile(r"\((r2gen|wcl|cvse|chexbert|findings|example)\)$")


@dataclass(frozen=True)
class Result:
    """One line of a table."""

    name: str
    label: str
    kind: str
    """ours, quoted or no model."""
    figures: Mapping[str, Figure] = field(default_factory=dict)
    theirs: Mapping[str, float] = field(default_factory=dict)
    theirs_on: str = ""
    """The data set of the published figures."""
    seeds: tuple[int, ...] = ()
    runs: tuple[str, ...] = ()
    """Folders of the runs."""
    notes: tuple[str, ...] = ()
    against: str = ""
    digest: str = ""
    """Of the recipe, without its seed: bands hold for this alone."""


class Scorer:
    """Evaluations against one set of references, each file scored once."""

    def __init__(self, references: Path, protocol: Protocol, clinical: Sequence[str], watch: Watch = quiet) -> None:
        self._references = read_reports(references, role="reference")
        self._protocol, self._watch = protocol, watch
        self._ready: dict[str, Metric] = {"clinical": Clinical(tuple(clinical), watch=quiet)}
        self._metrics: list[str] | None = None
        self._done: dict[Path, Evaluation] = {}
        self.left_out: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._references)

    def __call__(self, path: Path) -> Evaluation:
        if path not in self._done:
            said: Reports = read_reports(path)
            pairs = pair(said, self._references, unasked="leave-out")
            done = score(pairs, protocol=self._protocol, metrics=self._known(), ready=self._ready, watch=quiet)
            self._ready = dict(done.metrics)
            self._done[path] = done
        return self._done[path]

    def _known(self) -> list[str]:
        """The metrics that can be computed here; those that cannot are told with their reason."""
        if self._metrics is None:
            from negatoscope.errors import Trouble
            from negatoscope.metrics import metric_named

            self._metrics = []
            for name in METRICS:
                try:
                    self._ready.setdefault(name, metric_named(name))
                except Trouble as trouble:
                    self.left_out[name] = str(trouble)
                    continue
                self._metrics.append(name)
        return self._metrics

    @property
    def signature(self) -> str:
        return str(next(iter(self._done.values())).signature) if self._done else ""


def clinical_of(columns: Sequence[str]) -> tuple[str, ...]:
    """The settings of clinical efficacy that these columns are made by."""
    asked = [match[1] for column in columns if (match := _CLINICAL.search(column))]
    return tuple(dict.fromkeys([*asked, "r2gen", "findings"]))


def columns_of(table: Table) -> tuple[str, ...]:
    """The paper's own, and those that are always shown."""
    return tuple(dict.fromkeys([*table.columns, *ALWAYS]))


def score_table(
    table: Table,
    rows: Sequence[Row],
    runs: Mapping[str, Sequence[RowRun]],
    grounds: Grounds,
    digests: Mapping[str, str],
    *,
    draws: int = DRAWS,
    watch: Watch = quiet,
) -> tuple[list[Result], Scorer]:
    """Every row of the table that was asked for, and those that need no model. `runs`: one a seed of each row that can
    be trained here."""
    scorer = Scorer(grounds.references(table.reports), grounds.protocol(table.reports), clinical_of(table.columns))
    found: dict[str, list[tuple[RowRun, Path, RunState]]] = {}
    notes: dict[str, list[str]] = {row.name: [] for row in rows}
    for row in rows:
        for run in runs.get(row.name, ()):
            folder = run_folder(grounds, run)
            state = state_of(folder)
            if not (folder / REPORTS).exists():
                notes[row.name].append(f"seed {run.seed}: {state.error or _not_there(state)}")
                continue
            if not state.finished:
                notes[row.name].append(f"seed {run.seed} stopped after epoch {state.epochs} of {run_epochs(run)}")
            found.setdefault(row.name, []).append((run, folder, state))
    modelless = grounds.modelless(table.reports)
    files = {name: [folder / REPORTS for _, folder, _ in those] for name, those in found.items()}
    files |= {name: [path] for name, path in modelless.items()}
    counts: dict[str, list[Counts]] = {}
    for name, paths in watch(files.items(), "scoring", len(files)):
        try:
            counts[name] = [Counts.of(scorer(path)) for path in paths]
        except BadInput as trouble:
            notes.setdefault(name, []).append(f"cannot be scored: {trouble}")
    against = {row.name: row.against for row in rows if row.against is not None}
    figures = figures_of_rows(counts, against, columns_of(table), draws=draws)
    results = []
    for row in rows:
        theirs_on, theirs = _theirs(row, grounds.data)
        those = found.get(row.name, [])
        kind = "quoted" if row.quoted is not None else "ours"
        results.append(
            Result(
                row.name,
                row.label,
                kind,
                figures.get(row.name, {}),
                theirs,
                theirs_on,
                tuple(run.seed for run, _, _ in those),
                tuple(f"{run.name}/seed-{run.seed}" for run, _, _ in those),
                (*([f"quoted, never trained here: {row.quoted}"] if row.quoted else []), *notes[row.name]),
                row.against or "",
                digests.get(row.name, ""),
            )
        )
    for name in modelless:
        results.append(
            Result(name, MODELLESS[name], "no model", figures.get(name, {}), notes=tuple(notes.get(name, ())))
        )
    return results, scorer


def run_folder(grounds: Grounds, run: RowRun) -> Path:
    return grounds.folder / "runs" / run.name / f"seed-{run.seed}"


def run_epochs(run: RowRun) -> int:
    return int(run.recipe["train"]["epochs"])


def _not_there(state: RunState) -> str:
    return (
        f"stopped after epoch {state.epochs} of {state.of_epochs}, before anything was written"
        if state.epochs
        else "not trained"
    )


def _theirs(row: Row, data: str) -> tuple[str, Mapping[str, float]]:
    """The published figures of this data set, or of the first that the paper has."""
    if data in row.published:
        return data, row.published[data]
    return next(iter(row.published.items()), ("", {}))


def plain(result: Result) -> dict[str, Any]:
    """As JSON has it."""
    figures = {
        name: {
            "value": one.value,
            "each": list(one.each),
            "seeds": one.seeds,
            "low": one.low,
            "high": one.high,
            "p": one.p,
            "difference": None if one.difference is None else list(one.difference),
        }
        for name, one in result.figures.items()
    }
    return {**vars(result), "figures": figures, "theirs": dict(result.theirs)}

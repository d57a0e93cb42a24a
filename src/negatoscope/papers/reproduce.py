"""A paper's table, trained here: what is missing is trained, what was interrupted goes on, then all rows are scored."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from negatoscope.errors import BadInput, Trouble, WrongUse
from negatoscope.papers.bands import Checked, RowBand, bands_of, check, read_bands, shipped_bands, write_bands
from negatoscope.papers.differences import footnotes
from negatoscope.papers.grounds import Data, Grounds, known_grounds, stand_on
from negatoscope.papers.intervals import DRAWS
from negatoscope.papers.laid_out import Reproduced, save
from negatoscope.papers.paper import Paper, Row, Table, chosen_rows, paper_named, paper_names, table_of
from negatoscope.papers.rows import Conditions, RowRun, Tier, digest, run_of, unknown_to_all
from negatoscope.papers.running import Ran, run_all
from negatoscope.papers.scoring import columns_of, run_folder, score_table
from negatoscope.papers.work import Job
from negatoscope.watch import Watch, quiet


@dataclass(frozen=True)
class Request:
    papers: tuple[str, ...]
    tables: tuple[str, ...] = ("1",)
    data: Data = "iu-xray"
    rows: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (1, 2, 3)
    tier: Tier = "full"
    changes: Mapping[str, Any] = field(default_factory=dict)
    store: Path | None = None
    features: Path | None = None
    weights: Path | None = None
    """Of the encoder, where features are still to be made."""
    into: Path | None = None
    budget: float | None = None
    """Seconds."""
    jobs: int = 1
    device: str = "cpu"
    train: bool = True
    """Whether what is missing is trained."""
    scores: bool = True
    """Whether tables are made: without, runs are all that is left behind."""
    keep_weights: bool = False
    draws: int = DRAWS
    command: str = ""


@dataclass(frozen=True)
class Done:
    tables: tuple[Reproduced, ...]
    files: tuple[Path, ...]
    ran: Ran
    folder: Path


@dataclass(frozen=True)
class _Asked:
    name: str
    paper: Paper
    number: str
    table: Table
    rows: tuple[Row, ...]


def reproduce(
    request: Request,
    *,
    watch: Watch = quiet,
    say: Callable[[str], None] = print,
    clock: Callable[[], float] = time.time,
) -> Done:
    """Trains, scores, lays out; files go to INTO/tables. Raises WrongUse for names that do not exist, BadInput where
    nothing can be trained and nothing was."""
    deadline = None if request.budget is None else clock() + request.budget
    asked = _asked(request)
    folder = request.into or Path("runs") / "reproduce" / request.data
    grounds = _grounds(request, asked, folder, watch, say)
    conditions = Conditions(grounds, request.tier, request.changes, request.device)
    trained = [row for one in asked for row in one.rows if row.quoted is None]
    slips = unknown_to_all(request.changes, trained)
    if slips:
        raise WrongUse(f"no row has a setting {slips[0]!r}", where="--set")
    plans: dict[tuple[str, str], dict[str, list[RowRun]]] = {}
    troubles: dict[tuple[str, str, str], str] = {}
    for one in asked:
        plans[one.name, one.number] = _planned(one, conditions, request.seeds, troubles)
    for (name, number, row), trouble in troubles.items():
        say(f"{name}, table {number}, {row} cannot be run: {trouble}")
    ran = Ran(0, 0, (), 0)
    if request.train and grounds.here:
        jobs = _jobs(list(plans.values()), grounds, request)
        say(f"{len(jobs)} runs, {request.jobs} at a time, into {folder}")
        ran = run_all(jobs, request.jobs, deadline=deadline, say=say)
        if ran.not_begun:
            say(f"out of time: {ran.not_begun} runs were not begun; the same command goes on from here")
    tables, written = [], []
    for one in asked if request.scores else ():
        done = _table(one, plans[one.name, one.number], conditions, request, troubles, watch)
        tables.append(done)
        written += save(done, folder / "tables")
    return Done(tuple(tables), tuple(written), ran, folder)


def checked(done: Reproduced, bands: Path | None = None) -> Checked:
    """Whether each run stayed in its row's band. Raises WrongUse where no row of the table has one."""
    path = bands or shipped_bands(done.paper)
    known = _bands(path, done)
    if not known:
        remedy = "make them of finished runs of three seeds: --write-bands"
        raise WrongUse(f"no bands of table {done.table} on {done.data}", where=path, remedy=remedy)
    return check(done.results, known)


def new_bands(done: Reproduced, runs: Path, settings: str, bands: Path | None = None) -> Path:
    """Writes the bands of a table's rows from its finished runs, which lie in the folder `runs`."""
    path = bands or shipped_bands(done.paper)
    write_bands(path, done.paper, done.table, done.data, bands_of(done.results, done.columns, settings, runs))
    return path


def _bands(path: Path, done: Reproduced) -> dict[str, RowBand]:
    return read_bands(path).tables.get(done.table, {}).get(done.data, {})


def _asked(request: Request) -> list[_Asked]:
    names = paper_names() if request.papers == ("all",) else request.papers
    found: list[_Asked] = []
    for name in names:
        paper = paper_named(name)
        numbers = tuple(paper.tables) if request.tables == ("all",) else request.tables
        for number in numbers:
            if len(names) > 1 and number not in paper.tables:
                continue
            table = table_of(paper, number, where=name)
            there = {row.name for row in table.rows}
            wanted = tuple(row for row in request.rows if row in there) if len(names) > 1 else request.rows
            if request.rows and not wanted:
                continue
            found.append(_Asked(name, paper, number, table, chosen_rows(table, wanted)))
    if not found:
        raise WrongUse("no such table or row in any of these papers", remedy="see negatoscope reproduce --list")
    return found


def _grounds(
    request: Request, asked: Sequence[_Asked], folder: Path, watch: Watch, say: Callable[[str], None]
) -> Grounds:
    store = request.store or Path("data") / ("iu-xray" if request.data == "iu-xray" else "phantom-tables")
    known = known_grounds(folder)
    missing = not (store / "store.json").exists()
    if known is not None and ((missing and request.data == "iu-xray") or not request.train):
        return known
    from negatoscope.papers.making import features_of, phantom_store

    if request.data == "phantom":
        phantom_store(store, request.tier, say, watch)
    elif missing:
        remedy = "negatoscope data import ... --into STORE, then --store STORE"
        raise BadInput("no store of IU X-Ray here", where=store, remedy=remedy)
    features = features_of(request.data, store, request.features, request.weights, request.device, say, watch)
    return stand_on(request.data, folder, store, features, [one.table.reports for one in asked], watch=watch, say=say)


def _planned(
    one: _Asked, conditions: Conditions, seeds: Sequence[int], troubles: dict[tuple[str, str, str], str]
) -> dict[str, list[RowRun]]:
    plans: dict[str, list[RowRun]] = {}
    for row in one.rows:
        if row.quoted is not None:
            continue
        try:
            plans[row.name] = [run_of(row, one.table.reports, conditions, seed) for seed in seeds]
        except Trouble as trouble:
            troubles[one.name, one.number, row.name] = str(trouble)
    return plans


def _jobs(plans: Sequence[Mapping[str, Sequence[RowRun]]], grounds: Grounds, request: Request) -> list[Job]:
    """Each run once, whatever tables it stands in; first seeds first, so that a short budget leaves no row empty."""
    runs = [run for plan in plans for of_row in plan.values() for run in of_row]
    order = {seed: place for place, seed in enumerate(request.seeds)}
    jobs: dict[Path, Job] = {}
    for run in sorted(runs, key=lambda run: order[run.seed]):
        folder = run_folder(grounds, run)
        jobs[folder] = Job(str(folder), run.recipe, run.kind, device=request.device, keep_weights=request.keep_weights)
    return list(jobs.values())


def _table(
    one: _Asked,
    plans: Mapping[str, Sequence[RowRun]],
    conditions: Conditions,
    request: Request,
    troubles: Mapping[tuple[str, str, str], str],
    watch: Watch,
) -> Reproduced:
    from dataclasses import replace

    grounds = conditions.grounds
    digests = {row: digest(runs[0].recipe) for row, runs in plans.items() if runs}
    results, scorer = score_table(one.table, one.rows, plans, grounds, digests, draws=request.draws, watch=watch)
    results = [
        replace(result, notes=(*result.notes, said))
        if (said := troubles.get((one.name, one.number, result.name)))
        else result
        for result in results
    ]
    return Reproduced(
        one.name,
        one.paper.paper,
        one.number,
        one.table.title,
        grounds.data,
        len(scorer),
        columns_of(one.table),
        tuple(results),
        tuple(footnotes(one.paper, one.table, plans, conditions, scorer.left_out)),
        scorer.signature,
        request.draws,
        request.command,
    )

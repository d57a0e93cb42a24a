"""Many runs, some at a time, each in its own process: one that fails is told of, and the others go on."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from negatoscope.errors import WrongUse
from negatoscope.papers.work import ERROR, Job, state_of
from negatoscope.whole_files import write_text

_LOOK_EVERY = 0.2  # seconds


@dataclass(frozen=True)
class Ran:
    finished: int
    stopped: int
    """By the budget, to be gone on with."""
    failed: tuple[str, ...]
    not_begun: int


_NUMBER = r"(?:\d+(?:\.\d*)?|\.\d+)"
_LENGTH = re.compile(rf"(?:{_NUMBER}[hms])*(?:{_NUMBER})?", re.ASCII)
_PART = re.compile(rf"({_NUMBER})([hms]?)", re.ASCII)
_SECONDS = {"h": 3600, "m": 60, "s": 1, "": 1}


def seconds_of(budget: str) -> float:
    """'2h', '90m', '1h30m', '540s' or '540' -> seconds. Raises WrongUse."""
    said = budget.strip().lower()
    total = (
        sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(said)) if _LENGTH.fullmatch(said) else 0
    )
    if not 0 < total < math.inf:
        raise WrongUse(f"no length of time: {budget!r}", where="--budget", remedy="for example 2h, 1h30m or 540s")
    return total


def run_all(
    jobs: Sequence[Job],
    at_once: int,
    *,
    deadline: float | None = None,
    threads: int | None = None,
    say: Callable[[str], None] = print,
) -> Ran:
    """Runs jobs in their order, `at_once` processes, which share the cores unless `threads` tells.

    No job is begun after the deadline; those that run end with their epoch. Finished runs are not begun again.
    """
    waiting = [job for job in jobs if not state_of(Path(job.folder)).finished]
    threads = threads or max(1, (os.cpu_count() or 1) // max(1, at_once))
    total, running, failed = len(waiting), {}, []
    finished = stopped = 0
    with tempfile.TemporaryDirectory(prefix="negatoscope-jobs-") as told, _ended_like_an_interrupt():
        try:
            while waiting or running:
                while waiting and len(running) < at_once and (deadline is None or time.time() < deadline):
                    job = replace(waiting.pop(0), deadline=deadline, threads=threads)
                    running[_begin(job, Path(told), threads)] = (job, time.time())
                if not running:
                    break
                time.sleep(_LOOK_EVERY)
                for process in [one for one in running if one.poll() is not None]:
                    job, began = running.pop(process)
                    state = state_of(Path(job.folder))
                    if process.returncode:
                        failed.append(f"{_name(job)}: {state.error or _died(job, process.returncode)}")
                        say(f"failed: {failed[-1]}")
                        continue
                    finished, stopped = finished + state.finished, stopped + (not state.finished)
                    done = finished + stopped + len(failed)
                    what = "finished" if state.finished else f"stopped after epoch {state.epochs} of {state.of_epochs}"
                    say(f"{done}/{total} {_name(job)}: {what}, {time.time() - began:.0f} s")
        finally:
            for process in running:
                process.terminate()
            for process in running:
                process.wait()
    return Ran(finished, stopped, tuple(failed), len(waiting))


@contextmanager
def _ended_like_an_interrupt() -> Iterator[None]:
    """A process that is told to end must end its runs first: nobody would know of them, and the same command would
    begin them a second time."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _begin(job: Job, told: Path, threads: int) -> subprocess.Popen[bytes]:
    path = told / f"{len(list(told.iterdir()))}.json"
    path.write_text(json.dumps(asdict(job)), encoding="utf-8")
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    folder = Path(job.folder)
    folder.mkdir(parents=True, exist_ok=True)
    with (told / f"{path.stem}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "negatoscope.papers.work", str(path)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for us, who end them
        )


def _died(job: Job, code: int) -> str:
    """A process that was killed had no time to say why."""
    said = f"its process ended with {code}" + (" (killed: out of memory?)" if code == -9 else "")
    write_text(Path(job.folder) / ERROR, f"{said}\n")
    return said


def _name(job: Job) -> str:
    folder = Path(job.folder)
    return f"{folder.parent.name}/{folder.name}"

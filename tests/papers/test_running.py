"""Runs in processes of their own: stopped by the budget and gone on with, failed and told of, ended with whoever
began them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from negatoscope.papers import running
from negatoscope.papers import work as room
from negatoscope.papers.grounds import REPORTS, Grounds
from negatoscope.papers.paper import paper_named
from negatoscope.papers.rows import Conditions, run_of
from negatoscope.papers.running import run_all
from negatoscope.papers.work import Job, state_of, work
from negatoscope.vision.features import FeatureCache


@pytest.fixture
def job_of(tiny: Path, tmp_path: Path) -> Callable[..., Job]:
    def make(name: str, **other: object) -> Job:
        features = tiny.with_name(f"{tiny.name}.resnet10-narrow")
        key = FeatureCache.open(features).key.model_dump(mode="json")
        grounds = Grounds("phantom", tmp_path, tiny, features, {"studies": {}, "tags": 0, "features": key})
        changes = {"train.epochs": 3, "model.width": 16, "decode.beam": 1}
        row = paper_named("contrastive-attention").tables["1"].row("nic")
        run = run_of(row, "complete", Conditions(grounds, "quick", changes), 1)
        return Job(str(tmp_path / name), run.recipe, **other)  # pyright: ignore[reportArgumentType]

    return make


def test_a_run_that_was_stopped_goes_on_as_if_it_never_was(
    job_of: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = job_of("whole")
    work(whole)
    assert (state_of(Path(whole.folder)).finished, state_of(Path(whole.folder)).epochs) == (True, 3)

    stopped = job_of("stopped", deadline=100.0)
    clock = iter([0.0, 50.0, *[200.0] * 9])  # begun; first step of epoch 1; then it is late
    monkeypatch.setattr(room, "time", SimpleNamespace(time=lambda: next(clock)))
    work(stopped)
    state = state_of(Path(stopped.folder))
    assert (state.finished, state.epochs, state.of_epochs) == (False, 1, 3)
    assert not (Path(stopped.folder) / REPORTS).exists()
    assert state.seconds == 200.0
    monkeypatch.setattr(room, "time", time)
    work(job_of("stopped"))
    state = state_of(Path(stopped.folder))
    assert (state.finished, state.epochs) == (True, 3)
    assert state.seconds > 200.0
    told = [(Path(job.folder) / REPORTS).read_bytes() for job in (whole, stopped)]
    assert told[0] == told[1]


def test_weights_are_kept_where_they_are_asked_for(job_of: Callable[..., Job]) -> None:
    job = job_of("kept", keep_weights=True)
    work(job)
    assert [path.name for path in sorted(Path(job.folder).glob("*.safetensors"))] == ["best.safetensors"]


def test_one_that_fails_is_told_of_and_the_others_go_on(job_of: Callable[..., Job]) -> None:
    good, bad = job_of("good"), job_of("bad")
    bad = Job(bad.folder, {**bad.recipe, "data": {**bad.recipe["data"], "store": "nowhere"}})
    told: list[str] = []
    ran = run_all([bad, good], 1, threads=1, say=told.append)
    assert (ran.finished, ran.stopped, ran.not_begun) == (1, 0, 0)
    assert len(ran.failed) == 1
    assert "bad: nowhere: no store of studies here" in ran.failed[0]
    assert "nowhere" in state_of(Path(bad.folder)).error
    assert state_of(Path(good.folder)).finished
    assert told[-1].endswith("s")
    assert "2/2" in told[-1]
    assert run_all([good], 1, say=told.append) == running.Ran(0, 0, (), 0), "finished: not begun again"


def test_a_process_that_was_killed_is_told_of(job_of: Callable[..., Job], monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(job: Job, _told: Path, _threads: int) -> subprocess.Popen[bytes]:
        Path(job.folder).mkdir(parents=True)
        return subprocess.Popen([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"])

    monkeypatch.setattr(running, "_begin", killed)
    ran = run_all([job_of("killed")], 1, say=lambda _line: None)
    assert "its process ended with -9 (killed: out of memory?)" in ran.failed[0]


def test_whoever_is_told_to_end_ends_its_runs(job_of: Callable[..., Job], monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[subprocess.Popen[bytes]] = []

    def sleeping(_job: Job, _told: Path, _threads: int) -> subprocess.Popen[bytes]:
        begun.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]))
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()
        return begun[-1]

    monkeypatch.setattr(running, "_begin", sleeping)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        run_all([job_of("long")], 1, say=lambda _line: None)
    assert begun[0].poll() == -signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) == before

"""One run in a process of its own: `python -m negatoscope.papers.work JOB.json`.

A run leaves small files only: its recipe, its vocabulary, its history, its validation reports and `run.json`, by which
it is known as finished. Weights go once it is, unless they are to be kept.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from negatoscope.errors import Trouble
from negatoscope.papers.grounds import REPORTS
from negatoscope.whole_files import write_json, write_text

RUN, ERROR = "run.json", "error.txt"
_HEAVY = ("best.safetensors", "last.safetensors")


@dataclass(frozen=True)
class Job:
    folder: str
    recipe: Mapping[str, Any]
    kind: str = "reporter"
    deadline: float | None = None
    """Seconds since 1970: no epoch is begun after it."""
    device: str = "cpu"
    threads: int = 1
    keep_weights: bool = False


@dataclass(frozen=True)
class RunState:
    """What a run's folder tells."""

    finished: bool
    epochs: int = 0
    of_epochs: int = 0
    seconds: float = 0.0
    error: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)


class _OutOfTime(Exception):
    pass


def state_of(folder: Path) -> RunState:
    error = folder / ERROR
    said = error.read_text(encoding="utf-8").strip().splitlines() if error.exists() else []
    path = folder / RUN
    if not path.exists():
        return RunState(False, error=said[0] if said else "")
    about = json.loads(path.read_text(encoding="utf-8"))
    return RunState(
        about["finished"], about["epochs"], about["of_epochs"], about["seconds"], said[0] if said else "", about
    )


def work(job: Job) -> None:
    """Trains, or goes on training, until the end or the deadline; a run that is finished is left as it is."""
    folder = Path(job.folder)
    if state_of(folder).finished:
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ERROR).unlink(missing_ok=True)
    import torch

    torch.set_num_threads(job.threads)
    if job.device.startswith("cuda"):
        torch.set_float32_matmul_precision("high")
    began = time.time()
    before = state_of(folder).seconds
    if job.kind == "cvse":
        from negatoscope.papers.retrieved import work_cvse

        done = work_cvse(job)
    else:
        done = _train(job, folder)
    about = {
        "seconds": round(before + time.time() - began, 1),
        "torch": torch.__version__,
        "device": _named(job.device),
    }
    write_json(folder / RUN, done | about)
    if done["finished"]:
        _lighten(folder, keep=job.keep_weights)


def _train(job: Job, folder: Path) -> dict[str, Any]:
    from negatoscope.training.loop import train
    from negatoscope.training.recipe import recipe_of

    recipe = recipe_of(dict(job.recipe))

    def in_time(epoch: int, step: int) -> None:
        # The epoch before was saved; of this one a single step is lost.
        if step == 1 and job.deadline is not None and time.time() > job.deadline:
            raise _OutOfTime

    try:
        run = train(recipe, folder, after_step=in_time)
    except _OutOfTime:
        epochs = _epochs_logged(folder)
        return {"finished": False, "epochs": epochs, "of_epochs": recipe.train.epochs}
    _write_all_reports(recipe, folder, job.device)
    return {
        "finished": True,
        "epochs": len(run.history),
        "of_epochs": recipe.train.epochs,
        "best": run.best,
        "notes": list(run.notes),
    }


def _epochs_logged(folder: Path) -> int:
    log = folder / "log.csv"
    return max(0, len(log.read_text(encoding="utf-8").splitlines()) - 1) if log.exists() else 0


def _write_all_reports(recipe: Any, folder: Path, device: str) -> None:
    """Where only some validation studies were written while training, now all of them."""
    if recipe.train.validate_studies is None:
        return
    from negatoscope.studies.store import Store
    from negatoscope.training.checkpoint import load_reporter
    from negatoscope.training.data import loader_for
    from negatoscope.training.writing import save_jsonl, write_reports

    reporter, loaded = load_reporter(folder, device)
    loader = loader_for(recipe, None, Store.open(recipe.data.store), "val")
    batches = (batch.to(device) for batch in loader.epoch())
    save_jsonl(folder / REPORTS, list(write_reports(reporter, batches, loaded.vocabulary, recipe.decode)))


def _lighten(folder: Path, *, keep: bool) -> None:
    shutil.rmtree(folder / "tensorboard", ignore_errors=True)
    for name in _HEAVY[1:] if keep else _HEAVY:
        (folder / name).unlink(missing_ok=True)


def _named(device: str) -> str:
    if not device.startswith("cuda"):
        return device
    import torch

    return torch.cuda.get_device_name(device)


def main(path: str) -> int:
    job = Job(**json.loads(Path(path).read_text(encoding="utf-8")))
    try:
        work(job)
    except Trouble as trouble:
        write_text(Path(job.folder) / ERROR, f"{trouble}\n")
        return 1
    except Exception as error:  # one row's fault must be told, and must not stop the others
        last = traceback.format_exc()[-3000:]
        write_text(Path(job.folder) / ERROR, f"{type(error).__name__}: {error}\n\n{last}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

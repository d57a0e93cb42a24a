"""Rows whose reports are found, not written: CVSE, trained and asked in a run's folder like any other row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from negatoscope.papers.grounds import REPORTS
from negatoscope.papers.paper import Form, Row

if TYPE_CHECKING:
    from negatoscope.papers.rows import Conditions, RowRun
    from negatoscope.papers.work import Job

_QUICK: dict[str, Any] = {"epochs": 10, "batch": 32}


def cvse_run_of(row: Row, form: Form, conditions: Conditions, seed: int) -> RowRun:
    """`cvse` has no groups of mutually exclusive sentences, `cvse+exclusive` has. Of --set, what begins with `cvse.` is
    this row's: cvse.train.epochs."""
    from negatoscope.papers.rows import RowRun, digest
    from negatoscope.retrieval.recipe import cvse_recipe

    grounds = conditions.grounds
    changes: dict[str, Any] = {"store": str(grounds.store_of(form)), "features": str(grounds.features)}
    changes["groups.exclusive"] = row.retrieval == "cvse+exclusive"
    if conditions.tier == "quick":
        changes |= {f"train.{key}": value for key, value in _QUICK.items()} | {"model.width": 96, "groups.groups": 40}
    changes |= {
        key.removeprefix("cvse."): value for key, value in conditions.changes.items() if key.startswith("cvse.")
    }
    changes["train.seed"] = seed
    recipe = cvse_recipe("cvse.iu-xray", changes)
    said = recipe.model_dump(mode="json")
    # In the shape that `digest` and `run_epochs` read.
    data = {"store": said.pop("store"), "features": said.pop("features")}
    held = {"data": data, **said}
    name = str(row.retrieval) + ("" if form == "complete" else "+abnormal")
    return RowRun(f"{name}-{digest(held)[:8]}", seed, held, "cvse")


def work_cvse(job: Job) -> dict[str, Any]:
    """Trains and writes the validation reports; the weights stay only where they are to be kept."""
    from negatoscope.retrieval.findings import Telling, find
    from negatoscope.retrieval.recipe import CVSERecipe
    from negatoscope.retrieval.retriever import Retriever
    from negatoscope.retrieval.training import FILE, train_cvse
    from negatoscope.settings import read_settings
    from negatoscope.studies.store import Store
    from negatoscope.training.writing import save_jsonl
    from negatoscope.vision.features import FeatureCache

    folder, said = Path(job.folder), dict(job.recipe)
    data = said.pop("data")
    recipe = read_settings(CVSERecipe, {**said, **data}, where=yaml.safe_dump(data, default_flow_style=True))
    done = train_cvse(recipe, folder, labeller=_positive)
    store, cache = Store.open(recipe.store), FeatureCache.open(recipe.features)
    studies = [study for study in store.studies("val") if study.pictures]
    found = find(Retriever.load(folder / FILE), studies, cache, Telling(studies=0))
    save_jsonl(folder / REPORTS, [{"id": one.id, "report": one.report} for one in found])
    _lighten(folder, keep=job.keep_weights)
    epochs = recipe.train.epochs
    return {"finished": True, "epochs": epochs, "of_epochs": epochs, "best": done.best, "notes": done.notes}


def _positive(texts: Sequence[str]) -> list[list[str]]:
    """What the labeler finds in each sentence."""
    from negatoscope.metrics.chexpert.labeler import Labeler

    return [[name for name, label in found.items() if label == 1] for found in Labeler().label_many(texts)]


def _lighten(folder: Path, *, keep: bool) -> None:
    import shutil

    from negatoscope.retrieval.training import FILE

    shutil.rmtree(folder / "groups", ignore_errors=True)
    if not keep:
        (folder / FILE).unlink(missing_ok=True)

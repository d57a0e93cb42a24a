"""The first five minutes: draw studies, train a small reporter on them, read what it writes."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from negatoscope.reading_room.side_by_side import side_by_side
from negatoscope.recipes import recipe_path
from negatoscope.studies.importing import import_studies
from negatoscope.studies.sources import open_source
from negatoscope.studies.store import Store
from negatoscope.studies.study import Study
from negatoscope.training.checkpoint import load_checkpoint
from negatoscope.training.generate import generate
from negatoscope.training.loop import train
from negatoscope.training.recipe import load_recipe
from negatoscope.training.writing import language_scores
from negatoscope.watch import Watch, quiet


@dataclass(frozen=True)
class Demo:
    studies: int
    example: str
    """The id of the study that is shown."""
    written: str
    reference: str
    scores: dict[str, dict[str, float]]
    """On the test split: of the reporter, and of the commonest training report said for everybody."""
    page: Path


def demo(into: Path | str, *, studies: int = 1500, epochs: int | None = None, watch: Watch = quiet) -> Demo:
    """Runs the whole way once on phantom studies; run again, it shows what is there already.

    Half of the studies are normal, where a department's are 70 %: enough findings to learn from in minutes.
    """
    into = Path(into)
    import_studies(
        open_source("phantom", None, {"studies": studies, "size": 160, "normal_share": 0.5}),
        into / "phantom",
        watch=watch,
    )
    store = Store.open(into / "phantom")
    changes = {"data.store": str(into / "phantom"), **({"train.epochs": epochs} if epochs else {})}
    run = train(load_recipe(recipe_path("transformer.phantom"), changes), into / "run", watch=watch)
    generate(run.folder, into / "reports.jsonl", split="test", watch=watch)
    rows = [json.loads(line) for line in (into / "reports.jsonl").read_text(encoding="utf-8").splitlines()]

    vocabulary = load_checkpoint(run.folder / "best.safetensors").vocabulary
    references = [vocabulary.as_scored(store.study(row["id"]).report) for row in rows]
    learned = Counter(vocabulary.as_scored(report) for report in store.table(["report"], "train")["report"].to_pylist())
    constant = learned.most_common(1)[0][0]
    scores = {
        "the reporter": _figures([row["report"] for row in rows], references),
        "one report for everybody": _figures([constant] * len(rows), references),
    }
    note = (
        f"{len(store):,} drawn studies, half of them normal, {len(run.history)} epochs; scores on the {len(rows)} "
        "studies of the test split, references cleaned and cut as R2Gen does."
    )
    rows.sort(
        key=lambda row: _is_normal(store.study(row["id"]))
    )  # abnormal studies first: the others mostly read alike
    page = side_by_side(
        into / "index.html",
        "A small transformer on phantom studies",
        store,
        rows,
        scores=list(scores.items()),
        note=note,
    )
    first = rows[0]
    return Demo(len(store), first["id"], first["report"], store.study(first["id"]).report, scores, page)


def _figures(predictions: list[str], references: list[str]) -> dict[str, float]:
    scores = language_scores(predictions, references)
    chosen = {name: scores[name] for name in ("BLEU-1", "BLEU-4", "ROUGE-L", "CIDEr")}
    return {**chosen, "distinct": len(set(predictions)) / len(predictions)}


def _is_normal(study: Study) -> bool:
    return not any(label == 1 for name, label in study.labels.items() if name != "No Finding")

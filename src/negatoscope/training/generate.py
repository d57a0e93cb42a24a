"""Writing reports with a trained reporter, for a split of a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from negatoscope.decoding import DecodeSettings
from negatoscope.settings import read_settings
from negatoscope.studies.store import Store
from negatoscope.studies.study import Split
from negatoscope.training.checkpoint import load_reporter
from negatoscope.training.data import loader_for
from negatoscope.training.recipe import recipe_of
from negatoscope.training.writing import save_jsonl, write_reports
from negatoscope.watch import Watch, quiet


@dataclass(frozen=True)
class Generated:
    path: Path
    reports: int
    distinct: int


def generate(
    checkpoint: Path | str,
    out: Path | str,
    *,
    store: Path | str | None = None,
    split: Split = "test",
    decode: Mapping[str, Any] | None = None,
    batch: int = 32,
    limit: int | None = None,
    device: str = "cpu",
    watch: Watch = quiet,
) -> Generated:
    """Reports as JSONL, one object a study with `id`, `report` and `score`.

    Without a store, the one that the run learned from; `decode` changes single settings of its decoding. A cache of
    features is not needed: the checkpoint holds the backbone. Raises BadInput for a checkpoint or store that cannot
    be read.
    """
    reporter, loaded = load_reporter(checkpoint, device)
    said = loaded.recipe.as_dict()
    said["data"]["features"] = None
    said["train"] |= {"batch": batch}
    if store is not None:
        said["data"]["store"] = str(store)
    recipe = recipe_of(said)
    settings = read_settings(DecodeSettings, {**recipe.decode.model_dump(), **(decode or {})}, where="decoding")
    loader = loader_for(recipe, None, Store.open(recipe.data.store), split, limit=limit)
    batches = (one.to(device) for one in watch(loader.epoch(), "writing", len(loader)))
    rows = list(write_reports(reporter, batches, loaded.vocabulary, settings))
    save_jsonl(out, rows)
    return Generated(Path(out), len(rows), len({row["report"] for row in rows}))

"""Tags, stops and switches through a whole run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from negatoscope.errors import WrongUse
from negatoscope.studies.store import Store
from negatoscope.text.words import Vocabulary
from negatoscope.training.data import loader_for, reports_of
from negatoscope.training.loop import train
from negatoscope.training.recipe import Recipe, recipe_of

Make = Callable[..., Recipe]


def changed(recipe: Recipe, **parts: Any) -> Recipe:
    said = recipe.as_dict()
    for name, part in parts.items():
        said[name] = {**said[name], **part} if isinstance(part, dict) and name != "model" else part
    return recipe_of(said)


def test_tags_are_learned_and_named_in_the_run(small_recipe: Make, tmp_path: Path) -> None:
    model = {"name": "co-attention", "width": 16, "likeliest": 3}
    losses = [{"name": "cross-entropy"}, {"name": "tags", "weight": 0.5}, {"name": "stop"}]
    run = train(changed(small_recipe(epochs=4), model=model, losses=losses), tmp_path / "run")
    assert run.history[-1]["tags"] < run.history[0]["tags"]
    assert run.history[-1]["stop"] < run.history[0]["stop"]
    assert json.loads((tmp_path / "run" / "tags.json").read_text())["names"][4] == "Lung Opacity"


def test_tags_of_another_number_stop_the_run(small_recipe: Make, tmp_path: Path) -> None:
    recipe = changed(small_recipe(), model={"name": "co-attention", "width": 16, "tags": 5}, losses=[{"name": "tags"}])
    with pytest.raises(WrongUse, match=r"model\.tags: 14"):
        train(recipe, tmp_path / "run")


def test_the_switch_is_learned(small_recipe: Make, tmp_path: Path) -> None:
    losses = [{"name": "cross-entropy"}, {"name": "switch"}]
    recipe = changed(small_recipe(epochs=4), model={"name": "hlstm-dual", "width": 16}, losses=losses)
    run = train(recipe, tmp_path / "run")
    assert run.history[-1]["switch"] < run.history[0]["switch"]


def test_abnormal_sentences_alone_are_learned(small_recipe: Make, small_store: Path) -> None:
    recipe = changed(small_recipe(), data={"reports": {"keep": "abnormal", "order": "shuffled"}})
    store = Store.open(small_store)
    reports = list(reports_of(recipe, store, "train"))
    assert 0 < len(reports) < 24
    vocabulary = Vocabulary.build(reports, cutoff=1, max_words=20)
    loader = loader_for(recipe, vocabulary, store, "train")
    assert loader.studies == len(reports)
    for batch in loader.epoch(0):
        assert batch.words is not None
        for words in batch.words.tolist():
            assert "clear" not in vocabulary.decode(words[1:]).split()
    assert loader_for(recipe, None, store, "train").studies == 24, "to write, every study is looked at"

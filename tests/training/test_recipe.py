"""Recipes: every one that ships loads, and what is misspelt is answered with what would have been right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from negatoscope.errors import BadInput, WrongUse
from negatoscope.recipes import recipe_named, recipe_names, recipe_path
from negatoscope.training.recipe import load_recipe, recipe_of

GOOD = {"data": {"store": "somewhere"}, "model": {"name": "nic"}}


@pytest.mark.parametrize("name", recipe_names())
def test_each_shipped_recipe_loads_and_says_its_command(name: str) -> None:
    recipe = load_recipe(recipe_path(name))
    assert recipe_of(recipe.as_dict()).as_dict() == recipe.as_dict()
    assert f"negatoscope train {name}" in recipe_path(name).read_text().splitlines()[0]


HOSTS = ["nic", "visual-attention", "spatial-attention", "adaptive-attention", "att2in", "up-down"]
HOSTS += ["hlstm", "hlstm-dual", "co-attention", "multi-attention", "transformer", "r2gen"]


@pytest.mark.parametrize("host", HOSTS)
def test_each_host_of_contrastive_attention_has_it_by_its_name(host: str) -> None:
    path, changes = recipe_named(f"{host}+ca.iu-xray")
    recipe = load_recipe(path, {**changes, "contrast.attention.seed": 7})
    assert recipe.model_name == host
    attention = recipe.contrast.attention
    assert attention is not None
    assert (attention.heads, attention.pool, attention.seed) == (6, 1000, 7)
    if changes:
        with_, without = load_recipe(path, changes).as_dict(), load_recipe(recipe_path(f"{host}.iu-xray")).as_dict()
        assert {key for key in with_ if with_[key] != without[key]} == {"contrast"}


def test_a_name_that_only_looks_like_contrast() -> None:
    for name in ("nick+ca.phantom", "nic+cat.phantom", "nic+ca"):
        with pytest.raises(BadInput, match=r"neither a file nor a recipe that ships; (did you mean|known)"):
            recipe_named(name)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"model": {"name": "nick"}}, r"unknown model 'nick'; did you mean 'nic'"),
        ({"model": {"name": "nic", "widht": 3}}, r"model: .*unknown key 'widht', did you mean 'width'"),
        ({"train": {"learning_rate": 1}}, r"train: unknown key 'learning_rate'"),
        ({"trian": {}}, r"unknown key 'trian', did you mean 'train'"),
        ({"train": {"epochs": "many"}}, r"train\.epochs: .*\(it is 'many'\)"),
        ({"train": {"schedule": {"kind": "plateu"}}}, r"train\.schedule\.kind: .*'plateau'"),
        (
            {"losses": [{"name": "crossentropy"}]},
            r"losses\.0: unknown loss 'crossentropy'; did you mean 'cross-entropy'",
        ),
        ({"losses": [{"name": "cross-entropy", "smoothing": 1}]}, r"losses\.0: unknown key 'smoothing'"),
        ({"decode": {"beam": 2, "best": 3}}, r"decode: .*needs a beam of at least 3"),
    ],
)
def test_each_mistake_names_key_file_and_remedy(tmp_path: Path, wrong: dict[str, Any], said: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({**GOOD, **wrong}))
    with pytest.raises(WrongUse, match=said) as caught:
        load_recipe(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("text", ["", "just words", "- a\n- b", "a: [1", "\x00"])
def test_a_file_that_is_no_recipe(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(BadInput, match=r"mine\.yaml"):
        load_recipe(path)


def test_changes_go_on_top(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(GOOD))
    recipe = load_recipe(path, {"train.lr": 1e-3, "model.width": 8})
    assert recipe.train.lr == 1e-3
    assert recipe.model_settings().width == 8  # pyright: ignore[reportAttributeAccessIssue]

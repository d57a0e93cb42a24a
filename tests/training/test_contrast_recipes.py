"""A recipe with a contrastive loss is the recipe, and one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from negatoscope.cli.options import changes_of
from negatoscope.contrast.negatives import NegativesSettings
from negatoscope.errors import BadInput, WrongUse
from negatoscope.recipes import recipe_named, recipe_path
from negatoscope.training.recipe import Recipe, load_recipe


def losses_of(recipe: Recipe) -> dict[str, dict[str, Any]]:
    return {str(loss["name"]): loss for loss in recipe.losses}


def named(name: str) -> Recipe:
    return load_recipe(*recipe_named(name))


@pytest.mark.parametrize(
    "host", ["r2gen", "r2gencmn", "xpronet", "visualgpt", "transformer", "nic", "up-down", "hlstm"]
)
@pytest.mark.parametrize("layer", ["wcl", "mochi", "ithn"])
def test_the_host_and_one_loss_more(host: str, layer: str) -> None:
    with_, without = named(f"{host}+{layer}.iu-xray"), load_recipe(recipe_path(f"{host}.iu-xray"))
    one, other = with_.as_dict(), without.as_dict()
    assert {key for key in one if one[key] != other[key]} == {"losses"}
    found, before = losses_of(with_), losses_of(without)
    new = {"wcl": "wcl"}.get(layer, "hard-negatives")
    assert found.keys() == before.keys() | {new}
    if layer == "wcl":
        assert (found["cross-entropy"]["weight"], found["wcl"]["weight"]) == (0.8, 0.2)
    else:
        assert found["cross-entropy"] == before["cross-entropy"]
        assert found[new]["way"] == layer


def test_as_the_released_code_does() -> None:
    """Every variant at once, by one name; cross-entropy is scaled there as well."""
    found = losses_of(named("r2gencmn+ithn-released.iu-xray"))
    assert found["cross-entropy"]["weight"] == 0.7
    parts = ("projection", "third", "apart", "temperatures", "schedule")
    assert {found["hard-negatives"][part] for part in parts} == {"released"}
    paper, released = NegativesSettings(), NegativesSettings.model_validate(dict.fromkeys(parts, "released"))
    told = (paper.model_dump(), released.model_dump())
    assert {key for key in told[0] if told[0][key] != told[1][key]} == set(parts)
    assert losses_of(named("visualgpt+ithn-released.coco"))["hard-negatives"]["alpha"] == 0.1


def test_what_wcl_sets_by_the_corpus() -> None:
    for name, clusters, tau, words in (("r2gen+wcl.mimic-abn", 13, 1.0, 64), ("r2gen+wcl.mimic-cxr", 14, 0.1, 100)):
        recipe = named(name)
        found = losses_of(recipe)["wcl"]
        assert (found["clusters"], found["tau"], found["weight"]) == (clusters, tau, 0.2)
        assert (recipe.train.batch, recipe.data.vocabulary.max_words) == (128, words)
        assert (recipe.train.schedule.every, recipe.train.schedule.factor) == (1, 0.8)


def test_several_layers() -> None:
    recipe = named("r2gen+ca+wcl.iu-xray")
    assert recipe.contrast.attention is not None
    assert losses_of(recipe).keys() == {"cross-entropy", "wcl"}
    assert losses_of(named("nic+wcl+ithn.phantom")).keys() == {"cross-entropy", "wcl", "hard-negatives"}


def test_from_the_command_line(tmp_path: Path) -> None:
    changes = changes_of(["losses+=[{name: hard-negatives, way: mochi, among: 3}]", "train.epochs=2"])
    recipe = load_recipe(recipe_path("xpronet.iu-xray"), changes)
    assert recipe.train.epochs == 2
    names = ["cross-entropy", "xpronet-contrast", "xpronet-observations", "hard-negatives"]
    assert [loss["name"] for loss in recipe.losses] == names
    again = load_recipe(recipe_path("xpronet.iu-xray"), {"losses+": [{"name": "xpronet-contrast", "margin": 0.1}]})
    assert losses_of(again)["xpronet-contrast"] == {"name": "xpronet-contrast", "margin": 0.1}
    assert len(again.losses) == 3
    assert len(load_recipe(recipe_path("xpronet.iu-xray"), {"losses+": {"name": "wcl"}}).losses) == 4
    for wrong in ("wcl", [3]):
        with pytest.raises(WrongUse, match=r"losses\+: .* is no list of losses"):
            load_recipe(recipe_path("xpronet.iu-xray"), {"losses+": wrong})


def test_a_name_that_only_looks_like_one() -> None:
    for name in ("r2gen+wlc.iu-xray", "nick+wcl.phantom", "r2gen+ithn"):
        with pytest.raises(BadInput, match="neither a file nor a recipe"):
            recipe_named(name)

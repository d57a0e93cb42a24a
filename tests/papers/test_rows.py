"""Every row of every table becomes a recipe; what decides a run is in its name, what does not is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from negatoscope.errors import BadInput, WrongUse
from negatoscope.papers.grounds import Grounds
from negatoscope.papers.paper import Form, Row, merged, paper_named, paper_names, with_losses
from negatoscope.papers.rows import TIERS, Conditions, digest, run_of, unknown_to_all
from negatoscope.retrieval.recipe import CVSERecipe
from negatoscope.settings import read_settings
from negatoscope.training.recipe import recipe_of

MakeGrounds = Callable[..., Grounds]


def _trained() -> Iterator[tuple[str, str, Form, Row]]:
    for name in paper_names():
        for number, table in paper_named(name).tables.items():
            for row in table.rows:
                if row.quoted is None:
                    yield name, number, table.reports, row


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(("data", "tags"), [("phantom", 0), ("phantom", 25), ("iu-xray", 110)])
def test_every_row_resolves(grounds_of: MakeGrounds, data: str, tags: int, tier: str) -> None:
    conditions = Conditions(grounds_of(data, tags=tags), tier)  # pyright: ignore[reportArgumentType]
    seen: dict[tuple[str, str], dict[str, str]] = {}
    for name, number, form, row in _trained():
        run = run_of(row, form, conditions, 7)
        said = dict(run.recipe)
        if run.kind == "cvse":
            recipe = read_settings(CVSERecipe, said.pop("data") | said)
            assert recipe.train.seed == 7
            assert recipe.groups.exclusive == (row.retrieval == "cvse+exclusive")
        else:
            assert recipe_of(said).as_dict() == said
            assert (said["train"]["seed"], said["encoder"]["frozen"]) == (7, True)
            assert said["data"]["features"] == str(conditions.grounds.features)
            assert ("contrast" in row.changes) == (said["contrast"]["attention"] is not None)
            assert {loss["name"] for loss in row.losses} <= {loss["name"] for loss in said["losses"]}
        assert ("abnormal" in run.name) == (form == "abnormal")
        # Two rows of a table are two runs, unless they say the same.
        twin = seen.setdefault((name, number), {}).setdefault(run.name, row.name)
        assert twin == row.name, f"{name}, table {number}: {twin} and {row.name} are one run"


def test_the_same_recipe_is_one_run_in_all_tables(grounds_of: MakeGrounds) -> None:
    conditions = Conditions(grounds_of("iu-xray"))
    tables = paper_named("contrastive-attention").tables
    names = {run_of(tables[number].row(name), "complete", conditions, 1).name
             for number, name in (("1", "hlstm+ca"), ("4", "hlstm+ca"), ("5", "hlstm:h"))}  # fmt: skip
    assert len(names) == 1
    of_ithn = paper_named("ithn").tables["1"].row("multi-attention+ca")
    assert run_of(of_ithn, "complete", conditions, 1).name == (
        run_of(tables["2"].row("multi-attention+ca"), "complete", conditions, 1).name
    )


def test_a_digest_knows_what_decides_a_run_and_nothing_else(grounds_of: MakeGrounds) -> None:
    row = paper_named("wcl").tables["1"].row("mdt+wcl")
    grounds = grounds_of("phantom")
    elsewhere = replace(grounds, store=grounds.store.parent / "other", features=grounds.features.parent / "others")

    def of(grounds: Grounds = grounds, seed: int = 1, form: Form = "complete", **changes: object) -> str:
        return digest(run_of(row, form, Conditions(grounds, "quick", changes), seed).recipe)

    plain = of()
    assert of(seed=2) == plain == of(elsewhere) == of(**{"data.workers": 2}) == of(**{"train.save_minutes": 1})
    others = [of(form="abnormal"), of(**{"train.lr": 1e-5}), of(**{"train.epochs": 3}), of(**{"model.width": 64})]
    assert len({plain, *others}) == 5
    assert digest(run_of(row, "complete", Conditions(grounds, "full"), 1).recipe) != plain


def test_changes_reach_the_rows_that_have_them(grounds_of: MakeGrounds) -> None:
    table = paper_named("contrastive-attention").tables["1"]
    rows = [table.row("nic"), table.row("hlstm")]
    changes = {"model.word_layers": 3, "train.epochs": 5, "cvse.train.epochs": 2}
    conditions = Conditions(grounds_of("phantom"), "full", changes)
    nic, hlstm = (run_of(row, "complete", conditions, 1).recipe for row in rows)
    assert "word_layers" not in nic["model"]
    assert hlstm["model"]["word_layers"] == 3
    assert nic["train"]["epochs"] == hlstm["train"]["epochs"] == 5
    assert unknown_to_all({"model.word_layers": 3, "model.wdith": 3, "train.lr": 1}, rows) == ["model.wdith"]
    cvse = paper_named("wcl").tables["1"].row("cvse")
    assert run_of(cvse, "abnormal", conditions, 1).recipe["train"]["epochs"] == 2
    for wrong, said in (({"losses.0": {}}, "cannot be set"), ({"train.epohcs": 1}, "did you mean 'epochs'")):
        with pytest.raises(WrongUse, match=said):
            run_of(rows[0], "complete", replace(conditions, changes=wrong), 1)


def test_without_mesh_terms_co_attention_predicts_observations(grounds_of: MakeGrounds) -> None:
    row = paper_named("contrastive-attention").tables["1"].row("co-attention")
    with_terms = run_of(row, "complete", Conditions(grounds_of("iu-xray", tags=12)), 1)
    without = run_of(row, "complete", Conditions(grounds_of("iu-xray", tags=0)), 1)
    assert with_terms.recipe["model"]["tags"] == 12
    assert without.name.startswith("co-attention-labels")


nested = st.recursive(st.integers(), lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, max_size=3))
mapping = st.dictionaries(st.sampled_from("abcd"), nested, max_size=4)


@settings(deadline=None)
@given(mapping, mapping)
def test_merging_lays_one_over_the_other(base: dict, changes: dict) -> None:
    both = merged(base, changes)
    assert set(both) == set(base) | set(changes)
    assert merged(both, changes) == both
    assert merged(base, {}) == base
    assert merged({}, changes) == changes
    for key, value in changes.items():
        if not isinstance(value, dict) or not isinstance(base.get(key), dict):
            assert both[key] == value
        else:
            assert both[key] == merged(base[key], value)


def test_a_loss_takes_the_place_of_its_namesake() -> None:
    own = [{"name": "cross-entropy"}, {"name": "tags", "weight": 2}]
    more = ({"name": "cross-entropy", "weight": 0.8}, {"name": "wcl", "weight": 0.2})
    assert with_losses(own, more) == [more[0], own[1], more[1]]
    assert own == [{"name": "cross-entropy"}, {"name": "tags", "weight": 2}]
    with pytest.raises(BadInput, match="without a name"):
        with_losses(own, ({"weight": 1},))

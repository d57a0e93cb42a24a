"""CVSE trained on a small store whose features follow from the findings; corpora that cannot be learned from."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from negatoscope.cli import app
from negatoscope.errors import BadInput, WrongUse
from negatoscope.retrieval.corpus import assign, build_corpus, findings_told
from negatoscope.retrieval.findings import Telling, find
from negatoscope.retrieval.negatives import Negatives
from negatoscope.retrieval.recipe import CVSERecipe, cvse_recipe, cvse_recipe_names
from negatoscope.retrieval.retriever import Retriever, score_studies
from negatoscope.retrieval.training import TrainedCVSE, train_cvse, triplets_of
from negatoscope.studies.store import Store
from negatoscope.studies.study import Study
from negatoscope.text.abnormal import AbnormalSentences
from negatoscope.text.embed import TfidfSvd
from negatoscope.text.group import GroupSettings
from negatoscope.text.sentence_files import load_groups
from negatoscope.vision.features import FeatureCache
from tests.retrieval.small import SAID, cache_of, drawn_studies, store_at

Drawn = tuple[Store, FeatureCache]
Make = Callable[..., CVSERecipe]


def _studies(*reports: str) -> list[Study]:
    return [Study(f"s{number}", report=report) for number, report in enumerate(reports)]


def test_it_learns_which_finding_is_which(run: TrainedCVSE) -> None:
    assert run.groups == 4
    assert run.history[-1]["loss"] < 0.1 * run.history[0]["loss"]
    assert run.best["recall@2"] > 0.9
    assert run.best["recall@2"] == max(row["recall@2"] for row in run.history)


def test_the_run_folder_holds_all_of_it(run: TrainedCVSE, retriever: Retriever) -> None:
    assert len(load_groups(run.folder / "groups").groups) == 4
    assert "<html" in (run.folder / "groups" / "groups.html").read_text(encoding="utf-8")
    lines = (run.folder / "log.csv").read_text().splitlines()
    assert lines[0] == "epoch,loss,recall@2"
    assert len(lines) == 16
    assert cvse_recipe(str(run.folder / "recipe.yaml")) == retriever.recipe
    assert {label for kind in retriever.kinds for label in kind.labels} == {"Fracture"}


def test_a_run_is_the_same_twice(recipe_for: Make, run: TrainedCVSE, retriever: Retriever, tmp_path: Path) -> None:
    again = train_cvse(recipe_for(), tmp_path)
    assert again.history == run.history
    other = Retriever.load(tmp_path).model.state_dict()
    assert all(torch.equal(tensor, other[name]) for name, tensor in retriever.model.state_dict().items())


@pytest.mark.parametrize("model", [{"distance": "plain", "transform": "shared"}, {"attention": "conditional"}])
def test_the_other_forms_learn_too(recipe_for: Make, tmp_path: Path, model: dict[str, str]) -> None:
    done = train_cvse(recipe_for(model=model, train={"select": "val", "epochs": 20}), tmp_path)
    assert done.best["recall@2"] > 0.85


def test_nobody_is_learned_from_and_held_out(recipe_for: Make, retriever: Retriever, drawn: Drawn) -> None:
    learned = {study for kind in retriever.kinds for study in kind.studies}
    training = {study.id for study in drawn[0].studies("train")}
    assert learned < training
    spoken = {
        study.id
        for study in drawn[0].studies("train")
        if any(said in study.report for both in SAID.values() for said in both)
    }
    assert 0.1 * len(training) < len(spoken - learned) < 0.3 * len(training)


def test_triplets_keep_to_the_groups() -> None:
    told = findings_told(drawn_studies(60)[0], AbnormalSentences.default())
    corpus = build_corpus(told, TfidfSvd(8), GroupSettings(groups=4))
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(corpus.studies))[:12].tolist()
    triplets = triplets_of(corpus, chosen, Negatives(corpus.group), 8, rng)
    assert len(triplets.positive) == sum(len(corpus.said[study]) for study in chosen)
    group = corpus.group[triplets.sentences.numpy()]
    for (study, sentence), wrong, others in zip(
        triplets.positive.tolist(), triplets.unmatched.tolist(), triplets.others.tolist()
    ):
        own = corpus.groups_of(chosen[study])
        assert int(triplets.sentences[sentence]) in corpus.said[chosen[study]].tolist()
        assert all(group[one] not in own for one in wrong)
        assert all(group[sentence] not in corpus.groups_of(chosen[other]) for other in others)


def test_new_sentences_find_their_group_and_exclusive_terms_keep_them_apart() -> None:
    told = findings_told(drawn_studies(60)[0], AbnormalSentences.default())
    embedder = TfidfSvd(8)
    corpus = build_corpus(told, embedder, GroupSettings(groups=3))
    of_sentence = corpus.groups.of_sentence()
    left, right = (of_sentence[SAID[f"{side} effusion"][0]] for side in ("left", "right"))
    asked = ["small left pleural effusion", "A small right effusion is seen.", "small bilateral effusions", "zzz qqq"]
    assert assign(corpus, embedder, asked).tolist() == [left, right, -1, -1]
    assert left != right


def test_a_file_moves_and_gives_the_same_scores(retriever: Retriever, drawn: Drawn, tmp_path: Path) -> None:
    retriever.save(tmp_path / "copy.safetensors")
    again = Retriever.load(tmp_path / "copy.safetensors")
    assert again.kinds == retriever.kinds
    assert again.recipe == retriever.recipe
    studies = list(drawn[0].studies("val"))
    one, two = (torch.cat(list(score_studies(each, studies, drawn[1]))) for each in (retriever, again))
    assert torch.equal(one, two)
    assert retriever.calibration is not None
    assert again.calibration is not None
    assert np.array_equal(again.calibration.threshold, retriever.calibration.threshold)


# ---- bad input ----


def test_a_corpus_without_an_abnormal_sentence() -> None:
    told = findings_told(_studies("The lungs are clear.", "", "No effusion."), AbnormalSentences.default())
    with pytest.raises(BadInput, match="no abnormal sentence in any training report"):
        build_corpus(told, TfidfSvd(), GroupSettings())


def test_training_without_findings_or_with_one_group_only_says_so(
    drawn: Drawn, recipe_for: Make, tmp_path: Path
) -> None:
    normal = [replace(study, report="The lungs are clear.") for study in drawn[0].studies()]
    store_at(tmp_path / "normal", normal)
    with pytest.raises(BadInput, match="no abnormal sentence in any training report"):
        train_cvse(recipe_for(store=str(tmp_path / "normal")), tmp_path / "run")
    same = [replace(study, report="Mild cardiomegaly.") for study in drawn[0].studies()]
    store_at(tmp_path / "same", same)
    with pytest.raises(BadInput, match="of one group"):
        train_cvse(recipe_for(store=str(tmp_path / "same"), groups={"groups": 1}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_group_of_one_is_learned_and_told(drawn: Drawn, recipe_for: Make, tmp_path: Path) -> None:
    studies = [
        replace(study, report=("Mild cardiomegaly.", "Old rib fracture is noted.")[number % 2])
        for number, study in enumerate(drawn[0].studies("train"))
    ]
    studies[0] = replace(studies[0], report="Hiatal hernia is seen.")
    store_at(tmp_path / "store", studies)
    recipe = recipe_for(
        store=str(tmp_path / "store"), groups={"groups": 3}, train={"epochs": 2, "held_out": 0.1, "select": "held-out"}
    )
    run = train_cvse(recipe, tmp_path / "run")
    groups = load_groups(run.folder / "groups").groups
    assert [group.size for group in groups][-1] == 1
    assert groups[-1].sentence == "Hiatal hernia is seen."
    found = next(find(Retriever.load(run.folder), studies[:1], drawn[1], Telling(top=3)))
    hernia = next(finding for finding in found.findings if finding.sentence == "Hiatal hernia is seen.")
    assert (hernia.said_by, hernia.studies) == (1, (studies[0].id,))


def test_a_sentence_of_400_words_and_one_of_unknown_words(drawn: Drawn) -> None:
    told = findings_told(
        _studies("Small left pleural effusion " + "which is very small " * 100 + ".", "Old rib fracture is noted."),
        AbnormalSentences.default(),
    )
    embedder = TfidfSvd(8)
    corpus = build_corpus(told, embedder, GroupSettings(groups=2))
    assert sorted(len(sentence.split()) for sentence in corpus.sentences)[-1] > 400
    assert assign(corpus, embedder, ["Qwzx vbnm."]).tolist() == [-1]


def test_a_picture_that_is_not_in_the_cache(recipe_for: Make, tmp_path: Path) -> None:
    cache, _ = cache_of(tmp_path, ["another"], patches=9, width=24)
    with pytest.raises(BadInput, match="no features of the picture"):
        train_cvse(recipe_for(features=str(cache.path)), tmp_path / "run")


def test_a_folder_that_holds_another_run(recipe_for: Make, run: TrainedCVSE) -> None:
    with pytest.raises(WrongUse, match="another recipe"):
        train_cvse(recipe_for(train={"lr": 0.5}), run.folder)


@pytest.mark.parametrize("text", [b"", b"hello" * 100])
def test_files_that_hold_no_cvse(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "x.safetensors").write_bytes(text)
    with pytest.raises(BadInput, match="cannot be read"):
        Retriever.load(tmp_path / "x.safetensors")
    with pytest.raises(BadInput, match="no such file"):
        Retriever.load(tmp_path / "none.safetensors")


def test_a_file_of_another_model_or_a_damaged_one(tmp_path: Path, retriever: Retriever) -> None:
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(BadInput, match="holds no CVSE"):
        Retriever.load(tmp_path / "other.safetensors")
    header: dict[str, Any] = {"format": 1, "recipe": {}, "features": {}, "groups": []}
    save_file({"a": torch.zeros(2)}, tmp_path / "half.safetensors", metadata={"cvse": json.dumps(header)})
    with pytest.raises(BadInput, match="damaged"):
        Retriever.load(tmp_path / "half.safetensors")


# ---- recipes and the command ----


@pytest.mark.parametrize("name", cvse_recipe_names())
def test_each_shipped_recipe_loads_and_says_its_command(name: str) -> None:
    from importlib.resources import files

    assert cvse_recipe(name).train.epochs >= 1
    first = (files("negatoscope.recipes") / "cvse" / f"{name}.yaml").read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith(f"# negatoscope retrieve train {name} ")


def test_misspelt_recipes_and_settings() -> None:
    with pytest.raises(BadInput, match=r"cvse\.iu-xray"):
        cvse_recipe("cvse.iu-xry")
    with pytest.raises(WrongUse, match="did you mean 'negatives'"):
        cvse_recipe("cvse.iu-xray", {"train.negative": 4})


def test_the_command_trains_and_lists(run: TrainedCVSE, tmp_path: Path) -> None:
    asked = ["retrieve", "train", str(run.folder / "recipe.yaml"), "--run", str(tmp_path / "r"), "--json"]
    done = CliRunner().invoke(app, [*asked, "--set", "train.epochs=1"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["groups"] == 4
    listed = CliRunner().invoke(app, ["retrieve", "train", "--list", "--json"])
    assert "cvse.iu-xray" in json.loads(listed.stdout)

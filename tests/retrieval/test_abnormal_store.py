"""The abnormal-only sibling of a store: who is in it, what its reports say, what it records of itself."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from negatoscope.cli import app
from negatoscope.errors import BadInput, WrongUse
from negatoscope.retrieval.abnormal_store import COMPLETE, AbnormalRule, extract_abnormal
from negatoscope.studies.store import Store
from negatoscope.studies.study import Picture, Study
from negatoscope.text.abnormal import AbnormalSentences
from tests.retrieval.small import store_at

BOTH = (Picture("images/f.png", "frontal", sha256="f"), Picture("images/l.png", "lateral", sha256="l"))
REPORT = "The heart is enlarged. The lungs are clear. 1. Small left pleural effusion. 2. No pneumothorax."


@pytest.fixture
def store(tmp_path: Path) -> Store:
    root = tmp_path / "store"
    (root / "images").mkdir(parents=True)
    for name in "flm":
        Image.fromarray(np.zeros((4, 4), np.uint8)).save(root / "images" / f"{name}.png")
    studies = [
        Study(
            "both",
            BOTH,
            REPORT,
            "train",
            "p1",
            {"findings": REPORT},
            {"Cardiomegaly": 1},
            masks={"heart@0": "images/m.png"},
        ),
        Study("turned", BOTH[::-1], REPORT, "val"),
        Study("normal", BOTH, "The lungs are clear.", "train"),
        Study("alone", BOTH[:1], REPORT, "train"),
        Study("silent", BOTH, "", "train"),
    ]
    return store_at(root, studies, settings={"seed": 7})


def test_abnormal_sentences_of_studies_with_both_views(store: Store, tmp_path: Path) -> None:
    done = extract_abnormal(store, tmp_path / "abn", AbnormalSentences.default())
    assert (done.studies, done.of_studies, done.sentences, done.abnormal) == (2, 5, 8, 4)
    assert done.splits == {"train": 1, "val": 1, "test": 0, "none": 0}
    assert done.left_out == {"without an abnormal sentence": 2, "without a frontal and a lateral view": 1}
    sibling = Store.open(tmp_path / "abn")
    kept = sibling.study("both")
    assert kept.report == "The heart is enlarged. Small left pleural effusion."
    assert kept.sections[COMPLETE] == REPORT
    assert (kept.patient, kept.labels, kept.split) == ("p1", {"Cardiomegaly": 1}, "train")
    assert [picture.sha256 for picture in sibling.study("turned").pictures] == ["l", "f"]


def test_the_rule_stands_in_the_store(store: Store, tmp_path: Path) -> None:
    classifier = AbnormalSentences.default()
    extract_abnormal(store, tmp_path / "abn", classifier, AbnormalRule(views="any"), named="mine")
    about = Store.open(tmp_path / "abn").about
    assert about.settings["rule"] == {"views": "any"}
    assert about.settings["classifier"] == {"name": "mine", "threshold": classifier.threshold}
    assert about.settings["from"]["settings"] == {"seed": 7}
    assert about.settings["left out"] == {"without an abnormal sentence": 2}
    assert about.counts["studies"] == 3
    assert about.counts["left_out"] == 2
    assert Store.open(tmp_path / "abn").study("alone").report.startswith("The heart is enlarged")


@pytest.mark.parametrize("images", ["reference", "copy"])
def test_pictures_and_masks_are_found_from_the_sibling(store: Store, tmp_path: Path, images: str) -> None:
    extract_abnormal(store, tmp_path / "abn", AbnormalSentences.default(), images=images)  # pyright: ignore[reportArgumentType]
    sibling = Store.open(tmp_path / "abn")
    study = sibling.study("both")
    for path in (*(picture.path for picture in study.pictures), *study.masks.values()):
        found = sibling.picture_path(path)
        assert found.is_file()
        assert (tmp_path / "abn" in found.parents) is (images == "copy")


def test_no_study_fits(tmp_path: Path) -> None:
    store = store_at(tmp_path / "s", [Study("a", BOTH, "The lungs are clear."), Study("b", BOTH[:1], "Cardiomegaly.")])
    with pytest.raises(BadInput, match="1 without an abnormal sentence, 1 without a frontal"):
        extract_abnormal(store, tmp_path / "abn", AbnormalSentences.default())
    assert not (tmp_path / "abn" / "store.json").exists()


def test_a_folder_that_holds_something(store: Store, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="holds something already"):
        extract_abnormal(store, store.path, AbnormalSentences.default())
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("x")
    with pytest.raises(WrongUse, match="holds something already"):
        extract_abnormal(store, tmp_path / "full", AbnormalSentences.default())


def test_command_counts_and_says_the_rule(store: Store, tmp_path: Path) -> None:
    asked = ["findings", "extract", str(store.path), "--into"]
    done = CliRunner().invoke(app, [*asked, str(tmp_path / "abn")])
    assert done.exit_code == 0, done.output
    assert "2 of 5 studies (1 train, 1 val)" in done.stdout
    assert "4 of their 8 sentences" in done.stdout
    assert "left out: 1 without a frontal and a lateral view" in done.stdout
    done = CliRunner().invoke(app, [*asked, str(tmp_path / "any"), "--views", "any", "--json"])
    assert json.loads(done.stdout)["studies"] == 3
    assert CliRunner().invoke(app, [*asked, str(tmp_path / "x"), "--views", "three"]).exit_code == 2
    assert CliRunner().invoke(app, [*asked, str(tmp_path / "x"), "--images", "moved"]).exit_code == 2

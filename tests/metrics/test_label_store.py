"""A store's labelled sibling: whose labels, whose pictures, and what a recipe that needs labels makes of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from negatoscope.cli import app
from negatoscope.contrast.attention import AttentionSettings
from negatoscope.contrast.pool import choose_normals
from negatoscope.errors import BadInput, WrongUse
from negatoscope.metrics.chexpert.label_store import label_store
from negatoscope.studies.importing import import_studies
from negatoscope.studies.sources import open_source
from negatoscope.studies.store import Store, write_part


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Thirty studies with neither labels nor tags."""
    root = tmp_path_factory.mktemp("bare")
    import_studies(open_source("phantom", None, {"studies": 30, "size": 64}), root)
    write_part(root, 0, [replace(study, labels={}, tags=()) for study in Store.open(root)])
    return Store.open(root)


def test_every_study_gets_the_labels_of_its_report(bare: Store, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["label", str(bare.path), "--into", str(tmp_path / "labelled"), "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.output)
    assert said["studies"] == 30
    labelled = Store.open(tmp_path / "labelled")
    assert labelled.about.settings["labels"].startswith("negatoscope's CheXpert labeler")
    for before, after in zip(bare, labelled, strict=True):
        assert (after.id, after.split, after.report) == (before.id, before.split, before.report)
        assert after.labels
        assert [one.sha256 for one in after.pictures] == [one.sha256 for one in before.pictures]
        assert all(labelled.picture_path(one).is_file() for one in after.pictures)
    assert said["labels"]["No Finding"]["present"] == sum(one.labels.get("No Finding") == 1 for one in labelled)


def test_a_pool_that_had_no_normals_has_some(bare: Store, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no normal studies"):
        choose_normals(bare, AttentionSettings())
    label_store(bare, tmp_path / "labelled")
    normals = choose_normals(Store.open(tmp_path / "labelled"), AttentionSettings())
    assert normals.rule == "label"
    assert len(normals.ids) > 5


def test_pictures_are_copied_when_asked(bare: Store, tmp_path: Path) -> None:
    label_store(bare, tmp_path / "labelled", images="copy")
    for study in Store.open(tmp_path / "labelled"):
        assert all((tmp_path / "labelled" / one.path).is_file() for one in study.pictures)


def test_wrong_uses(bare: Store, tmp_path: Path) -> None:
    label_store(bare, tmp_path / "labelled")
    with pytest.raises(WrongUse, match="holds something already"):
        label_store(bare, tmp_path / "labelled")
    run = CliRunner()
    assert "is a store" in run.invoke(app, ["label", str(bare.path), "--out", str(tmp_path / "x.csv")]).stderr
    both = run.invoke(app, ["label", str(bare.path), "--into", str(tmp_path / "a"), "--out", str(tmp_path / "x.csv")])
    assert "labels a whole store" in both.stderr
    none = run.invoke(app, ["label", str(tmp_path / "nothing"), "--into", str(tmp_path / "a")])
    assert "no store of studies here" in none.stderr
    assert not (tmp_path / "a").exists()

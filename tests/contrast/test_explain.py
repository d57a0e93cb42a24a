"""Explanations: the nearest normal studies, the map, and the files for a person."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from negatoscope.cli import app
from negatoscope.contrast.attention import ContrastiveAttention
from negatoscope.contrast.explain import explain, heat_of
from negatoscope.errors import WrongUse
from negatoscope.reading_room.explanation import explain_study, overlay
from negatoscope.studies.importing import import_studies
from negatoscope.studies.sources import open_source
from negatoscope.studies.store import Store
from negatoscope.training.loop import train
from negatoscope.training.recipe import recipe_of
from negatoscope.vision.prepare import Fit, prepare
from tests.models.every import batch_of, tiny


def test_nearest_are_the_largest_shares() -> None:
    reporter, batch = tiny("nic+ca").eval(), batch_of()
    contrast = reporter.contrast
    assert isinstance(contrast, ContrastiveAttention)
    shares = contrast.compare(reporter.look(batch), batch.ids).shares  # (B, 1, n, N_P)
    for b, one in enumerate(explain(reporter, batch, nearest=3)):
        assert one.id == batch.ids[b]
        assert len(one.heads) == 2
        for head, said in enumerate(one.heads):
            order = shares[b, 0, head].argsort(descending=True)[:3].tolist()
            assert [contrast.rows[near.id] for near in said] == order
            assert [near.share for near in said] == sorted((near.share for near in said), reverse=True)
            assert one.id not in {near.id for near in said}


def test_the_map_shares_out_the_contrastive_information() -> None:
    """NIC's overall vector is the mean of its patches, so the mean of the map is the length of v^d."""
    reporter, batch = tiny("nic+ca").eval(), batch_of()
    sight = reporter.look(batch)
    assert isinstance(reporter.contrast, ContrastiveAttention)
    found = reporter.contrast.compare(sight, batch.ids)
    heat = heat_of(sight, found)
    for b, one in enumerate(explain(reporter, batch)):
        assert heat[b][sight.mask[b]].mean().item() == pytest.approx(one.strength, rel=1e-4)
        assert one.strength == pytest.approx(found.apart[b, 0].norm().item(), rel=1e-4)
        shown = torch.cat([view.flatten() for view in one.heat if view is not None])
        torch.testing.assert_close(shown, heat[b][sight.mask[b]])
    assert explain(reporter, batch)[1].heat[1] is None  # that study lacks its lateral


def test_a_patch_that_stands_out_is_where_the_heat_is() -> None:
    reporter, batch = tiny("nic+ca").eval(), batch_of()
    assert batch.features is not None
    batch.features[0] = 0.01 * batch.features[0]
    batch.features[0, 0, 5] = 5.0
    frontal = explain(reporter, batch)[0].heat[0]
    assert frontal is not None
    assert int(frontal.flatten().argmax()) == 5


def test_without_contrastive_attention_there_is_nothing_to_explain() -> None:
    with pytest.raises(WrongUse, match="trained without contrastive attention"):
        explain(tiny("nic"), batch_of())


def test_the_overlay_leaves_the_picture_where_there_is_no_heat() -> None:
    grey = np.arange(64, dtype=np.uint8).repeat(64).reshape(64, 64)
    heat = torch.tensor([[-1.0, 0.0], [0.0, 2.0]])
    shown = overlay(grey, heat, 2.0)
    assert shown.shape == (64, 64, 3)
    assert (shown[:8, :8] == grey[:8, :8, None]).all()
    red, _, blue = shown[-1, -1].tolist()
    assert red > 180
    assert blue < 60


@pytest.mark.parametrize("fit", ["squash", "crop", "letterbox"])
def test_the_overlay_lies_where_the_backbone_saw_it(fit: Fit) -> None:
    """One bright spot, prepared as for a backbone: its place in the square is where the overlay marks the picture."""
    for shape, spot in (((60, 100), (30, 62)), ((90, 50), (52, 20))):
        grey = np.zeros(shape, np.uint8)
        grey[spot[0] - 4 : spot[0] + 4, spot[1] - 4 : spot[1] + 4] = 255
        heat = prepare(grey, 10, fit=fit)[0]
        marked = np.asarray(overlay(np.zeros(shape, np.uint8), heat, heat.max().item(), fit))[..., 0].astype(float)
        rows, columns = np.indices(shape)
        centre = (rows * marked).sum() / marked.sum(), (columns * marked).sum() / marked.sum()
        assert np.hypot(centre[0] - spot[0], centre[1] - spot[1]) < 2


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("explained")
    import_studies(open_source("phantom", None, {"studies": 40, "size": 64}), root / "store")
    recipe = recipe_of(
        {
            "data": {"store": str(root / "store"), "vocabulary": {"cutoff": 1, "max_words": 20}},
            "encoder": {"backbone": "resnet10-narrow", "image_size": 64},
            "model": {"name": "nic", "width": 16},
            "contrast": {"attention": {"heads": 2}},
            "train": {"epochs": 1, "precision": "float32"},
            "decode": {"beam": 1, "max_words": 20},
        }
    )
    return train(recipe, root / "run").folder


def test_files_for_a_person(run: Path, tmp_path: Path) -> None:
    store = Store.open(run.parent / "store")
    study = next(iter(store.studies("test")))
    done = CliRunner().invoke(app, ["explain", str(run), study.id, "--out", str(tmp_path / "why"), "--nearest", "2"])
    assert done.exit_code == 0, done.output
    said = json.loads((tmp_path / "why" / "explanation.json").read_text())
    assert said["study"] == study.id
    assert said["reference"] == study.report
    assert [len(head) for head in said["heads"]] == [2, 2]
    normals = [near["id"] for head in said["heads"] for near in head]
    assert all(store.study(id).split == "train" and store.study(id).labels["No Finding"] == 1 for id in normals)
    assert said["pool"]["normal"] == "tag"
    assert said["pool"]["studies"] == said["pool"]["available"] < said["pool"]["asked"] == 1000
    for name, rows in said["heat"].items():
        assert np.array(rows).shape == (2, 2)
        with Image.open(tmp_path / "why" / f"{name}.png") as shown:
            assert shown.size == (64, 64)
    page = (tmp_path / "why" / "index.html").read_text()
    assert normals[0] in page
    assert "http" not in page.replace("http-equiv", "")


def test_a_training_study_of_the_pool_is_not_its_own_neighbour(run: Path, tmp_path: Path) -> None:
    store = Store.open(run.parent / "store")
    study = next(one for one in store.studies("train") if one.tags == ("normal",))
    found = explain_study(run, study.id, tmp_path, nearest=1000).explanation
    assert all(study.id not in {near.id for near in head} for head in found.heads)
    assert len(found.heads[0]) > 5


def test_a_study_that_is_not_there(run: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["explain", str(run), "nobody", "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert not list(tmp_path.iterdir())

"""The whole way from image files to a draft, and what a drafter's file is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from negatoscope.drafting.drafter import Drafter
from negatoscope.drafting.folder import draft_folder, studies_in
from negatoscope.drafting.kept import load_drafter, save_drafter
from negatoscope.drafting.measure import measure, write_split
from negatoscope.drafting.training import train_drafter
from negatoscope.errors import BadInput, WrongUse
from negatoscope.studies.store import Store
from negatoscope.studies.study import OBSERVATIONS

from .conftest import images_of, small_settings


def some(store: Store, many: int) -> list[str]:
    return [study.id for study in store.studies("val")][:many]


def test_a_draft_holds_what_it_rests_on(drafter: Drafter, phantoms: Store) -> None:
    study = some(phantoms, 1)[0]
    draft = drafter.draft(images_of(phantoms, study), study)
    assert draft.id == study
    assert draft.report
    assert [one.name for one in draft.observations] == list(OBSERVATIONS)
    assert all(one.low <= one.probability <= one.high for one in draft.observations)
    assert len(draft.views) == len(phantoms.study(study).pictures)
    known = {one.id for one in phantoms.studies("train")}
    assert {near.id for near in draft.nearest_normals} <= known
    normal = {one.id for one in phantoms.studies("train") if one.labels.get("No Finding") == 1}
    assert {near.id for near in draft.nearest_normals} <= normal
    for sentence in draft.sentences:
        assert 0 < sentence.likely <= 1
        assert {near.id for near in sentence.similar} <= known
        for name in sentence.observations:
            named = {one.id for one in phantoms.studies("train") if one.labels.get(name) == 1}
            assert (
                not sentence.similar
                or {near.id for near in sentence.similar} <= named
                or len(sentence.observations) > 1
            )
        for heat in sentence.heat.values():
            values = np.array(heat)
            assert values.min() >= 0
            assert values.max() <= 1
    json.dumps(draft.as_json())


def test_a_batch_drafts_what_each_study_gets_alone(drafter: Drafter, phantoms: Store) -> None:
    names = some(phantoms, 5)
    together = list(drafter.draft_many((name, images_of(phantoms, name)) for name in names))
    for name, draft in zip(names, together, strict=True):
        assert drafter.draft(images_of(phantoms, name), name).report == draft.report


def test_the_order_of_the_images_changes_nothing(drafter: Drafter, phantoms: Store) -> None:
    study = next(one for one in phantoms.studies("val") if len(one.pictures) == 2)
    images = images_of(phantoms, study.id)
    there, back = drafter.draft(images), drafter.draft(images[::-1])
    assert there.report == back.report
    assert [one.view for one in there.views] == [one.view for one in back.views][::-1]


def test_one_view_alone(drafter: Drafter, phantoms: Store) -> None:
    for image in images_of(phantoms, some(phantoms, 1)[0]):
        assert drafter.draft([image]).report


def test_a_kept_drafter_writes_the_same_words(drafter: Drafter, phantoms: Store, tmp_path: Path) -> None:
    save_drafter(tmp_path / "again.safetensors", drafter)
    again = load_drafter(tmp_path / "again.safetensors")
    for name in some(phantoms, 4):
        assert again.draft(images_of(phantoms, name)).report == drafter.draft(images_of(phantoms, name)).report


def test_a_drafter_holds_no_report(trained: Path, phantoms: Store) -> None:
    with safe_open(trained, framework="pt") as opened:
        header = json.dumps(opened.metadata())
    for study in phantoms.studies("train"):
        assert study.report not in header


@pytest.mark.parametrize("damage", ["text", "weights", "cut", "tensor"])
def test_what_is_no_drafter(trained: Path, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "bad.safetensors"
    if damage == "text":
        path.write_text("no drafter")
    elif damage == "weights":
        save_file({"a": torch.zeros(1)}, path)
    elif damage == "cut":
        path.write_bytes(trained.read_bytes()[:-1000])
    else:
        with safe_open(trained, framework="pt") as opened:
            header = opened.metadata()
        tensors = load_file(trained)
        del tensors["writer/lstm.weight_ih_l0"]
        save_file(tensors, path, metadata=header)
    with pytest.raises(BadInput, match=r"drafter|missing"):
        load_drafter(path)


def test_no_such_drafter(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such drafter"):
        load_drafter(tmp_path / "none.safetensors")


@pytest.fixture
def folder(phantoms: Store, tmp_path: Path) -> Path:
    """Studies as a PACS drops them: any names, any order, a note beside the images."""
    for name in some(phantoms, 6):
        (tmp_path / "in" / name).mkdir(parents=True)
        for number, image in enumerate(reversed(images_of(phantoms, name))):
            Image.open(image).save(tmp_path / "in" / name / f"{number}.png")
        (tmp_path / "in" / name / "note.txt").write_text("a note")
    return tmp_path / "in"


def test_a_folder(drafter: Drafter, phantoms: Store, folder: Path, tmp_path: Path) -> None:
    done = draft_folder(drafter, folder, tmp_path / "out.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == sorted(some(phantoms, 6))
    assert done.studies == 6
    for row in rows:
        assert row["report"] == drafter.draft(images_of(phantoms, row["id"])).report


def test_a_folder_with_a_damaged_image(drafter: Drafter, folder: Path, tmp_path: Path) -> None:
    bad = sorted(folder.iterdir())[2]
    (bad / "0.png").write_bytes(b"no picture")
    with pytest.raises(BadInput, match=r"0\.png"):
        draft_folder(drafter, folder, tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()
    done = draft_folder(drafter, folder, tmp_path / "out.jsonl", skip_bad=True)
    assert done.studies == 5
    assert len(done.left_out) == 1
    assert done.left_out[0].startswith(bad.name)


def test_folders_that_hold_no_studies(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such folder"):
        studies_in(tmp_path / "none")
    with pytest.raises(BadInput, match="no studies"):
        studies_in(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="without images"):
        studies_in(tmp_path)


def test_a_split_is_written_from_the_files_alone(drafter: Drafter, phantoms: Store, tmp_path: Path) -> None:
    many = write_split(drafter, phantoms, "val", tmp_path / "a.jsonl", references=tmp_path / "r.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    references = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert many == len(rows) == len(references)
    assert [row["id"] for row in rows] == [row["id"] for row in references]
    with pytest.raises(BadInput, match="no study"):
        write_split(drafter, phantoms, "none", tmp_path / "b.jsonl")


def test_measuring(drafter: Drafter, phantoms: Store) -> None:
    found = measure(drafter, phantoms, strangers=4)
    images = sum(len(study.pictures) for study in phantoms.studies("val"))
    assert found.warned["of the split"][0] == images
    assert found.warned["noise"] == (4, 1.0), "noise is told from any film"
    assert 0 <= found.reliability.error <= 1
    assert "Brier" in found.summary
    json.dumps(found.as_json())


def test_each_study_is_answered_for_by_a_recogniser_that_did_not_learn_from_it(phantoms: Store, tmp_path: Path) -> None:
    settings = small_settings(**{"folds": 2, "lessons.epochs": 1, "dictation.epochs": 1, "doubt_images": 20})
    done = train_drafter(phantoms, tmp_path, settings, say=lambda _: None)
    assert done.held_out == done.training == load_drafter(done.drafter).author.calibration.studies
    parts = [load_file(tmp_path / f"part-{number}.safetensors") for number in (1, 2)]
    places = torch.cat([one["place"] for one in parts])
    assert places.sort().values.tolist() == list(range(done.training))
    # Answers that are there are taken; of other settings they are refused.
    said: list[str] = []
    train_drafter(phantoms, tmp_path, settings, say=said.append)
    assert not any(line.startswith("part") for line in said)
    with pytest.raises(WrongUse, match="other settings"):
        train_drafter(phantoms, tmp_path, small_settings(folds=2), say=lambda _: None)
    with pytest.raises(WrongUse, match="one part"):
        train_drafter(phantoms, tmp_path, small_settings(folds=1), say=lambda _: None)

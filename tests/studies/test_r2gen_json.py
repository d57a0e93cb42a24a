"""annotation.json in IU X-Ray's form, in MIMIC-CXR's, with and without studies.csv beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_sources import r2gen_row, write_r2gen

from negatoscope.errors import BadInput
from negatoscope.studies.importing import import_studies
from negatoscope.studies.inside import file_inside
from negatoscope.studies.sources import Damaged, Found, open_source
from negatoscope.studies.store import Store


def found(folder: Path) -> list[Found | Damaged]:
    return list(open_source("r2gen-json", folder).examinations())


def only(folder: Path) -> Found:
    (item,) = found(folder)
    assert isinstance(item, Found)
    return item


def test_iu_xrays_form(tmp_path: Path) -> None:
    rows = {"train": [r2gen_row(1)], "val": [r2gen_row(2)], "test": [r2gen_row(3)]}
    source = write_r2gen(tmp_path, rows)
    items = found(source)
    assert [item.study.split for item in items if isinstance(item, Found)] == ["train", "val", "test"]
    study = items[0].study  # pyright: ignore[reportAttributeAccessIssue]
    assert study.report == study.sections["findings"] == "the heart is normal . number 1 ."
    assert [Path(picture.path).name for picture in study.pictures] == ["0.png", "1.png"]
    assert {picture.view for picture in study.pictures} == {"unknown"}
    assert len(open_source("r2gen-json", source)) == 3
    assert found(source / "annotation.json") == items


def test_mimic_cxrs_form(tmp_path: Path) -> None:
    row = {"id": "d1", "study_id": 50000001, "subject_id": 10000001, "report": "clear", "split": "val"}
    source = write_r2gen(tmp_path, {"val": [row | {"image_path": ["p10/p10000001/s50000001/d1.png"]}]})
    study = only(source).study
    assert (study.id, study.patient, study.split) == ("d1", "10000001", "val")
    assert study.pictures[0].path.endswith("images/p10/p10000001/s50000001/d1.png")


def test_a_table_beside_it_gives_views_tags_sections_and_labels(tmp_path: Path) -> None:
    source = write_r2gen(tmp_path, {"train": [r2gen_row(1)]})
    (tmp_path / "studies.csv").write_text(
        "id,view_0,view_1,mesh,indication,impression,Cardiomegaly,Edema,Fracture,No Finding\n"
        'CXR1_IM-0001,Lateral,Frontal,"Opacity/lung/base/left;Cardiomegaly/mild",Pain.,Big heart.,1,0,-1.0,\n'
    )
    study = only(source).study
    assert [picture.view for picture in study.pictures] == ["lateral", "frontal"]
    assert [picture.position for picture in study.pictures] == ["Lateral", "Frontal"]
    assert study.tags == ("Opacity/lung/base/left", "Cardiomegaly/mild")
    assert study.sections["indication"] == "Pain."
    assert study.sections["impression"] == "Big heart."
    assert study.labels == {"Cardiomegaly": 1, "Edema": 0, "Fracture": -1}


def test_a_label_that_is_none(tmp_path: Path) -> None:
    source = write_r2gen(tmp_path, {"train": [r2gen_row(1)]})
    (tmp_path / "studies.csv").write_text("id,Edema\nCXR1_IM-0001,2\n")
    (item,) = found(source)
    assert isinstance(item, Damaged)
    assert "'Edema' is '2'" in item.what


@pytest.mark.parametrize("text", ["", "{", "[]", '{"train": 3}', '{"sideways": []}', "[" * 100_000])
def test_a_damaged_annotation_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "annotation.json").write_text(text)
    with pytest.raises(BadInput, match=r"annotation\.json"):
        found(tmp_path)


def test_no_annotation_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"annotation\.json and images/"):
        found(tmp_path)


@pytest.mark.parametrize(
    "row", [3, None, {}, {"id": "a", "report": 3}, {"id": "a", "image_path": [3]}, {"id": "a", "image_path": {}}]
)
def test_rows_that_are_not_what_they_should_be(tmp_path: Path, row: object) -> None:
    (tmp_path / "annotation.json").write_text(json.dumps({"train": [row]}))
    (item,) = found(tmp_path)
    assert isinstance(item, Damaged)
    assert "annotation.json, train 0" in item.where


@pytest.mark.parametrize(
    "path", ["../x.png", "a/../../x.png", "/etc/passwd", "..\\x.png", "C:\\x.png", "\\\\host\\x.png", "", "a\0b"]
)
def test_a_path_that_climbs_out(tmp_path: Path, path: str) -> None:
    (tmp_path / "annotation.json").write_text(json.dumps({"train": [r2gen_row(1, image_path=[path])]}))
    (item,) = found(tmp_path)
    assert isinstance(item, Damaged)
    assert "leads out of" in item.what
    assert item.remedy


def test_a_link_that_climbs_out_and_one_that_does_not(tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(b"")
    images = tmp_path / "images"
    (images / "a").mkdir(parents=True)
    (images / "a/real.png").write_bytes(b"")
    (images / "out").symlink_to(tmp_path)
    (images / "in.png").symlink_to("a/real.png")
    assert file_inside(images, "in.png") == images / "in.png"
    for path in ("out/secret.png", "out/images/../secret.png"):
        with pytest.raises(BadInput, match="leads out"):
            file_inside(images, path)


def test_the_real_one(tmp_path: Path, shared) -> None:
    annotation = json.loads(shared("data/iu-xray/annotation.json").read_text())
    (tmp_path / "images").symlink_to(shared("data/iu-xray/images"))
    some = {split: rows[:20] for split, rows in annotation.items()}
    (tmp_path / "annotation.json").write_text(json.dumps(some))
    (tmp_path / "studies.csv").symlink_to(shared("data/iu-xray/studies.csv"))
    report = import_studies(open_source("r2gen-json", tmp_path), tmp_path / "store")
    assert report.splits == {"train": 20, "val": 20, "test": 0, "none": 0}
    study = Store.open(tmp_path / "store").study(some["train"][0]["id"])
    assert [picture.view for picture in study.pictures] == ["frontal", "lateral"]
    assert all(min(picture.width, picture.height) == 320 for picture in study.pictures)

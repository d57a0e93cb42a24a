"""Karpathy's dataset_coco.json: five captions an image, in colour."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from negatoscope.errors import BadInput
from negatoscope.studies.audit import audit
from negatoscope.studies.coco import references
from negatoscope.studies.importing import import_studies
from negatoscope.studies.sources import Damaged, Found, open_source
from negatoscope.studies.store import Store
from negatoscope.studies.study import Study

_CAPTIONS = ["A dog on a bench.", "A  brown dog ", "", "Dog, bench, park.", "One dog."]


def row(number: int, split: str, **changes: Any) -> dict[str, Any]:
    sentences = [{"raw": caption, "tokens": caption.lower().split()} for caption in _CAPTIONS]
    file = {"filepath": "val2014", "filename": f"COCO_val2014_{number:012d}.jpg"}
    return {**file, "cocoid": number, "imgid": number, "split": split, "sentences": sentences} | changes


def written(folder: Path, *rows: object) -> Path:
    (folder / "val2014").mkdir(parents=True)
    (folder / "dataset_coco.json").write_text(json.dumps({"dataset": "coco", "images": rows}))
    for number in range(9):
        colours = np.random.default_rng(number).integers(0, 255, (30, 40, 3), dtype=np.uint8)
        Image.fromarray(colours).save(folder / f"val2014/COCO_val2014_{number:012d}.jpg")
    return folder


def test_captions_and_splits(tmp_path: Path) -> None:
    source = written(tmp_path, row(1, "train"), row(2, "restval"), row(3, "val"), row(4, "test"))
    items = list(open_source("coco", source).examinations())
    studies = [item.study for item in items if isinstance(item, Found)]
    assert [study.split for study in studies] == ["train", "train", "val", "test"]
    assert studies[0].report == "A dog on a bench."
    assert references(studies[0]) == ["A dog on a bench.", "A brown dog", "Dog, bench, park.", "One dog."]
    assert references(Study("x", report="one")) == ["one"]
    aside = list(open_source("coco", source, {"restval": "none"}).examinations())[1]
    assert isinstance(aside, Found)
    assert aside.study.split == "none"


def test_an_audit_knows_karpathys_file(tmp_path: Path) -> None:
    folder = written(tmp_path, row(1, "train"), row(2, "val"), row(3, "test"))
    (folder / "val2014" / "COCO_val2014_000000000003.jpg").write_bytes(b"no picture")
    for path in (folder, folder / "dataset_coco.json"):
        found = audit(path)
        assert (found.studies, found.splits) == (3, {"train": 1, "val": 1, "test": 1})
        assert found["report-in-two-splits"].count == 2
        assert found["unreadable"].count == 1


def test_colours_stay_when_pictures_are_made_smaller(tmp_path: Path) -> None:
    source = written(tmp_path / "source", row(1, "train"))
    import_studies(open_source("coco", source), tmp_path / "store", short_side=15)
    store = Store.open(tmp_path / "store")
    with Image.open(store.picture_path(store.at(0).pictures[0])) as image:
        assert image.mode == "RGB"
        assert image.size == (20, 15)
        channels = np.asarray(image, dtype=float)
    assert np.abs(channels[..., 0] - channels[..., 1]).mean() > 1
    assert references(store.at(0))[1] == "A brown dog"


@pytest.mark.parametrize(
    "bad",
    [
        3,
        {},
        row(1, "sideways"),
        row(1, "val", sentences=[3]),
        row(1, "val", filename="../../x"),
        row(1, "val", filename=3),
    ],
)
def test_damaged_rows(tmp_path: Path, bad: object) -> None:
    first, second = open_source("coco", written(tmp_path, bad, row(2, "val"))).examinations()
    assert isinstance(first, Damaged)
    assert "image 0" in first.where
    assert isinstance(second, Found)


@pytest.mark.parametrize("text", ["", "[]", '{"images": 3}'])
def test_a_damaged_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "dataset_coco.json").write_text(text)
    with pytest.raises(BadInput, match="Karpathy"):
        list(open_source("coco", tmp_path).examinations())

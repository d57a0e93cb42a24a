"""The store gives back what was put in, lazily, and refuses what is half there."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from negatoscope.errors import BadInput, WrongUse
from negatoscope.studies.store import About, Store, part_path, write_about, write_part
from negatoscope.studies.study import OBSERVATIONS, Picture, Study

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
_PICTURES = st.builds(
    Picture,
    path=_TEXT,
    view=st.sampled_from(["frontal", "lateral", "other", "unknown"]),
    position=_TEXT,
    width=st.integers(1, 10_000),
    height=st.integers(1, 10_000),
    bits=st.integers(1, 16),
    sha256=st.text("0123456789abcdef", min_size=64, max_size=64),
)
_STUDIES = st.builds(
    Study,
    id=_TEXT,
    pictures=st.lists(_PICTURES, max_size=3).map(tuple),
    report=_TEXT,
    split=st.sampled_from(["train", "val", "test", "none"]),
    patient=_TEXT,
    sections=st.dictionaries(_TEXT, _TEXT, max_size=3),
    labels=st.dictionaries(st.sampled_from(OBSERVATIONS), st.sampled_from([1, 0, -1])),
    tags=st.lists(_TEXT, max_size=3).map(tuple),
    masks=st.dictionaries(_TEXT, _TEXT, max_size=2),
)


def stored(folder: Path, studies: list[Study], part: int = 3) -> Store:
    parts = [studies[start : start + part] for start in range(0, len(studies), part)]
    for number, some in enumerate(parts):
        write_part(folder, number, some)
    write_about(folder, About(source="test", complete=True, parts=len(parts), counts={"studies": len(studies)}))
    return Store.open(folder)


def eight(folder: Path) -> Store:
    splits = ("train", "val", "test", "none")
    return stored(folder, [Study(f"s{n}", report=f"report {n}", split=splits[n % 4]) for n in range(8)])


@settings(max_examples=25, deadline=None)
@given(st.lists(_STUDIES, max_size=8))
def test_what_goes_in_comes_out(tmp_path_factory: pytest.TempPathFactory, studies: list[Study]) -> None:
    store = stored(tmp_path_factory.mktemp("store"), studies)
    assert list(store) == studies
    assert [store.at(number) for number in range(len(store))] == studies


def test_studies_of_a_split_in_order(tmp_path: Path) -> None:
    store = eight(tmp_path)
    assert [study.id for study in store.studies("val")] == ["s1", "s5"]
    assert store.table(["id"], "test")["id"].to_pylist() == ["s2", "s6"]
    assert store.table(["id"], "test").column_names == ["id"]
    assert store.ids() == [f"s{n}" for n in range(8)]


def test_a_study_by_its_id_and_by_its_place(tmp_path: Path) -> None:
    store = eight(tmp_path)
    assert store.study("s7").report == "report 7"
    assert store.at(7) == store.study("s7")
    with pytest.raises(WrongUse, match="no study 'x'"):
        store.study("x")
    with pytest.raises(WrongUse, match="number 8"):
        store.at(8)


def test_a_store_travels_to_a_worker_process(tmp_path: Path) -> None:
    store = eight(tmp_path)
    store.at(3)
    assert pickle.loads(pickle.dumps(store)).at(3) == store.at(3)  # noqa: S301


def test_misspelt_columns_and_splits(tmp_path: Path) -> None:
    store = eight(tmp_path)
    with pytest.raises(WrongUse, match="did you mean 'report'"):
        store.table(["reports"])
    with pytest.raises(WrongUse, match="did you mean 'train'"):
        next(store.studies("trian"))  # pyright: ignore[reportArgumentType]


def test_no_store_and_half_a_store(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no store of studies here"):
        Store.open(tmp_path)
    write_about(tmp_path, About(source="test"))
    with pytest.raises(BadInput, match="run the same import again to resume"):
        Store.open(tmp_path)


def test_a_missing_part_and_a_damaged_one(tmp_path: Path) -> None:
    store = eight(tmp_path)
    part_path(tmp_path, 1).write_bytes(b"PAR1 not really")
    with pytest.raises(BadInput, match=r"part-00001\.parquet: a part of the store cannot be read"):
        list(store)
    part_path(tmp_path, 1).unlink()
    with pytest.raises(BadInput, match="a part of the store is missing"):
        Store.open(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"source": 3}', '{"source": "x", "colour": "blue"}', "\xff"])
def test_a_damaged_store_json(tmp_path: Path, text: str) -> None:
    (tmp_path / "store.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(BadInput, match=r"store\.json"):
        Store.open(tmp_path)


def test_a_store_of_another_format(tmp_path: Path) -> None:
    (tmp_path / "store.json").write_text(json.dumps({"format": 9, "source": "later"}))
    with pytest.raises(BadInput, match="format 9; this version reads 1"):
        Store.open(tmp_path)


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "images/../../x.png"])
def test_a_picture_cannot_climb_out_of_the_store(tmp_path: Path, path: str) -> None:
    store = eight(tmp_path)
    with pytest.raises(BadInput, match="outside the store"):
        store.picture_path(Picture(path))
    assert store.picture_path(Picture("images/00/s0-0.png")) == tmp_path / "images/00/s0-0.png"

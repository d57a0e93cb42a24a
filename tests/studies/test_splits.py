"""Nobody stands on two sides, and nobody changes sides when others come."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from negatoscope.errors import BadInput
from negatoscope.studies.splits import Splitting, r2gen_split_of_iu_xray, read_split_file, seeded_split, splitter
from negatoscope.studies.study import Study


def test_the_shares_come_out() -> None:
    counts = Counter(seeded_split(f"patient {n}", 1, (0.7, 0.1, 0.2)) for n in range(20_000))
    assert counts["train"] / 20_000 == pytest.approx(0.7, abs=0.01)
    assert counts["val"] / 20_000 == pytest.approx(0.1, abs=0.01)


@given(st.text(), st.integers(0, 10))
def test_a_patient_is_on_one_side_whatever_the_study(patient: str, seed: int) -> None:
    rule = splitter(Splitting(by="seeded", seed=seed))
    if patient:
        assert len({rule(Study(f"study {n}", patient=patient)) for n in range(5)}) == 1


def test_the_seed_matters_and_studies_without_a_patient_go_by_their_id() -> None:
    first, second = (splitter(Splitting(by="seeded", seed=seed)) for seed in (1, 2))
    studies = [Study(f"s{n}") for n in range(200)]
    assert [first(study) for study in studies] != [second(study) for study in studies]
    assert {first(study) for study in studies} == {"train", "val", "test"}


def test_r2gens_ids_of_iu_xray_ship_for_train_and_val() -> None:
    assert Counter(r2gen_split_of_iu_xray().values()) == {"train": 2069, "val": 296}


def test_r2gens_split_fits_open_is_ids_and_its_own(shared) -> None:
    annotation = json.loads(shared("data/iu-xray/annotation.json").read_text())
    rule = splitter(Splitting(by="r2gen"))
    for split, rows in annotation.items():
        assert {rule(Study(row["id"])) for row in rows} == {split}
        assert {rule(Study(row["id"].split("_")[0])) for row in rows} == {split}
    assert rule(Study("CXR999999")) == "none"
    assert rule(Study("XCXR1")) == "none"


def test_an_annotation_file_gives_all_three(tmp_path: Path) -> None:
    file = tmp_path / "annotation.json"
    file.write_text(json.dumps({"train": [{"id": "CXR1_IM-1"}], "val": [{"id": "a"}], "test": [{"id": "CXR2_IM-2-1"}]}))
    rule = splitter(Splitting(by="file", file=file))
    assert [rule(Study(id)) for id in ("CXR1", "a", "CXR2", "CXR2_IM-2-1", "CXR3")] == [
        "train",
        "val",
        "test",
        "test",
        "none",
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.csv", "id,split\na,train\nb,validate\n"),
        ("s.jsonl", '{"id": "a", "split": "train"}\n\n{"id": "b", "split": "VAL"}\n'),
        ("s.json", '{"train": [{"id": "a"}], "valid": [{"id": "b"}]}'),
    ],
)
def test_forms_of_split_files(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert read_split_file(tmp_path / name) == {"a": "train", "b": "val"}


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("s.csv", "id,fold\na,1\n", "no split can be read"),
        ("s.csv", "id,split\na,sideways\n", "'a' has the split 'sideways'"),
        ("s.csv", "id,split\na,train\na,val\n", "'a' stands in two splits"),
        ("s.jsonl", '{"id": 1', "no split can be read"),
        ("s.json", "[1, 2]", "no split can be read"),
        ("s.json", '{"train": [1]}', "no split can be read"),
        ("s.json", "\xff\xfe", "no split can be read"),
    ],
)
def test_damaged_split_files(tmp_path: Path, name: str, text: str, says: str) -> None:
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    with pytest.raises(BadInput, match=says):
        read_split_file(tmp_path / name)


@pytest.mark.parametrize(
    "wrong", [{"by": "file"}, {"by": "seeded", "shares": (0.5, 0.1, 0.1)}, {"by": "r2gen", "file": "x"}]
)
def test_settings_that_do_not_fit(wrong: dict) -> None:
    with pytest.raises(ValidationError):
        Splitting.model_validate(wrong)

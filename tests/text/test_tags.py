"""Tags of studies: heads of MeSH terms, or observations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from negatoscope.errors import BadInput
from negatoscope.studies.study import OBSERVATIONS, Study
from negatoscope.text.tags import Tags, TagSettings, heads


def test_a_head_is_what_stands_before_the_first_slash() -> None:
    assert heads(["Opacity/lung/base", "Opacity/lung/apex", "No Indexing", "Hernia, Hiatal ", ""]) == [
        "opacity",
        "hernia, hiatal",
    ]


def test_frequent_heads_are_learned_in_order() -> None:
    terms = [("Nodule/lung",), ("Nodule", "Spine/degenerative"), ("Scoliosis",), ("Scoliosis/mild",), ("normal",)]
    studies = [Study(str(number), tags=one) for number, one in enumerate(terms)]
    assert Tags.learned(TagSettings(source="mesh", least=1), studies).names == (
        "nodule",
        "scoliosis",
        "normal",
        "spine",
    )
    tags = Tags.learned(TagSettings(source="mesh", least=1, most=2), studies)
    assert tags.names == ("nodule", "scoliosis")
    assert tags.target(Study("s", tags=("Scoliosis/thoracic", "Spine"))) == [0.0, 1.0]


def test_the_indexers_terms_are_those_of_the_xml() -> None:
    indexed = Study("s", tags=("Nodule",), sections={"automatic tags": "pleural effusion; Effusion/mild;"})
    tags = Tags.learned(TagSettings(source="mti", least=1), [indexed])
    assert tags.names == ("effusion", "pleural effusion")
    assert tags.target(Study("t", sections={"automatic tags": "effusion"})) == [1.0, 0.0]
    assert tags.target(Study("t", tags=("effusion",))) == [0.0, 0.0]


def test_only_positive_observations_are_tags() -> None:
    tags = Tags.learned(TagSettings(), [])
    assert tags.names == OBSERVATIONS
    target = tags.target(Study("s", labels={"Edema": 1, "Pneumonia": -1, "Fracture": 0}))
    assert [name for name, one in zip(OBSERVATIONS, target, strict=True) if one] == ["Edema"]


def test_no_tags_at_all_are_an_error() -> None:
    with pytest.raises(BadInput, match=r"data\.tags\.source: labels"):
        Tags.learned(TagSettings(source="mesh"), [Study("s", tags=("No Indexing",)), Study("t")])


def test_saved_tags_name_their_source(tmp_path: Path) -> None:
    Tags(("a", "b"), "mesh").save(tmp_path / "tags.json")
    assert json.loads((tmp_path / "tags.json").read_text()) == {"source": "mesh", "names": ["a", "b"]}

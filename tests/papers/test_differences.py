from __future__ import annotations

from pathlib import Path

from negatoscope.papers.differences import footnotes
from negatoscope.papers.grounds import Grounds
from negatoscope.papers.paper import paper_named
from negatoscope.papers.rows import Conditions

FEATURES = {"backbone": "resnet50-v1", "weights": "ab" * 32, "image_size": 224, "precision": "bf16"}


def _notes(paper: str, table: str) -> str:
    grounds = Grounds("iu-xray", Path("i"), Path("s"), Path("f"), {"studies": {"train": 2069}, "features": FEATURES})
    made = paper_named(paper)
    return "\n".join(footnotes(made, made.tables[table], {}, Conditions(grounds), {}))


def test_a_table_of_a_paper_says_theirs_and_ours() -> None:
    said = _notes("cvse", "1")
    assert "encoder: theirs DenseNet-121 (CVSE), VGG-19 (Hier-CNN-RNN); ours resnet50-v1 (weights abababab)" in said
    assert "resolution: theirs 512; ours 224" in said
    assert "split: theirs test split; ours 2,069 studies to learn from" in said
    assert "IU-ABN in place of MIMIC-ABN" in said


def test_a_table_of_our_own_has_nobody_to_differ_from() -> None:
    said = _notes("grid", "1")
    assert "theirs" not in said
    assert "resolution: 224" in said

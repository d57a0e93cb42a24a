from __future__ import annotations

from pathlib import Path

from negatoscope.papers.differences import footnotes
from negatoscope.papers.grounds import Grounds
from negatoscope.papers.paper import paper_named
from negatoscope.papers.rows import Conditions, RowRun

FEATURES = {"backbone": "resnet50-v1", "weights": "ab" * 32, "image_size": 224, "precision": "bf16"}


GENERATOR = RowRun("hcr", 1, {"data": {"vocabulary": {"cutoff": 3}}, "decode": {"beam": 1}, "train": {"epochs": 3}})
FOUND = RowRun("cvse", 1, {"top": 3, "train": {"epochs": 40, "select": "held-out"}}, "cvse")


def _notes(paper: str, table: str, *runs: RowRun) -> str:
    grounds = Grounds("iu-xray", Path("i"), Path("s"), Path("f"), {"studies": {"train": 2069}, "features": FEATURES})
    made = paper_named(paper)
    return "\n".join(footnotes(made, made.tables[table], {run.name: [run] for run in runs}, Conditions(grounds), {}))


def test_a_table_of_a_paper_says_theirs_and_ours() -> None:
    said = _notes("cvse", "1")
    assert "encoder: theirs DenseNet-121 (CVSE), VGG-19 (Hier-CNN-RNN); ours resnet50-v1 (weights abababab)" in said
    assert "resolution: theirs 512; ours 224" in said
    assert "split: theirs test split; ours 2,069 training studies (of these, those with both views" in said
    assert "IU-ABN in place of MIMIC-ABN" in said


def test_a_table_of_our_own_has_nobody_to_differ_from() -> None:
    said = _notes("grid", "1")
    assert "theirs" not in said
    assert "resolution: 224" in said


def test_who_chose_epochs_on_what() -> None:
    both = _notes("cvse", "1", GENERATOR, FOUND)
    assert "on which each run's best epoch was chosen as well; CVSE's epochs were chosen on training studies" in both
    assert "ours top 3 groups or words seen 3 times, beam 1" in both
    alone = _notes("cvse", "1", FOUND)
    assert "each run's best epoch" not in alone
    assert "CVSE's epochs were chosen on training studies that it did not learn from" in alone
    generated = _notes("contrastive-attention", "1", GENERATOR)
    assert "2,069 training studies, the validation split to score, on which each run's best epoch" in generated
    assert "CVSE" not in generated

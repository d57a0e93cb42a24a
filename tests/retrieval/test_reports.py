"""Whole reports for a split: nearest, consensus, and the hybrid that never calls a region with a finding normal."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from negatoscope.cli import app
from negatoscope.errors import BadInput, WrongUse
from negatoscope.metrics.forms import read_reports
from negatoscope.retrieval.hybrid import NormalSentences
from negatoscope.retrieval.regions import REGIONS, regions_of
from negatoscope.retrieval.reports import WAYS, retrieve_reports
from negatoscope.retrieval.retriever import Retriever
from negatoscope.retrieval.training import TrainedCVSE
from negatoscope.studies.store import Store
from negatoscope.studies.study import Study
from negatoscope.text.abnormal import AbnormalSentences
from negatoscope.vision.features import FeatureCache
from tests.retrieval.small import SAID, store_at

Drawn = tuple[Store, FeatureCache]
REPORTS = [
    "The heart is normal in size. The lungs are clear. There is no pleural effusion. The bony thorax is intact.",
    "The heart is normal in size. No focal airspace disease. There is no pleural effusion. Mild scoliosis.",
    "The heart is enlarged. The lungs are clear. No pleural effusion or pneumothorax. The bony thorax is intact.",
]


def _rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("sentence", "regions"),
    [
        ("The cardiomediastinal silhouette is normal.", {"heart", "mediastinum"}),
        ("No pleural effusion or pneumothorax.", {"pleura"}),
        ("Old right rib fracture.", {"bones"}),
        ("T11 compression.", {"bones"}),
        ("Elevated left hemidiaphragm.", {"diaphragm"}),
        ("Patchy opacity in the left lower lobe.", {"lungs"}),
        ("Right-sided PICC tip in the SVC.", {"devices"}),
        ("Unchanged.", set()),
        ("Masslike thing of the ribbon", set()),
    ],
)
def test_regions_by_words(sentence: str, regions: set[str]) -> None:
    assert regions_of(sentence) == regions


def test_normal_sentences_fill_what_findings_leave() -> None:
    normal = NormalSentences.of(REPORTS, AbnormalSentences.default())
    assert normal.usual == {"heart", "lungs", "pleura", "bones"}
    lines = normal.complete(["Small left pleural effusion."])
    assert [line.sentence for line in lines] == [
        "The heart is normal in size.",
        "The lungs are clear.",
        "Small left pleural effusion.",
        "The bony thorax is intact.",
    ]
    assert [line.abnormal for line in lines] == [False, False, True, False]
    assert [line.sentence for line in normal.complete([])][2] == "There is no pleural effusion."


@pytest.mark.parametrize("finding", [said for both in SAID.values() for said in both] + ["Something unheard of."])
def test_no_region_with_a_finding_is_called_normal(finding: str) -> None:
    normal = NormalSentences.of(REPORTS, AbnormalSentences.default())
    lines = normal.complete([finding])
    touched = regions_of(finding) or {"lungs"}
    assert [line.sentence for line in lines if line.abnormal] == [finding]
    assert all(not regions_of(line.sentence) & touched for line in lines if not line.abnormal)
    written = set().union(*(regions_of(line.sentence) for line in lines)) | touched
    assert written >= normal.usual


def test_reports_without_a_normal_sentence() -> None:
    with pytest.raises(BadInput, match="no normal sentence"):
        NormalSentences.of(["Cardiomegaly.", ""], AbnormalSentences.default())
    assert len(REGIONS) == 7


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("by", ["features", "cvse"])
def test_each_way_writes_a_report_a_study(
    way: str, by: str, retriever: Retriever, drawn: Drawn, tmp_path: Path
) -> None:
    out = tmp_path / "r.jsonl"
    done = retrieve_reports(*drawn, out, split="val", way=way, by=by, k=7, retriever=retriever)
    assert done.reports == len(read_reports(out)) == 30
    training = {study.id: study.report for study in drawn[0].studies("train")}
    rows = _rows(out)
    if way == "hybrid":
        assert all(row["report"] == " ".join(line["sentence"] for line in row["sentences"]) for row in rows)
        assert {len(row["findings"]) for row in rows} >= {0, 1, 2}
    else:
        assert all(row["report"] == training[row["from"]] for row in rows)
        assert all(len(row["nearest"]) == (1 if way == "nearest" else 5) for row in rows)


def test_reports_of_the_training_split_are_never_their_own(drawn: Drawn, tmp_path: Path) -> None:
    retrieve_reports(*drawn, tmp_path / "r.jsonl", split="train", way="nearest")
    assert all(row["from"] != row["id"] for row in _rows(tmp_path / "r.jsonl"))


def test_by_cvse_the_nearest_has_the_findings(retriever: Retriever, drawn: Drawn, tmp_path: Path) -> None:
    shares = {}
    known = {study.id: study for study in drawn[0].studies()}
    for by in ("features", "cvse"):
        retrieve_reports(*drawn, tmp_path / "r.jsonl", split="val", way="nearest", by=by, retriever=retriever)
        same = []
        for row in _rows(tmp_path / "r.jsonl"):
            has = {f for f, both in SAID.items() if any(said in known[row["id"]].report for said in both)}
            told = {f for f, both in SAID.items() if any(said in row["report"] for said in both)}
            same.append(len(has & told) / max(len(has | told), 1))
        shares[by] = float(np.mean(same))
    assert shares["cvse"] > 0.5


def test_wrong_use_and_bad_input(retriever: Retriever, drawn: Drawn, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    with pytest.raises(WrongUse, match="did you mean 'nearest'"):
        retrieve_reports(*drawn, out, way="nearst")
    with pytest.raises(WrongUse, match="needs a trained CVSE"):
        retrieve_reports(*drawn, out, way="hybrid")
    with pytest.raises(BadInput, match="no study with pictures in the split test"):
        retrieve_reports(*drawn, out, split="test")
    alone = store_at(tmp_path / "alone", list(drawn[0].studies("val")))
    with pytest.raises(BadInput, match="no training study with pictures"):
        retrieve_reports(alone, drawn[1], out, split="val")
    mute = store_at(tmp_path / "mute", [Study(s.id, s.pictures, "", s.split) for s in drawn[0].studies()])
    with pytest.raises(BadInput, match="no training study has a report"):
        retrieve_reports(mute, drawn[1], out, split="val")
    assert not out.exists()


def test_command_writes_reports(run: TrainedCVSE, drawn: Drawn, tmp_path: Path) -> None:
    asked = ["retrieve", "reports", str(drawn[0].path), "--features", str(drawn[1].path), "--split", "val"]
    done = CliRunner().invoke(app, [*asked, "--out", str(tmp_path / "r.jsonl"), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["reports"] == 30
    hybrid = ["--way", "hybrid", "--cvse", str(run.folder), "--top", "2", "--out", str(tmp_path / "h.jsonl")]
    done = CliRunner().invoke(app, [*asked, *hybrid])
    assert done.exit_code == 0, done.output
    assert {len(row["findings"]) for row in _rows(tmp_path / "h.jsonl")} == {2}

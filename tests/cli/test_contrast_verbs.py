"""`negatoscope clusters` and `negatoscope neighbours` as a person runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from negatoscope.cli import app
from negatoscope.contrast.neighbours import Neighbours
from negatoscope.studies.store import About, Store, write_about, write_part
from negatoscope.studies.study import Study

run = CliRunner()
SAID = [
    "The lungs are clear.",
    "The lungs are clear",  # the same, for a neighbour
    "Both lungs are clear.",
    "A small left effusion <b>is</b> seen.",
    "A large left effusion is seen.",
    "A small right effusion is seen.",
    "",
]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    studies = [Study(f"s{at}", report=said, split="train") for at, said in enumerate(SAID)]
    studies.append(Study("held-out", report="A large right effusion.", split="val"))
    write_part(tmp_path, 0, studies)
    counts = {"studies": 8, "pictures": 0, "train": 7, "val": 1, "test": 0, "none": 0}
    write_about(tmp_path, About(complete=True, source="drawn", parts=1, counts=counts))
    assert len(Store.open(tmp_path)) == 8
    return tmp_path


def test_clusters(store: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = run.invoke(app, ["clusters", str(store), "-k", "2", "--page", str(page)])
    assert done.exit_code == 0, done.output
    assert "50.0%" in done.output
    assert "silhouette 0." in done.output
    html = page.read_text()
    assert "held-out" not in html
    assert "A large right effusion." not in html, "training reports alone"
    assert "&lt;b&gt;is&lt;/b&gt;" in html
    assert "<span class=mark>effusion</span>" in html
    assert "<span class=mark>lungs</span>" in html
    assert "Silhouette 0." in html
    said = json.loads(run.invoke(app, ["clusters", str(store), "-k", "2", "--json"]).stdout)
    assert said["sizes"] == [3, 3]
    assert (said["seed"], said["embedder"]) == (0, "tfidf-svd-128")
    assert Path(said["table"]).parent == store
    before = Path(said["table"]).stat().st_mtime_ns
    run.invoke(app, ["clusters", str(store), "-k", "2"])
    assert Path(said["table"]).stat().st_mtime_ns == before, "kept"
    run.invoke(app, ["clusters", str(store), "-k", "2", "--anew"])
    assert Path(said["table"]).stat().st_mtime_ns > before


def test_neighbours(store: Path) -> None:
    done = run.invoke(app, ["neighbours", str(store), "-k", "2", "--show", "1"])
    assert done.exit_code == 0, done.output
    assert "s0\n  The lungs are clear.\ns2, cosine 0." in done.output
    assert "6 studies, 5 different reports, searched by exact" in done.output
    said = json.loads(run.invoke(app, ["neighbours", str(store), "-k", "2", "--json"]).stdout)
    found = Neighbours.load(said["table"])
    assert found.of("s0")[0] == "s2"
    assert set(found.of("s3")) == {"s4", "s5"}
    labels = run.invoke(app, ["neighbours", str(store), "--embedder", "labels", "--json"])
    assert labels.exit_code == 0, labels.output
    assert json.loads(labels.stdout)["embedder"] == "labels"


def test_trouble(store: Path, tmp_path: Path) -> None:
    for words, said in (
        (["neighbours", str(store), "--search", "indx"], "no search 'indx'; did you mean 'index'?"),
        (["clusters", str(store), "--keep", "some"], "keep: "),
        (["clusters", str(store), "-k", "9"], "9 clusters of"),
        (["clusters", str(tmp_path / "nowhere")], "no store of studies"),
    ):
        done = run.invoke(app, words)
        assert done.exit_code in (1, 2)
        assert said in done.output

"""The first five minutes, made short: a few studies, one epoch."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from negatoscope.cli import app
from negatoscope.studies.store import Store

run = CliRunner()


def test_the_demo_ends_with_a_report_its_reference_scores_and_a_page(tmp_path: Path) -> None:
    words = ["demo", "--into", str(tmp_path / "demo"), "--studies", "50", "--epochs", "1", "--json"]
    first = run.invoke(app, words)
    assert first.exit_code == 0, first.output
    shown = json.loads(first.stdout)
    store = Store.open(tmp_path / "demo" / "phantom")
    assert shown["studies"] == len(store) == 50
    assert shown["reference"] == store.study(shown["example"]).report
    assert store.study(shown["example"]).split == "test"
    assert shown["scores"].keys() == {"the reporter", "one report for everybody"}
    assert shown["scores"]["one report for everybody"]["BLEU-1"] > 0
    rows = [json.loads(line) for line in (tmp_path / "demo" / "reports.jsonl").read_text().splitlines()]
    assert [row["report"] for row in rows if row["id"] == shown["example"]] == [shown["written"]]
    page = Path(shown["page"]).read_text()
    assert shown["example"] in page
    assert "data:image/" in page

    weights = (tmp_path / "demo" / "run" / "best.safetensors").read_bytes()
    assert json.loads(run.invoke(app, words).stdout) == shown
    assert (tmp_path / "demo" / "run" / "best.safetensors").read_bytes() == weights
    told = run.invoke(app, words[:-1], env={"COLUMNS": "200"})
    assert "written" in told.output
    assert "reference" in told.output
    assert "The page with pictures:" in told.output

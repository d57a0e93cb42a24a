"""`negatoscope evaluate` as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from negatoscope.cli import app
from negatoscope.metrics.paper_tables import TABLES
from negatoscope.studies.study import OBSERVATIONS

run = CliRunner()
LANGUAGE = ["--metrics", "bleu,rouge,cider,diversity,lengths"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    predictions = {"a": "The heart is normal.", "b": "No effusion.", "c": ""}
    references = {"a": "Heart size is normal. Lungs are clear.", "b": "No effusion.", "c": "Clear."}
    for name, reports in (("p.jsonl", predictions), ("r.jsonl", references)):
        Path(name).write_text("".join(json.dumps({"id": i, "report": text}) + "\n" for i, text in reports.items()))
    return tmp_path


def test_the_table_says_form_number_and_signature(folder: Path) -> None:
    done = run.invoke(app, ["evaluate", "p.jsonl", "r.jsonl", *LANGUAGE])
    assert done.exit_code == 0, done.output
    assert "p.jsonl, 3 reports, read as jsonl" in done.output
    assert "3 studies scored, 1 empty predictions" in done.output
    assert "BLEU-4" in done.output
    assert "signature: protocol:full|tokens:ptb|" in done.output


def test_json_is_one_object_with_every_figure(folder: Path) -> None:
    done = run.invoke(app, ["evaluate", "p.jsonl", "r.jsonl", *LANGUAGE, "--json", "--out", "out.json"])
    said = json.loads(done.stdout)
    assert {"BLEU-1", "BLEU-4", "ROUGE-L", "CIDEr", "CIDEr-D", "diversity", "words"} <= said["figures"].keys()
    assert json.loads(Path("out.json").read_text()) == said


@pytest.mark.parametrize("table", TABLES)
def test_one_command_prints_a_papers_columns_in_its_order(folder: Path, table: str) -> None:
    """And below them the 14 observations, whole at 80 columns."""
    pytest.importorskip("pycocoevalcap")
    done = run.invoke(app, ["evaluate", "p.jsonl", "r.jsonl", "--table", table], env={"COLUMNS": "80"})
    assert done.exit_code == 0, done.output
    above, below = done.output.split("signature:")
    lines = [line.split("│")[1].strip() for line in above.splitlines() if line.startswith("│")]
    assert tuple(lines) == TABLES[table].figures
    assert [name for name in OBSERVATIONS if name in below] == list(OBSERVATIONS)
    assert "precision  recall     F1  accuracy  refs  preds" in below
    assert "…" not in done.output


def test_against_an_earlier_evaluation_or_refused(folder: Path) -> None:
    earlier = ["evaluate", "p.jsonl", "r.jsonl", *LANGUAGE, "--out", "earlier.json"]
    assert run.invoke(app, earlier).exit_code == 0
    done = run.invoke(app, ["evaluate", "p.jsonl", "r.jsonl", *LANGUAGE, "--against", "earlier.json"])
    assert done.exit_code == 0
    assert "+0.0000" in done.output
    other = ["--protocol", "r2gen", "--vocabulary", "iu-xray", "--against", "earlier.json"]
    done = run.invoke(app, ["evaluate", "p.jsonl", "r.jsonl", *LANGUAGE, *other])
    assert done.exit_code == 2
    assert "they differ in protocol (r2gen.iu-xray.60.760-" in done.output


@pytest.mark.parametrize(
    ("arguments", "exit_code", "line"),
    [
        (["none.jsonl", "r.jsonl"], 1, "none.jsonl: no such file"),
        (["p.jsonl", "r.jsonl", "--protocol", "r2gen"], 2, "r2gen needs a vocabulary"),
        (["p.jsonl", "r.jsonl", "--metrics", "blue"], 2, "no metric 'blue'; did you mean 'bleu'?"),
        (["p.jsonl", "r.jsonl", "--metrics", ","], 2, "metrics: no metric was named; for example bleu"),
        (
            ["p.jsonl", "r.jsonl", *LANGUAGE, "--out", "p.jsonl/x.json"],
            2,
            "p.jsonl: is a file, not a folder",
        ),
        (["p.jsonl", "r.jsonl", "--form", "cvs"], 2, "unknown form 'cvs'; did you mean 'csv'?"),
        (["one.jsonl", "r.jsonl"], 1, "2 studies ('b', 'c') of r.jsonl without a prediction; --missing empty"),
    ],
)
def test_trouble_is_one_line(folder: Path, arguments: list[str], exit_code: int, line: str) -> None:
    Path("one.jsonl").write_text('{"id": "a", "report": "x"}\n')
    done = run.invoke(app, ["evaluate", *arguments])
    assert done.exit_code == exit_code
    assert line in done.output
    assert "Traceback" not in done.output

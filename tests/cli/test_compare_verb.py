"""`negatoscope compare` as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from negatoscope.cli import app

run = CliRunner()
QUICK = ["--metrics", "bleu,rouge,clinical", "--draws", "50"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    normal, sick = "The lungs are clear.", "There is a small pleural effusion."
    files = {
        "a": [normal, sick, sick, normal],
        "b": [normal] * 4,
        "r": [normal, sick, normal, sick],
        "t": [normal, normal, "No effusion."],
    }
    for name, reports in files.items():
        lines = (json.dumps({"id": str(k), "report": text}) for k, text in enumerate(reports))
        Path(f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_the_tables_say_n_intervals_rows_without_image_and_signature(folder: Path) -> None:
    done = run.invoke(app, ["compare", "a.jsonl", "b.jsonl", "--references", "r.jsonl", "--train", "t.jsonl", *QUICK])
    assert done.exit_code == 0, done.output
    for line in (
        "all: 4 studies",
        "normal: 2 studies",
        "abnormal: 2 studies",
        "constant report",
        "signature: protocol:full",
    ):
        assert line in done.output
    assert "chosen on training alone" in done.output


def test_json_and_the_folder(folder: Path) -> None:
    done = run.invoke(app, ["compare", "a.jsonl", "b.jsonl", "-r", "r.jsonl", *QUICK, "--out", "page", "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["parts"][0]["rows"]["b"]["BLEU-4"].keys() == {"value", "low", "high", "p", "difference"}
    assert {path.name for path in Path("page").iterdir()} == {Path(path).name for path in said["written"]}
    assert any("no constant report" in note for note in said["notes"])


def test_one_papers_columns(folder: Path) -> None:
    done = run.invoke(app, ["compare", "a.jsonl", "b.jsonl", "-r", "r.jsonl", *QUICK, "--table", "cvse"])
    assert done.exit_code == 0, done.output
    assert "CE accuracy (cvse)" in done.output
    assert "BLEU-2" not in done.output


@pytest.mark.parametrize(
    ("arguments", "exit_code", "line"),
    [
        (["none.jsonl", "-r", "r.jsonl"], 1, "none.jsonl: no such file"),
        (["a.jsonl", "-r", "r.jsonl", "--against", "x"], 2, "no row 'x' to test against"),
        (["a.jsonl", "-r", "r.jsonl", "--features", "c"], 2, "--features without the store"),
        (
            ["a.jsonl", "-r", "r.jsonl", "--features", "c", "--images", "s", "--nearest", "b.jsonl"],
            2,
            "--features and --nearest both say",
        ),
        (["a.jsonl", "-r", "r.jsonl", "--form", "lnes"], 2, "unknown form 'lnes'; did you mean 'lines'?"),
        (["a.jsonl", "-r", "r.jsonl", "--table", "wlc"], 2, "no table 'wlc'; did you mean 'wcl'?"),
        (["a.jsonl", "-r", "t.jsonl"], 1, "1 study ('3') of a.jsonl without a reference"),
        (["earlier.json", "a.jsonl", "-r", "r.jsonl"], 2, "they differ in number of studies (4 and 3), references"),
    ],
)
def test_trouble_is_one_line(folder: Path, arguments: list[str], exit_code: int, line: str) -> None:
    earlier = ["evaluate", "a.jsonl", "t.jsonl", "--unasked", "leave-out", "--metrics", "bleu,rouge,clinical"]
    assert run.invoke(app, [*earlier, "--out", "earlier.json"]).exit_code == 0
    done = run.invoke(app, ["compare", *arguments, *QUICK])
    assert done.exit_code == exit_code, done.output
    assert line in done.output
    assert "Traceback" not in done.output

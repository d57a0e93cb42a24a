"""The command as a person meets it: help with an example for each verb, one line for each trouble, exit codes 0, 1
and 2."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from negatoscope import __version__
from negatoscope.cli import app

run = CliRunner()


def _verbs() -> list[list[str]]:
    found: list[list[str]] = []

    def walk(command: object, path: list[str]) -> None:
        inner = getattr(command, "commands", None)
        if inner:
            for name, below in inner.items():
                walk(below, [*path, name])
        else:
            found.append(path)

    walk(get_command(app), [])
    return found


@pytest.mark.parametrize("verb", _verbs(), ids=" ".join)
def test_each_verb_has_help_with_an_example_json_and_exit_codes(verb: list[str]) -> None:
    done = run.invoke(app, [*verb, "--help"], env={"COLUMNS": "200"})
    assert done.exit_code == 0
    assert "Example" in done.output
    assert "--json" in done.output
    assert "Exit codes: 0 done, 1 failed" in done.output
    assert f"negatoscope {' '.join(verb)}" in done.output


def _exit(*words: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-m", "negatoscope", *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_exit_codes_and_one_line_each(tmp_path: Path) -> None:
    misspelt = tmp_path / "mine.yaml"
    misspelt.write_text("data: {store: x}\nmodel: {name: nic}\ntrian: {}\n")
    for words, code, said in (
        (["train", str(misspelt)], 2, "unknown key 'trian', did you mean 'train'"),
        (["train", "no-such-recipe"], 1, "neither a file nor a recipe"),
        (["generate", str(tmp_path), "--out", "x.jsonl"], 1, "no such checkpoint"),
        (["train", "nic.phantom", "--set", "epochs"], 2, "is no KEY=VALUE"),
        (["train", "nic.phantom", "--set", "data.store=nowhere", "--run", str(tmp_path / "r")], 1, "nowhere"),
    ):
        got, line = _exit(*words)
        assert got == code, line
        assert said in line
        assert len(line.strip().splitlines()) == 1
    assert _exit("--nonsense")[0] == 2
    assert _exit("generate")[0] == 2


def test_version_and_lists() -> None:
    assert run.invoke(app, ["--version"]).output.strip() == __version__
    assert "nic.phantom" in json.loads(run.invoke(app, ["train", "--list", "--json"]).output)
    assert {row["name"] for row in json.loads(run.invoke(app, ["models", "nic", "--json"]).output)} == {"nic"}


def test_help_comes_quickly_because_nothing_heavy_is_imported() -> None:
    heavy = ("torch", "transformers", "sklearn", "pyarrow", "scipy")
    script = f"import sys; import negatoscope.cli; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_scores_need_neither_pytorch_nor_pictures(tmp_path: Path) -> None:
    """The scorer is for anybody's model: reading, scoring, comparing and labelling load none of the rest."""
    for name in ("a", "b", "r"):
        (tmp_path / f"{name}.jsonl").write_text('{"id": "1", "report": "No effusion."}\n')
    (tmp_path / "l.csv").write_text("No effusion.\n")
    quick = ["--metrics", "bleu,rouge,cider,clinical"]
    heavy = ("torch", "transformers", "sklearn", "pyarrow", "lightning_fabric")
    for words in (
        ["evaluate", "a.jsonl", "r.jsonl", *quick],
        ["compare", "a.jsonl", "b.jsonl", "-r", "r.jsonl", "--train", "r.jsonl", *quick, "--draws", "3", "-o", "page"],
        ["label", "l.csv", "--out", "labels.csv"],
    ):
        script = (
            "import sys; from negatoscope.cli import app; app(standalone_mode=False);"
            f"print([m for m in {heavy} if m in sys.modules])"
        )
        command = [sys.executable, "-c", script, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
        assert done.stdout.strip().splitlines()[-1] == "[]"

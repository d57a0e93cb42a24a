"""Two rows of a table, three seeds, from the command to the files: trained once, scored, laid beside the published
figures, held against bands."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from negatoscope.cli import app
from negatoscope.errors import WrongUse
from negatoscope.papers import reproduce as room
from negatoscope.papers.grounds import MODELLESS
from negatoscope.papers.laid_out import CSV_COLUMNS, Reproduced
from negatoscope.papers.running import Ran
from negatoscope.papers.work import Job, state_of, work

SET = {"train.epochs": 2, "model.width": 16, "decode.beam": 1}
COMMAND = ["reproduce", "contrastive-attention", "--data", "phantom", "--seeds", "1,2,3",
           *(word for key, value in SET.items() for word in ("--set", f"{key}={value}"))]  # fmt: skip


def run_here(
    jobs: Sequence[Job],
    at_once: int,
    *,
    deadline: float | None = None,
    threads: int | None = None,
    say: Callable[[str], None] = print,
) -> Ran:
    """In this process: starting Python and torch six times would be most of the test."""
    waiting = [job for job in jobs if not state_of(Path(job.folder)).finished]
    for job in waiting:
        work(job)
    return Ran(len(waiting), 0, (), 0)


class Made:
    """What one request left behind."""

    def __init__(self, store: Path, into: Path, done: room.Done, told: list[str]) -> None:
        self.store, self.into, self.done, self.told = store, into, done, told

    @property
    def table(self) -> Reproduced:
        return self.done.tables[0]

    def command(self, *more: str) -> list[str]:
        return [*COMMAND, "--store", str(self.store), "--into", str(self.into), *more]


def _request(store: Path, into: Path, **other: Any) -> room.Request:
    asked: dict[str, Any] = {"papers": ("contrastive-attention",), "rows": ("nic+ca",), "data": "phantom"}
    asked |= {"tier": "quick", "changes": SET, "store": store, "into": into, "draws": 50}
    return room.Request(**(asked | other))


@pytest.fixture(scope="module")
def made(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    into, told = tmp_path_factory.mktemp("into"), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "run_all", run_here)
        done = room.reproduce(_request(tiny, into), say=told.append)
    return Made(tiny, into, done, told)


def test_a_row_comes_with_what_it_is_tested_against_and_three_that_need_no_model(made: Made) -> None:
    results = {result.name: result for result in made.table.results}
    assert list(results) == ["nic", "nic+ca", *MODELLESS]
    assert made.done.ran.finished == 6
    for name in ("nic", "nic+ca"):
        one = results[name]
        assert (one.kind, one.seeds, one.theirs_on, one.notes) == ("ours", (1, 2, 3), "mimic-cxr", ())
        for column in ("BLEU-1", "BLEU-4", "ROUGE-L", "CIDEr", "CE F1 (r2gen)", "distinct reports"):
            figure = one.figures[column]
            assert len(figure.each) == 3
            assert figure.value == pytest.approx(sum(figure.each) / 3)
            assert figure.low <= figure.high
    assert results["nic"].theirs["BLEU-4"] == 0.081
    assert results["nic+ca"].theirs["BLEU-4"] == 0.089
    assert results["nic"].figures["BLEU-4"].p is None
    p = results["nic+ca"].figures["BLEU-4"].p
    assert p is not None
    assert 0 < p <= 1
    assert results["constant-report"].figures["distinct reports"].value == pytest.approx(1)
    assert all(results[name].kind == "no model" and results[name].figures for name in MODELLESS)


def test_what_differs_is_said_in_footnotes(made: Made) -> None:
    said = "\n".join(made.table.footnotes)
    assert "theirs ResNet-50, ImageNet, then fine-tuned on CheXpert; ours resnet10-narrow" in said
    assert "resolution: theirs 224; ours 64" in said
    assert "budget: 2 epochs where the recipe has 30" in said
    assert "words seen 2 times, beam 1" in said
    assert "changed: train.epochs=2, model.width=16, decode.beam=1" in said
    assert "theirs are of iu-xray, mimic-cxr: not to be compared with ours" in said
    assert "tier quick" in said


def test_runs_leave_small_files_alone(made: Made) -> None:
    folders = sorted((made.into / "runs").glob("*/seed-*"))
    assert len(folders) == 6
    for folder in folders:
        assert not list(folder.glob("*.safetensors"))
        assert {"recipe.yaml", "reports-val.jsonl", "run.json", "vocabulary.json"} <= {
            one.name for one in folder.iterdir()
        }
    assert "nic+ca" in {folder.parent.name.rsplit("-", 1)[0] for folder in folders}


def test_files_say_the_same_in_three_forms(made: Made) -> None:
    tables = made.into / "tables"
    text = (tables / "contrastive-attention-1.md").read_text(encoding="utf-8")
    with (tables / "contrastive-attention-1.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    said = json.loads((tables / "contrastive-attention-1.json").read_text(encoding="utf-8"))
    assert tuple(rows[0]) == CSV_COLUMNS
    by_place = {(row["row"], row["figure"]): row for row in rows}
    for row in said["rows"]:
        for figure, one in row["figures"].items():
            if figure in said["columns"]:
                assert float(by_place[row["name"], figure]["ours"]) == pytest.approx(one["value"], rel=1e-4, abs=1e-9)
        for figure, value in row["theirs"].items():
            assert float(by_place[row["name"], figure]["theirs"]) == value
    for line in ("| NIC | ours, 3 seeds |", "| NIC | theirs, mimic-cxr |", "| NIC + CA (against nic) | ours, 3 seeds |",
                 "| Nearest training study | no model |"):  # fmt: skip
        assert line in text
    assert all(f"- {line}" in text for line in made.table.footnotes)


def test_what_is_finished_is_not_trained_again(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_job: Job) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr("tests.papers.test_reproduce.work", never)
    monkeypatch.setattr(room, "run_all", run_here)
    again = room.reproduce(_request(made.store, made.into), say=made.told.append)
    assert again.tables == made.done.tables
    alone = room.reproduce(_request(made.store.with_name("gone"), made.into, train=False), say=made.told.append)
    assert alone.tables == made.done.tables, "scored from the folder alone, without store and features"


def test_results_of_another_store_are_not_mixed_in(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made.into / "grounds.json"
    before = path.read_text(encoding="utf-8")
    monkeypatch.setattr(room, "run_all", run_here)
    try:
        path.write_text(before.replace('"train": ', '"train": 1'), encoding="utf-8")
        with pytest.raises(WrongUse, match="another store or other features"):
            room.reproduce(_request(made.store, made.into), say=made.told.append)
    finally:
        path.write_text(before, encoding="utf-8")


def test_check_passes_inside_and_fails_outside(made: Made, tmp_path: Path) -> None:
    bands = tmp_path / "bands.yaml"
    checking = made.command("--rows", "nic+ca", "--no-train", "--check", "--bands", str(bands))
    run = CliRunner()
    nothing = run.invoke(app, checking)
    assert nothing.exit_code == 2, nothing.output
    assert "--write-bands" in nothing.output
    path = room.new_bands(made.table, made.into / "runs", "here", bands)
    inside = run.invoke(app, checking)
    assert inside.exit_code == 0, inside.output
    assert "0 left theirs" in inside.output
    said = yaml.safe_load(path.read_text(encoding="utf-8"))
    figures = said["1"]["phantom"]["nic+ca"]["figures"]
    figures["BLEU-1"] = [one + 1 for one in figures["BLEU-1"]]
    path.write_text(yaml.safe_dump(said), encoding="utf-8")
    outside = run.invoke(app, checking)
    assert outside.exit_code == 1, outside.output
    assert "left its band: nic+ca, seed 2: BLEU-1" in outside.output
    assert "3 left theirs" in outside.output
    other = run.invoke(app, [*checking, "--set", "train.epochs=3"])
    assert other.exit_code == 1, "another recipe: none of its runs is there"
    assert "its band is of another recipe" in other.output
    assert "nothing could be checked" in other.output


def test_bands_written_by_the_command(made: Made, tmp_path: Path) -> None:
    bands = tmp_path / "bands.yaml"
    done = CliRunner().invoke(app, made.command("--no-train", "--write-bands", "--bands", str(bands)))
    assert done.exit_code == 0, done.output
    said = yaml.safe_load(bands.read_text(encoding="utf-8"))["1"]["phantom"]
    assert set(said) == {"nic", "nic+ca"}, "rows without runs have none"
    assert said["nic"]["seeds"] == [1, 2, 3]
    assert "train.epochs=2" in said["nic"]["where"]


def test_json_and_rows_that_are_quoted(made: Made) -> None:
    done = CliRunner().invoke(app, made.command("--table", "2", "--no-train", "--json"))
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["failed"] == []
    rows = {row["name"]: row for row in said["tables"][0]["rows"]}
    for name, cited in (("hrgr-agent", "Li et al. 2018"), ("cmas-rl", "Jing et al. 2019"), ("sentsat-kg", "2020")):
        assert rows[name]["kind"] == "quoted"
        assert rows[name]["figures"] == {}
        assert rows[name]["theirs_on"] == "iu-xray"
        assert f"quoted, never trained here: {cited}"[-len(cited) :] == rows[name]["notes"][0][-len(cited) :]
    assert rows["hrgr-agent"]["theirs"]["BLEU-4"] == 0.151
    assert rows["transformer"]["notes"] == [f"seed {seed}: not trained" for seed in (1, 2, 3)]
    assert set(MODELLESS) <= set(rows)
    shown = CliRunner().invoke(app, made.command("--table", "2", "--no-train"), env={"COLUMNS": "250"})
    assert "quoted, iu-xray" in shown.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["contrastive-atention"], "did you mean 'contrastive-attention'"),
        (["ithn", "--table", "3-alfa"], "did you mean '3-alpha'"),
        (["wcl", "--rows", "mdt+wlc"], "did you mean 'mdt+wcl'"),
        (["wcl", "--data", "phantoms"], "did you mean 'phantom'"),
        (["wcl", "--tier", "quik"], "did you mean 'quick'"),
        (["wcl", "--seeds", "one"], "for example 1,2,3"),
        (["wcl", "--budget", "soon"], "for example 2h"),
        (["wcl", "--set", "model.wdith=3"], "no row has a setting 'model.wdith'"),
        (["all", "--rows", "nobody"], "no such table or row"),
    ],
)
def test_wrong_names(words: list[str], said: str, made: Made) -> None:
    given = [] if "--data" in words else ["--data", "phantom", "--no-train"]
    done = CliRunner().invoke(app, ["reproduce", *words, *given, "--into", str(made.into)])
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())


def test_the_list_names_all_rows() -> None:
    done = CliRunner().invoke(app, ["reproduce", "--list", "--json"])
    said = json.loads(done.stdout)
    assert set(said) == {"contrastive-attention", "cvse", "grid", "ithn", "wcl"}
    assert "hlstm+ca" in said["contrastive-attention"]["1"]
    assert "wcl --table 2: wcl-vanilla" in CliRunner().invoke(app, ["reproduce", "--list"]).stdout


def test_a_budget_that_is_over_begins_nothing(tiny: Path, tmp_path: Path) -> None:
    told: list[str] = []
    request = replace(_request(tiny, tmp_path), budget=1.0, seeds=(1,))
    done = room.reproduce(request, say=told.append, clock=lambda: 0.0)
    assert (done.ran.finished, done.ran.not_begun) == (0, 2)
    assert any("out of time: 2 runs were not begun; the same command goes on from here" in line for line in told)
    ours = [result for result in done.tables[0].results if result.kind == "ours"]
    assert [result.notes for result in ours] == [("seed 1: not trained",)] * 2

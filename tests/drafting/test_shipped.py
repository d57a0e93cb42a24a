"""The drafter that comes with the package, on real films."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pydicom.data import get_testdata_file
from typer.testing import CliRunner

from negatoscope.cli import app
from negatoscope.drafting.drafter import Drafter
from negatoscope.drafting.kept import load_drafter, shipped
from negatoscope.text.words import UNKNOWN

run = CliRunner()


def film(name: str) -> str:
    path = get_testdata_file(name, download=False)
    assert path is not None, "pydicom-data is one of the packages that the tests install"
    return str(path)


@pytest.fixture(scope="module")
def ours() -> Drafter:
    return load_drafter()


def test_it_fits_and_says_where_it_comes_from(ours: Drafter) -> None:
    assert shipped().stat().st_size <= 100e6
    assert "CC BY-NC-ND 4.0" in ours.about["note"]


@pytest.mark.parametrize("name", ["RG1_UNCR.dcm", "RG1_J2KR.dcm"])
def test_a_real_chest_gets_a_report_and_no_doubt(ours: Drafter, name: str) -> None:
    draft = ours.draft([film(name)])
    assert draft.warnings == ()
    assert draft.views[0].view == "frontal"
    assert len(draft.sentences) >= 2
    assert not {UNKNOWN, "xxxx"} & set(draft.report.split())
    assert any(sentence.heat for sentence in draft.sentences)


@pytest.mark.parametrize("name", ["RG3_UNCR.dcm", "CT_small.dcm"])
def test_a_leg_and_a_slice_of_a_ct_raise_the_warning(ours: Drafter, name: str) -> None:
    assert ours.draft([film(name)]).views[0].warning is not None


def test_the_verb_prints_writes_and_draws(tmp_path: Path) -> None:
    chest = film("RG1_UNCR.dcm")
    words = ["report", chest, "--json", "--page", str(tmp_path / "a.html"), "--out", str(tmp_path / "a.json")]
    done = run.invoke(app, words)
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said == json.loads((tmp_path / "a.json").read_text())
    assert said["notice"].endswith("not for diagnosis.")
    page = (tmp_path / "a.html").read_text()
    assert page.count("data:image/") > len(said["views"]), "the film, and maps over it"
    told = run.invoke(app, ["report", film("RG3_UNCR.dcm")], env={"COLUMNS": "200"})
    assert "Warning" in told.output


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (["nothing.png"], "nothing.png", 1),
        (["."], "--out", 2),
        ([".", "a.png"], "mixed", 2),
        ([".", "--out", "x", "--page", "y"], "--page", 2),
    ],
)
def test_wrong_use_is_one_line(words: list[str], said: str, code: int) -> None:
    done = run.invoke(app, ["report", *words])
    assert done.exit_code == code, done.output
    assert said in done.output
    assert "Traceback" not in done.output


def test_real_studies_are_told_from_the_front_and_from_the_side(ours: Drafter, shared: Callable[[str], Path]) -> None:
    folder = shared("data/iu-xray")
    rows = list(csv.DictReader((folder / "studies.csv").open(encoding="utf-8")))
    rows = [row for row in rows if row["split"] == "val" and {row["view_0"], row["view_1"]} == {"Frontal", "Lateral"}][
        :24
    ]
    studies = [(row["id"], [folder / "images" / row["id"] / f"{k}.jpg" for k in (0, 1)]) for row in rows]
    for row, draft in zip(rows, ours.draft_many(studies), strict=True):
        assert [one.view for one in draft.views] == [row["view_0"].lower(), row["view_1"].lower()]

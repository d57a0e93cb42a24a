"""Files of reports in, the original labeler's CSV out."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from negatoscope.errors import BadInput, Trouble, WrongUse
from negatoscope.metrics.chexpert.tables import label_file, reports_of
from negatoscope.studies.study import OBSERVATIONS

TWO = '"The heart is normal in size. No\neffusion, or edema."\nThere may be a mass.\n'


def labelled(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_headerless_csv(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(TWO, encoding="utf-8")
    summary = label_file(tmp_path / "in.csv", tmp_path / "out.csv")
    rows = labelled(tmp_path / "out.csv")
    assert list(rows[0]) == ["Reports", *OBSERVATIONS]
    assert rows[0]["Reports"] == "The heart is normal in size. No\neffusion, or edema."
    assert {name: value for name, value in rows[0].items() if value and name != "Reports"} == {
        "No Finding": "1.0", "Cardiomegaly": "0.0", "Edema": "0.0", "Pleural Effusion": "0.0",
    }  # fmt: skip
    assert rows[1]["Lung Lesion"] == "-1.0"
    assert summary.reports == 2
    assert summary.labels["Lung Lesion"] == {"present": 0, "absent": 0, "uncertain": 1, "blank": 1}


@pytest.mark.parametrize(
    ("name", "text", "column"),
    [
        ("in.csv", 'study_id,report\n1,"Edema, no mass."\n2,\n', None),
        ("in.csv", 'id,findings\n1,"Edema, no mass."\n2,\n', "findings"),
        ("in.jsonl", '{"id": "1", "report": "Edema, no mass."}\n{"id": "2", "report": ""}\n', None),
        ("in.jsonl", '{"id": "1", "f": "Edema, no mass."}\n\n{"id": "2", "f": null}\n', "f"),
        ("in.csv", "\ufeff" + 'f\r\n"Edema, no mass."\r\n""\r\n', "f"),
    ],
)
def test_forms(tmp_path: Path, name: str, text: str, column: str | None) -> None:
    (tmp_path / name).write_bytes(text.encode())
    summary = label_file(tmp_path / name, tmp_path / "out.csv", column=column)
    first, second = labelled(tmp_path / "out.csv")
    assert (first["Edema"], first["Lung Lesion"]) == ("1.0", "0.0")
    assert [name for name in OBSERVATIONS if second[name]] == ["No Finding"]
    assert (summary.reports, summary.empty) == (2, 1)


@pytest.mark.parametrize(
    ("name", "text", "column", "said"),
    [
        ("a.csv", b"id,Report\n1,x\n", "Reprot", "did you mean 'Report'"),
        ("a.csv", b"id,a\n1,x\n\n2,y,z\n", "a", "a.csv:4: 3 columns"),
        ("a.csv", b"id,a\n1,x\n2,na\xefve\n", "a", "a.csv:3: byte 13 (0xef) is not UTF-8"),
        ("a.csv", b"a\n", "a", "no reports"),
        ("a.csv", b'a\n"x', "a", "not CSV"),
        ("a.jsonl", b'{"a": "x"}\n{"b": 1}\n', "a", "a.jsonl:2: no field 'a'"),
        ("a.jsonl", b'{"a": "x"}\n{"a": 1}\n', "a", "a.jsonl:2: the report is a number, not text"),
        ("a.csv", b"id,a,a\n1,x,y\n", "a", "a.csv:1: two columns are called 'a'"),
        ("a.jsonl", b'{"a": \n', "a", "a.jsonl:1: not JSON"),
    ],
)
def test_bad_files_say_where(tmp_path: Path, name: str, text: bytes, column: str, said: str) -> None:
    (tmp_path / name).write_bytes(text)
    with pytest.raises(Trouble) as caught:
        label_file(tmp_path / name, tmp_path / "out.csv", column=column)
    assert isinstance(caught.value, BadInput | WrongUse)
    assert said in str(caught.value)
    assert not (tmp_path / "out.csv").exists()


def test_a_long_report_is_read_whole(tmp_path: Path) -> None:
    text = "No edema. " * 50_000
    (tmp_path / "in.csv").write_text(f'a\n"{text}"\n', encoding="utf-8")
    assert reports_of(tmp_path / "in.csv", column="a")[0] == [text]


def negatoscope(*arguments: object) -> subprocess.CompletedProcess[str]:
    program = "from negatoscope.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, check=False
    )


def test_command(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(TWO, encoding="utf-8")
    done = negatoscope("label", tmp_path / "in.csv", "--out", tmp_path / "out.csv", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["reports"] == 2
    assert len(labelled(tmp_path / "out.csv")) == 2

    explained = negatoscope("label", tmp_path / "in.csv", "--explain")
    assert "Lung Lesion: uncertain, may be X" in explained.stdout

    wrong = negatoscope("label", tmp_path / "in.csv")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "--out" in wrong.stderr


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_column_of_a_table_however_its_columns_are_parted(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "reports.csv"
    path.write_bytes(f'id{delimiter}findings\r\n1{delimiter}"No{delimiter} effusion."\r\n'.encode("utf-8-sig"))
    assert reports_of(path, column="findings") == ([f"No{delimiter} effusion."], "column findings")


@pytest.mark.parametrize("header", ["findings", "Report_Text", "IMPRESSION"])
def test_a_header_over_a_single_column_is_not_labelled(tmp_path: Path, header: str) -> None:
    path = tmp_path / "reports.csv"
    path.write_text(f"{header}\nNo effusion.\n")
    assert reports_of(path) == (("No effusion.",), "csv")
    assert reports_of(path, form="chexpert")[0] == (header, "No effusion.")


def test_the_reports_are_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "reports.csv"
    path.write_text("No effusion.\n")
    with pytest.raises(WrongUse, match="would overwrite the reports"):
        label_file(path, tmp_path / "." / "reports.csv")
    assert path.read_text() == "No effusion.\n"

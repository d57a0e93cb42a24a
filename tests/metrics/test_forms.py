"""Every form of prediction file in the field, and what is wrong with them when something is."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from negatoscope.errors import BadInput, WrongUse
from negatoscope.metrics.forms import FORMS, read_reports

AWKWARD = [
    'Heart is "normal".',
    "Lungs,\nclear;\r\nno effusion",
    "",
    " café — 5×6 ",
    "a\u2028b",
    '"',
    "''",
    "x" * 200_000,
]
IDS = [f"s{k}" for k in range(len(AWKWARD))]


def written(path: Path, form: str, ids: list[str], texts: list[str]) -> Path:
    """The file as a program of the field would write it."""
    buffer = io.StringIO(newline="")
    out = csv.writer(buffer, lineterminator="\n")
    if form == "jsonl":
        buffer.writelines(json.dumps({"id": i, "report": text}) + "\n" for i, text in zip(ids, texts))
    elif form == "csv":
        out.writerows([("study_id", "report"), *zip(ids, texts)])
    elif form == "chexbert":
        out.writerows([("", "Report Impression"), *enumerate(texts)])
    elif form == "chexpert":
        out.writerows([text] for text in texts)
    elif form == "lines":
        buffer.writelines(f"{text}\n" for text in texts)
    elif form == "json":
        buffer.write(json.dumps(texts))
    elif form == "rexrank":
        entries = {
            i: {"model_prediction": text, "section_findings": text, "context": "x"} for i, text in zip(ids, texts)
        }
        buffer.write(json.dumps(entries))
    elif form == "annotation":
        entries = [{"id": i, "report": text, "image_path": ["0.jpg"]} for i, text in zip(ids, texts)]
        buffer.write(json.dumps({"train": [], "test": entries}))
    elif form == "karpathy":
        images = [{"cocoid": i, "split": "test", "sentences": [{"raw": text}]} for i, text in zip(ids, texts)]
        buffer.write(json.dumps({"images": images, "dataset": "coco"}))
    path.write_bytes(buffer.getvalue().encode())
    return path


SUFFIX = {"jsonl": ".jsonl", "csv": ".csv", "chexpert": ".csv", "chexbert": ".csv", "lines": ".txt"}
NUMBERED = ("chexpert", "chexbert", "lines", "json")


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_guessed_and_read_back(form: str, tmp_path: Path) -> None:
    texts = AWKWARD
    if form == "lines":
        texts = [" ".join(text.split("\n")).replace("\r", "") for text in AWKWARD]
    if form == "karpathy":  # a caption is one line
        texts = [" ".join(text.split()) for text in AWKWARD]
    path = written(tmp_path / f"reports{SUFFIX.get(form, '.json')}", form, IDS, texts)
    reports = read_reports(path)
    assert reports.form == form
    assert list(reports.texts) == texts
    assert reports.numbered == (form in NUMBERED)
    assert list(reports.ids) == ([str(k + 1) for k in range(len(IDS))] if form in NUMBERED else IDS)
    assert read_reports(path, form).texts == reports.texts


# A byte order mark at the head of a file is no text.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufeff"), max_size=40)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(TEXT, min_size=1, max_size=6),
    form=st.sampled_from(["jsonl", "csv", "chexpert", "json", "rexrank", "annotation"]),
)
def test_any_text_survives_any_form_that_can_hold_it(texts: list[str], form: str, tmp_path: Path) -> None:
    # The csv module itself writes a lone carriage return unquoted and cannot read it back.
    texts = [text.replace("\r", "") for text in texts]
    ids = [f"s{k}" for k in range(len(texts))]
    path = written(tmp_path / "reports", form, ids, texts)
    assert list(read_reports(path, form).texts) == texts


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw=st.binary(max_size=80) | TEXT.map(str.encode), form=st.sampled_from(["auto", *FORMS]))
def test_any_bytes_are_read_or_refused_in_one_line(raw: bytes, form: str, tmp_path: Path) -> None:
    path = tmp_path / "reports.dat"
    path.write_bytes(raw)
    said = str(path)
    try:
        reports = read_reports(path, form)
        assert len(reports) == len(reports.ids) == len(reports.wordings) > 0
    except (BadInput, WrongUse) as trouble:
        said = str(trouble)
    assert said.startswith(str(path))
    assert "\n" not in said


def test_xpronets_list_starts_with_its_figures(tmp_path: Path) -> None:
    path = tmp_path / "caption_data.json"
    path.write_text(json.dumps([{"test_BLEU_4": 0.17}, {"img_id": "a", "pred": "p", "gt": "g"}]))
    assert read_reports(path).texts == ("p",)
    assert read_reports(path, role="reference").texts == ("g",)


def test_two_lists_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text(json.dumps({"gts": ["g1", "g2"], "res": ["p1", "p2"]}))
    assert read_reports(path).texts == ("p1", "p2")
    assert read_reports(path, role="reference").texts == ("g1", "g2")


def test_r2gengpts_object_of_lists_may_hold_several_references(tmp_path: Path) -> None:
    path = tmp_path / "test_refs.json"
    path.write_text(json.dumps({"a": ["one", "other"], "b": ["two"]}))
    reports = read_reports(path, role="reference")
    assert reports.ids == ("a", "b")
    assert reports.wordings == (("one", "other"), ("two",))


def test_rexrank_references_are_findings_and_impression(tmp_path: Path) -> None:
    entry = {"section_findings": "Clear.", "section_impression": float("nan"), "model_prediction": "p"}
    path = tmp_path / "rexrank.json"
    path.write_text(json.dumps({"1": entry, "2": {**entry, "section_impression": "Normal."}}))
    assert read_reports(path, role="reference").texts == ("Clear.", "Clear. Normal.")


def test_a_jsonl_of_one_line_in_a_json_file(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text('{"id": "a", "report": "x"}')
    assert read_reports(path).form == "jsonl"


def test_a_byte_order_mark_is_no_part_of_the_header(tmp_path: Path) -> None:
    path = tmp_path / "excel.csv"
    path.write_bytes("study_id,report\na,x\n".encode("utf-8-sig"))
    assert read_reports(path).ids == ("a",)


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        (
            "a.jsonl",
            '{"id": "a", "report": "x"}\n{"id": "a", "report": "y"}\n',
            "a.jsonl:2: study 'a' stands twice, first line 1",
        ),
        ("a.jsonl", '{"id": "a", "report": "x"}\n\n{"report": "y"}\n', "a.jsonl:3: has no id"),
        ("a.jsonl", '{"id": "a", "text": 5}\n', "a.jsonl:1: the report is a number"),
        ("a.jsonl", '{"id": "a", "report": "x"}\n{"id": "b"\n', "a.jsonl:2: not JSON"),
        (
            "a.jsonl",
            '{"id": "a", "words": "x"}\n',
            "a.jsonl:1: has 'id', 'words'; the prediction should be called 'report' or 'prediction'",
        ),
        ("a.jsonl", '["x"]\n', "a.jsonl:1: a list, not an object"),
        ("a.jsonl", '{"id": "a", "report": "x", "report": "y"}\n', "a.jsonl:1: 'report' stands twice in one object"),
        ("a.jsonl", '{"id": "a", "report": "\\ud83d"}\n', "a.jsonl:1: holds half of a character"),
        ("a.jsonl", "[" * 100_000 + "\n", "a.jsonl:1: not JSON"),
        ("a.json", "[" * 100_000, "a.json: not JSON"),
        ("a.csv", "study_id,report\na,x\nb,y,z\n", "a.csv:3: 3 columns where the header has 2"),
        ("a.csv", 'study_id,report\na,"x\ny"\na,z\n', "a.csv:4: study 'a' stands twice, first line 2"),
        (
            "a.csv",
            "study_id,words\na,x\n",
            "a.csv: has 'study_id', 'words'; the prediction should be called 'report' or 'prediction'",
        ),
        ("a.csv", 'study_id,report\na,"x\n', "a.csv:2: not CSV"),
        ("a.csv", "study_id,report\n", "a.csv: holds no reports"),
        ("a.json", '{"a": "x", "a": "y"}', "a.json: 'a' stands twice in one object"),
        ("a.json", "[1, 2]", "a.json, entry 1: the report is a number"),
        ("a.json", "{", "a.json:1: not JSON"),
        ("a.txt", "", "a.txt: holds no reports"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(name: str, content: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(BadInput) as raised:
        read_reports(path)
    assert complaint in str(raised.value)


def test_a_headerless_csv_of_two_columns_is_refused_when_told_so(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("heart normal\nlungs, clear\n")
    with pytest.raises(BadInput, match=r"a\.csv:2: 2 columns where a headerless CSV has one"):
        read_reports(path)


def test_text_that_is_not_utf8_is_named_by_line_and_byte(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"heart normal\ncaf\xe9\n")
    with pytest.raises(BadInput, match=r"a\.txt:2: byte 16 \(0xe9\) is not UTF-8"):
        read_reports(path)


def test_a_split_and_a_form_that_do_not_exist(tmp_path: Path) -> None:
    path = written(tmp_path / "annotation.json", "annotation", IDS, AWKWARD)
    with pytest.raises(WrongUse, match="no split 'tset'; did you mean 'test'"):
        read_reports(path, split="tset")
    with pytest.raises(WrongUse, match="unknown form 'jsnl'; did you mean"):
        read_reports(path, "jsnl")


def test_the_real_annotation_file(shared) -> None:
    path = shared("data/iu-xray/annotation.json")
    assert len(read_reports(path, role="reference", split="train")) == 2069
    assert len(read_reports(path, role="reference", split="val")) == 296


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("excel.csv", "study_id;report\na;Clear, normal.\n"),
        ("table.tsv", "study_id\treport\na\tClear, normal.\n"),
        ("table.txt", "study_id\treport\na\tClear, normal.\n"),
        ("table.txt", 'study_id,report\r\na,"Clear, normal."\r\n'),
        ("mac.csv", 'study_id,report\ra,"Clear, normal."\r'),
        ("order.csv", '"REPORT","Study_ID"\n"Clear, normal.","a"\n'),
    ],
)
def test_tables_however_parted_and_named(name: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode())
    reports = read_reports(path)
    assert (reports.form, reports.ids, reports.texts) == ("csv", ("a",), ("Clear, normal.",))


def test_a_single_column_with_a_header_that_names_reports(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("clean_findings\nClear.\nNormal\n")
    assert (read_reports(path).form, read_reports(path).texts) == ("csv", ("Clear.", "Normal"))
    path.write_text("Normal\nNo findings\n")
    assert (read_reports(path).form, read_reports(path).texts) == ("chexpert", ("Normal", "No findings"))


def test_lines_of_text_with_commas_are_no_table(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("text, report and id\nclear, normal\n")
    assert read_reports(path).form == "lines"


def test_utf16_as_spreadsheets_write_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("study_id\treport\na\tx\n".encode("utf-16"))
    with pytest.raises(BadInput, match="not UTF-8; save the file as UTF-8: iconv -f UTF-16"):
        read_reports(path)

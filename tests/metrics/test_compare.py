from __future__ import annotations

import csv
import io
import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from tests.metrics.test_baselines import Cache, store_of

from negatoscope.errors import BadInput, WrongUse
from negatoscope.metrics.compare import CONSTANT, NEAREST, Cell, Comparison, compare
from negatoscope.metrics.compare_page import write_comparison
from negatoscope.metrics.compare_tables import as_csv, as_latex, as_markdown, cell_text
from negatoscope.metrics.evaluate import evaluate
from negatoscope.studies.study import Picture, Study

METRICS = ["bleu", "rouge", "diversity", "lengths", "copied", "clinical"]
NORMAL = "The heart is normal in size. The lungs are clear. There is no pleural effusion."
SICK = "The heart is enlarged. There is a small pleural effusion with 5% <atelectasis> & edema."


def jsonl(path: Path, reports: list[str]) -> Path:
    path.write_text("".join(json.dumps({"id": f"s_{k}", "report": text}) + "\n" for k, text in enumerate(reports)))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    at = tmp_path_factory.mktemp("compare")
    asked = [SICK if k % 3 == 0 else NORMAL if k % 3 == 1 else f"{NORMAL} Rib {k} is broken." for k in range(30)]
    jsonl(at / "references.jsonl", asked)
    jsonl(at / "good_model.jsonl", [text if k % 4 else NORMAL for k, text in enumerate(asked)])
    jsonl(at / "bad.jsonl", [SICK if k % 3 else NORMAL for k in range(30)])
    jsonl(at / "train.jsonl", [NORMAL, NORMAL, "The lungs are clear.", "There is a mass."])
    return at


def made(folder: Path, *names: str, **settings) -> Comparison:
    systems = [folder / name for name in names or ("good_model.jsonl", "bad.jsonl")]
    settings = {"training": folder / "train.jsonl", "metrics": METRICS, "draws": 200} | settings
    return compare(systems, folder / "references.jsonl", **settings)


@pytest.fixture(scope="module")
def done(folder: Path) -> Comparison:
    return made(folder, validation=folder / "train.jsonl")


def test_every_row_has_intervals_and_every_other_row_a_p(done: Comparison) -> None:
    assert done.against == "good_model"
    assert list(done.kinds.items()) == [("good_model", "model"), ("bad", "model"), (CONSTANT, "constant")]
    for part in done.parts:
        for row, cells in part.rows.items():
            for figure, cell in cells.items():
                assert cell.low is not None, figure
                assert (cell.p is None) == (row == "good_model"), figure
    bleu = done.parts[0].rows["bad"]["BLEU-4"]
    assert bleu.p == pytest.approx(1 / 201)
    assert bleu.mark == "**"
    assert bleu.difference is not None
    assert bleu.difference[1] < 0


def test_parts_go_by_the_reference_and_add_up(done: Comparison) -> None:
    assert {part.name: part.n for part in done.parts} == {
        "all": 30,
        "normal": 20,
        "abnormal": 10,
        "in training": 10,
        "not in training": 20,
    }
    normal, abnormal = done.parts[1], done.parts[2]
    assert not any(figure.startswith("missed") for figure in normal.rows["bad"])
    assert abnormal.rows["bad"]["missed abnormality"].value == 1
    whole = done.parts[0].rows["bad"]["invented abnormality"].value
    parts = sum(part.n * part.rows["bad"]["invented abnormality"].value for part in (normal, abnormal)) / 30
    assert whole == pytest.approx(parts)


def test_values_are_those_of_evaluate(folder: Path, done: Comparison) -> None:
    alone = evaluate(
        folder / "bad.jsonl", folder / "references.jsonl", metrics=METRICS, training=folder / "train.jsonl"
    )
    for figure, value in alone.figures.items():
        assert done.parts[0].rows["bad"][figure].value == pytest.approx(value), figure
    assert str(alone.signature) == str(done.signature)


def test_without_training_reports_the_missing_rows_are_named(folder: Path) -> None:
    done = made(folder, "bad.jsonl", training=None, metrics=["bleu", "clinical"])
    assert CONSTANT not in done.kinds
    assert any("no constant report" in note for note in done.notes)
    assert any("nearest training study" in note for note in done.notes)
    assert [part.name for part in done.parts] == ["all", "normal", "abnormal"]
    assert any("4 of the studies that are scored are also training studies" in note for note in made(folder).notes)
    chosen = made(folder, "bad.jsonl", metrics=["bleu"])
    assert any("chosen on training alone" in note for note in chosen.notes)


def test_against_any_row(folder: Path) -> None:
    for said, row in (("bad", "bad"), ("bad.jsonl", "bad"), ("constant", CONSTANT)):
        assert made(folder, against=said, metrics=["rouge"], draws=5).against == row
    with pytest.raises(WrongUse, match="no row 'baad' to test against; did you mean 'bad'"):
        made(folder, against="baad", metrics=["rouge"], draws=5)


def test_the_nearest_training_study_is_a_row(folder: Path, tmp_path: Path) -> None:
    studies = [Study(f"s_{k}", (Picture("x", sha256="x"),), NORMAL, "val") for k in range(30)]
    store = store_of(tmp_path / "store", [*studies, Study("t", (Picture("x", sha256="x"),), SICK, "train")])
    done = made(folder, metrics=["rouge"], draws=5, nearest=(store, Cache({"x": np.ones((1, 2), np.float16)})))
    assert set(done.evaluations[NEAREST].pairs.predictions) == {SICK}
    assert done.kinds[NEAREST] == "nearest"


def test_the_nearest_training_studies_reports_from_a_file(folder: Path, tmp_path: Path) -> None:
    found = jsonl(tmp_path / "found.jsonl", [NORMAL if k else "Never seen." for k in range(30)])
    done = made(folder, metrics=["rouge"], draws=5, nearest=found)
    assert done.evaluations[NEAREST].pairs.predictions == ("Never seen.", *[NORMAL] * 29)
    assert f"{NEAREST}: 1 of its reports do not stand in training" in done.notes
    assert not any("no row for the nearest" in note for note in done.notes)
    assert done.as_json()["sources"][NEAREST]["path"] == str(found)


def test_each_file_says_in_which_form_it_was_read_and_can_be_told(folder: Path, tmp_path: Path) -> None:
    said, asked = tmp_path / "said.dat", tmp_path / "asked.dat"
    said.write_text(f"{NORMAL}\n{SICK}\n")
    asked.write_text(json.dumps([NORMAL, SICK]))
    settings = {"metrics": ["bleu"], "draws": 5, "form": "lines", "references_form": "json"}
    done = compare([said], asked, training=folder / "train.jsonl", **settings)
    assert {role: (source.form, source.reports) for role, source in done.sources.items()} == {
        "said": ("lines", 2),
        "references": ("json", 2),
        "training": ("jsonl", 4),
    }
    assert done.parts[0].rows["said"]["BLEU-4"].value == pytest.approx(1)
    with pytest.raises(BadInput, match=r"said\.dat"):
        compare([said], asked, **(settings | {"form": "json"}))


def test_an_earlier_evaluation_joins_or_is_refused_with_the_difference(folder: Path, tmp_path: Path) -> None:
    first = evaluate(folder / "bad.jsonl", folder / "references.jsonl", metrics=["bleu"])
    (tmp_path / "paper.json").write_text(json.dumps(first.as_json()))
    settings = {"metrics": ["bleu"], "training": None, "draws": 5}
    done = made(folder, "good_model.jsonl", str(tmp_path / "paper.json"), **settings)
    assert done.parts[0].rows["paper"]["BLEU-4"] == Cell(first.figures["BLEU-4"])
    shorter = evaluate(folder / "bad.jsonl", folder / "good_model.jsonl", metrics=["bleu"])
    (tmp_path / "other.json").write_text(json.dumps(shorter.as_json()))
    with pytest.raises(WrongUse, match=r"other\.json cannot be compared: they differ in references"):
        made(folder, "good_model.jsonl", str(tmp_path / "other.json"), **settings)
    with pytest.raises(WrongUse, match="no file of predictions"):
        made(folder, str(tmp_path / "paper.json"), **settings)


def test_bad_input_is_refused_and_what_is_lenient_is_counted(folder: Path, tmp_path: Path) -> None:
    few = jsonl(tmp_path / "few.jsonl", [NORMAL, ""])
    with pytest.raises(BadInput, match=r"28 studies .* without a prediction"):
        made(folder, str(few), metrics=["bleu"])
    done = made(folder, str(few), metrics=["bleu"], missing="empty", draws=5)
    assert done.n == 30
    assert "few: 28 missing predictions scored as empty" in done.notes
    assert "few: 1 empty predictions" in done.notes
    with pytest.raises(WrongUse, match="is named twice"):
        made(folder, "bad.jsonl", "bad.jsonl")


def test_the_csv_holds_every_figure_of_every_part(done: Comparison) -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(done))))
    assert len(rows) == sum(len(cells) for part in done.parts for cells in part.rows.values())
    one = next(row for row in rows if row["part"] == "all" and row["row"] == "bad" and row["figure"] == "BLEU-4")
    assert float(one["value"]) == pytest.approx(done.parts[0].rows["bad"]["BLEU-4"].value, rel=1e-5)
    assert {row["n"] for row in rows if row["part"] == "abnormal"} == {"10"}


def test_latex_escapes_and_has_as_many_cells_in_each_line(done: Comparison) -> None:
    tex = as_latex(done)
    assert r"good\_model" in tex
    assert r"95 \% intervals" in tex
    assert "30 studies" in tex
    body = tex.split(r"\midrule")[1].split(r"\bottomrule")[0]
    cells = {line.replace(r"\&", "").count("&") for line in body.strip().splitlines()}
    assert cells == {len(done.headline())}
    assert tex.count("{") == tex.count("}")


def test_markdown_says_the_number_of_studies_of_each_table(done: Comparison) -> None:
    said = as_markdown(done)
    for part in done.parts:
        assert f"**{part.name}**, {part.n} studies" in said
    assert "signature: protocol:full" in said


class Whole(HTMLParser):
    """Every element that is opened is closed, and nothing is fetched from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            assert name not in ("src", "href") or (value or "").startswith("data:"), value
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_stands_alone_and_shows_no_foreign_markup(done: Comparison, tmp_path: Path) -> None:
    written = write_comparison(done, tmp_path)
    assert [path.name for path in written] == [
        "compare.csv",
        "compare.tex",
        "compare.md",
        "compare.json",
        "compare.html",
    ]
    html = written[-1].read_text()
    reader = Whole()
    reader.feed(html)
    assert reader.open == []
    assert "<atelectasis>" not in html
    assert "&lt;atelectasis&gt;" in html
    assert "Where good_model and bad differ most" in html
    for heading in ("with their intervals", "By kind of study", "Each observation", "Length of", "labels became"):
        assert heading in html
    assert json.loads(written[3].read_text())["parts"][0]["n"] == 30


def test_digits_and_marks() -> None:
    assert cell_text("BLEU-4", Cell(0.17234, 0.16, 0.18, 0.0009)) == ("0.172***", "0.160 to 0.180")
    assert cell_text("distinct reports", Cell(1234.0)) == ("1,234", "")
    assert cell_text("x", Cell(float("nan"))) == ("-", "")
    assert cell_text("x", None) == ("-", "")
    assert [Cell(0, p=p).mark for p in (0.05, 0.049, 0.0099, None)] == ["", "*", "**", ""]

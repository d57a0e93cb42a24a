"""The papers' figures in the package against the sheet of all that they print: every figure, in both directions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from negatoscope.errors import WrongUse
from negatoscope.papers.paper import Paper, Row, Table, chosen_rows, paper_named, paper_names, table_of

Key = tuple[str, str, str, str, str]  # paper, table, row, data, figure
SHORT = {"B1": "BLEU-1", "B2": "BLEU-2", "B3": "BLEU-3", "B4": "BLEU-4", "M": "METEOR", "RL": "ROUGE-L", "C": "CIDEr"}
CLINICAL = {"P": "precision", "R": "recall", "F1": "F1", "A": "accuracy"}
OF_PAPER = {"contrastive-attention": "r2gen", "ithn": "r2gen", "wcl": "wcl", "cvse": "cvse"}
ROWS = {"hlstm-att-dual": "hlstm-dual", "co-att": "co-attention", "ca": "multi-attention+ca"}


def _column(paper: str, short: str) -> str:
    if short in CLINICAL:
        return f"CE {CLINICAL[short]} ({OF_PAPER[paper]})"
    return {**SHORT, "D": "diversity"}[short]


def _row(name: str) -> str:
    return ROWS.get(name, name)


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, str(key)))
    else:
        yield path, value


def _sheet(path: Path) -> dict[Key, float]:
    """The sheet's figures by where they stand in the package; what is no figure of a table is left out by name."""
    found: dict[Key, float] = {}
    for (paper, *rest), value in _leaves(yaml.safe_load(path.read_text(encoding="utf-8"))):
        if not rest or rest[-1] in ("unit", "dataset", "setting") or rest[0] == "training-time" or rest[-1] == "n":
            continue
        found[_place(paper, tuple(rest))] = value / (100 if _percent(paper, rest[0]) else 1)
    return found


def _percent(paper: str, table: str) -> bool:
    return paper == "wcl" or table in ("table-3-human", "abnormal-sentence-classifier-f1")


def _place(paper: str, rest: tuple[str, ...]) -> Key:  # noqa: PLR0911 - one line a table
    match (paper, *rest):
        case ("contrastive-attention", "table-1", host, data, "baseline", figure):
            return paper, "1", _row(host), data, _column(paper, figure)
        case ("contrastive-attention", "table-1", host, data, "with_ca", figure):
            return paper, "1", f"{_row(host)}+ca", data, _column(paper, figure)
        case ("contrastive-attention", "table-2", row, data, figure):
            ours = "multi-attention+ca" if row == "contrastive-attention" else row
            return paper, "2", ours, data, _column(paper, figure)
        case ("contrastive-attention", "table-3-human", asked, host, data, figure):
            return paper, "3", f"{asked}:{host}", data, figure.replace("_", " ")
        case ("contrastive-attention", "table-4-clinical", row, data, figure):
            return paper, "4", row, data, _column(paper, figure)
        case ("contrastive-attention", "table-5-ablation", "rows", letter, host, figure):
            return paper, "5", f"{host}:{letter}", "iu-xray", _column(paper, figure)
        case ("wcl", "table-1", data, row, figure):
            return paper, "1" if data == "mimic-abn" else "1-complete", row, data, _column(paper, figure)
        case ("wcl", "table-2-ablation-val", data, row, figure):
            return paper, "2", f"wcl-{row.split()[0]}", data, _column(paper, figure)
        case ("cvse", "table-1", data, row, figure):
            complete = data == "mimic-cxr-complete"
            where = ("1-complete", "mimic-cxr") if complete else ("1", data)
            return paper, where[0], row, where[1], _column(paper, figure)
        case ("cvse", "table-2-per-disease", "Macro-Average", row, figure):
            return paper, "2", row, "mimic-cxr-abnormal", _column(paper, figure)
        case ("cvse", "table-2-per-disease", disease, row, figure):
            return paper, "2", row, "mimic-cxr-abnormal", f"{disease}, {CLINICAL[figure]} (cvse)"
        case ("cvse", "human-likert-1-10", row):
            return paper, "3", row, "mimic-cxr-abnormal", "score"
        case ("cvse", "abnormal-sentence-classifier-f1"):
            return paper, "sentences", "bert", "open-i", "F1"
        case ("ithn", "table-1", data, row, figure):
            return paper, "1-coco" if data == "coco" else "1", _row(row), data, _column(paper, figure)
        case ("ithn", "table-2-clinical-mimic-cxr", row, figure):
            return paper, "2", row, "mimic-cxr", _column(paper, figure)
        case ("ithn", "table-3", "iu-xray components", row, figure):
            return paper, "3", re.sub("[ -]+", "-", row.lower()), "iu-xray", _column(paper, figure)
        case ("ithn", "table-3", "alpha", data, alpha, figure):
            return paper, "3-alpha", f"alpha-{alpha}", data, _column(paper, figure)
    raise AssertionError(f"a figure of the sheet has no place: {paper} {rest}")


def _ours() -> dict[Key, float]:
    return {
        (name, number, row.name, data, figure): value
        for name in paper_names()
        for number, table in paper_named(name).tables.items()
        for row in table.rows
        for data, figures in row.published.items()
        for figure, value in figures.items()
    }


def test_every_published_figure_is_the_sheets(shared: Callable[[str], Path]) -> None:
    wanted, ours = _sheet(shared("spec/published-results.yaml")), _ours()
    assert len(wanted) > 850
    assert sorted(wanted.keys() - ours.keys()) == []
    assert sorted(ours.keys() - wanted.keys()) == []
    wrong = {key: (ours[key], value) for key, value in wanted.items() if ours[key] != pytest.approx(value, abs=1e-9)}
    assert wrong == {}


def test_four_papers_and_our_grid() -> None:
    assert paper_names() == ["contrastive-attention", "cvse", "grid", "ithn", "wcl"]
    for name in paper_names():
        paper = paper_named(name)
        assert paper.paper
        assert "1" in paper.tables
    assert all(not row.published for row in paper_named("grid").tables["1"].rows)


def test_rows_that_papers_only_quote_are_never_trained() -> None:
    quoted = {row.label for name in paper_names() for table in paper_named(name).tables.values() for row in table.rows
              if row.quoted is not None}  # fmt: skip
    assert {"HRGR-Agent", "CMAS-RL", "SentSAT+KG", "KERP", "PPKED", "MedSkip"} <= quoted
    for name in paper_names():
        for table in paper_named(name).tables.values():
            assert all(row.published for row in table.rows if row.quoted is not None)


def test_wrong_names_are_answered_with_near_ones() -> None:
    with pytest.raises(WrongUse, match="did you mean 'contrastive-attention'"):
        paper_named("contrastive-atention")
    with pytest.raises(WrongUse, match="did you mean '3-alpha'"):
        table_of(paper_named("ithn"), "3-alfa")
    table = paper_named("contrastive-attention").tables["1"]
    with pytest.raises(WrongUse, match="did you mean 'hlstm"):
        chosen_rows(table, ("hlstmm",))


def test_rows_bring_those_they_are_tested_against() -> None:
    table = paper_named("contrastive-attention").tables["1"]
    assert [row.name for row in chosen_rows(table, ("up-down+ca", "nic"))] == ["nic", "up-down", "up-down+ca"]
    assert chosen_rows(table, ()) == table.rows


def test_a_paper_that_contradicts_itself_is_refused() -> None:
    row = {"name": "a", "label": "A", "recipe": "nic"}
    for changed, said in (
        ({**row, "quoted": "them"}, "exactly one of"),
        ({**row, "recipe": None}, "exactly one of"),
        ({**row, "against": "b"}, "which is no row"),
        ({**row, "published": {"iu-xray": {"BLEU-9": 0.1}}}, "which is no column"),
    ):
        with pytest.raises(ValueError, match=said):
            Table.model_validate({"title": "t", "columns": ["BLEU-4"], "rows": [changed]})
    with pytest.raises(ValueError, match="two rows are called"):
        Table.model_validate({"title": "t", "columns": [], "rows": [row, row]})
    assert Row.model_validate(row).recipe == "nic"
    assert Paper.model_fields.keys() >= {"paper", "setting", "tables"}

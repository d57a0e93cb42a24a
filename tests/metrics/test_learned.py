"""The wiring of metrics whose models are other people's packages. Here stand-ins with those packages' calls and return
values: the models themselves cannot be had on a machine without a network."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest

from negatoscope.errors import Trouble
from negatoscope.metrics import metric_named
from negatoscope.metrics.learned import HEADS

PREDICTIONS = ["edema", "clear", "edema fracture"]
REFERENCES = [["edema"], ["edema", "clear"], ["clear"]]


def install(monkeypatch: pytest.MonkeyPatch, name: str, **content: object) -> None:
    module = ModuleType(name)
    module.__dict__.update(content)
    monkeypatch.setitem(sys.modules, name, module)


class F1CheXbert:
    def get_label(self, report: str, mode: str) -> list[int]:
        assert mode == "rrg"
        return [int(name.lower() in report) for name in HEADS]


class F1RadGraph:
    def __init__(self, reward_level: str, model_type: str) -> None:
        assert (reward_level, model_type) == ("all", "radgraph-xl")

    def __call__(self, refs: list[str], hyps: list[str]) -> tuple[object, ...]:
        same = [float(a == b) for a, b in zip(refs, hyps)]
        rewards = (same, [s / 2 for s in same], [s / 4 for s in same])
        return tuple(np.mean(reward) for reward in rewards), rewards, [], []


class BERTScorer:
    def __init__(self, **settings: object) -> None:
        assert settings["model_type"] == "distilbert-base-uncased"

    def score(self, cands: list[str], refs: list[str]) -> tuple[np.ndarray, ...]:
        f = np.array([float(a == b) for a, b in zip(cands, refs)])
        return f, f, f


def figures(name: str) -> dict[str, float]:
    metric = metric_named(name)
    rows = metric.rows(PREDICTIONS, REFERENCES)
    assert len(rows) == len(PREDICTIONS)
    return {figure: float(value) for figure, value in metric.figures(rows.sum(axis=0)).items()}


def test_chexbert(monkeypatch: pytest.MonkeyPatch) -> None:
    """Edema: found once, missed once, invented once. Fracture: invented once."""
    install(monkeypatch, "f1chexbert", F1CheXbert=F1CheXbert)
    scored = figures("chexbert")
    assert scored["CheXbert F1, micro 14"] == pytest.approx(2 / 5)
    assert scored["CheXbert F1, macro 14"] == pytest.approx(0.5 / 14)
    assert scored["CheXbert F1, micro 5"] == pytest.approx(2 / 4)
    assert scored["CheXbert F1, macro 5"] == pytest.approx(0.5 / 5)


def test_radgraph_takes_the_best_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "radgraph", F1RadGraph=F1RadGraph)
    assert figures("radgraph") == pytest.approx(
        {"RadGraph F1, simple": 2 / 3, "RadGraph F1, partial": 1 / 3, "RadGraph F1, complete": 1 / 6}
    )


def test_bertscore(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "bert_score", BERTScorer=BERTScorer)
    assert figures("bertscore") == pytest.approx({"BERTScore": 2 / 3})


@pytest.mark.parametrize(
    ("name", "modules", "remedy"),
    [
        ("chexbert", ("f1chexbert", "RadEval", "RadEval.metrics.f1chexbert"), "pip install f1chexbert"),
        ("radgraph", ("radgraph",), "pip install radgraph"),
        ("bertscore", ("bert_score",), "pip install bert-score"),
    ],
)
def test_a_package_that_is_not_there_is_named(
    name: str, modules: tuple[str, ...], remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(Trouble, match=remedy):
        metric_named(name)


def test_weights_that_cannot_be_had_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network() -> None:
        raise OSError("offline\nand no cache")

    install(monkeypatch, "f1chexbert", F1CheXbert=no_network)
    with pytest.raises(Trouble, match=r"CheXbert's model cannot be loaded .OSError: offline and no cache") as raised:
        metric_named("chexbert")
    assert "\n" not in str(raised.value)

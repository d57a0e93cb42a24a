from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from negatoscope.errors import BadInput, Trouble, WrongUse
from negatoscope.metrics import METRICS, USUAL, metric_named
from negatoscope.metrics.evaluate import evaluate, read_earlier, score
from negatoscope.metrics.forms import read_reports
from negatoscope.metrics.pairs import pair
from negatoscope.metrics.protocol import protocol_named

PREDICTIONS = {"a": "The heart is normal.", "b": "No effusion.", "c": ""}
REFERENCES = {"a": "Heart size is normal. Lungs are clear.", "b": "No effusion.", "c": "Clear."}
LANGUAGE = ("bleu", "rouge", "cider", "diversity", "lengths")


def jsonl(path: Path, reports: dict[str, str]) -> Path:
    path.write_text("".join(json.dumps({"id": i, "report": text}) + "\n" for i, text in reports.items()))
    return path


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return jsonl(tmp_path / "predictions.jsonl", PREDICTIONS), jsonl(tmp_path / "references.jsonl", REFERENCES)


def test_every_figure_has_its_signature_and_the_number_of_studies(files: tuple[Path, Path]) -> None:
    done = evaluate(*files, metrics=LANGUAGE)
    said = done.as_json()
    assert json.loads(json.dumps(said)) == said
    assert said["n"] == 3
    assert said["empty_predictions"] == 1
    assert said["figures"].keys() == said["signatures"].keys()
    assert all("|n:3|" in line for line in said["signatures"].values())
    assert "metrics:bleu=pycocoevalcap-1.2|" in said["signatures"]["BLEU-4"]
    assert said["sources"]["predictions"]["form"] == "jsonl"
    assert np.isfinite(list(said["figures"].values())).all()


def test_rows_add_up_to_the_figures(files: tuple[Path, Path]) -> None:
    done = evaluate(*files, metrics=LANGUAGE)
    for metric in LANGUAGE:
        whole = done.figures_of(metric, np.ones(done.n))
        for figure, value in whole.items():
            assert value == pytest.approx(done.figures[figure]), figure


def test_the_protocols_differ_and_so_do_their_signatures(files: tuple[Path, Path], tmp_path: Path) -> None:
    full = evaluate(*files, metrics=["bleu"])
    r2gen = evaluate(*files, metrics=["bleu"], protocol=protocol_named("r2gen", vocabulary="iu-xray"))
    assert full.figures != r2gen.figures
    (tmp_path / "full.json").write_text(json.dumps(full.as_json()))
    assert read_earlier(tmp_path / "full.json", full) == pytest.approx(full.figures)
    with pytest.raises(WrongUse, match="they differ in protocol"):
        read_earlier(tmp_path / "full.json", r2gen)
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(BadInput, match="not an evaluation as --out writes it"):
        read_earlier(tmp_path / "other.json", full)


def test_what_was_not_asked_for_is_left_out_with_its_reason_and_what_was_raises(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("negatoscope.metrics.evaluate.USUAL", ("bleu", "copied"))
    done = evaluate(*files)
    assert done.left_out == {"copied": "copied needs the training reports; --train FILE"}
    assert "BLEU-4" in done.figures
    with pytest.raises(Trouble, match="copied needs the training reports"):
        evaluate(*files, metrics=["copied"])
    with pytest.raises(WrongUse, match="no metric 'blue'; did you mean 'bleu'"):
        evaluate(*files, metrics=["blue"])


def test_training_reports_are_prepared_as_the_predictions_are(files: tuple[Path, Path], tmp_path: Path) -> None:
    training = jsonl(tmp_path / "train.jsonl", {"t": "NO effusion"})
    done = evaluate(*files, metrics=["copied"], training=training)
    assert done.figures["copied"] == pytest.approx(1 / 3)


def test_missing_predictions_are_scored_as_empty_and_counted(tmp_path: Path) -> None:
    said = jsonl(tmp_path / "p.jsonl", {"a": PREDICTIONS["a"]})
    done = evaluate(said, jsonl(tmp_path / "r.jsonl", REFERENCES), metrics=["bleu"], missing="empty")
    assert done.n == 3
    assert done.as_json()["missing_predictions"] == 2


def test_a_metric_that_reads_sentences_gets_them(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    read = {}

    class Reader:
        name, version, labels, reads_sentences = "reader", "1", "strict", True

        def rows(self, predictions: list[str], references: list[list[str]]) -> np.ndarray:
            read["texts"] = predictions
            return np.ones((len(predictions), 1))

        def figures(self, totals: np.ndarray) -> dict[str, np.ndarray]:
            return {"reader": totals[..., 0]}

    monkeypatch.setattr("negatoscope.metrics.evaluate.metric_named", lambda *_: Reader())
    monkeypatch.setattr("negatoscope.metrics.evaluate.known_metric", lambda name: name)
    done = evaluate(*files, metrics=["reader"])
    assert read["texts"][0] == "The heart is normal."
    assert done.signature.labels == "strict"


def test_every_usual_metric_is_registered_and_can_be_imported() -> None:
    assert set(USUAL) <= set(METRICS)
    for name in ("bleu", "rouge", "cider", "diversity", "lengths"):
        assert metric_named(name).name == name
    assert metric_named("copied", ["x"]).name == "copied"


def test_equal_to_pycocoevalcap_with_its_own_tokens(files: tuple[Path, Path], shared) -> None:
    """The protocol full is pycocoevalcap's pipeline: its tokens, then its BLEU. See test_tokenise.py for the tokens."""
    from negatoscope.metrics.bleu import Bleu
    from negatoscope.metrics.tokenise import ptb_words

    reports = read_reports(shared("data/iu-xray/annotation.json"), role="reference", split="val")
    done = score(pair(reports, reports), metrics=["bleu"])
    assert done.figures["BLEU-4"] == pytest.approx(1)
    words = [" ".join(ptb_words(text)) for text in reports.texts]
    rows = Bleu().rows(words, [[text] for text in words])
    np.testing.assert_array_equal(rows, done.rows["bleu"])

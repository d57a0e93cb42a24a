from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from negatoscope.errors import BadInput, WrongUse
from negatoscope.metrics import baselines
from negatoscope.metrics.baselines import constant_report, nearest_by_features, nearest_reports
from negatoscope.metrics.bleu import Bleu
from negatoscope.metrics.protocol import Protocol, protocol_named
from negatoscope.studies.store import About, Store, write_about, write_part
from negatoscope.studies.study import Picture, Study

NORMAL = "The heart is normal in size. The lungs are clear. No pleural effusion or pneumothorax."
TRAINING = [
    *[NORMAL] * 6,
    "The lungs are clear. The heart is enlarged. There is a small pleural effusion.",
    "No pleural effusion or pneumothorax. The heart is normal in size. The lungs are clear.",
    "",
    "There is a large mass in the left upper lobe.",
]


@pytest.mark.parametrize("protocol", [Protocol(), protocol_named("r2gen", vocabulary="iu-xray", max_words=14)])
def test_the_quick_score_is_bleu_of_the_report_for_everybody(protocol: Protocol) -> None:
    chosen = constant_report(TRAINING, TRAINING[:4], protocol)
    said = protocol.words([chosen.report], "prediction")
    for references, quick in ((TRAINING, chosen.training_bleu), (TRAINING[:4], chosen.validation_bleu)):
        asked = [[text] for text in protocol.words(references, "reference")]
        rows = Bleu().rows(said * len(asked), asked)
        assert quick == pytest.approx(float(Bleu().figures(rows.sum(axis=0))["BLEU-4"]), abs=1e-12)


def test_the_search_beats_every_training_report() -> None:
    mixed = ["A b c d e. F g h i j.", "F g h i j. K l m n o.", "A b c d e. K l m n o."] * 3
    chosen = constant_report(mixed)
    score = baselines._ConstantBleu(Protocol().words(mixed, "reference"))
    whole = [score(text.split()) for text in Protocol().words(mixed, "prediction")]
    assert chosen.training_bleu >= max(whole)
    assert chosen.validation_bleu is None
    assert chosen.candidates > 3


def test_validation_decides_and_nothing_else_is_seen() -> None:
    kinds = ["One two three four five.", "Six seven eight nine ten."]
    assert constant_report([*kinds[:1] * 3, *kinds[1:] * 2], kinds[1:]).report == kinds[1]
    assert constant_report([*kinds[:1] * 3, *kinds[1:] * 2], kinds[:1]).report == kinds[0]


def test_of_very_many_training_reports_some_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "MOST_TRAINING", 3)
    assert constant_report(["a b c d.", "w x y z."] * 5 + ["a b c d."] * 2).candidates < 10
    assert constant_report([*["a b c d."] * 9, "w x y z."]).report == "a b c d."


def test_nothing_to_choose_from() -> None:
    with pytest.raises(WrongUse, match="no training reports"):
        constant_report(["", " "])


def test_the_nearest_has_the_largest_cosine() -> None:
    training = np.array([[1.0, 0], [0, 2], [3, 3]])
    assert nearest_reports(np.array([[0.0, 9], [5, 4], [0, 0]]), training, ["a", "b", "c"]) == ["b", "c", "a"]
    rng = np.random.default_rng(0)
    queries, known = rng.normal(size=(1500, 8)), rng.normal(size=(50, 8))
    cosine = queries @ known.T / np.linalg.norm(known, axis=1)
    assert nearest_reports(queries, known, [str(k) for k in range(50)]) == [str(k) for k in cosine.argmax(axis=1)]
    with pytest.raises(WrongUse, match="features of 3 training studies, and 2 reports"):
        nearest_reports(training, training, ["a", "b"])


class Cache:
    """Features by hash, as a FeatureCache gives them."""

    def __init__(self, features: dict[str, np.ndarray]) -> None:
        self.features = features

    def get(self, sha256: str) -> np.ndarray:
        return self.features[sha256]


def store_of(path: Path, studies: list[Study]) -> Store:
    write_part(path, 0, studies)
    write_about(path, About(source="test", complete=True, parts=1, counts={"studies": len(studies)}))
    return Store.open(path)


def test_the_nearest_by_features_is_a_training_study_and_never_the_study_itself(tmp_path: Path) -> None:
    def study(name: str, split: str, *hashes: str) -> Study:
        return Study(name, tuple(Picture(h, sha256=h) for h in hashes), f"report {name}", split)  # pyright: ignore[reportArgumentType]

    cache = Cache({"x": np.ones((2, 3), np.float16), "y": np.eye(3, dtype=np.float16)[:1].repeat(2, axis=0)})
    studies = [study("t1", "train", "x"), study("t2", "train", "y"), study("v1", "val", "y", "y"), study("v2", "val")]
    store = store_of(tmp_path / "store", studies)
    assert nearest_by_features(["v1"], store, cache) == ["report t2"]  # pyright: ignore[reportArgumentType]
    assert nearest_by_features(["t1"], store, cache) == ["report t2"]  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadInput, match="no study 'v9'"):
        nearest_by_features(["v9"], store, cache)  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadInput, match="study v2: has no pictures"):
        nearest_by_features(["v2"], store, cache)  # pyright: ignore[reportArgumentType]


def test_on_real_reports_the_constant_beats_a_typical_normal_report(shared) -> None:
    from negatoscope.metrics.forms import read_reports

    path = shared("data/iu-xray/annotation.json")
    training, validation = (read_reports(path, role="reference", split=split).texts for split in ("train", "val"))
    chosen = constant_report(training[:600], validation)
    assert chosen.validation_bleu is not None
    assert chosen.validation_bleu > 0.12

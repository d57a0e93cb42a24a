"""Every figure of clinical efficacy against scikit-learn's, on labels drawn by hypothesis."""

from __future__ import annotations

import csv
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import accuracy_score, jaccard_score, precision_recall_fscore_support

from negatoscope.errors import BadInput, WrongUse
from negatoscope.metrics.clinical import (
    COLUMNS,
    STATES,
    Clinical,
    averaged,
    code,
    each_observation,
    rows_of,
    tables,
    two_questions,
)
from negatoscope.metrics.clinical_settings import (
    ABNORMAL,
    AVERAGES,
    LITERATURE,
    MEASURES,
    SETS,
    UNCERTAIN,
    USUAL_SETTINGS,
    Way,
    every_setting,
    settings_named,
)
from negatoscope.metrics.evaluate import evaluate, score
from negatoscope.metrics.forms import read_reports
from negatoscope.metrics.given_labels import read_labels
from negatoscope.metrics.pairs import pair
from negatoscope.studies.study import OBSERVATIONS

POSITIVE, NEGATIVE, UNSURE, BLANK = range(4)
states = st.integers(1, 12).flatmap(lambda n: arrays(np.int8, (2, n, 14), elements=st.integers(0, 3)))


def binary(asked: np.ndarray, said: np.ndarray, policy: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both sides as 0 and 1, and which cells count: written out once more, state by state."""
    yes = {"positive": (POSITIVE, UNSURE)}.get(policy, (POSITIVE,))
    counts = (asked != UNSURE) & (said != UNSURE) if policy == "ignore" else np.ones(asked.shape, bool)
    return np.isin(asked, yes).astype(int), np.isin(said, yes).astype(int), counts


def by_sklearn(asked: np.ndarray, said: np.ndarray, way: Way) -> dict[str, float]:
    true, pred, counts = (part[:, SETS[way.over]] for part in binary(asked, said, way.uncertain))
    keep = {"average": None, "zero_division": 0.0}
    if way.average == "example":
        p, r, f, _ = precision_recall_fscore_support(true * counts, pred * counts, average="samples", zero_division=0.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            a = jaccard_score(true * counts, pred * counts, average="samples", zero_division=0.0)
    elif way.average == "micro":
        if not counts.any():
            return dict.fromkeys(MEASURES, 0.0)
        p, r, f, _ = precision_recall_fscore_support(true[counts], pred[counts], average="binary", zero_division=0.0)
        a = accuracy_score(true[counts], pred[counts])
    else:
        each, support = [], []
        for k in range(true.shape[1]):
            t, q = true[counts[:, k], k], pred[counts[:, k], k]
            if len(t):
                scores = precision_recall_fscore_support(t, q, labels=[1], **keep)
                each.append([scores[0][0], scores[1][0], scores[2][0], accuracy_score(t, q)])
            else:
                each.append([0.0] * 4)
            support.append(t.sum())
        weights = None if way.average == "macro" else support
        p, r, f, a = (
            np.zeros(4) if weights is not None and not sum(weights) else np.average(each, axis=0, weights=weights)
        )
    return {"precision": p, "recall": r, "F1": f, "accuracy": a}


@settings(max_examples=6, deadline=None)
@given(states)
def test_every_combination_equals_scikit_learn(drawn: np.ndarray) -> None:
    asked, said = drawn
    totals = rows_of(asked, said).sum(axis=0)
    for average, over, policy in product(AVERAGES, SETS, UNCERTAIN):
        way = Way(average, over, policy)
        ours, theirs = averaged(totals, way), by_sklearn(asked, said, way)
        for measure, value in theirs.items():
            assert ours[measure] == pytest.approx(value, abs=1e-12), f"{measure} of {way}"


@settings(max_examples=12, deadline=None)
@given(states)
def test_macro_micro_and_weighted_equal_scikit_learns_own_averages(drawn: np.ndarray) -> None:
    asked, said = drawn
    totals = rows_of(asked, said).sum(axis=0)
    for average, over, policy in product(("macro", "micro", "weighted", "example"), SETS, ("positive", "negative")):
        true, pred, _ = (part[:, SETS[over]] for part in binary(asked, said, policy))
        name = "samples" if average == "example" else average
        theirs = precision_recall_fscore_support(true, pred, average=name, zero_division=0.0)
        ours = averaged(totals, Way(average, over, policy))
        assert [ours["precision"], ours["recall"], ours["F1"]] == pytest.approx(theirs[:3], abs=1e-12)


@settings(max_examples=12, deadline=None)
@given(states)
def test_rows_add_up_for_draws_too(drawn: np.ndarray) -> None:
    asked, said = drawn
    rows = rows_of(asked, said)
    assert rows.shape == (len(asked), COLUMNS)
    weights = np.random.default_rng(0).multinomial(len(asked), np.full(len(asked), 1 / len(asked)), size=3)
    metric = Clinical("all")
    together = metric.figures(weights @ rows)
    for k, counts in enumerate(weights):
        again = np.repeat(np.arange(len(asked)), counts)
        alone = metric.figures(rows_of(asked[again], said[again]).sum(axis=0))
        for figure, value in alone.items():
            assert together[figure][k] == pytest.approx(value, abs=1e-12), figure


def test_the_two_questions_by_hand() -> None:
    edema, opacity, devices = (OBSERVATIONS.index(name) for name in ("Edema", "Lung Opacity", "Support Devices"))
    asked, said = np.full((2, 5, 14), BLANK, np.int8)
    asked[0, [edema, opacity]], said[0, edema] = POSITIVE, POSITIVE  # one of two
    asked[1, edema] = UNSURE  # nothing of it
    asked[2, 0], said[2, opacity] = POSITIVE, UNSURE  # normal, and something is seen
    asked[3, devices] = POSITIVE  # a device is no abnormality
    asked[4, edema], said[4, edema] = POSITIVE, POSITIVE
    totals = rows_of(asked, said).sum(axis=0)
    of = {policy: [float(v) for v in two_questions(totals, policy).values()] for policy in UNCERTAIN}
    assert of["positive"] == pytest.approx([2 / 3, 1 / 3, 1 / 5])
    assert of["negative"] == pytest.approx([1 / 2, 0, 0])
    assert of["ignore"] == pytest.approx([1 / 2, 0, 0])
    assert len(ABNORMAL) == 12


def test_tables_hold_every_cell_once() -> None:
    asked, said = np.random.default_rng(0).integers(0, 4, (2, 30, 14)).astype(np.int8)
    met = tables(rows_of(asked, said).sum(axis=0))
    assert met.shape == (14, 4, 4)
    assert (met.sum(axis=(1, 2)) == 30).all()
    assert met[3, 2, 0] == ((asked[:, 3] == UNSURE) & (said[:, 3] == POSITIVE)).sum()


def test_the_literatures_settings() -> None:
    """What they mean, written out: R2Gen counts uncertain as negative, WCL as positive, CVSE adds accuracy."""
    asked = code([{"Edema": 1}, {"Edema": -1}, {"No Finding": 1}])
    said = code([{"Edema": 1}, {"Edema": 1}, {"No Finding": 1}])
    totals = rows_of(asked, said).sum(axis=0)
    figures = Clinical(list(LITERATURE)).figures(totals)
    assert figures["CE precision (r2gen)"] == pytest.approx((0.5 + 1) / 14)
    assert figures["CE precision (wcl)"] == pytest.approx(2 / 14)
    assert figures["CE accuracy (cvse)"] == 1
    assert figures["Edema, recall (cvse)"] == 1
    assert figures["CE F1, micro 5 (chexbert)"] == 1
    assert figures["CE F1, macro 5 (chexbert)"] == pytest.approx(1 / 5)
    assert figures["CE F1 (example)"] == 1
    assert figures["missed abnormality"] == 0
    assert not [name for name in figures if not np.isfinite(figures[name])]


def test_names_of_settings() -> None:
    assert [s.name for s in settings_named("wcl, micro-5-ignore")] == ["wcl", "micro-5-ignore"]
    assert [s.name for s in settings_named("usual")] == list(USUAL_SETTINGS)
    assert len(settings_named("all")) == len(every_setting()) == len(LITERATURE) + 36 + 3
    with pytest.raises(WrongUse, match="no setting of clinical efficacy 'wlc'; did you mean 'wcl'"):
        settings_named("wlc")
    with pytest.raises(WrongUse, match="usual, all, r2gen"):
        settings_named(" , ")


def test_the_labeler_reads_the_reports_and_the_signature_says_so(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("id,report\na,There is a small pleural effusion.\nb,Lungs are clear.\n")
    (tmp_path / "r.csv").write_text("id,report\na,No pleural effusion.\nb,The lungs are clear.\n")
    done = evaluate(tmp_path / "p.csv", tmp_path / "r.csv", metrics=["clinical"])
    assert done.figures["invented abnormality"] == 0.5
    assert done.signature.labels == "chexpert-rules-1.r2gen+wcl+chexbert+findings+example+ca"
    effusion = done.as_json()["details"]["clinical"]
    assert effusion["reference_by_prediction"]["Pleural Effusion"][STATES.index("negative")][0] == 1
    assert effusion["observations"]["positive"]["Pleural Effusion"]["in predictions"] == 1


def labels_file(path: Path, rows: list[dict[str, str]], ids: list[str] | None = None) -> Path:
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(("study_id" if ids else "Reports", *OBSERVATIONS))
        for k, row in enumerate(rows):
            out.writerow(((ids[k] if ids else "line\nbreak"), *(row.get(name, "") for name in OBSERVATIONS)))
    return path


def test_given_labels_take_the_labelers_place_in_any_order(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("id,report\nb,x\na,x\n")
    (tmp_path / "r.csv").write_text("id,report\na,x\nb,x\n")
    said = labels_file(tmp_path / "said.csv", [{"Edema": "1.0"}, {"Edema": "-1.0"}])  # in the order of p.csv: b, a
    asked = labels_file(tmp_path / "asked.csv", [{"Edema": "-1"}, {"Edema": "0"}], ["a", "b"])
    done = evaluate(tmp_path / "p.csv", tmp_path / "r.csv", metrics=["clinical"], labels=said, reference_labels=asked)
    met = tables(done.rows["clinical"])[:, OBSERVATIONS.index("Edema")]
    assert met[0, UNSURE, UNSURE] == 1
    assert met[1, NEGATIVE, POSITIVE] == 1
    assert ".predictions-given.references-given-" in done.signature.labels


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("id,Edema\na,1\n", "l.csv:1: no column 'No Finding'"),
        (",".join(("id", *OBSERVATIONS)) + "\na" + ",2" * 14 + "\n", "l.csv:2: No Finding is '2'"),
        (",".join(("id", *OBSERVATIONS)) + "\na,1\n", "l.csv:2: 2 columns where the header has 15"),
        (",".join(("id", *OBSERVATIONS)) + ("\na" + "," * 14) * 2 + "\n", "study 'a' stands twice"),
        (",".join(("id", *OBSERVATIONS)) + '\n"a', "not CSV"),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_bad_label_files_are_named(tmp_path: Path, text: str | bytes, line: str) -> None:
    path = tmp_path / "l.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BadInput) as raised:
        read_labels(path)
    assert line in str(raised.value)


def test_labels_of_another_number_of_reports_are_refused(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("id,report\na,x\nb,x\n")
    reports = read_reports(tmp_path / "p.csv")
    with pytest.raises(BadInput, match="labels of 1 reports"):
        read_labels(labels_file(tmp_path / "l.csv", [{}])).of(reports)
    with pytest.raises(BadInput, match="no labels for 1 studies, 'b' the first"):
        read_labels(labels_file(tmp_path / "l.csv", [{}], ["a"])).of(reports)


def test_on_real_reports_against_the_originals_labels(shared) -> None:
    """References against themselves are perfect; and our labels against the original's on the same texts agree."""
    reports = read_reports(shared("data/iu-xray/annotation.json"), role="reference", split="val")
    done = score(pair(reports, reports), metrics=["clinical"])
    assert done.figures["CE F1, micro 14 (chexbert)"] == 1
    assert done.figures["missed abnormality"] == done.figures["invented abnormality"] == 0
    with shared("data/iu-xray/studies.csv").open(newline="") as file:
        theirs = {row["id"]: row for row in csv.DictReader(file) if row["labels_from_same_text"] == "1"}
    known = [i for i in reports.ids if i in theirs]
    asked = code([{n: int(float(theirs[i][n])) for n in OBSERVATIONS if theirs[i][n]} for i in known])
    said = Clinical().coded([text for i, text in zip(reports.ids, reports.texts) if i in theirs])
    values = averaged(rows_of(asked, said).sum(axis=0), Way("micro", 14, "negative"))
    assert values["F1"] > 0.97


def test_empty_and_very_long_reports_are_scored() -> None:
    """A report without a word is No Finding, as in the original; one of 100,000 words is read to its end."""
    long = "The lungs are clear. " * 25_000 + "There is a pneumothorax."
    rows = Clinical().rows(["", long], [["There is edema."], ["There is a pneumothorax."]])
    met = tables(rows)
    assert met[0, 0, BLANK, POSITIVE] == 1
    assert met[1, OBSERVATIONS.index("Pneumothorax"), POSITIVE, POSITIVE] == 1


def test_each_observation_has_its_support() -> None:
    asked, said = code([{"Edema": 1}, {"Edema": -1}]), code([{"Edema": 1}, {}])
    figures = each_observation(rows_of(asked, said).sum(axis=0), "ignore")
    edema = OBSERVATIONS.index("Edema")
    assert figures["in references"][edema] == 1
    assert figures["accuracy"][edema] == 1
    assert each_observation(rows_of(asked, said).sum(axis=0), "positive")["recall"][edema] == 0.5

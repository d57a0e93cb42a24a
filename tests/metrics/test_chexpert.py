"""The labeler: what it finds, what it takes each sentence to say, and how a report's labels come of that."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from negatoscope.errors import BadInput
from negatoscope.metrics.chexpert.aggregate import aggregate
from negatoscope.metrics.chexpert.classify import Classifier
from negatoscope.metrics.chexpert.labeler import LONGEST_SENTENCE, Labeler
from negatoscope.metrics.chexpert.mentions import Mention, Vocabulary
from negatoscope.metrics.chexpert.sentences import clean, sentences
from negatoscope.metrics.chexpert.words import tokens
from negatoscope.studies.study import OBSERVATIONS

HEART, MEDIASTINUM, OPACITY, LESION = "Cardiomegaly", "Enlarged Cardiomediastinum", "Lung Opacity", "Lung Lesion"
EFFUSION, DEVICES, NORMAL = "Pleural Effusion", "Support Devices", "No Finding"


@pytest.fixture(scope="module")
def labeler() -> Labeler:
    return Labeler()


# One sentence, and all that the original says of it.
SAID = {
    # absent
    "No pneumothorax or effusion.": {"Pneumothorax": 0, EFFUSION: 0},
    "No consolidation, effusion, edema.": {"Consolidation": 0, EFFUSION: 0, "Edema": 0},
    "Lungs clear of consolidation, effusion or pneumothorax.": {"Consolidation": 0, EFFUSION: 0, "Pneumothorax": 0},
    "There is no evidence of pneumonia.": {"Pneumonia": 0},
    "Cardiomegaly without edema.": {HEART: 1, "Edema": 0},
    "There is no opacity to suggest pneumonia.": {OPACITY: 0, "Pneumonia": 0},
    "The heart is normal in size.": {HEART: 0},
    "The heart is not enlarged.": {HEART: 0},
    "Heart size within normal limits.": {HEART: 0},
    "Heart size and mediastinal contours are normal.": {HEART: 0, MEDIASTINUM: 0},
    "The previous effusion has resolved.": {EFFUSION: 0},
    "The picc has been removed.": {DEVICES: 0},
    "Interval resolution of edema.": {"Edema": 0},
    "The right pneumothorax is no longer seen.": {"Pneumothorax": 0},
    "Impression: no edema. Effusion.": {"Edema": 0, EFFUSION: 1},
    # uncertain
    "Opacity may represent atelectasis.": {OPACITY: 1, "Atelectasis": -1},
    "Pneumonia cannot be excluded.": {"Pneumonia": -1},
    "Atelectasis or pneumonia.": {"Atelectasis": -1, "Pneumonia": -1},
    "Atelectasis versus pneumonia.": {"Atelectasis": -1, "Pneumonia": -1},
    "No new consolidation.": {"Consolidation": -1},
    "Suspicious for pneumonia.": {"Pneumonia": -1},
    "There may be a small effusion.": {EFFUSION: -1},
    "An effusion is suspected.": {EFFUSION: -1},
    "The mediastinal contours are stable.": {MEDIASTINUM: -1},
    "Mild pulmonary vascular congestion.": {"Edema": -1},
    # present
    "Small left effusion with adjacent atelectasis.": {EFFUSION: 1, "Atelectasis": 1},
    "Likely atelectasis.": {"Atelectasis": 1},
    "No change in the left effusion.": {EFFUSION: 1},
    "Cardiomegaly is unchanged.": {HEART: 1},
    "The heart is enlarged, but there is no edema.": {HEART: 1, "Edema": 0},
    "Left picc tip in the atrium, no pneumothorax.": {DEVICES: 1, "Pneumothorax": 0},
    # what the original's parser misreads, and what its terms find beside their meaning
    "The heart size appears within normal limits.": {HEART: 1},
    "The heart size is stable.": {HEART: 1},
    "No displaced rib fractures.": {"Fracture": 1},
    "There are no displaced rib fractures.": {"Fracture": 0},
    "Pneumothorax is not seen.": {"Pneumothorax": 1},
    "Old tuberculosis.": {DEVICES: 1},
    "Clips in the superior mediastinum.": {MEDIASTINUM: 1},
    # exclusions
    "Pericardial effusion.": {},
    "Calcified nodule.": {},
    "Clips in the superior mediastinal silhouette.": {},
    "Leads over the left cardiac silhouette.": {},
}


@pytest.mark.parametrize(("sentence", "labels"), SAID.items())
def test_sentence(labeler: Labeler, sentence: str, labels: dict[str, int]) -> None:
    found = labeler.label(sentence)
    found.pop(NORMAL, None)
    assert found == labels


def test_line_breaks_placeholders_and_headers(labeler: Labeler) -> None:
    report = """FINAL REPORT
 EXAMINATION:  CHEST (PA AND LAT)

 FINDINGS:  In comparison with the study of ___, there is no
 focal consolidation, pleural
 effusion or pneumothorax.  The cardiac silhouette is
 mildly enlarged.

 IMPRESSION:

 1.  Mild cardiomegaly.
 2.  No pneumonia.
"""
    assert labeler.label(report) == {HEART: 1, "Consolidation": 0, "Pneumonia": 0, "Pneumothorax": 0, EFFUSION: 0}


def test_no_finding_is_for_reports_in_which_only_devices_are_present(labeler: Labeler) -> None:
    assert labeler.label("") == {NORMAL: 1}
    assert labeler.label("The lungs are clear.") == {NORMAL: 1}
    assert labeler.label("A picc is seen.") == {NORMAL: 1, DEVICES: 1}
    assert NORMAL not in labeler.label("There may be an effusion.")
    assert NORMAL not in labeler.label("Mild scoliosis.")
    assert labeler.label("No scoliosis.") == {NORMAL: 1}


def test_heart_failure_hints_at_cardiomegaly(labeler: Labeler) -> None:
    assert labeler.label("Heart failure.") == {HEART: -1, "Edema": 1}
    assert labeler.label("No heart failure.") == {NORMAL: 1, "Edema": 0}
    assert labeler.label("Cardiomegaly and heart failure.") == {HEART: 1, "Edema": 1}


@pytest.mark.parametrize(
    ("labels", "one"),
    [([1, 0], 1), ([1, -1], 1), ([0, -1], -1), ([1, 0, -1], -1), ([0, 0], 0), ([-1], -1)],
)
def test_of_several_mentions(labels: list[int], one: int) -> None:
    """With absent and uncertain mentions the original says uncertain, also where a third is present."""
    mentions = [(Mention("Edema", 0, 5, "edema"), label) for label in labels]
    assert aggregate(mentions)["Edema"] == one


def test_what_is_said_of_a_mention_is_said_of_those_inside_it(labeler: Labeler) -> None:
    assert labeler.label("Normal cardiac silhouette and vascularity.") == {NORMAL: 1, MEDIASTINUM: 0, HEART: 0}


def test_cleaning_and_sentences() -> None:
    text = clean("Impression:\n1.No edema,and/or effusion/mass..  2. Stable. Dr. who")
    assert text == "impression: 1. no edema, or effusion or mass. 2. stable. dr. who"
    assert list(sentences(text)) == ["impression: 1. no edema, or effusion or mass.", "2. stable.", "dr. who"]
    assert list(sentences(clean(""))) == []
    assert list(sentences(clean("No period"))) == ["no period"]


@settings(max_examples=100, deadline=None)
@given(st.text())
def test_sentences_and_tokens_lose_nothing(text: str) -> None:
    cleaned = clean(text)
    assert " ".join(sentences(cleaned)) == cleaned
    for token in tokens(cleaned):
        assert cleaned[token.start : token.end] == token.text
    assert "".join(token.text for token in tokens(cleaned)) == "".join(cleaned.split())


WORDS = (
    "no not without the heart is may be effusion , . or and versus pneumothorax of limits within normal there are are "
    "no suggest to opacity evidence seen xxxx but which cannot excluded mild ( ) : new stable"
)


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(), st.lists(st.sampled_from(WORDS.split()), max_size=40).map(" ".join)))
def test_any_text_gets_labels(labeler: Labeler, text: str) -> None:
    labels = labeler.label(text)
    assert list(labels) == [name for name in OBSERVATIONS if name in labels]
    assert set(labels.values()) <= {1, 0, -1}
    assert (NORMAL in labels) == all(
        mention.status == "absent" or mention.observation == DEVICES for mention in labeler.explain(text)
    )


def test_very_long_reports(labeler: Labeler) -> None:
    """They cost what their sentences cost; one endless sentence is not parsed, as the original's parser gives up."""
    assert labeler.label("No edema. " * 50_000)["Edema"] == 0
    assert labeler.label("no edema " * 50_000)["Edema"] == 1
    assert labeler.label("in the left cardiac silhouette " * 25_000) == {NORMAL: 1}
    assert labeler.label("x" * 1_000_000) == {NORMAL: 1}
    longest = "no edema" + " and" * (LONGEST_SENTENCE - 2)
    assert labeler.label(longest)["Edema"] == 0
    assert labeler.label(longest + " and")["Edema"] == 1


def test_processes_give_the_same_in_the_same_order(labeler: Labeler) -> None:
    reports = [f"{'No' if number % 3 else 'Large'} effusion. Picc {number}." for number in range(1_200)]
    assert labeler.label_many(reports, processes=2) == labeler.label_many(reports)


def test_explain(labeler: Labeler) -> None:
    first, second = labeler.explain("The lungs are clear.\nNo effusion, but mild cardiomegaly.")[:2]
    assert (first.observation, first.phrase, first.status, first.because) == (EFFUSION, "effusion", "absent", "no X")
    assert first.sentence == "no effusion, but mild cardiomegaly."
    assert first.rule == "X has (no) any"
    assert second.observation == HEART


def test_own_rules(tmp_path: Path, labeler: Labeler) -> None:
    (tmp_path / "observations.yaml").write_text("Fracture: {terms: ['broken {rib|arm}']}", encoding="utf-8")
    own = Labeler(tmp_path)
    assert own.label("A broken arm, no broken rib. Effusion.") == {"Fracture": 1}
    assert own.label_many(["No broken rib."] * 600, processes=2)[-1] == {NORMAL: 1, "Fracture": 0}


def test_a_folder_without_rules_is_not_labelled_by_the_packages(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"none of observations\.yaml, statements\.yaml, words\.yaml is in it; copy"):
        Labeler(tmp_path)
    with pytest.raises(BadInput, match="no such folder of rules"):
        Labeler(tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("observations.yaml", "Fractures: {terms: [x]}", "did you mean 'Fracture'"),
        ("observations.yaml", "Fracture: {term: [x]}", "terms, not, not behind"),
        ("observations.yaml", "Fracture: {terms: ['']}", "empty term"),
        ("statements.yaml", "absent: {no X: [X hat no]}", "'hat' stands where has or under should"),
        ("statements.yaml", "absent: {no X: [Y has no]}", "must begin with X"),
        ("statements.yaml", "absent: {no X: ['X [has no']}", "bracket is not closed"),
        ("statements.yaml", "absent: {no X: ['X has no]']}", "closed that was not opened"),
        ("statements.yaml", "absent: {no X: [X has]}", "ends too early"),
        ("statements.yaml", "absent: {no X: ['X has @nobody']}", "no list of words is called 'nobody'"),
        ("statements.yaml", "abscent: {no X: [X has no]}", "did you mean 'absent'"),
        ("words.yaml", "verbs: see", "no list called"),
        ("words.yaml", "a: [", "not YAML"),
        ("words.yaml", "- a", "not a table"),
    ],
)
def test_bad_rules_say_where(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=name.replace(".", r"\.")) as caught:
        Labeler(tmp_path)
    assert said in str(caught.value)


def test_rule_conditions() -> None:
    """Brackets are conditions on the word before them, and all must hold."""
    table = {"absent": {"two": ["X [has (quality) small] [has no]"]}}
    labeler = Labeler()
    labeler._classifier = Classifier.of(table)
    assert labeler.label("No small effusion.")[EFFUSION] == 0
    assert labeler.label("No effusion.")[EFFUSION] == 1
    assert labeler.label("Small effusion.")[EFFUSION] == 1


def test_terms_are_found_anywhere_and_more_than_once() -> None:
    found = Vocabulary({"Fracture": {"terms": ["fract"], "not": ["infract"]}, "other findings": {"a": ["{x|y}_z"]}})
    assert [(m.observation, m.start) for m in found.find("fract refracts infraction x zy z")] == [
        ("Fracture", 0),
        ("Fracture", 8),
        ("other findings", 26),
        ("other findings", 29),
    ]


def agreement(labeler: Labeler, folder: Path, split: str) -> Counter[tuple[int | None, int | None]]:
    """(the original's label, ours) -> cells, over the reports whose very text the original labelled."""
    reports = {entry["id"]: entry["report"] for entry in json.loads((folder / "annotation.json").read_text())[split]}
    cells: Counter[tuple[int | None, int | None]] = Counter()
    with (folder / "studies.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["id"] in reports and row["labels_from_same_text"] == "1":
                labels = labeler.label(reports[row["id"]])
                said = {name: int(float(row[name])) for name in OBSERVATIONS if row[name]}
                cells.update((said.get(name), labels.get(name)) for name in OBSERVATIONS)
    return cells


@pytest.mark.parametrize(("split", "reports"), [("train", 2_064), ("val", 296)])
def test_agreement_with_the_original(labeler: Labeler, shared: Callable[[str], Path], split: str, reports: int) -> None:
    """Rules were made on the training split. Of the validation split only these sums may be looked at."""
    cells = agreement(labeler, shared("data/iu-xray"), split)
    assert cells.total() == reports * 14
    assert sum(count for (theirs, ours), count in cells.items() if theirs == ours) / cells.total() >= 0.994
    f1 = {}
    for state in (1, 0, -1, None):
        theirs = sum(count for (label, _), count in cells.items() if label == state)
        ours = sum(count for (_, label), count in cells.items() if label == state)
        f1[state] = 2 * cells[state, state] / (theirs + ours)
    assert sum(f1.values()) / 4 >= 0.96
    assert f1[1] >= 0.975

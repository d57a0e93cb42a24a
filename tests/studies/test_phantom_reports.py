"""Reports of phantom studies: what is drawn is told, what is told is drawn, and normal sentences dominate."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from negatoscope.errors import BadInput
from negatoscope.studies.phantom import FINDINGS, PhantomSettings
from negatoscope.studies.phantom.findings import Finding, draw_finding
from negatoscope.studies.phantom.grammar import Person, Report, write_report
from negatoscope.studies.phantom.planning import Plan, plan_study
from negatoscope.studies.phantom.sentences import parse_grammar, the_grammar
from negatoscope.studies.study import OBSERVATIONS

PERSON = Person(60, woman=True)
# The word by which a finding is known in any of its sentences.
KEYWORDS = {
    "cardiomegaly": r"cardiomegaly|enlarged|increased|enlargement",
    "effusion": r"effusions?",
    "atelectasis": r"atelectasis|collapse",
    "consolidation": r"consolidation|airspace|opacity|infiltrate",
    "hyperinflation": r"hyperinflat",
    "nodule": r"nodule",
    "mass": r"mass",
    "edema": r"edema",
    "central line": r"catheter|PICC|port",
    "surgical clips": r"clips",
    "pacemaker": r"pacemaker",
    "fracture": r"fracture",
    "pneumothorax": r"pneumothorax",
    "endotracheal tube": r"endotracheal",
    "nasogastric tube": r"nasogastric|enteric",
}
OBSERVATION = {
    "cardiomegaly": "Cardiomegaly",
    "effusion": "Pleural Effusion",
    "atelectasis": "Atelectasis",
    "nodule": "Lung Lesion",
    "mass": "Lung Lesion",
    "edema": "Edema",
    "fracture": "Fracture",
    "pneumothorax": "Pneumothorax",
    "central line": "Support Devices",
    "pacemaker": "Support Devices",
    "endotracheal tube": "Support Devices",
    "nasogastric tube": "Support Devices",
}


@pytest.fixture(scope="module")
def plans() -> list[Plan]:
    return [plan_study(2, index, PhantomSettings()) for index in range(3000)]


def report_of(findings: tuple[Finding, ...], seed: int, hedged: float = 0.12) -> Report:
    return write_report(np.random.default_rng(seed), findings, PERSON, hedged)


def some_findings(seed: int, names: tuple[str, ...]) -> tuple[Finding, ...]:
    rng = np.random.default_rng(seed)
    return tuple(draw_finding(rng, name) for name in names)


several = st.lists(st.sampled_from(FINDINGS), unique=True, max_size=4).map(tuple)


@given(names=several, seed=st.integers(0, 10**6))
@settings(max_examples=300, deadline=None)
def test_each_finding_is_told_once_with_its_side_and_never_denied(names, seed):
    findings = some_findings(seed, names)
    report = report_of(findings, seed)
    for finding in findings:
        (told,) = (s.text for s in report.sentences if s.finding == finding.name)
        assert re.search(KEYWORDS[finding.name], told, re.IGNORECASE), told
        if finding.side in ("left", "right") and "right upper quadrant" not in (finding.kind, finding.where):
            assert re.search(finding.side, told, re.IGNORECASE) or finding.where == "lingula", told
            other = "left" if finding.side == "right" else "right"
            assert not re.search(rf"\b{other}\b(?! atrium)", told, re.IGNORECASE), told
        if finding.side == "bilateral" and finding.name in ("effusion", "atelectasis"):
            assert re.search(r"bilateral|both|bibasilar", told, re.IGNORECASE), told
        if finding.name == "nodule":
            assert f"{finding.millimetres:.0f} mm" in told
        if finding.name in OBSERVATION:
            assert report.labels[OBSERVATION[finding.name]] in (1, -1)
    for sentence in report.sentences:
        if not sentence.finding:
            forbidden = set().union(*(the_grammar().forbids[name] for name in names))
            assert not _topics_of(sentence.text) & forbidden, (names, sentence.text)


def _topics_of(text: str) -> set[str]:
    """What a healthy sentence plainly denies or praises, told from its words and not from the grammar's columns."""
    words = {
        "pneumothorax": "pneumothorax", "pleura": "effusion", "airspace": "consolidation", "heart": r"heart (size|is)",
        "lungs": r"lungs are clear", "nodules": "nodule", "vessels": r"pulmonary vascul|edema",
        "bones": r"bony|osseous|fracture|skeleton", "trachea": "trachea",
    }  # fmt: skip
    return {topic for topic, pattern in words.items() if re.search(pattern, text, re.IGNORECASE)}


@given(names=several, seed=st.integers(0, 10**6))
@settings(max_examples=300, deadline=None)
def test_reports_read_like_english(names, seed):
    report = report_of(some_findings(seed, names), seed)
    for text in (report.findings, report.impression, report.indication):
        assert not re.search(r"[{}<>|]|  | [,.]|\.\.|\ba (8|11|18)\b|\ban (?!8|11|18|acute|enteric|abnormal)", text), (
            text
        )
    for text in (sentence.text for sentence in report.sentences):
        assert not re.search(r"^there (is|are)\b.*\b(is|are) (seen|identified|present)", text, re.IGNORECASE), text
        assert re.match(r"[A-Z0-9].*[a-zC]\.$", text), text
    assert len({s.text for s in report.sentences}) == len(report.sentences)


def test_normal_sentences_dominate_even_where_something_is_wrong(plans):
    ill = [plan.report.sentences for plan in plans if plan.findings]
    healthy = [sum(not sentence.finding for sentence in report) / len(report) for report in ill]
    assert np.mean(healthy) > 0.7
    assert np.mean([share > 0.5 for share in healthy]) > 0.98


def test_paraphrase_and_vocabulary(plans):
    words = {word for plan in plans for word in re.findall(r"[a-z]+", " ".join(plan.report.sections.values()).lower())}
    assert 250 <= len(words) <= 400
    normal = [plan.report.findings for plan in plans if not plan.findings]
    assert len(set(normal)) > 0.95 * len(normal)
    orders = {tuple(s.text.split()[-1] for s in plan.report.sentences) for plan in plans if not plan.findings}
    assert len(orders) > 0.5 * len(normal)


def test_comparison_is_rare_and_only_with_an_earlier_study(plans):
    compared = [plan for plan in plans if re.search(r"prior|stable|unchanged", plan.report.findings, re.IGNORECASE)]
    assert 0 < len(compared) / len(plans) < 0.12
    first = [plan for plan in compared if plan.visit == 0 and re.search(r"prior (exam|study)", plan.report.findings)]
    assert not first
    assert all(plan.report.comparison == "Prior chest radiograph." for plan in plans if plan.visit)


def test_no_finding_means_that_nothing_but_devices_is_told(plans):
    for plan in plans:
        names = {finding.name for finding in plan.findings}
        silent = {"central line", "pacemaker", "endotracheal tube", "nasogastric tube", "surgical clips"}
        assert (plan.report.labels.get("No Finding") == 1) == (names <= silent)
        assert list(plan.report.labels) == [name for name in OBSERVATIONS if name in plan.report.labels]


def test_labels_follow_the_words(plans):
    for plan in plans:
        text, labels = plan.report.findings.lower(), plan.report.labels
        assert ("Pneumothorax" in labels) == ("pneumothorax" in text)
        assert ("Fracture" in labels) == ("fracture" in text)
        assert ("Pleural Effusion" in labels) == ("effusion" in text)
        assert ("Consolidation" in labels) == ("consolidation" in text)
        assert ("Edema" in labels) == ("edema" in text)
        assert ("Atelectasis" in labels) == bool(re.search("atelecta|collapse", text))


def test_the_share_of_hedged_findings_can_be_set():
    def uncertain(hedged: float) -> float:
        findings = [some_findings(seed, ("nodule",)) for seed in range(600)]
        reports = [report_of(found, seed, hedged) for seed, found in enumerate(findings)]
        return float(np.mean([report.labels["Lung Lesion"] == -1 for report in reports]))

    assert uncertain(0) == 0
    assert 0.07 < uncertain(0.12) < 0.18


def test_hedged_findings_are_hedged_in_the_impression_too(plans):
    for plan in plans:
        for sentence in plan.report.sentences:
            doubt = re.search(r"\bpossible\b|(?<!that )may represent|excluded", sentence.text, re.IGNORECASE)
            if sentence.finding and doubt:
                assert "possible" in plan.report.impression.lower(), plan.report


def test_tags_name_place_and_side(plans):
    tags = {tag for plan in plans for tag in plan.report.tags}
    assert {"normal", "Opacity/lung/base/left", "Cardiomegaly/mild", "Pneumothorax/left/small"} <= tags
    assert not any(re.search(r"//|/$|<", tag) for tag in tags)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("[healthy]\n2 :: heart :: words", r"line 1\d\d\d?|line \d+.*healthy"),
        ("[healthy]\ntwo :: heart :: :: words", "healthy"),
        ("[edema]\n:: Oedema+ :: words", "edema"),
        ("[mass]\n:: Edema :: words", "mass"),
    ],
)
def test_a_damaged_grammar_names_its_line(damage, told):
    from importlib.resources import files

    whole = files("negatoscope.studies.phantom").joinpath("sentences.txt").read_text(encoding="utf-8")
    parse_grammar(whole)
    with pytest.raises(BadInput, match=told):
        parse_grammar(f"{whole}\n{damage}\n")


def test_a_grammar_that_leaves_a_finding_out_is_refused():
    with pytest.raises(BadInput, match="cardiomegaly"):
        parse_grammar("[all clear]\nno disease.")

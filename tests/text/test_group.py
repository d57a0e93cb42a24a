"""The same finding, said differently: groups, and what may never share one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import DBSCAN
from typer.testing import CliRunner

from negatoscope.cli import app
from negatoscope.errors import BadInput, WrongUse
from negatoscope.text.embed import TfidfSvd
from negatoscope.text.group import (
    EXCLUSIVE,
    POLES,
    Groups,
    GroupSettings,
    fitting_number,
    group_sentences,
    k_means,
    named_poles,
    poles_of,
)
from negatoscope.text.group_page import write_page
from negatoscope.text.sentence_files import load_groups, read_abnormal, save_groups

_FORMS = [form for poles in EXCLUSIVE.values() for forms in poles.values() for form in forms.split()]
_sentence = st.lists(st.sampled_from([*_FORMS, "effusion", "opacity", "the", "lobe", "no"]), min_size=1, max_size=6)
_corpus = st.lists(_sentence.map(" ".join), min_size=1, max_size=40)


def _mixes(groups: Groups) -> list[str]:
    """Groups with two members that name different poles of one set."""
    found = []
    for group in groups.groups:
        for one, other in combinations([named_poles(int(code)) for code in poles_of([m for m, _ in group.members])], 2):
            found += [group.sentence for set_ in one.keys() & other.keys() if one[set_] != other[set_]]
    return found


@settings(max_examples=100, deadline=None)
@given(_corpus, st.integers(0, 3))
def test_no_group_ever_mixes_exclusive_terms(corpus: list[str], seed: int) -> None:
    groups = group_sentences(corpus, settings=GroupSettings(groups=1, seed=seed))
    assert _mixes(groups) == []
    assert sum(group.size for group in groups.groups) == len(corpus)
    assert set(groups.of_sentence()) == set(corpus)


def test_without_the_rule_they_do_mix() -> None:
    corpus = ["left pleural effusion", "right pleural effusion"]
    assert _mixes(group_sentences(corpus, settings=GroupSettings(groups=1, exclusive=False)))
    assert len(group_sentences(corpus, settings=GroupSettings(groups=1)).groups) == 2


def test_groups_of_real_sentences_never_mix_them_either(shared: Callable[[str], Path]) -> None:
    """Told by plain words here, not by the table of forms that the groups are made with."""
    lines = shared("data/abnormal-sentences/train.jsonl").read_text(encoding="utf-8").splitlines()
    corpus = [
        said for row in map(json.loads, lines) for said, label in zip(row["sents"], row["labels"], strict=True) if label
    ]
    groups = group_sentences(corpus).groups
    assert len(groups) > 300
    pairs = [
        *(("left", "right"), ("left", "bilateral"), ("right", "bilateral"), ("small", "large"), ("low", "high")),
        *(("elevated", "decreased"), ("enlarged", "decreased"), ("improved", "worsened"), ("mild", "severe")),
    ]
    met = {word: 0 for pair in pairs for word in pair}
    for group in groups:
        said = [set(re.findall(r"[a-z]+", member.lower())) for member, _ in group.members]
        for word in met:
            met[word] += sum(word in words for words in said)
        for one, other in pairs:
            alone = [any(a in words and b not in words for words in said) for a, b in ((one, other), (other, one))]
            assert not all(alone), (one, other, group.members)
    assert min(met[word] for word in ("left", "right", "small", "large", "low", "mild", "severe")) > 10


@pytest.mark.parametrize(
    ("sentence", "poles"),
    [
        ("Enlarged heart.", {"growth": ("increased",)}),
        ("widening of the mediastinum", {"growth": ("increased",)}),
        ("The effusion has shrunk", {"growth": ("decreased",)}),
        ("Decreasing left-sided effusion", {"side": ("left",), "growth": ("decreased",)}),
        ("clearing of the bases, worse on the right", {"side": ("right",), "course": ("improved", "worsened")}),
        ("Bilaterally SEVERE, larger", {"side": ("bilateral",), "size": ("large",), "severity": ("severe",)}),
        ("brighter leftover", {}),
    ],
)
def test_inflections_count_and_lookalikes_do_not(sentence: str, poles: dict[str, tuple[str, ...]]) -> None:
    assert named_poles(int(poles_of([sentence])[0])) == poles


def test_no_form_stands_for_two_poles() -> None:
    assert len(_FORMS) == len(set(_FORMS))
    assert len(EXCLUSIVE) == 6


@settings(max_examples=30, deadline=None)
@given(_corpus)
def test_equal_poles_are_dbscan_clusters(corpus: list[str]) -> None:
    codes = poles_of(corpus)
    one_hot = (codes[:, None] >> np.arange(len(POLES))) & 1
    theirs = DBSCAN(eps=0.5, min_samples=1).fit_predict(one_hot)
    assert np.array_equal(codes[:, None] == codes[None], theirs[:, None] == theirs[None])


def test_the_central_sentence_is_the_closest_to_all_others_by_loops() -> None:
    corpus = [
        "left effusion",
        "left pleural effusion",
        "left pleural effusion seen",
        "left effusion again seen today",
    ] * 2
    embedder = TfidfSvd()
    group = group_sentences(corpus, embedder, GroupSettings(groups=1)).groups[0]
    vectors = embedder.embed(corpus)
    mean = [sum(float(a @ b) for b in vectors) for a in vectors]
    assert group.sentence == corpus[int(np.argmax(mean))]
    assert (group.size, len(group.members), group.side) == (8, 4, "left")


def test_same_findings_meet_and_different_ones_do_not() -> None:
    effusions = [
        f"{opening} small left pleural effusion {n}" for opening in ("there is a", "again seen is a") for n in range(5)
    ]
    fractures = [f"{opening} healed rib fractures {n}" for opening in ("there are", "again seen are") for n in range(5)]
    groups = group_sentences(effusions + fractures, settings=GroupSettings(groups=2))
    assert {group.size for group in groups.groups} == {10}
    assert {group.side for group in groups.groups} == {"left", ""}


def test_k_means_is_seeded_and_keeps_every_centre() -> None:
    vectors = TfidfSvd(8).fit(_FORMS).embed(_FORMS)
    times = np.ones(len(_FORMS), np.int64)
    one, two = (k_means(vectors, times, 20, GroupSettings(seed=3)) for _ in range(2))
    assert np.array_equal(one, two)
    assert len(np.unique(one)) <= 20


def test_the_papers_number_or_one_that_fits() -> None:
    assert (fitting_number(3), fitting_number(40), fitting_number(90_000)) == (1, 4, 500)


def test_empty_and_tiny_corpora() -> None:
    with pytest.raises(BadInput, match="no sentence to group"):
        group_sentences(["", "  "])
    with pytest.raises(WrongUse, match="5 groups for 1"):
        group_sentences(["cardiomegaly"], settings=GroupSettings(groups=5))
    only = group_sentences(["cardiomegaly"]).groups
    assert [(group.sentence, group.size) for group in only] == [("cardiomegaly", 1)]
    group_sentences(["effusion " * 400, "... effusion"])


def test_labels_come_from_the_labeller() -> None:
    groups = group_sentences(["left effusion"], labeller=lambda sentences: [["Pleural Effusion"] for _ in sentences])
    assert groups.groups[0].labels == ("Pleural Effusion",)


def test_files_round_trip_and_damage_is_named(tmp_path: Path) -> None:
    groups = group_sentences(["left effusion", "right effusion", "right effusion"])
    save_groups(groups, tmp_path)
    assert load_groups(tmp_path) == groups
    (tmp_path / "groups.jsonl").write_text("{}\n")
    with pytest.raises(BadInput, match=r"groups\.jsonl:1"):
        load_groups(tmp_path)


def test_the_page_carries_the_data_and_no_script_of_a_report(tmp_path: Path) -> None:
    write_page(group_sentences(["left </script><script>alert(1)</script> effusion"]), tmp_path / "groups.html")
    page = (tmp_path / "groups.html").read_text(encoding="utf-8")
    assert page.count("</script>") == 2
    assert "http" not in page


def test_command_takes_verdicts_and_leaves_normal_ones_out(tmp_path: Path) -> None:
    rows = [
        {"sentence": "small left pleural effusion", "abnormal": True},
        {"sentence": "mild cardiomegaly", "abnormal": True},
        {"sentence": "the lungs are clear", "abnormal": False},
    ]
    (tmp_path / "v.jsonl").write_text("\n".join(map(json.dumps, rows)))
    done = CliRunner().invoke(
        app, ["findings", "group", str(tmp_path / "v.jsonl"), "--out", str(tmp_path / "g"), "--json"]
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["sentences"] == 2
    written = {group.sentence: group for group in load_groups(tmp_path / "g").groups}
    assert written["small left pleural effusion"].labels == ("Pleural Effusion",)
    assert written["mild cardiomegaly"].severity == "mild"
    assert (tmp_path / "g" / "groups.html").exists()


@pytest.mark.parametrize(
    "line", ['{"said": 1}', '{"sentence": 1}', '{"sentence": "a", "abnormal": 2}', '{"sentence": "a"}\n[]']
)
def test_bad_verdicts_name_their_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "v.jsonl").write_text(line)
    with pytest.raises(BadInput, match=r"v\.jsonl:\d"):
        read_abnormal(tmp_path / "v.jsonl")


def test_a_corpus_with_nothing_abnormal_says_so(tmp_path: Path) -> None:
    (tmp_path / "v.jsonl").write_text('{"sentence": "clear lungs", "abnormal": false}')
    done = CliRunner().invoke(app, ["findings", "group", str(tmp_path / "v.jsonl"), "--out", str(tmp_path / "g")])
    assert done.exit_code == 1
    assert "no sentence to group" in done.stderr

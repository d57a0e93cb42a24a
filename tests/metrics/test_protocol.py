from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from negatoscope.errors import BadInput, WrongUse
from negatoscope.metrics.forms import read_reports
from negatoscope.metrics.protocol import as_words, protocol_named, vocabulary_named
from negatoscope.text.words import Vocabulary

SMALL = Vocabulary(("<unk>", ".", "clear", "heart", "is", "lungs", "normal", "the"), "iu-xray", 6)


def test_r2gen_cleans_cuts_and_replaces() -> None:
    protocol = protocol_named("r2gen", vocabulary=SMALL)
    report = "The HEART is normal. Lungs: hyperinflated!"
    assert protocol.words([report], "prediction") == ["the heart is normal . lungs"]
    assert protocol.words([report], "reference") == ["the heart is normal ."], "the start mark counts as a word"


def test_a_model_that_wrote_cleaned_words_is_taken_at_its_word() -> None:
    assert as_words("the heart is", "iu-xray") == ["the", "heart", "is"]
    assert as_words("the <unk> is .", "iu-xray") == ["the", "<unk>", "is", "."]
    assert as_words("The heart is", "iu-xray") == ["the", "heart", "is", "."]
    assert as_words("", "iu-xray") == []


def test_full_neither_cuts_nor_replaces() -> None:
    report = "The HEART is hyperinflated, T12-L1. " + "lungs " * 200
    assert (
        protocol_named("full")
        .words([report], "reference")[0]
        .startswith("the heart is hyperinflated t12-l1 lungs lungs")
    )
    plain = protocol_named("full", tokens="spaces").words([report], "reference")[0]
    assert plain.startswith("the heart is hyperinflated, t12-l1. lungs")
    assert len(plain.split()) == 205
    assert protocol_named("full").sentences(report, "reference") == report


def test_the_line_says_all_that_changes_a_score() -> None:
    lines = {
        protocol_named("full").line,
        protocol_named("r2gen", vocabulary=SMALL).line,
        protocol_named("r2gen", vocabulary=SMALL, max_words=5).line,
        protocol_named("r2gen", vocabulary=Vocabulary(SMALL.words, "mimic-cxr", 6)).line,
        protocol_named("r2gen", vocabulary=Vocabulary((*SMALL.words, "zebra"), "iu-xray", 6)).line,
    }
    assert len(lines) == 5


def test_the_shipped_vocabulary_is_that_of_the_training_split(shared) -> None:
    training = read_reports(shared("data/iu-xray/annotation.json"), role="reference", split="train")
    assert vocabulary_named("iu-xray") == Vocabulary.build(training.texts, cleaning="iu-xray", cutoff=3, max_words=60)


def test_the_shipped_vocabulary_has_the_760_words() -> None:
    assert len(vocabulary_named("iu-xray")) == 760


def test_a_vocabulary_from_a_run_a_checkpoint_a_file_a_list(tmp_path: Path) -> None:
    SMALL.save(tmp_path / "vocabulary.json")
    save_file({"w": np.zeros(1)}, tmp_path / "best.safetensors", {"vocabulary": json.dumps(SMALL.as_json())})
    (tmp_path / "list.json").write_text(json.dumps(["heart", "lungs"]))
    assert vocabulary_named(tmp_path) == SMALL
    assert vocabulary_named(tmp_path / "best.safetensors") == SMALL
    assert vocabulary_named(tmp_path / "vocabulary.json") == SMALL
    assert set(vocabulary_named(tmp_path / "list.json").words) == {"heart", "lungs", "<unk>"}


def test_what_does_not_fit_together(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="no protocol 'r2gne'; did you mean 'r2gen'"):
        protocol_named("r2gne")
    with pytest.raises(WrongUse, match="r2gen needs a vocabulary"):
        protocol_named("r2gen")
    with pytest.raises(WrongUse, match="full neither cuts nor replaces"):
        protocol_named("full", vocabulary="iu-xray")
    with pytest.raises(WrongUse, match="no tokenisation 'java'"):
        protocol_named("full", tokens="java")
    with pytest.raises(WrongUse, match=r"no vocabulary 'iu-xary'.*did you mean 'iu-xray'"):
        protocol_named("r2gen", vocabulary="iu-xary")
    with pytest.raises(BadInput, match="no vocabulary in this folder"):
        protocol_named("r2gen", vocabulary=tmp_path)
    (tmp_path / "bad.safetensors").write_bytes(b"no header")
    with pytest.raises(BadInput, match="damaged checkpoint"):
        protocol_named("r2gen", vocabulary=tmp_path / "bad.safetensors")

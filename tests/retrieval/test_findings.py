"""What is told of a study: sentences, maps, who said the same; a fixed number or a calibrated threshold."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from negatoscope.cli import app
from negatoscope.errors import BadInput, WrongUse
from negatoscope.metrics.forms import read_reports
from negatoscope.retrieval.calibration import calibrate
from negatoscope.retrieval.findings import Telling, find, write_findings
from negatoscope.retrieval.retriever import Retriever, cvse_vectors, score_studies
from negatoscope.retrieval.training import TrainedCVSE
from negatoscope.studies.store import Store
from negatoscope.studies.study import Study
from negatoscope.vision.features import FeatureCache
from tests.retrieval.small import SAID, cache_of

Drawn = tuple[Store, FeatureCache]


def _has(study: Study) -> set[str]:
    return {finding for finding, wordings in SAID.items() if any(said in study.report for said in wordings)}


def _finding_of(sentence: str) -> str:
    return next(finding for finding, wordings in SAID.items() if sentence in wordings)


def test_the_findings_of_each_study_are_told_first(retriever: Retriever, drawn: Drawn) -> None:
    shown = [study for study in drawn[0].studies("val") if _has(study)]
    right = told = 0
    for study, one in zip(shown, find(retriever, shown, drawn[1], Telling(top=2)), strict=True):
        assert one.id == study.id
        scores = [finding.score for finding in one.findings]
        assert scores == sorted(scores, reverse=True)
        assert one.report == " ".join(finding.sentence for finding in one.findings)
        right += len(_has(study) & {_finding_of(finding.sentence) for finding in one.findings})
        told += len(_has(study))
    assert right / told > 0.9


def test_scores_do_not_depend_on_the_company(retriever: Retriever, drawn: Drawn) -> None:
    shown = list(drawn[0].studies())[:40]  # more than one batch
    together = torch.cat(list(score_studies(retriever, shown, drawn[1])))
    alone = torch.cat([next(score_studies(retriever, [study], drawn[1])) for study in shown])
    torch.testing.assert_close(together, alone)


def test_maps_add_up_to_one_over_each_view_that_is_there(retriever: Retriever, drawn: Drawn) -> None:
    shown = list(drawn[0].studies("val"))
    views = set()
    for study, one in zip(shown, find(retriever, shown, drawn[1])):
        for finding in one.findings:
            assert set(finding.attention) == {picture.view for picture in study.pictures}
            for grid in finding.attention.values():
                assert np.array(grid).shape == (3, 3)
                assert np.array(grid).sum() == pytest.approx(1, abs=1e-3)
                assert all(value == round(value, 5) for line in grid for value in line), "written without noise"
        views.add(len(study.pictures))
    assert views == {1, 2}, "a study without a lateral view must be among them"


def test_training_studies_that_said_the_same_did(retriever: Retriever, drawn: Drawn) -> None:
    known = {study.id: study for study in drawn[0].studies()}
    for finding in next(find(retriever, [known["s003"]], drawn[1], Telling(top=4, studies=100))).findings:
        assert finding.said_by == len(finding.studies) > 5
        assert all(_finding_of(finding.sentence) in _has(known[study]) for study in finding.studies)
        assert finding.side == next((side for side in ("left", "right") if side in finding.sentence), "")
    few = next(find(retriever, [known["s003"]], drawn[1], Telling(studies=2))).findings[0]
    assert len(few.studies) == 2 < few.said_by


def test_views_are_found_by_what_they_show_not_by_their_order(retriever: Retriever, drawn: Drawn) -> None:
    study = next(study for study in drawn[0].studies("val") if len(study.pictures) == 2)
    turned = replace(study, pictures=study.pictures[::-1])
    one, two = find(retriever, [study, turned], drawn[1])
    assert one == two


def test_the_threshold_lets_the_number_vary(retriever: Retriever, drawn: Drawn) -> None:
    shown = list(drawn[0].studies("val"))
    told = [len(one.findings) for one in find(retriever, shown, drawn[1], Telling(calibrated=True))]
    has = [len(_has(study)) for study in shown]
    assert set(told) >= {0, 1, 2}
    right = np.mean([a == b for a, b in zip(told, has)])
    assert right > 0.15 + max(np.mean([a == fixed for a in has]) for fixed in range(4))
    few = [len(one.findings) for one in find(retriever, shown, drawn[1], Telling(calibrated=True, fewest=1, most=1))]
    assert set(few) == {1}


def test_probability_passes_the_least_where_the_score_passes_the_threshold(retriever: Retriever, drawn: Drawn) -> None:
    scores = torch.cat(list(score_studies(retriever, list(drawn[0].studies("val")), drawn[1]))).numpy()
    calibration = retriever.calibration
    assert calibration is not None
    assert np.array_equal(calibration.probability(scores) >= calibration.least, scores >= calibration.threshold)


def test_calibration_finds_the_odds_that_made_the_truth() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 400, 60).astype(float)
    z = rng.normal(size=(3000, 60))
    z = (z - z.mean(0)) / z.std(0)
    prior = np.log((sizes + 1) / (sizes.sum() + 60))
    truth = rng.random(z.shape) < 1 / (1 + np.exp(-(1.5 * z + 0.8 * prior + 0.5)))
    mean, spread = rng.normal(size=60), rng.uniform(0.1, 2, 60)
    made = calibrate(z * spread + mean, truth, sizes)
    assert (made.slope, made.weight, made.shift) == pytest.approx((1.5, 0.8, 0.5), abs=0.12)
    np.testing.assert_allclose(made.mean, mean, atol=1e-6)
    said = made.probability(z * spread + mean) >= made.least
    f1 = 2 * (said & truth).sum() / (said.sum() + truth.sum())
    for other in (0.5 * made.least, 0.5 + made.least / 2):
        said = made.probability(z * spread + mean) >= other
        assert f1 >= 2 * (said & truth).sum() / (said.sum() + truth.sum()) - 0.01


def test_scores_that_say_nothing_tell_nothing_by_score() -> None:
    rng = np.random.default_rng(1)
    truth = np.zeros((200, 3), np.bool_)
    truth[:, 0] = True
    made = calibrate(np.zeros((200, 3)), truth, np.array([200.0, 1, 1]))
    assert (made.probability(np.zeros((1, 3))) >= made.least).tolist() == [[True, False, False]]
    assert np.isfinite(made.probability(rng.normal(size=(4, 3)))).all()


def test_what_is_written_can_be_evaluated(retriever: Retriever, drawn: Drawn, tmp_path: Path) -> None:
    shown = list(drawn[0].studies("val"))
    count, told = write_findings(find(retriever, shown, drawn[1]), tmp_path / "f.jsonl")
    assert (count, told) == (len(shown), 2 * len(shown))
    assert read_reports(tmp_path / "f.jsonl").ids == tuple(study.id for study in shown)
    row = json.loads((tmp_path / "f.jsonl").read_text(encoding="utf-8").splitlines()[0])
    finding = row["findings"][0]
    assert {"sentence", "score", "probability", "attention", "studies", "said_by", "labels", "group"} <= finding.keys()


def test_vectors_of_studies_are_near_where_findings_are_the_same(retriever: Retriever, drawn: Drawn) -> None:
    from negatoscope.retrieval.nearest import Library

    training = [study for study in drawn[0].studies("train") if _has(study)]
    shown = [study for study in drawn[0].studies("val") if _has(study)]
    library = Library.of(training, cvse_vectors(retriever, training, drawn[1]))
    known = {study.id: study for study in training}
    found = library.nearest(cvse_vectors(retriever, shown, drawn[1]))
    same = [bool(_has(study) & _has(known[one.study])) for study, one in zip(shown, found)]
    assert np.mean(same) > 0.85


# ---- bad input, and the command ----


def test_another_backbone_s_features_are_refused(retriever: Retriever, drawn: Drawn, tmp_path: Path) -> None:
    other, _ = cache_of(tmp_path, ["a"], patches=4, width=24)
    with pytest.raises(WrongUse, match="features of patches"):
        next(find(retriever, list(drawn[0].studies("val")), other))


def test_a_study_without_pictures_or_features(retriever: Retriever, drawn: Drawn) -> None:
    with pytest.raises(BadInput, match="study x: none of its pictures"):
        next(find(retriever, [Study("x")], drawn[1]))


def test_without_calibration_there_is_no_threshold(retriever: Retriever, drawn: Drawn) -> None:
    bare = replace(retriever, calibration=None)
    with pytest.raises(WrongUse, match="no calibrated threshold"):
        next(find(bare, list(drawn[0].studies("val")), drawn[1], Telling(calibrated=True)))
    assert next(find(bare, list(drawn[0].studies("val")), drawn[1])).findings[0].probability is None


def test_more_findings_than_groups_are_all_groups(retriever: Retriever, drawn: Drawn) -> None:
    one = next(find(retriever, list(drawn[0].studies("val")), drawn[1], Telling(top=99)))
    assert len({finding.group for finding in one.findings}) == len(one.findings) == 4


def test_command_tells_and_refuses_both_numbers(run: TrainedCVSE, tmp_path: Path) -> None:
    asked = ["retrieve", "findings", str(run.folder), "--split", "val", "--out", str(tmp_path / "f.jsonl")]
    done = CliRunner().invoke(app, [*asked, "--top", "1", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {"studies": 30, "findings": 30, "out": str(tmp_path / "f.jsonl")}
    done = CliRunner().invoke(app, [*asked, "--top", "1", "--calibrated"])
    assert done.exit_code == 2
    assert "exclude one another" in done.stderr

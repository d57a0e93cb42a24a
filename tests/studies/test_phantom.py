"""Phantom studies: same seed, same bytes; masks where the finding is; both views and the report agree."""

from __future__ import annotations

import hashlib
import itertools
import subprocess
import sys

import numpy as np
import pytest

from negatoscope.errors import WrongUse
from negatoscope.settings import read_settings
from negatoscope.studies.phantom import FINDINGS, FREQUENCIES, DrawnStudy, PhantomSettings, draw_study, phantom_studies
from negatoscope.studies.phantom.drawing import DRAWINGS, draw_picture
from negatoscope.studies.phantom.planning import Plan, plan_study
from negatoscope.studies.phantom.sheet import phantom_sheet
from negatoscope.studies.phantom.vessels import draw_tree

SMALL = PhantomSettings(size=96, studies=40)


def only(name: str, **more) -> PhantomSettings:
    alone = dict.fromkeys(FINDINGS, 0.0) | {name: 1.0}
    given = {
        "size": 128,
        "normal_share": 0,
        "more_findings": (0, 0, 0),
        "missing_lateral": 0,
        "collimated": 0,
        "noise": 0,
    }
    return PhantomSettings(frequencies=alone, returning=0, **(given | more))


def digest(study: DrawnStudy) -> str:
    seen = hashlib.sha256()
    for view, grey in study.views.items():
        seen.update(view.encode() + grey.tobytes())
    for finding, by_view in study.masks.items():
        for view, mask in by_view.items():
            seen.update(f"{finding}{view}".encode() + np.packbits(mask).tobytes())
    seen.update(repr((study.id, study.patient, study.sections, study.labels, study.tags, study.truth)).encode())
    return seen.hexdigest()


def without(plan: Plan, view: str, size: int = 128) -> np.ndarray:
    """The same patient in the same pose, healthy."""
    return draw_picture(view, plan.anatomy, plan.poses[view], (), draw_tree(plan.anatomy.vessels), size)[0]


# The same seed gives the same bytes.


def test_a_study_depends_on_seed_and_number_alone():
    alone = digest(draw_study(1, 17, SMALL))
    for index in (3, 17):
        again = digest(draw_study(1, index, SMALL))
    assert again == alone
    assert digest(draw_study(1, 17, SMALL.model_copy(update={"studies": 5000}))) == alone
    assert digest(draw_study(2, 17, SMALL)) != alone


def test_the_number_of_processes_changes_nothing():
    one = [digest(study) for study in phantom_studies(SMALL, processes=1)]
    assert [digest(study) for study in phantom_studies(SMALL, processes=2)] == one
    assert len(set(one)) == SMALL.studies


def test_a_fresh_process_draws_the_same_bytes():
    program = (
        "import hashlib; from negatoscope.studies.phantom import draw_study, PhantomSettings\n"
        "study = draw_study(5, 9, PhantomSettings(size=96))\n"
        "print(hashlib.sha256(b''.join(v.tobytes() for v in study.views.values()) + study.report.encode()).hexdigest())"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    study = draw_study(5, 9, PhantomSettings(size=96))
    here = hashlib.sha256(b"".join(view.tobytes() for view in study.views.values()) + study.report.encode())
    assert printed == here.hexdigest()


def test_studies_come_in_order_and_can_be_left_early():
    studies = phantom_studies(SMALL, processes=2)
    assert [study.id for study in itertools.islice(studies, 3)] == [
        "phantom-000000",
        "phantom-000001",
        "phantom-000002",
    ]
    studies.close()  # type: ignore[attr-defined]


# The pictures.


@pytest.mark.parametrize("size", [64, 160, 256, 512])
def test_every_size_shows_the_same_chest(size):
    settings = PhantomSettings(size=size, noise=0, missing_lateral=0, collimated=0)
    small = draw_study(1, 4, settings.model_copy(update={"size": 64}))
    study = draw_study(1, 4, settings)
    for view, grey in study.views.items():
        assert grey.shape == (size, size)
        assert grey.dtype == np.uint8
        at = (np.arange(64) * size) // 64 + size // 128
        near = np.corrcoef(grey[at][:, at].ravel(), small.views[view].ravel())[0, 1]
        assert near > 0.97, f"{view} at {size} px correlates by {near:.3f} with the one at 64 px"


def test_lungs_are_dark_between_white_heart_and_wall():
    study = draw_study(1, 0, PhantomSettings(size=128, normal_share=1, rotation=0, collimated=0))
    frontal = study.views["frontal"].astype(float)
    middle = frontal[52:60].mean(axis=0)
    right, heart, left = middle[28:40].mean(), middle[58:70].mean(), middle[88:100].mean()
    assert right < heart - 60
    assert left < heart - 60
    assert frontal[110:].mean() > 150  # the abdomen


def test_the_heart_points_to_the_patients_left_which_is_right_in_the_picture():
    study = draw_study(3, 1, only("cardiomegaly", rotation=0))
    columns = np.nonzero(study.masks["cardiomegaly"]["frontal"])[1]
    assert columns.max() - 63.5 > 1.25 * (63.5 - columns.min())


@pytest.mark.parametrize("name", [name for name in FINDINGS if name not in ("cardiomegaly", "hyperinflation")])
def test_a_finding_changes_the_picture_inside_its_mask(name):
    """Against the same patient without it. (The two left out reshape the whole chest: tested below.)"""
    seen = 0
    for index in range(6):
        study = draw_study(11, index, only(name))
        for view, mask in study.masks[name].items():
            change = np.abs(study.views[view].astype(float) - without(study.plan, view))
            if not mask.any():
                assert study.plan.findings[0].kind == "clavicle"
                assert view == "lateral"
                continue
            inside, outside = change[mask].mean(), change[~mask].mean()
            # A collapsed lung gets denser all over; from the side that shows nearly as much as the air beside it.
            times = 3 if name != "pneumothorax" else 2 if view == "frontal" else 1.2
            assert inside > times * outside, (
                f"{study.plan.findings[0]} in {view}: {inside:.1f} inside, {outside:.1f} outside"
            )
            assert inside > 1.5
            seen += 1
    assert seen >= 6


def test_every_finding_is_drawn():
    assert set(DRAWINGS) == set(FINDINGS) == set(FREQUENCIES)


@pytest.mark.parametrize(
    "name", ["effusion", "pneumothorax", "nodule", "mass", "consolidation", "fracture", "pacemaker"]
)
def test_the_mask_lies_on_the_side_the_report_tells(name):
    for index in range(12):
        study = draw_study(5, index, only(name, rotation=0))
        finding = study.plan.findings[0]
        columns = np.nonzero(study.masks[name]["frontal"])[1]
        share_left = (columns > 63.5).mean()
        if finding.side == "bilateral":
            assert 0.2 < share_left < 0.8
        else:
            told = study.report.replace("on both sides", "")
            assert finding.side in told.lower() or finding.where == "lingula"
            # Leads of a pacemaker cross to the right heart: its can decides.
            outermost = columns[np.abs(columns - 63.5).argmax()]
            assert (outermost > 63.5) == (finding.side == "left")
            if name != "pacemaker":
                assert (share_left > 0.5) == (finding.side == "left"), finding


@pytest.mark.parametrize("name", ["nodule", "mass", "consolidation", "central line", "surgical clips", "pneumothorax"])
def test_both_views_agree_on_the_height(name):
    for index in range(8):
        study = draw_study(6, index, only(name, rotation=0, size=192))
        centres = []
        for view, mask in study.masks[name].items():
            pose = study.plan.poses[view]
            rows = np.nonzero(mask)[0]
            offset = 0.55 if view == "frontal" else 0.47
            high = study.plan.anatomy.height * pose.inspiration
            top = pose.centre[1] + offset * high - pose.width / 2
            centres.append(((rows.min() + rows.max()) / 2 + 0.5) * pose.width / 192 + top)
        if study.plan.findings[0].kind in ("PICC", "port"):
            continue  # the film cuts the arm off in one view
        assert abs(centres[0] - centres[1]) < 30, f"{study.plan.findings[0]}: {centres}"


def test_a_lower_lobe_lies_at_the_back_and_a_middle_lobe_in_front():
    seen = set()
    for index in range(40):
        study = draw_study(7, index, only("consolidation", rotation=0))
        where = study.plan.findings[0].where
        columns = np.nonzero(study.masks["consolidation"]["lateral"])[1]  # the front is on the left
        if "lower" in where:
            assert columns.mean() > 63.5
        if where in ("right middle lobe", "lingula"):
            assert columns.mean() < 63.5
        seen.add(where)
    assert len(seen) == 6


def test_a_large_heart_is_wider_than_half_the_chest():
    for index in range(6):
        study = draw_study(8, index, only("cardiomegaly", rotation=0))
        columns = np.nonzero(study.masks["cardiomegaly"]["frontal"])[1]
        pose = study.plan.poses["frontal"]
        heart = (np.ptp(columns) + 1) * pose.width / 128
        assert heart > 0.5 * 2 * study.plan.anatomy.half_width


def test_hyperinflated_lungs_are_larger_and_their_diaphragm_flatter():
    for index in range(4):
        study = draw_study(9, index, only("hyperinflation", rotation=0))
        normal = without(study.plan, "frontal").astype(float)
        # Below the usual dome there is dark lung now.
        assert study.views["frontal"][76:96, 24:104].mean() < normal[76:96, 24:104].mean() - 8
        assert study.masks["hyperinflation"]["frontal"].mean() > 0.2


def test_severity_follows_size():
    areas = {"small": [], "moderate": [], "large": []}
    for index in range(40):
        study = draw_study(10, index, only("effusion"))
        finding = study.plan.findings[0]
        if finding.side != "bilateral":
            areas[finding.severity].append(study.masks["effusion"]["frontal"].sum())
    means = [np.mean(areas[severity]) for severity in areas]
    assert means[0] < means[1] < means[2]


# Frequencies, patients, views.


@pytest.fixture(scope="module")
def plans() -> list[Plan]:
    return [plan_study(1, index, PhantomSettings()) for index in range(3000)]


def test_seventy_percent_are_normal(plans):
    assert 0.66 < np.mean([not plan.findings for plan in plans]) < 0.74


def test_common_findings_are_common_and_rare_ones_rare(plans):
    counts = {name: sum(any(f.name == name for f in plan.findings) for plan in plans) for name in FINDINGS}
    assert min(counts.values()) > 0
    assert counts["cardiomegaly"] > 10 * counts["mass"]
    ranks = np.argsort(np.argsort([-counts[name] for name in FINDINGS]))
    assert np.corrcoef(ranks, np.arange(len(FINDINGS)))[0, 1] > 0.9


def test_patients_return_with_the_same_anatomy_and_their_chronic_findings(plans):
    by_patient: dict[str, list[Plan]] = {}
    for plan in plans:
        by_patient.setdefault(plan.patient, []).append(plan)
    returned = [visits for visits in by_patient.values() if len(visits) > 1]
    assert 0.15 < len(returned) / len(by_patient) < 0.35
    assert max(len(visits) for visits in returned) == 3
    for visits in returned:
        assert [plan.visit for plan in visits] == list(range(len(visits)))
        assert len({plan.anatomy for plan in visits}) == 1
        for before, after in itertools.pairwise(visits):
            assert bool(before.findings) == bool(after.findings)
            kept = {f.name for f in before.findings if f.name in ("pacemaker", "surgical clips", "cardiomegaly")}
            assert kept <= {f.name for f in after.findings}


def test_some_studies_have_no_lateral_view(plans):
    assert 0.03 < np.mean(["lateral" not in plan.poses for plan in plans]) < 0.07
    index = next(index for index, plan in enumerate(plans) if "lateral" not in plan.poses)
    study = draw_study(1, index, SMALL)
    assert list(study.views) == ["frontal"]


def test_truth_is_plain_values(plans):
    import json

    for plan in plans[:200]:
        assert json.loads(json.dumps(plan.truth))["findings"] == [
            {**finding, "at": list(finding["at"])} for finding in plan.truth["findings"]
        ]


def test_frequencies_can_be_set():
    settings = PhantomSettings(normal_share=0, frequencies={"mass": 5000}, more_findings=(0, 0, 0))
    names = [plan_study(1, index, settings).findings[0].name for index in range(60)]
    assert names.count("mass") > 50


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"frequencies": {"pnumothorax": 1}}, "pneumothorax"),
        ({"frequencies": {"mass": -1}}, "mass"),
        ({"frequencies": dict.fromkeys(FINDINGS, 0)}, "normal_share"),
        ({"sise": 128}, "size"),
        ({"size": 8}, "size"),
    ],
)
def test_wrong_settings_say_what_would_be_right(given, told):
    with pytest.raises(WrongUse, match=told):
        read_settings(PhantomSettings, given)


def test_a_number_below_zero_is_refused():
    with pytest.raises(WrongUse, match="start at 0"):
        plan_study(1, -1, PhantomSettings())


def test_the_sheet_shows_every_finding_with_its_outline():
    sheet = np.asarray(phantom_sheet(size=64))
    assert (sheet == 255).sum() > 1000

"""The layout is PhysioNet's; every id, image and word in it is made up here."""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_dicom import write as write_dicom

from negatoscope.errors import BadInput, WrongUse
from negatoscope.studies.importing import import_studies
from negatoscope.studies.mimic_cxr import MimicCxr
from negatoscope.studies.sources import Damaged, Found, open_source
from negatoscope.studies.store import Store

# subject, study, split, views of its images, report
STUDIES = [
    ("99000001", "59000001", "train", ("PA", "LATERAL"), "FINDINGS:  Clear\n lungs.\n \n IMPRESSION:  Normal."),
    ("99000001", "59000002", "train", ("AP",), "IMPRESSION:  Unchanged."),
    ("99000002", "59000003", "validate", ("AP", "PA", "LL"), "FINDINGS:  A nodule."),
    ("99000003", "59000004", "test", ("", "LATERAL"), "FINDINGS:  Wires."),
    ("99000003", "59000005", "test", ("PA",), None),
]


def build(root: Path, version: str = "2.0.0", zipped: bool = True, ending: str = "jpg") -> Path:
    split, metadata, reports = [], [], {}
    for subject, study, where, views, report in STUDIES:
        name = f"files/p{subject[:2]}/p{subject}/s{study}"
        if report is not None:
            reports[f"{name}.txt"] = f"                                 FINAL REPORT\n {report}\n"
        for number, view in enumerate(views):
            dicom = f"{study[-4:]}aaaa-0000000{number}"
            split.append((dicom, study, subject, where))
            step = "CHEST (PORTABLE AP)" if not view else "CHEST (PA AND LAT)"
            metadata.append((dicom, subject, study, step, view, "8", "8"))
            path = root / name / f"{dicom}.{ending}"
            path.parent.mkdir(parents=True, exist_ok=True)
            if ending == "dcm":
                write_dicom(path, f"1.2.{study}", number)
            else:
                grey = np.random.default_rng(int(study) + number).integers(0, 255, (8, 8), dtype=np.uint8)
                Image.fromarray(grey).save(path)
    table(root / f"mimic-cxr-{version}-split.csv.gz", ("dicom_id", "study_id", "subject_id", "split"), split)
    head = (
        "dicom_id",
        "subject_id",
        "study_id",
        "PerformedProcedureStepDescription",
        "ViewPosition",
        "Rows",
        "Columns",
    )
    table(root / f"mimic-cxr-{version}-metadata.csv.gz", head, metadata)
    labels = [("99000001", "59000001", "", "1.0", "-1.0"), ("99000002", "59000003", "0.0", "", "")]
    head = ("subject_id", "study_id", "Atelectasis", "No Finding", "Pleural Effusion")
    table(root / f"mimic-cxr-{version}-chexpert.csv.gz", head, labels)
    if zipped:
        with zipfile.ZipFile(root / "mimic-cxr-reports.zip", "w") as archive:
            for name, text in reports.items():
                archive.writestr(name, text)
    else:
        for name, text in reports.items():
            (root / name).write_text(text)
    return root


def table(path: Path, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    text = io.StringIO()
    csv.writer(text).writerows([head, *rows])
    path.write_bytes(gzip.compress(text.getvalue().encode()))


def read(root: Path, **settings: object) -> tuple[dict[str, Found], list[Damaged]]:
    items = list(open_source("mimic-cxr", root, settings).examinations())
    return {item.study.id: item for item in items if isinstance(item, Found)}, [
        i for i in items if isinstance(i, Damaged)
    ]


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("version", ["2.0.0", "2.1.0"])
def test_the_single_image_reading(tmp_path: Path, zipped: bool, version: str) -> None:
    found, damaged = read(build(tmp_path, version, zipped))
    assert [(item.study.id, item.study.split, item.study.patient, item.study.report) for item in found.values()] == [
        ("0001aaaa-00000000", "train", "99000001", "Clear lungs."),
        ("0001aaaa-00000001", "train", "99000001", "Clear lungs."),
        ("0003aaaa-00000000", "val", "99000002", "A nodule."),
        ("0003aaaa-00000001", "val", "99000002", "A nodule."),
        ("0003aaaa-00000002", "val", "99000002", "A nodule."),
        ("0004aaaa-00000000", "test", "99000003", "Wires."),
        ("0004aaaa-00000001", "test", "99000003", "Wires."),
    ]
    assert [picture.view for item in found.values() for picture in item.study.pictures] == [
        *("frontal", "lateral", "frontal", "frontal", "lateral"),
        *("frontal", "lateral"),  # the first says nothing by itself; its procedure says portable AP
    ]
    assert [(item.id, item.what, item.known) for item in damaged] == [
        ("s59000002", "no findings in its report", True),
        ("s59000005", "no report", True),
    ]


def test_sections_and_labels(tmp_path: Path) -> None:
    found, _ = read(build(tmp_path), reading="study")
    study = found["s59000001"].study
    assert dict(study.sections) == {"preamble": "FINAL REPORT", "findings": "Clear\nlungs.", "impression": "Normal."}
    assert dict(study.labels) == {"No Finding": 1, "Pleural Effusion": -1}
    assert dict(found["s59000003"].study.labels) == {"Atelectasis": 0}
    assert not found["s59000004"].study.labels


def test_the_two_view_reading(tmp_path: Path) -> None:
    found, damaged = read(build(tmp_path), reading="two-view", sections=["findings"], otherwise=["impression"])
    pairs = {id: [picture.position for picture in item.study.pictures] for id, item in found.items()}
    # PA before AP where there are both.
    assert pairs == {"s59000001": ["PA", "LATERAL"], "s59000003": ["PA", "LL"], "s59000004": ["", "LATERAL"]}
    assert ("s59000002", "not seen from both sides") in [(item.id, item.what) for item in damaged]


def test_the_study_reading_and_other_sections(tmp_path: Path) -> None:
    root = build(tmp_path)
    found, _ = read(root, reading="study", otherwise=["impression"])
    assert found["s59000002"].study.report == "Unchanged."
    assert found["s59000001"].study.report == "Clear lungs."
    assert len(found["s59000003"].study.pictures) == 3
    both, _ = read(root, reading="study", sections=["findings", "impression"])
    assert both["s59000001"].study.report == "Clear lungs. Normal."


def test_views_that_are_not_wanted_are_counted(tmp_path: Path) -> None:
    found, damaged = read(build(tmp_path), views=["frontal"])
    assert {picture.view for item in found.values() for picture in item.study.pictures} == {"frontal"}
    assert sum(item.what == "its view is lateral" and item.known for item in damaged) == 3


def test_the_dicom_release_with_the_tables_of_the_other(tmp_path: Path) -> None:
    build(tmp_path / "jpg")
    build(tmp_path / "dcm", ending="dcm")
    for name in (tmp_path / "dcm").glob("*.csv.gz"):
        name.unlink()
    with pytest.raises(BadInput, match="tables=FOLDER"):
        read(tmp_path / "dcm")
    found, _ = read(tmp_path / "dcm", tables=tmp_path / "jpg")
    assert len(found) == 7
    assert all(Path(picture.path).suffix == ".dcm" for item in found.values() for picture in item.study.pictures)


def test_a_part_of_the_images(tmp_path: Path) -> None:
    root = build(tmp_path)
    gone = root / "files/p99/p99000001/s59000001/0001aaaa-00000001.jpg"
    gone.unlink()
    found, damaged = read(root, present_only=True)
    assert len(found) == 6
    assert ("0001aaaa-00000001", "its image was not fetched", True) in [(i.id, i.what, i.known) for i in damaged]
    with pytest.raises(BadInput, match=r"0001aaaa-00000001\.jpg .*: no such image file"):
        import_studies(MimicCxr(root), tmp_path / "store")


def test_into_a_store(tmp_path: Path) -> None:
    told = import_studies(MimicCxr(build(tmp_path / "mimic")), tmp_path / "store")
    assert told.splits == {"train": 2, "val": 3, "test": 2, "none": 0}
    assert told.left_out == {"no findings in its report": 1, "no report": 1}
    assert Store.open(tmp_path / "store").about.report_sections == ("findings",)


def damage_a_table(path: Path, old: bytes, new: bytes) -> None:
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).replace(old, new)))


def test_damaged_tables_are_named(tmp_path: Path) -> None:
    root = build(tmp_path)
    split = root / "mimic-cxr-2.0.0-split.csv.gz"
    whole = split.read_bytes()
    split.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadInput, match=r"split\.csv\.gz: is damaged or cut off"):
        read(root)
    split.write_bytes(whole)
    damage_a_table(split, b"dicom_id", b"image")
    with pytest.raises(BadInput, match="no column 'dicom_id'"):
        read(root)
    split.write_bytes(whole)
    damage_a_table(split, b"validate", b"holdout")
    _, damaged = read(root)
    assert any("holdout" in item.what and not item.known for item in damaged)
    split.write_bytes(whole)
    damage_a_table(split, b"0001aaaa-00000000", b"../../../etc/passwd")
    _, damaged = read(root)
    assert [item.id for item in damaged if not item.known] == ["s59000001"]
    split.unlink()
    with pytest.raises(BadInput, match=r"no mimic-cxr-2\.x-split"):
        read(root)


def test_damaged_reports_are_named(tmp_path: Path) -> None:
    root = build(tmp_path)
    zipped = root / "mimic-cxr-reports.zip"
    spoilt = bytearray(zipped.read_bytes())
    spoilt[spoilt.index(b"Clear")] ^= 1
    zipped.write_bytes(spoilt)
    found, damaged = read(root)
    assert "0001aaaa-00000000" not in found
    assert ("s59000001", "is damaged (wrong checksum)") in [(item.id, item.what) for item in damaged]
    assert damaged[0].where.endswith("mimic-cxr-reports.zip, files/p99/p99000001/s59000001.txt")
    zipped.write_bytes(b"PK and no more")
    with pytest.raises(BadInput, match="no whole zip"):
        read(root)
    with pytest.raises(BadInput, match="no such zip or folder"):
        read(root, reports=tmp_path / "elsewhere.zip")


def test_labels_that_are_none(tmp_path: Path) -> None:
    root = build(tmp_path)
    damage_a_table(root / "mimic-cxr-2.0.0-chexpert.csv.gz", b"-1.0", b"7")
    _, damaged = read(root)
    assert ("s59000001", "a CheXpert label is 7.0") in [(item.id, item.what) for item in damaged]


def test_settings_have_to_exist(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="did you mean 'reading'"):
        read(tmp_path, reeding="study")
    root = build(tmp_path)
    (root / "files").rename(root / "other")
    with pytest.raises(BadInput, match="above files/"):
        read(root)
    assert len(read(root, folder="other")[0]) == 7

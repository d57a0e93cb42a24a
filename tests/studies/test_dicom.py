from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pydicom.data import get_testdata_file
from pydicom.dataset import Dataset
from small_dicom import write

from negatoscope.errors import BadInput, WrongUse
from negatoscope.studies.dicom import DicomFolder
from negatoscope.studies.importing import import_studies
from negatoscope.studies.pixels import read_pixels
from negatoscope.studies.sources import Damaged, Found, open_source
from negatoscope.studies.store import Store
from negatoscope.studies.view_words import view_from_words


def read(folder: Path, **settings: object) -> tuple[dict[str, Found], list[Damaged]]:
    items = list(open_source("dicom", folder, settings).examinations())
    return {item.study.id: item for item in items if isinstance(item, Found)}, [
        i for i in items if isinstance(i, Damaged)
    ]


def test_studies_of_a_nested_folder_whatever_the_files_are_called(tmp_path: Path) -> None:
    write(tmp_path / "a/IM0002", "1.2.3", 2, ViewPosition="LL")
    write(tmp_path / "a/IM0001.dcm", "1.2.3", 1)
    write(tmp_path / "b/c/scan.jpg", "1.2.4", 1, ViewPosition="AP")
    found, damaged = read(tmp_path)
    assert list(found) == ["1.2.3", "1.2.4"]
    assert not damaged
    study = found["1.2.3"].study
    assert [(Path(picture.path).name, picture.view, picture.position) for picture in study.pictures] == [
        ("IM0001.dcm", "frontal", "PA"),
        ("IM0002", "lateral", "LL"),
    ]


def test_frontal_comes_first_then_the_order_of_numbers(tmp_path: Path) -> None:
    for number, position in enumerate(("LATERAL", "", "AP", "PA"), start=1):
        write(tmp_path / f"{9 - number}", "1.2.3", number, ViewPosition=position)
    found, _ = read(tmp_path)
    assert [picture.position for picture in found["1.2.3"].study.pictures] == ["AP", "PA", "LATERAL", ""]


@pytest.mark.parametrize(
    ("said", "view"),
    [
        (("PA",), "frontal"),
        (("AP",), "frontal"),
        (("ll",), "lateral"),
        (("RL",), "lateral"),
        (("LATERAL",), "lateral"),
        (("XTABLE LATERAL",), "lateral"),
        (("LLD",), "other"),
        (("AP LLD",), "other"),
        (("AP AXIAL",), "other"),
        (("LAO",), "other"),
        (("", "postero-anterior"), "frontal"),
        (("", "left lateral"), "lateral"),
        (("", "", "W033 Chest Lat."), "lateral"),
        (("", "", "CHEST PA AND LATERAL"), "unknown"),
        (("", "", "CHEST_AP_PORTABLE"), "frontal"),
        (("", "", "apple"), "unknown"),
        ((), "unknown"),
    ],
)
def test_views(said: tuple[str, ...], view: str) -> None:
    assert view_from_words(*said) == view


def test_a_leg_from_the_front_is_no_frontal_chest(tmp_path: Path) -> None:
    write(tmp_path / "x", "1.2.3", BodyPartExamined="EXTREMITY", ViewPosition="AP")
    write(tmp_path / "y", "1.2.4", BodyPartExamined="CHEST", ViewPosition="AP")
    found, _ = read(tmp_path)
    assert [found[id].study.pictures[0].view for id in ("1.2.3", "1.2.4")] == ["other", "frontal"]


def test_patients_leave_as_pseudonyms_and_names_not_at_all(tmp_path: Path) -> None:
    write(tmp_path / "data/x", "1.2.3", PatientID="4711")
    write(tmp_path / "data/y", "1.2.4", PatientID="4711")
    found, _ = read(tmp_path / "data")
    patients = {item.study.patient for item in found.values()}
    assert len(patients) == 1
    assert "4711" not in repr(found)
    assert "Nobody" not in repr(found)
    (tmp_path / "key").write_bytes(b"a secret")
    keyed, _ = read(tmp_path / "data", pseudonym_key=tmp_path / "key")
    assert {item.study.patient for item in keyed.values()} != patients
    as_is, _ = read(tmp_path / "data", patient_ids="as-is")
    assert {item.study.patient for item in as_is.values()} == {"4711"}
    none, _ = read(tmp_path / "data", patient_ids="none")
    assert {item.study.patient for item in none.values()} == {""}
    with pytest.raises(BadInput, match="key"):
        read(tmp_path / "data", pseudonym_key=tmp_path / "no key")


def test_other_modalities_are_counted_or_kept_as_other(tmp_path: Path) -> None:
    write(tmp_path / "ct", "1.2.3", Modality="CT")
    write(tmp_path / "dx", "1.2.4")
    found, damaged = read(tmp_path)
    assert list(found) == ["1.2.4"]
    assert [(item.known, item.what) for item in damaged] == [(True, "modality CT is no radiograph")]
    kept, _ = read(tmp_path, other_modalities="keep")
    assert kept["1.2.3"].study.pictures[0].view == "other"


def test_what_lies_about_in_the_folder_is_told(tmp_path: Path) -> None:
    write(tmp_path / "whole.dcm", "1.2.3")
    shutil.copy(tmp_path / "whole.dcm", tmp_path / "whole copy.dcm")
    (tmp_path / "README.txt").write_text("about these files")
    (tmp_path / "text.dcm").write_text("this is text and no DICOM file")
    (tmp_path / "empty.dcm").write_bytes(b"")
    write(tmp_path / "film.dcm", "1.2.5", NumberOfFrames=3)
    shutil.copy(str(get_testdata_file("rtplan.dcm", download=False)), tmp_path / "plan.dcm")
    found, damaged = read(tmp_path)
    assert list(found) == ["1.2.3"]
    told = {item.id: (item.known, item.what) for item in damaged}
    assert told["README.txt"] == (True, "is no DICOM file")
    assert told["text.dcm"] == told["empty.dcm"] == (False, "is no DICOM file, though its name says so")
    assert told["whole.dcm"] == (True, "the same image a second time (SOP Instance UID)")
    assert told["plan.dcm"] == (True, "is DICOM without an image (RTPLAN)")
    assert told["film.dcm"] == (False, "holds 3 frames")
    assert all(item.where for item in damaged)


def test_one_study_of_two_patients_is_a_mistake(tmp_path: Path) -> None:
    write(tmp_path / "a", "1.2.3", 1, PatientID="A")
    write(tmp_path / "b", "1.2.3", 2, PatientID="B")
    found, damaged = read(tmp_path)
    assert not found
    assert damaged[0].what == "its images name different patients"


def reports_beside(folder: Path) -> Iterator[tuple[str, dict[str, object]]]:
    (folder / "data/1.2.3.txt").write_text("FINDINGS: Clear lungs.\nIMPRESSION: Normal.")
    yield "beside", {}
    (folder / "data/1.2.3.txt").rename(folder / "1.2.3.txt")
    yield "folder", {"reports": folder}
    table = folder / "table.csv"
    table.write_text("Study Instance UID,Findings,Impression\n1.2.3,Clear lungs.,Normal.\n1.2.9,,\n")
    yield "columns", {"reports": table}
    table.write_text('study_id,report\n1.2.3,"FINDINGS: Clear lungs.\nIMPRESSION: Normal."\n')
    yield "whole", {"reports": table}


def test_reports_in_every_form(tmp_path: Path) -> None:
    write(tmp_path / "data/x", "1.2.3")
    for form, settings in reports_beside(tmp_path):
        study = read(tmp_path / "data", **settings)[0]["1.2.3"].study
        assert study.report == "Clear lungs.", form
        assert dict(study.sections) == {"findings": "Clear lungs.", "impression": "Normal."}, form
    both, _ = read(tmp_path / "data", reports=tmp_path, report_sections=["findings", "impression"])
    assert both["1.2.3"].study.report == "Clear lungs. Normal."
    (tmp_path / "1.2.3.txt").write_text("Clear lungs, whole heart.")
    assert read(tmp_path / "data", reports=tmp_path)[0]["1.2.3"].study.report == "Clear lungs, whole heart."


def test_structured_reports_of_the_same_study(tmp_path: Path) -> None:
    def item(kind: str, meaning: str, text: str = "", inside: list[Dataset] | None = None) -> Dataset:
        made, code = Dataset(), Dataset()
        code.CodeValue, code.CodingSchemeDesignator, code.CodeMeaning = "1", "DCM", meaning
        made.RelationshipType, made.ValueType, made.ConceptNameCodeSequence = "CONTAINS", kind, [code]
        if text:
            made.TextValue = text
        if inside:
            made.ContentSequence = inside
        return made

    write(tmp_path / "x", "1.2.3")
    lungs = item("CONTAINER", "Findings", inside=[item("TEXT", "Finding", "Clear."), item("TEXT", "Finding", "Dry.")])
    write(tmp_path / "sr", "1.2.3", 9, Modality="SR", ContentSequence=[lungs, item("TEXT", "Impression", "Normal.")])
    found, damaged = read(tmp_path)
    assert not damaged
    assert dict(found["1.2.3"].study.sections) == {"findings": "Clear.\nDry.", "impression": "Normal."}
    assert found["1.2.3"].study.report == "Clear. Dry."


def test_a_report_table_that_is_none(tmp_path: Path) -> None:
    write(tmp_path / "data/x", "1.2.3")
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(BadInput, match="column of study ids"):
        read(tmp_path / "data", reports=tmp_path / "t.csv")
    with pytest.raises(BadInput, match=r"t2\.csv"):
        read(tmp_path / "data", reports=tmp_path / "t2.csv")
    with pytest.raises(BadInput, match="no such folder"):
        read(tmp_path / "nowhere")
    with pytest.raises(WrongUse, match="modalities"):
        read(tmp_path / "data", modality="DX")


def test_into_a_store_and_out_again(tmp_path: Path) -> None:
    write(tmp_path / "data/a", "1.2.3", 1, PatientID="4711")
    write(tmp_path / "data/b", "1.2.3", 2, ViewPosition="LL", PatientID="4711")
    told = import_studies(DicomFolder(tmp_path / "data"), tmp_path / "store")
    assert (told.studies, told.pictures) == (1, 2)
    store = Store.open(tmp_path / "store")
    study = store.at(0)
    assert [picture.view for picture in study.pictures] == ["frontal", "lateral"]
    kept = read_pixels(store.picture_path(study.pictures[0])).grey
    assert kept.dtype == np.uint16
    assert len(np.unique(kept)) == 64  # no grey value was merged with its neighbour
    assert (np.diff(kept.ravel().astype(int)) > 0).all()
    every_byte = b"".join(path.read_bytes() for path in (tmp_path / "store").rglob("*") if path.is_file())
    assert b"Nobody" not in every_byte
    assert b"4711" not in every_byte


def test_the_order_is_the_same_each_time(tmp_path: Path) -> None:
    for number in range(20):
        write(tmp_path / f"{(number * 7) % 20}", f"1.2.{number % 6}", number)
    source = open_source("dicom", tmp_path)
    first = [item.study for item in source.examinations() if isinstance(item, Found)]
    again = [item.study for item in open_source("dicom", tmp_path).examinations() if isinstance(item, Found)]
    assert first == again
    source.prepare()
    assert len(source) == len(first) == 6

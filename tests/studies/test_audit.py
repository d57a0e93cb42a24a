from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_dicom import write as write_dicom

from negatoscope.errors import BadInput
from negatoscope.studies.audit import Audit, Example, audit, write_audit_page
from negatoscope.studies.audit.gathered import Gathered
from negatoscope.studies.audit.pictures import glance, near_pairs, view_doubts
from negatoscope.studies.audit.run import CHECKS
from negatoscope.studies.audit.words import blanked_share, letter_damage, looks_foreign
from negatoscope.studies.importing import import_studies
from negatoscope.studies.r2gen_json import R2GenJson
from negatoscope.studies.sources import Found
from negatoscope.studies.store import Store

LUNGS = "The lungs are clear and the heart is of normal size."


def drawn(seed: int, lateral: bool = False) -> np.ndarray:
    """Something smooth; two seeds differ everywhere. Lateral: bright on one side; frontal: bright in the middle."""
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 120, (9, 9), dtype=np.uint8)).resize((64, 64), Image.Resampling.BICUBIC)
    across = np.linspace(-1, 1, 64)
    shape = np.clip(across, 0, 1) if lateral else 1 - np.abs(across)
    return (np.asarray(coarse) + 120 * shape[None, :]).astype(np.uint8)


class R2GenFolder:
    """An annotation.json that can be spoilt before it is written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: dict[str, list[dict]] = {"train": [], "val": [], "test": []}
        self.views: dict[str, tuple[str, str]] = {}

    def add(self, split: str, id: str, report: str, pictures: list[np.ndarray | bytes | None], **more: str) -> None:
        paths = []
        for number, picture in enumerate(pictures):
            path = self.folder / "images" / id / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(picture, np.ndarray):
                Image.fromarray(picture).save(path)
            elif picture is not None:
                path.write_bytes(picture)
            paths.append(f"{id}/{number}.png")
        views = more.pop("views", "Frontal Lateral").split()
        self.views[id] = (views[0], views[1] if len(views) > 1 else "")
        self.rows[split].append({"id": id, "report": report, "image_path": paths, "split": split, **more})

    def whole(self, count: int = 60) -> R2GenFolder:
        for number in range(count):
            split = "val" if number % 5 == 4 else "train"
            report = f"{LUNGS} Number {'i' * number} is seen."
            self.add(split, f"s{number}", report, [drawn(2 * number), drawn(2 * number + 1, lateral=True)])
        return self

    def written(self) -> Path:
        (self.folder / "annotation.json").write_text(json.dumps(self.rows))
        with (self.folder / "studies.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(("id", "view_0", "view_1", "impression"))
            rows.writerows((id, *views, "Normal.") for id, views in self.views.items())
        return self.folder

    def audited(self) -> Audit:
        return audit(self.written(), workers=2)


@pytest.fixture
def data(tmp_path: Path) -> R2GenFolder:
    return R2GenFolder(tmp_path).whole()


def studies_of(found: Audit, kind: str) -> set[tuple[str, ...]]:
    return {example.studies for example in found[kind].examples}


def test_sound_data_have_no_faults(data: R2GenFolder) -> None:
    found = data.audited()
    assert (found.studies, found.pictures, found.splits) == (60, 120, {"train": 48, "val": 12})
    assert [(finding.kind, finding.count) for finding in found.faults] == []
    assert [finding.kind for finding in found.findings if not finding.checked] == ["patient-in-two-splits"]
    assert found["view-doubtful"].note.endswith("it tells 100.0% as they are labelled")


def test_reports_in_two_splits(data: R2GenFolder) -> None:
    data.add("val", "again", f"{LUNGS}  Number  is seen.", [drawn(900)], views="Frontal")  # as s0, spaced otherwise
    data.add("val", "other", f"{LUNGS} Number is seen!", [drawn(901)], views="Frontal")
    found = data.audited()
    assert found["report-in-two-splits"].count == 1
    assert studies_of(found, "report-in-two-splits") == {("again", "s0")}
    assert found["report-in-two-splits"].of == 14
    assert found["repeated-report"].count == 2


def test_patients_in_two_splits(data: R2GenFolder) -> None:
    data.add("train", "p1", "One.", [drawn(900)], subject_id="7", views="Frontal")
    data.add("test", "p2", "Two.", [drawn(901)], subject_id="7", views="Frontal")
    data.add("test", "p3", "Three.", [drawn(902)], subject_id="8", views="Frontal")
    found = data.audited()["patient-in-two-splits"]
    assert (found.checked, found.count, found.of) == (True, 1, 2)
    assert found.examples[0].studies == ("p1", "p2")


def test_pictures_that_stand_twice(data: R2GenFolder) -> None:
    data.add("train", "within", "One.", [drawn(900), drawn(900)], views="Frontal Frontal")
    data.add("val", "across", "Two.", [drawn(0)], views="Frontal")  # as in s0 of train
    brighter = np.clip(drawn(4).astype(int) + 3, 0, 255).astype(np.uint8)
    data.add("train", "nearly", "Three.", [brighter], views="Frontal")
    found = data.audited()
    assert studies_of(found, "same-picture") == {("within",), ("s0", "across")}
    assert studies_of(found, "picture-in-two-splits") == {("s0", "across")}
    assert studies_of(found, "nearly-same-picture") == {("s2", "nearly")}
    assert studies_of(found, "same-view-twice") == {("within",)}


def test_blank_unreadable_and_missing_pictures(data: R2GenFolder) -> None:
    noisy = 250 + np.random.default_rng(0).integers(0, 4, (64, 64)).astype(np.uint8)
    data.add("train", "white", "One.", [drawn(900), noisy])
    data.add("train", "grey", "Two.", [np.full((64, 64), 90, np.uint8)], views="Frontal")
    data.add("train", "cut", "Three.", [b"\x89PNG\r\n\x1a\n and no more"], views="Frontal")
    data.add("train", "gone", "Four.", [None], views="Frontal")
    data.add("train", "none", "Five.", [])
    found = data.audited()
    assert studies_of(found, "blank") == {("white",), ("grey",)}
    assert studies_of(found, "unreadable") == {("cut",), ("gone",)}
    assert studies_of(found, "no-picture") == {("none",)}
    assert found["same-picture"].count == 0  # nothing and nothing are not told as a pair


def test_views(data: R2GenFolder) -> None:
    data.add("train", "swapped", "One.", [drawn(901, lateral=True), drawn(900)])
    data.add("train", "unknown", "Two.", [drawn(902), drawn(903, lateral=True)], views="Frontal Oblique")
    data.add("train", "order", "Three.", [drawn(905, lateral=True), drawn(904)], views="Lateral Frontal")
    found = data.audited()
    doubtful = found["view-doubtful"]
    assert studies_of(found, "view-doubtful") == {("swapped",)}
    assert doubtful.count == 2
    assert {example.text.split(" (")[0] for example in doubtful.examples} == {"looks frontal", "looks lateral"}
    assert studies_of(found, "view-unknown") == {("unknown",)}
    assert studies_of(found, "first-not-frontal") == {("order",)}


def test_few_views_are_not_judged(tmp_path: Path) -> None:
    found = R2GenFolder(tmp_path).whole(5).audited()["view-doubtful"]
    assert (found.checked, found.count) == (False, 0)
    assert "too few" in found.note


def test_texts(data: R2GenFolder) -> None:
    data.add("train", "empty", " .,- 12", [drawn(900)], views="Frontal")
    data.add("train", "mojibake", "The heart\u00e2\u20ac\u2122s size is normal.", [drawn(901)], views="Frontal")
    data.add("train", "german", "Das Herz ist nicht vergrößert, kein Erguss und kein Infiltrat.", [drawn(902)])
    data.add("train", "blanked", "XXXX XXXX are clear.", [drawn(903)], views="Frontal")
    found = data.audited()
    assert studies_of(found, "empty-report") == {("empty",)}
    assert studies_of(found, "letters") == {("mojibake",)}
    assert studies_of(found, "language") == {("german",)}
    assert studies_of(found, "blanked-words") == {("blanked",)}
    assert found["empty-section"].count == 0


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (LUNGS, None),
        ("Größe, naïve, 5 µm, 37 °C, “quoted”, – dash, Ångström, Español", None),
        ("a\ufffdb", "letters were lost"),
        ("a\udce4b", "bytes that are no UTF-8"),
        ("GrÃ¶Ã\u009fe", "UTF-8 read as Latin-1"),
        ("donâ€™t", "UTF-8 read as Latin-1"),
        ("a\x00b", "control characters"),
        ("clear.<br/>No effusion &amp; more", "markup"),
        ("clear.\\nNo effusion", "escape sequences"),
        ("pressure <br 20", None),
    ],
)
def test_letters(text: str, what: str | None) -> None:
    damage = letter_damage(text)
    assert (damage and damage.split(" (")[0]) == what
    assert damage is None or damage.isprintable()


@pytest.mark.parametrize(
    ("text", "foreign"),
    [
        (LUNGS, False),
        ("Heart size normal. Lungs clear. No effusion.", False),
        ("Lungs clear.", False),
        ("XXXX XXXX XXXX.", False),
        ("El corazón es de tamaño normal, sin derrame del lado derecho y sin infiltrados.", True),
        ("Le coeur est normal, sans épanchement dans les culs-de-sac.", True),
        ("心臓の大きさは正常です。胸水はありません。異常所見なし", True),
        ("Сердце нормальных размеров", True),
    ],
)
def test_language(text: str, foreign: bool) -> None:
    assert looks_foreign(text) is foreign


def test_blanked_share() -> None:
    assert blanked_share("XXXX lungs ___ clear") == 0.5
    assert blanked_share("[**Name 12**] came") == 0.5
    assert blanked_share("") == 0


def test_a_store_is_audited_as_its_source_is(data: R2GenFolder, tmp_path: Path) -> None:
    data.add("train", "within", "One.", [drawn(900), drawn(900)], views="Frontal Frontal")
    at_source = data.audited()
    import_studies(R2GenJson(data.folder), tmp_path / "store")
    in_store = audit(tmp_path / "store")
    counts = [
        {finding.kind: (finding.count, finding.of) for finding in found.findings} for found in (at_source, in_store)
    ]
    assert counts[0] == counts[1]
    assert audit(Store.open(tmp_path / "store")).to_json() == in_store.to_json()
    json.dumps(in_store.to_json())


def test_a_picture_that_rots_in_the_store_is_found(data: R2GenFolder, tmp_path: Path) -> None:
    import_studies(R2GenJson(data.written()), tmp_path / "store")
    store = Store.open(tmp_path / "store")
    rotten = store.picture_path(store.study("s3").pictures[1])
    rotten.write_bytes(rotten.read_bytes()[:-40])
    assert studies_of(audit(store), "unreadable") == {("s3",)}


def test_a_folder_of_dicom_files(tmp_path: Path) -> None:
    write_dicom(tmp_path / "a", "1.2.3", PatientID="1")
    write_dicom(tmp_path / "b", "1.2.4", PatientID="1", ViewPosition="")
    write_dicom(tmp_path / "c", "1.2.5", Modality="CT")
    (tmp_path / "broken.dcm").write_text("no DICOM")
    found = audit(tmp_path)
    assert (found.studies, found["view-unknown"].count, found["damaged"].count, found["left-out"].count) == (2, 1, 1, 1)
    assert found["empty-report"].count == 2


def test_nothing_to_audit(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such store or folder"):
        audit(tmp_path / "nowhere")
    with pytest.raises(BadInput, match="not one study"):
        audit(tmp_path)


def test_near_pairs_are_those_of_a_full_search() -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (300, 256), dtype=np.uint8)
    for number in range(0, 60, 2):  # every other row a copy with 0 to 14 bits turned
        bits[number + 1] = bits[number]
        bits[number + 1, rng.permutation(256)[: number // 4]] ^= 1
    apart = (bits[:, None] != bits[None]).sum(axis=2)
    expected = {(i, j, int(apart[i, j])) for i, j in zip(*np.nonzero(apart <= 10)) if i < j}
    assert set(near_pairs(np.packbits(bits, axis=1))) == expected
    assert len(expected) == 22
    assert not list(near_pairs(np.zeros((0, 32), np.uint8)))


def test_a_picture_coded_anew_or_halved_is_still_nearly_the_same(tmp_path: Path) -> None:
    for seed in range(5):
        picture = Image.fromarray(drawn(seed)).resize((400, 480), Image.Resampling.BICUBIC)
        picture.save(tmp_path / "a.png")
        picture.save(tmp_path / "b.jpg", quality=50)
        picture.resize((200, 240), Image.Resampling.LANCZOS).save(tmp_path / "c.png")
        looks = [glance(tmp_path / name) for name in ("a.png", "b.jpg", "c.png")]
        assert len({look.sha256 for look in looks}) == 3
        steps = np.frombuffer(b"".join(look.steps for look in looks), np.uint8).reshape(3, 32)
        assert {(one, other) for one, other, _ in near_pairs(steps)} == {(0, 1), (0, 2), (1, 2)}


def test_view_doubts_do_not_learn_from_the_study_they_judge() -> None:
    """Labels without any relation to the pictures must not be told better than by chance."""
    rng = np.random.default_rng(0)
    small = rng.integers(0, 255, (600, 256), dtype=np.uint8)
    doubts = view_doubts(small, np.ones(600), rng.integers(0, 2, 600), np.arange(600) // 2)
    assert doubts is not None
    assert 0.4 < doubts.accuracy < 0.6


def test_the_page_holds_what_was_found_and_nothing_that_runs(data: R2GenFolder, tmp_path: Path) -> None:
    attack = "<script>alert(1)</script> & 'quotes' \""
    data.add("train", "<img src=x>", f"{attack} \x00", [drawn(900), np.zeros((64, 64), np.uint8)])
    data.add("val", "copy", f"{attack} \x00", [drawn(901), drawn(901)], views="Frontal Frontal")
    data.add("train", "gone", "One.", [None], views="Frontal")
    found = data.audited()
    write_audit_page(found, tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "<img src=x" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert page.count("<section") == len(found.faults)
    assert page.count("src='data:image/jpeg;base64,") >= 3
    assert "http" not in page  # nothing is loaded from elsewhere
    for finding in found.findings:
        assert finding.title.replace("'", "&#x27;") in page
    assert not list(tmp_path.glob(".*.part"))


def test_thumbnails_are_limited(data: R2GenFolder, tmp_path: Path) -> None:
    found = data.audited()
    one = Example(("s0",), "", ((str(data.folder / "images/s0/0.png"), "picture 0"),))
    many = replace(found["blank"], count=300, examples=(one,) * 300)
    write_audit_page(replace(found, findings=(many,)), tmp_path / "audit.html")
    assert (tmp_path / "audit.html").read_text().count("<img") == 240


def test_the_known_traps_of_iu_xray(shared) -> None:
    """One blank picture, one file twice, 65 reports in train and val: every report, and the pictures of two studies."""
    folder = shared("data/iu-xray")
    with Gathered(12) as seen:
        for item in R2GenJson(folder).examinations():
            assert isinstance(item, Found)
            wanted = item.study.id in ("CXR2084_IM-0715-1001", "CXR3245_IM-1537")
            pictures = item.study.pictures if wanted else ()
            seen.take(item.study, [(picture, Path(picture.path), glance(Path(picture.path))) for picture in pictures])
        seen.ready()
        found = Audit(folder, seen.studies, seen.pictures, {}, tuple(check(seen) for check in CHECKS))
    assert (found["report-in-two-splits"].count, found["report-in-two-splits"].of) == (65, 296)
    assert studies_of(found, "blank") == {("CXR2084_IM-0715-1001",)}
    assert studies_of(found, "same-picture") == {("CXR3245_IM-1537",)}
    assert studies_of(found, "same-view-twice") == {("CXR3245_IM-1537",)}


@pytest.mark.full
def test_all_of_iu_xray(shared, tmp_path: Path) -> None:
    found = audit(shared("data/iu-xray"))
    assert found["blank"].examples[0].studies == ("CXR2084_IM-0715-1001",)
    assert found["same-picture"].examples[0].studies == ("CXR3245_IM-1537",)
    assert found["report-in-two-splits"].count == 65
    assert found["same-view-twice"].count > 40
    assert found["first-not-frontal"].count > 200
    # Upside down; and a frontal picture among the lateral ones.
    assert {("CXR1285_IM-0188",), ("CXR3154_IM-1486",)} <= studies_of(found, "view-doubtful")
    write_audit_page(found, tmp_path / "audit.html")
    assert (tmp_path / "audit.html").stat().st_size < 5_000_000

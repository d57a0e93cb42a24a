"""Open-i's archives, extracted or not, whole or not, and what somebody might put into them."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from small_sources import as_png, drawn, open_i_xml, tree, write_tgz

from negatoscope.errors import BadInput
from negatoscope.studies import archive as archive_module
from negatoscope.studies.archive import read_members, unpack
from negatoscope.studies.audit import audit
from negatoscope.studies.importing import import_studies
from negatoscope.studies.iu_xray import view_of_caption
from negatoscope.studies.sources import Damaged, Found, open_source
from negatoscope.studies.store import Store

_IMAGES = {n: [f"CXR{n}_IM-{n:04d}-1001", f"CXR{n}_IM-{n:04d}-2001"] for n in (1, 2, 10)}


def archives(folder: Path, **more_reports: bytes) -> Path:
    reports = {
        f"ecgen-radiology/{n}.xml": open_i_xml(n, images, f"Lungs {n} are clear.") for n, images in _IMAGES.items()
    }
    reports |= {f"ecgen-radiology/{name.strip('_')}.xml": content for name, content in more_reports.items()}
    write_tgz(folder / "NLMCXR_reports.tgz", dict(sorted(reports.items())))
    pictures = {f"{id}.png": as_png(drawn(n + nth)) for n, ids in _IMAGES.items() for nth, id in enumerate(ids)}
    write_tgz(folder / "NLMCXR_png.tgz", pictures)
    return folder


def found(folder: Path) -> list[Found | Damaged]:
    return list(open_source("iu-xray", folder).examinations())


def test_archives_to_a_store(tmp_path: Path) -> None:
    import_studies(open_source("iu-xray", archives(tmp_path / "source")), tmp_path / "store")
    store = Store.open(tmp_path / "store")
    assert store.ids() == ["CXR1", "CXR2", "CXR10"]
    study = store.study("CXR10")
    assert study.report == "Lungs 10 are clear."
    assert study.sections["impression"] == "No acute disease."
    assert study.sections["indication"] == "Cough"
    assert study.tags == ("normal",)
    assert store.picture_path(study.pictures[1]).read_bytes() == as_png(drawn(11))


def test_what_was_extracted_gives_the_same(tmp_path: Path) -> None:
    import_studies(open_source("iu-xray", archives(tmp_path / "a")), tmp_path / "from archives")
    for name, inside in (("NLMCXR_reports.tgz", "."), ("NLMCXR_png.tgz", "png")):
        with tarfile.open(tmp_path / "a" / name) as archive:
            archive.extractall(tmp_path / "b" / inside, filter="data")
    import_studies(open_source("iu-xray", tmp_path / "b"), tmp_path / "from folder")
    first, second = tree(tmp_path / "from archives"), tree(tmp_path / "from folder")
    assert {name for name in first if first[name] != second.get(name)} == {"store.json"}  # which names the folder


def test_an_audit_reads_the_folder_once_the_images_are_unpacked(tmp_path: Path) -> None:
    folder = archives(tmp_path)
    before = tree(folder)
    with pytest.raises(BadInput, match=r"packed in NLMCXR_png\.tgz; an audit writes nothing there"):
        audit(folder)
    assert tree(folder) == before
    with tarfile.open(folder / "NLMCXR_png.tgz") as archive:
        archive.extractall(folder / "NLMCXR_png", filter="data")
    (folder / "NLMCXR_png.tgz").unlink()
    found = audit(folder)
    assert (found.studies, found.pictures, found["view-unknown"].count, found["unreadable"].count) == (3, 6, 6, 0)


def test_the_sections_that_make_the_report(tmp_path: Path) -> None:
    source = open_source("iu-xray", archives(tmp_path), {"report": "findings+impression"})
    item = next(source.examinations())
    assert isinstance(item, Found)
    assert item.study.report == "Lungs 1 are clear. No acute disease."
    assert source.report_sections == ("findings", "impression")


def test_r2gens_split_stands_in_for_the_one_that_open_i_lacks(tmp_path: Path) -> None:
    known = {2384: "train", 2279: "val", 999_999: "none"}
    reports = {f"{n}.xml": open_i_xml(n, [f"CXR{n}_IM-1-1"]) for n in known}
    write_tgz(tmp_path / "NLMCXR_reports.tgz", reports)
    splits = {item.study.id: item.study.split for item in found(tmp_path) if isinstance(item, Found)}
    assert splits == {f"CXR{n}": split for n, split in known.items()}


def test_reports_without_images_or_findings_are_left_out_by_rule(tmp_path: Path) -> None:
    folder = archives(tmp_path, _3=open_i_xml(3, []), _4=open_i_xml(4, ["CXR4_IM-1-1"], findings=" "))
    left_out = [item for item in found(folder) if isinstance(item, Damaged)]
    assert [(item.id, item.what, item.known) for item in left_out] == [
        ("CXR3", "a report without an image", True),
        ("CXR4", "a report without findings", True),
    ]


_BOMB = b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "cccccccc"><!ENTITY d "&b;&b;&b;">]><eCitation>&d;</eCitation>'


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (_BOMB, "declares a document type"),
        (_BOMB.decode().encode("utf-16"), "not UTF-8"),
        (b"<eCitation>", "is no XML"),
        (b"", "is no XML"),
        (open_i_xml(3, ["x"]).replace(b"heart", b"h\xe9art"), "not UTF-8"),
        (open_i_xml(3, ["../../../etc/passwd"]), "names an image"),
        (b"<a>" + b" " * 2**20 + b"</a>", "too large"),
    ],
)
def test_damaged_reports(tmp_path: Path, content: bytes, says: str) -> None:
    damaged = [item for item in found(archives(tmp_path, _3=content)) if isinstance(item, Damaged)]
    assert [item.id for item in damaged] == ["CXR3"]
    assert says in damaged[0].what
    assert damaged[0].where.endswith("ecgen-radiology/3.xml")


def test_an_image_that_the_archive_lacks(tmp_path: Path) -> None:
    folder = archives(tmp_path / "source", _3=open_i_xml(3, ["CXR3_IM-9-9"]))
    with pytest.raises(BadInput, match=r"CXR3_IM-9-9\.png \(study CXR3\): no such image file.*--skip-bad"):
        import_studies(open_source("iu-xray", folder), tmp_path / "store")


@pytest.mark.parametrize(
    ("caption", "view"),
    [
        ("PA and lateral views of the chest", "unknown"),
        ("Portable AP chest", "frontal"),
        ("Chest radiographs, 2 XXXX and lateral", "unknown"),
        ("XXXX lateral chest", "unknown"),
        ("Two AP views", "unknown"),
        ("Xray Chest", "unknown"),
        ("", "unknown"),
        ("panel of apples", "unknown"),
    ],
)
def test_a_caption_tells_the_view_only_where_it_speaks_of_one(caption: str, view: str) -> None:
    assert view_of_caption(caption) == view


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, link
        archive.addfile(info, io.BytesIO())
    return data.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        member("../evil.png"),
        member("/tmp/evil.png"),
        member("a/../../evil.png"),
        member("evil.png", tarfile.SYMTYPE, "/etc/passwd"),
        member("evil.png", tarfile.LNKTYPE, "../x"),
        member("evil.png", tarfile.FIFOTYPE),
        member("evil.png", tarfile.CHRTYPE),
    ],
    # The bytes hold the time of day: two processes that collect tests would name them differently.
    ids=["above", "absolute", "above-from-below", "symbolic-link", "hard-link", "pipe", "device"],
)
def test_no_member_of_an_archive_climbs_out_or_is_a_link(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.tgz").write_bytes(content)
    with pytest.raises(BadInput, match=r"a\.tgz: its member"):
        unpack(tmp_path / "a.tgz", tmp_path / "into" / "deep", ".png")
    assert not list(tmp_path.rglob("evil*"))


def test_an_archive_that_grows_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tgz(tmp_path / "a.tgz", {"a.png": bytes(1000), "b.png": bytes(1000)})
    monkeypatch.setattr(archive_module, "MAX_BYTES", 1500)
    with pytest.raises(BadInput, match=r"grows too large at 'b\.png'"):
        list(read_members(tmp_path / "a.tgz", ".png"))


@pytest.mark.parametrize("keep", [0, 10, 200, 0.5, 0.99])
def test_an_archive_that_is_cut_off(tmp_path: Path, keep: float) -> None:
    whole = write_tgz(tmp_path / "a.tgz", {f"{n}.png": as_png(drawn(n, 60, 60)) for n in range(20)}).read_bytes()
    (tmp_path / "a.tgz").write_bytes(whole[: int(keep * len(whole)) if keep < 1 else int(keep)])
    with pytest.raises(BadInput, match="cut off or damaged"):
        unpack(tmp_path / "a.tgz", tmp_path / "into", ".png")
    assert not (tmp_path / "into/.unpacked.json").exists()


def test_unpacking_again_does_what_is_missing(tmp_path: Path) -> None:
    archive = write_tgz(tmp_path / "a.tgz", {f"{n}.png": bytes([n]) * 50 for n in range(5)})
    unpack(archive, tmp_path / "into", ".png")
    times = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "into").glob("*.png")}
    (tmp_path / "into/.unpacked.json").unlink()
    (tmp_path / "into/3.png").unlink()
    (tmp_path / "into/4.png").write_bytes(b"half")
    unpack(archive, tmp_path / "into", ".png")
    again = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "into").glob("*.png")}
    assert {name for name in again if again[name] != times[name]} == {"3.png", "4.png"}
    assert (tmp_path / "into/4.png").read_bytes() == bytes([4]) * 50


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--set download=true"):
        found(tmp_path)

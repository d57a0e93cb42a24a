"""A thousand studies of which fifty are damaged in ten ways, a full disk, Ctrl-C: one clear line, nothing half."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from small_sources import as_png, drawn, r2gen_row, tree, write_r2gen

from negatoscope.errors import BadInput, Trouble
from negatoscope.studies.importing import import_studies
from negatoscope.studies.sources import open_source
from negatoscope.studies.store import Store

_COMMAND = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from negatoscope.cli import main; main()"
)


def command(*words: object) -> list[str]:
    return [sys.executable, "-c", _COMMAND, *map(str, words)]


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*words), capture_output=True, text=True, timeout=120, check=False)


def png_bomb() -> bytes:
    """20,000 x 20,000 grey pixels in 390 kB."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    row, squeeze = bytes(20_001), zlib.compressobj(1)
    pixels = b"".join(squeeze.compress(row * 500) for _ in range(40)) + squeeze.flush()
    header = struct.pack(">IIBBBBB", 20_000, 20_000, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


_BOMB = png_bomb()


def _first_image(folder: Path, row: dict) -> Path:
    return folder / "images" / row["image_path"][0]


def cut_off(folder: Path, row: dict) -> None:
    file = _first_image(folder, row)
    file.write_bytes(file.read_bytes()[:-20])


def text_as_png(folder: Path, row: dict) -> None:
    _first_image(folder, row).write_text("<html>404 not found</html>")


def text_as_dicom(folder: Path, row: dict) -> None:
    row["image_path"] = [row["id"] + "/0.dcm"]
    _first_image(folder, row).write_text("these are notes of mine, not a DICOM file\n" * 20)


def bomb(folder: Path, row: dict) -> None:
    _first_image(folder, row).write_bytes(_BOMB)


def no_images(folder: Path, row: dict) -> None:
    row["image_path"] = []


def empty_report(folder: Path, row: dict) -> None:
    row["report"] = " 1. .\n__ "


def climbing(folder: Path, row: dict) -> None:
    row["image_path"] = ["../" * 9 + "etc/hostname"]


def missing(folder: Path, row: dict) -> None:
    _first_image(folder, row).unlink()


def twice(folder: Path, row: dict) -> None:
    row["id"] = "CXR0_IM-0000"


def not_utf8(folder: Path, row: dict) -> None:
    row["report"] += " NOT UTF-8"


# how a study is damaged -> what has to be said of it
_KINDS: dict[Callable[[Path, dict], None], str] = {
    cut_off: "is cut off",
    text_as_png: "is no image",
    text_as_dicom: "is no image that can be read here: it is text",
    bomb: "would decode to 20,000 x 20,000 pixels",
    no_images: "a study without images",
    empty_report: "its report is empty",
    climbing: "leads out of",
    missing: "no such image file",
    twice: "its id is taken",
    not_utf8: "its text is not UTF-8",
}


def damaged_source(folder: Path, count: int, which: dict[int, Callable[[Path, dict], None]]) -> Path:
    rows = [r2gen_row(number) for number in range(count)]
    write_r2gen(folder, {"train": rows})
    for number, damage in which.items():
        damage(folder, rows[number])
    text = json.dumps({"train": rows}).encode().replace(b"NOT UTF-8", b"caf\xe9")
    (folder / "annotation.json").write_bytes(text)
    return folder


@pytest.fixture(scope="module")
def thousand(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[int, str]]:
    """The source, and what has to be said of which study."""
    kinds = list(_KINDS) * 5
    which = {7 + 19 * place: kind for place, kind in enumerate(kinds)}
    source = damaged_source(tmp_path_factory.mktemp("thousand"), 1000, which)
    return source, {number: _KINDS[kind] for number, kind in which.items()}


def test_skip_bad_takes_the_950_and_lists_the_50(thousand, tmp_path: Path) -> None:
    source, said = thousand
    done = run("data", "import", "r2gen-json", source, "--into", tmp_path / "store", "--skip-bad", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert (report["studies"], report["damaged"], len(report["bad"])) == (950, 50, 50)
    listed = [json.loads(line) for line in (tmp_path / "store/bad.jsonl").read_text().splitlines()]
    assert listed == report["bad"]
    for number, bad in zip(said, listed, strict=True):
        assert said[number] in bad["what"]
        assert bad["remedy"]
        assert bad["where"]
    assert Counter(bad["id"] for bad in listed)["CXR0_IM-0000"] == 5
    store = Store.open(tmp_path / "store")
    good = [f"CXR{number}_IM-{number:04d}" for number in range(1000) if number not in said]
    assert store.ids() == good
    for study in store:
        assert all(store.picture_path(picture).is_file() for picture in study.pictures)


def test_skip_bad_ends_with_a_list_for_people(tmp_path: Path) -> None:
    source = damaged_source(tmp_path / "source", 12, {3: cut_off, 8: missing})
    done = run("data", "import", "r2gen-json", source, "--into", tmp_path / "store", "--skip-bad")
    first, *damaged, last = done.stdout.splitlines()
    assert "10 studies (train 10), 20 pictures" in first
    assert [line.split(": ")[:2] for line in damaged] == [["damaged", "CXR3_IM-0003"], ["damaged", "CXR8_IM-0008"]]
    assert last.startswith("2 damaged studies were left out")


@pytest.mark.parametrize("kind", _KINDS)
def test_without_it_the_first_stops_the_import_with_one_line(kind, tmp_path: Path) -> None:
    source = damaged_source(tmp_path / "source", 12, {8: kind})
    with pytest.raises(BadInput) as caught:
        import_studies(open_source("r2gen-json", source), tmp_path / "store", studies_a_part=4)
    line = str(caught.value)
    assert _KINDS[kind] in line
    assert "CXR0_IM-0000" in line if kind is twice else "CXR8_IM-0008" in line
    assert str(source) in line
    assert "--skip-bad" in line
    assert "\n" not in line
    with pytest.raises(BadInput, match="resume"):
        Store.open(tmp_path / "store")


def test_the_command_says_one_line_and_goes_on_once_the_file_is_mended(tmp_path: Path) -> None:
    source = damaged_source(tmp_path / "source", 12, {8: cut_off})
    words = ("data", "import", "r2gen-json", source, "--into", tmp_path / "store")
    failed = run(*words)
    assert (failed.returncode, failed.stdout) == (1, "")
    assert len(failed.stderr.splitlines()) == 1
    assert not list((tmp_path / "store").rglob("*.part"))
    refused = run("data", "show", tmp_path / "store")
    assert refused.returncode == 1
    assert "run the same import again" in refused.stderr
    (source / "images/CXR8_IM-0008/0.png").write_bytes(as_png(drawn(80)))
    assert run(*words).returncode == 0
    shown = json.loads(run("data", "show", tmp_path / "store", "--json").stdout)
    assert shown["counts"]["studies"] == 12
    mended = json.loads(run("data", "show", tmp_path / "store", "CXR8_IM-0008", "--json").stdout)
    assert mended["report"] == "the heart is normal . number 8 ."
    assert "the heart is normal" in run("data", "show", tmp_path / "store", "CXR8_IM-0008").stdout


def test_names_that_are_no_utf8_are_spelt_out(tmp_path: Path) -> None:
    rows = [r2gen_row(1, id="NOT UTF-8"), r2gen_row(2, image_path=["NOT UTF-8.png"]), r2gen_row(3)]
    source = write_r2gen(tmp_path / "source", {"train": rows})
    annotation = source / "annotation.json"
    annotation.write_bytes(annotation.read_bytes().replace(b"NOT UTF-8", b"caf\xe9"))
    os.rename(source / "images/NOT UTF-8.png", os.fsencode(source / "images") + b"/caf\xe9.png")
    words = ("data", "import", "r2gen-json", source, "--skip-bad", "--json")
    copied = json.loads(run(*words, "--into", tmp_path / "copied").stdout)
    assert [bad["id"] for bad in copied["bad"]] == ["caf\\udce9"]
    referred = json.loads(run(*words, "--into", tmp_path / "referred", "--images", "reference").stdout)
    assert [bad["what"] for bad in referred["bad"]] == ["its text is not UTF-8", "its name is not UTF-8"]
    assert referred["bad"][1]["where"].endswith("caf\\udce9.png")


def test_a_stopped_import_can_go_on_with_skip_bad(tmp_path: Path) -> None:
    source = damaged_source(tmp_path / "source", 12, {8: cut_off})
    with pytest.raises(BadInput):
        import_studies(open_source("r2gen-json", source), tmp_path / "store", studies_a_part=4)
    import_studies(open_source("r2gen-json", source), tmp_path / "store", studies_a_part=4, skip_bad=True)
    import_studies(open_source("r2gen-json", source), tmp_path / "at once", studies_a_part=4, skip_bad=True)
    assert tree(tmp_path / "store") == tree(tmp_path / "at once")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nonsense", "x", "--into", "y"), "no source 'nonsense'"),
        (("r2gen-json", "x"), "--into"),
        (("r2gen-json", "--into", "y"), "needs a path"),
        (("r2gen-json", "x", "--into", "y", "--set", "annotation"), "--set key=value"),
        (("r2gen-json", "x", "--into", "y", "--set", "anotation=z"), "'annotation'"),
        (("r2gen-json", "x", "--into", "y", "--split", "sideways"), "by"),
        (("r2gen-json", "x", "--into", "y", "--split", "seeded", "--shares", "a,b,c"), "shares"),
        (("r2gen-json", "x", "--into", "y", "--form", "gif"), "png or jpeg"),
        (("phantom", "--into", os.devnull), "is a file, not a folder"),
    ],
)
def test_wrong_use_is_exit_code_2_and_makes_nothing(words: tuple, says: str, tmp_path: Path) -> None:
    done = subprocess.run(command("data", "import", *words), capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not os.listdir(tmp_path)


def test_ctrl_c_is_one_line_and_the_same_command_goes_on(tmp_path: Path) -> None:
    source = write_r2gen(tmp_path / "source", {"train": [r2gen_row(number) for number in range(300)]})
    words = ("data", "import", "r2gen-json", source, "--into", tmp_path / "store")
    running = subprocess.Popen(command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while sum(1 for _ in (tmp_path / "store/images").rglob("*.png")) < 20:
        assert time.monotonic() < until
        time.sleep(0.002)
    assert running.poll() is None, "it ended before it could be stopped"
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert "interrupted" in err
    assert not list((tmp_path / "store").rglob("*.part"))
    assert run(*words).returncode == 0
    import_studies(open_source("r2gen-json", source), tmp_path / "at once")
    assert tree(tmp_path / "store") == tree(tmp_path / "at once")


def test_a_disk_that_says_it_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = damaged_source(tmp_path / "source", 12, {})
    real = Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        if path.name.startswith(".CXR8"):
            real(path, data[:5])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return real(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(Trouble, match="the disk is full; free some space") as caught:
            import_studies(open_source("r2gen-json", source), tmp_path / "store", studies_a_part=4, skip_bad=True)
    assert not isinstance(caught.value, BadInput)
    assert not list((tmp_path / "store").rglob("*.part"))
    import_studies(open_source("r2gen-json", source), tmp_path / "store", studies_a_part=4)
    import_studies(open_source("r2gen-json", source), tmp_path / "at once", studies_a_part=4)
    assert tree(tmp_path / "store") == tree(tmp_path / "at once")


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 kB, where this user may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk can be mounted by root alone")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_is_full(tiny_disk: Path, tmp_path: Path) -> None:
    source = damaged_source(tmp_path / "source", 200, {})
    failed = run("data", "import", "r2gen-json", source, "--into", tiny_disk / "store")
    assert failed.returncode == 1
    assert len(failed.stderr.splitlines()) == 1
    assert "the disk is full" in failed.stderr
    assert not list(tiny_disk.rglob("*.part"))
    assert run("data", "show", tiny_disk / "store").returncode == 1

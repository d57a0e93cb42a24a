"""Fetching from a real server on this machine, with Range, that breaks off in the middle when told to."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from small_sources import as_png, drawn, open_i_xml, write_tgz

from negatoscope.errors import BadInput, Trouble, WrongUse
from negatoscope.studies.download import download
from negatoscope.studies.importing import import_studies
from negatoscope.studies.sources import open_source

_DATA = np.random.default_rng(1).bytes(3_500_000)


class Shelf:
    """What the server holds, and how it behaves."""

    def __init__(self) -> None:
        self.files = {"/a.tgz": _DATA}
        self.etag: str | None = '"one"'
        self.cuts: list[int] = []  # after how many bytes each next answer breaks off
        self.errors: list[int] = []
        self.ranges: list[str | None] = []
        self.knows_ranges = True


class _Handler(BaseHTTPRequestHandler):
    shelf: Shelf

    def do_GET(self) -> None:
        shelf = self.shelf
        asked = self.headers.get("Range")
        shelf.ranges.append(asked)
        if shelf.errors:
            self.send_error(shelf.errors.pop(0))
            return
        if self.path not in shelf.files:
            self.send_error(404)
            return
        data, start = shelf.files[self.path], 0
        if asked and shelf.knows_ranges and self.headers.get("If-Range") == shelf.etag:
            start = int(asked.removeprefix("bytes=").rstrip("-"))
            if start >= len(data):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        else:
            self.send_response(200)
        if shelf.etag:
            self.send_header("ETag", shelf.etag)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        self.wfile.write(data[start : start + shelf.cuts.pop(0)] if shelf.cuts else data[start:])

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    shelf = Shelf()
    handler = type("Handler", (_Handler,), {"shelf": shelf})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    shelf.url = f"http://127.0.0.1:{server.server_port}"  # pyright: ignore[reportAttributeAccessIssue]
    yield shelf
    server.shutdown()
    server.server_close()
    thread.join()


def no_wait(seconds: float) -> None:
    pass


def test_a_whole_file_with_progress_and_checksums(shelf, tmp_path: Path) -> None:
    told: list = []

    def watch(items, what, total=None):
        told.append((what, total))
        yield from items

    sha256, md5 = hashlib.sha256(_DATA).hexdigest().upper(), hashlib.md5(_DATA).hexdigest()
    path = download(f"{shelf.url}/a.tgz", tmp_path / "deep/a.tgz", sha256=sha256, md5=md5, watch=watch)
    assert path.read_bytes() == _DATA
    assert told == [("fetching a.tgz (MB)", 4)]
    assert [file.name for file in path.parent.iterdir()] == ["a.tgz"]
    download(f"{shelf.url}/a.tgz", path)
    assert len(shelf.ranges) == 1  # what is there is not fetched again


def test_a_cut_connection_is_taken_up_where_it_broke(shelf, tmp_path: Path) -> None:
    shelf.cuts = [1_500_000, 700_000]
    download(f"{shelf.url}/a.tgz", tmp_path / "a.tgz", wait=no_wait)
    assert (tmp_path / "a.tgz").read_bytes() == _DATA
    assert shelf.ranges == [None, "bytes=1500000-", "bytes=2200000-"]


def test_the_next_call_goes_on_as_well(shelf, tmp_path: Path) -> None:
    shelf.cuts = [1_000_000]
    with pytest.raises(Trouble, match="1,000,000 bytes are kept"):
        download(f"{shelf.url}/a.tgz", tmp_path / "a.tgz", attempts=1)
    assert not (tmp_path / "a.tgz").exists()
    download(f"{shelf.url}/a.tgz", tmp_path / "a.tgz")
    assert (tmp_path / "a.tgz").read_bytes() == _DATA
    assert shelf.ranges == [None, "bytes=1000000-"]


@pytest.mark.parametrize("change", ["another file", "no ranges", "no mark of its version"])
def test_halves_of_two_versions_are_never_joined(shelf, tmp_path: Path, change: str) -> None:
    shelf.cuts = [1_000_000]
    if change == "no mark of its version":
        shelf.etag = None
    with pytest.raises(Trouble):
        download(f"{shelf.url}/a.tgz", tmp_path / "a.tgz", attempts=1)
    if change == "another file":
        shelf.files["/a.tgz"], shelf.etag = _DATA[::-1], '"two"'
    shelf.knows_ranges = change != "no ranges"
    download(f"{shelf.url}/a.tgz", tmp_path / "a.tgz")
    assert (tmp_path / "a.tgz").read_bytes() == shelf.files["/a.tgz"]


def test_a_part_that_is_already_longer_starts_anew(shelf, tmp_path: Path) -> None:
    (tmp_path / "a.tgz.part").write_bytes(bytes(4_000_000))
    notes = {"url": f"{shelf.url}/a.tgz", "version": '"one"'}
    (tmp_path / "a.tgz.part.json").write_text(json.dumps(notes))
    download(f"{shelf.url}/a.tgz", tmp_path / "a.tgz", wait=no_wait)
    assert (tmp_path / "a.tgz").read_bytes() == _DATA


def test_a_wrong_checksum_is_not_kept(shelf, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="its sha256 is"):
        download(f"{shelf.url}/a.tgz", tmp_path / "a.tgz", sha256="0" * 64)
    assert not list(tmp_path.iterdir())
    (tmp_path / "a.tgz").write_bytes(b"old")
    with pytest.raises(BadInput, match="delete the file and fetch it again"):
        download(f"{shelf.url}/a.tgz", tmp_path / "a.tgz", sha256="0" * 64)


def test_a_busy_server_is_asked_again_and_a_missing_file_is_not(shelf, tmp_path: Path) -> None:
    waited: list[float] = []
    shelf.errors = [503, 429]
    download(f"{shelf.url}/a.tgz", tmp_path / "a.tgz", wait=waited.append)
    assert waited == [2, 4]
    with pytest.raises(Trouble, match="the server says 404"):
        download(f"{shelf.url}/b.tgz", tmp_path / "b.tgz", wait=waited.append)
    assert len(waited) == 2


def test_no_server_and_no_web_address(tmp_path: Path) -> None:
    with pytest.raises(Trouble, match="cannot be fetched"):
        download("http://127.0.0.1:9/a.tgz", tmp_path / "a.tgz", attempts=2, wait=no_wait)
    with pytest.raises(WrongUse, match="https://"):
        download("file:///etc/passwd", tmp_path / "a.tgz")


def test_iu_xray_from_a_server(shelf, tmp_path: Path) -> None:
    xml = open_i_xml(1, ["CXR1_IM-0001-1001"])
    reports = write_tgz(tmp_path / "server/NLMCXR_reports.tgz", {"ecgen-radiology/1.xml": xml})
    images = write_tgz(tmp_path / "server/NLMCXR_png.tgz", {"CXR1_IM-0001-1001.png": as_png(drawn(1))})
    shelf.files = {f"/open-i/{path.name}": path.read_bytes() for path in (reports, images)}
    settings = {"download": "true", "url": f"{shelf.url}/open-i/"}
    settings["images-sha256"] = hashlib.sha256(images.read_bytes()).hexdigest()
    report = import_studies(open_source("iu-xray", tmp_path / "here", settings), tmp_path / "store")
    assert (report.studies, report.pictures) == (1, 1)

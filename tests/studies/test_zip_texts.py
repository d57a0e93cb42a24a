from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from negatoscope.errors import BadInput
from negatoscope.studies.zip_texts import ZipTexts


def archive(path: Path, files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED, comment: bytes = b"") -> Path:
    with zipfile.ZipFile(path, "w", method) as zipped:
        zipped.comment = comment
        for name, data in files.items():
            zipped.writestr(name, data)
    return path


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_reads_what_python_wrote(tmp_path: Path, method: int) -> None:
    files = {"a/b.txt": b"lungs " * 99, "empty.txt": b"", "ä.txt": "größer".encode()}
    texts = ZipTexts(archive(tmp_path / "x.zip", files, method, b"a comment"))
    assert {name: texts.read(name) for name in files} == files
    assert texts.read("a/c.txt") is None


def test_more_files_than_a_small_zip_can_count(tmp_path: Path) -> None:
    """MIMIC-CXR has 227,835 reports: a zip of more than 65,535 files has its count in the zip64 record."""
    files = {f"{number}": b"%d" % number for number in range(66_000)}
    texts = ZipTexts(archive(tmp_path / "x.zip", files, zipfile.ZIP_STORED))
    assert texts.read("65999") == b"65999"
    assert texts.read("66000") is None


def test_a_file_that_was_written_as_a_stream(tmp_path: Path) -> None:
    class Pipe(io.RawIOBase):
        """Cannot seek: sizes follow the data, in zip64 form."""

        def __init__(self) -> None:
            self.data = bytearray()

        def writable(self) -> bool:
            return True

        def write(self, data) -> int:
            self.data += bytes(data)
            return len(data)

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as zipped:  # pyright: ignore[reportArgumentType]
        with zipped.open("a.txt", "w", force_zip64=True) as file:
            file.write(b"clear")
    (tmp_path / "x.zip").write_bytes(pipe.data)
    assert ZipTexts(tmp_path / "x.zip").read("a.txt") == b"clear"


def test_every_cut_and_every_flipped_byte_of_a_text_is_told(tmp_path: Path) -> None:
    whole = archive(tmp_path / "x.zip", {"a.txt": b"the lungs are clear"}, zipfile.ZIP_STORED).read_bytes()
    spoilt = tmp_path / "y.zip"
    for length in range(0, len(whole) - 1, 7):
        spoilt.write_bytes(whole[:length])
        with pytest.raises(BadInput, match=r"y\.zip"):
            ZipTexts(spoilt)
    start = whole.index(b"the lungs")
    for at in range(start, start + 19):
        spoilt.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(BadInput, match=r"a\.txt: is damaged"):
            ZipTexts(spoilt).read("a.txt")


def test_no_such_zip(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no whole zip"):
        ZipTexts(tmp_path / "none.zip")


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    texts = ZipTexts(archive(tmp_path / "x.zip", {"a": bytes(2**25)}))
    with pytest.raises(BadInput, match="checksum"):
        texts.read("a")

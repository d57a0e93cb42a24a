"""Small files out of a large zip, with memory that does not grow with it.

Python's own reader keeps some 600 bytes for each file of an archive: 150 MB for the 227,835 reports of MIMIC-CXR. Here
the archive's directory goes into a temporary database instead. Format: PKWARE's APPNOTE 6.3, 4.3.6 to 4.3.16.
"""

from __future__ import annotations

import sqlite3
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from negatoscope.errors import BadInput

_LARGEST = 2**24  # bytes of one text once unpacked
_REMEDY = "fetch the zip again"
_Entry = tuple[str, int, int, int, int]  # name, offset of its local header, method, packed size, CRC-32


class ZipTexts:
    """A zip file, opened once. Raises BadInput where it is none, or is cut off."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file: BinaryIO = path.open("rb")
            self._entries = sqlite3.connect("", check_same_thread=False)
            self._entries.execute("CREATE TABLE entries (name PRIMARY KEY, start, method, size, crc) WITHOUT ROWID")
            with self._entries:
                rows = _directory(self._file)
                self._entries.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?)", rows)
        except (OSError, struct.error, ValueError) as error:
            raise BadInput(f"is no whole zip file ({error})", where=path, remedy=_REMEDY) from error

    def read(self, name: str) -> bytes | None:
        """The bytes of a file of the archive, or None where it holds none of that name. Raises BadInput."""
        query = "SELECT start, method, size, crc FROM entries WHERE name = ?"
        found = self._entries.execute(query, (name,)).fetchone()
        if found is None:
            return None
        start, method, size, crc = found
        try:
            self._file.seek(start)
            head = self._file.read(30)
            signature, *_, name_length, extra_length = struct.unpack("<4s5H3I2H", head)
            if signature != b"PK\x03\x04":
                raise ValueError("its header is not where the directory says")
            self._file.seek(name_length + extra_length, 1)
            data = _unpacked(self._file.read(min(size, _LARGEST)), method)
        except (OSError, struct.error, ValueError, zlib.error) as error:
            raise BadInput(f"is damaged ({error})", where=f"{self.path}, {name}", remedy=_REMEDY) from error
        if zlib.crc32(data) != crc:
            raise BadInput("is damaged (wrong checksum)", where=f"{self.path}, {name}", remedy=_REMEDY)
        return data


def _unpacked(data: bytes, method: int) -> bytes:
    if method == 0:
        return data
    if method != 8:
        raise ValueError(f"packed by method {method}")
    return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, _LARGEST)


def _directory(file: BinaryIO) -> Iterator[_Entry]:
    """Every entry of the central directory, one after the other."""
    count, start = _end_record(file)
    file.seek(start)
    for _ in range(count):
        head = struct.unpack("<4s6H3I5H2I", file.read(46))
        signature, flags, method, crc, packed = head[0], head[3], head[4], head[7], head[8]
        name_length, extra_length, comment_length, offset = head[10], head[11], head[12], head[16]
        if signature != b"PK\x01\x02":
            raise ValueError("its directory is damaged")
        name = file.read(name_length).decode("utf-8" if flags & 0x800 else "cp437", "replace")
        extra = file.read(extra_length)
        file.seek(comment_length, 1)
        if flags & 0x1:
            raise ValueError("it is encrypted")
        packed, offset = _beyond_4_gb(extra, head[9], packed, offset)
        yield name, offset, method, packed, crc


def _end_record(file: BinaryIO) -> tuple[int, int]:
    """How many entries the directory has and where it starts; both may stand in the zip64 record."""
    file.seek(0, 2)
    length = file.tell()
    file.seek(max(0, length - 66_000))
    tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0:
        raise ValueError("its end is missing")
    count, _, start = struct.unpack_from("<HII", tail, at + 10)
    locator = tail.rfind(b"PK\x06\x07", 0, at)
    if (count == 0xFFFF or start == 0xFFFFFFFF) and locator >= 0:
        file.seek(struct.unpack_from("<Q", tail, locator + 8)[0])
        record = file.read(56)
        if not record.startswith(b"PK\x06\x06"):
            raise ValueError("its end is damaged")
        count, _, start = struct.unpack_from("<QQQ", record, 32)
    return count, start


def _beyond_4_gb(extra: bytes, unpacked: int, packed: int, offset: int) -> tuple[int, int]:
    """Sizes and offsets of 0xFFFFFFFF stand in the extra field 0x0001, in this order, those only that need it."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            at += 4 + 8 * (unpacked == 0xFFFFFFFF)
            if packed == 0xFFFFFFFF:
                packed, at = struct.unpack_from("<Q", extra, at)[0], at + 8
            if offset == 0xFFFFFFFF:
                offset = struct.unpack_from("<Q", extra, at)[0]
            break
        at += 4 + length
    return packed, offset

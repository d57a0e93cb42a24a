"""A file from the web: a download that broke off goes on where it stopped, and is not taken for whole before it is."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path

from negatoscope.errors import BadInput, Trouble, WrongUse
from negatoscope.watch import Watch, quiet
from negatoscope.whole_files import write_json

_CHUNK = 2**20
_FREE_SOME = "free some space and run the same command again"
_BY_HAND = "check the address and your connection, or fetch the file by hand"


class _BrokenOff(Exception):
    """The connection ended before the file did."""


@dataclass(frozen=True)
class _Begun:
    """What is there of an earlier attempt: its file, and what told that version of the file from others."""

    part: Path
    notes: Path
    url: str

    def headers(self) -> dict[str, str]:
        """Asks for the rest, but of the same version alone (`If-Range`); without a mark of it, for the whole."""
        try:
            notes = json.loads(self.notes.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        if notes.get("url") != self.url or not notes.get("version") or not self.size():
            return {}
        return {"Range": f"bytes={self.size()}-", "If-Range": notes["version"]}

    def size(self) -> int:
        return self.part.stat().st_size if self.part.is_file() else 0

    def note(self, answer: HTTPResponse) -> None:
        etag = answer.headers.get("ETag", "")
        version = etag if etag and not etag.startswith("W/") else answer.headers.get("Last-Modified", "")
        write_json(self.notes, {"url": self.url, "version": version})

    def forget(self) -> None:
        self.part.unlink(missing_ok=True)
        self.notes.unlink(missing_ok=True)


def download(
    url: str,
    to: Path,
    *,
    sha256: str | None = None,
    md5: str | None = None,
    attempts: int = 5,
    wait: Callable[[float], object] = time.sleep,
    timeout_s: float = 30,
    watch: Watch = quiet,
) -> Path:
    """Fetches `url` to the file `to`; a file that is there already and has the checksum stays as it is.

    A connection that breaks is taken up again by HTTP Range, `attempts` times without a byte of progress in between,
    and by the next call as well. Raises `BadInput` for a wrong checksum, `Trouble` where the server gives no file.
    """
    if not url.startswith(("http://", "https://")):
        raise WrongUse(f"cannot fetch {url!r}", remedy="give an address that begins with https:// or http://")
    if to.is_file():
        _check(to, sha256, md5)
        return to
    to.parent.mkdir(parents=True, exist_ok=True)
    begun = _Begun(to.with_name(f"{to.name}.part"), to.with_name(f"{to.name}.part.json"), url)
    chunks = _chunks(begun, attempts, wait, timeout_s)
    total = next(chunks)
    for _ in watch(chunks, f"fetching {to.name} (MB)", -(-total // _CHUNK) or None):
        pass
    try:
        _check(begun.part, sha256, md5)
    except BadInput:
        begun.forget()  # what is wrong stays wrong: the next call starts anew
        raise
    begun.part.replace(to)
    begun.forget()
    return to


def _chunks(begun: _Begun, attempts: int, wait: Callable[[float], object], timeout_s: float) -> Iterator[int]:
    """First the size of the whole file (0: not said), then one number for each megabyte that has come."""
    failures, told = 0, False
    while True:
        before = begun.size()
        try:
            with _asked(begun, timeout_s) as answer:
                total = _total(answer)
                if not told:
                    yield total
                    told = True
                yield from _append(begun, answer)
            if total and begun.size() < total:
                raise _BrokenOff(f"the connection ended after {begun.size():,} of {total:,} bytes")
            return
        except urllib.error.HTTPError as error:
            if error.code == 416:  # nothing is left to send, or the file has become shorter: from the start
                begun.forget()
            elif error.code < 500 and error.code not in (408, 429):
                raise Trouble(
                    f"the server says {error.code} {error.reason}", where=begun.url, remedy=_BY_HAND
                ) from error
            reason: Exception = error
        except (OSError, HTTPException, _BrokenOff) as error:
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise Trouble("the disk is full", where=begun.part, remedy=_FREE_SOME) from error
            if isinstance(error, OSError) and error.filename:  # our own file, not the network
                raise
            reason = error
        failures = 1 if begun.size() > before else failures + 1
        if failures >= attempts:
            kept = f"; {begun.size():,} bytes are kept, the same command goes on from there" if begun.size() else ""
            what = f"cannot be fetched ({getattr(reason, 'reason', None) or reason})"
            raise Trouble(what, where=begun.url, remedy=_BY_HAND + kept) from reason
        wait(min(2**failures, 30))


def _asked(begun: _Begun, timeout_s: float) -> HTTPResponse:
    headers = {"User-Agent": "negatoscope", "Accept-Encoding": "identity", **begun.headers()}
    return urllib.request.urlopen(urllib.request.Request(begun.url, headers=headers), timeout=timeout_s)


def _total(answer: HTTPResponse) -> int:
    if answer.status == 206:
        size = answer.headers.get("Content-Range", "").rpartition("/")[2]
    else:
        size = answer.headers.get("Content-Length", "")
    return int(size) if size.isdecimal() else 0


def _append(begun: _Begun, answer: HTTPResponse) -> Iterator[int]:
    """Writes what comes to the end of the part, or anew where the server sends the whole file."""
    start = 0
    if answer.status == 206:
        said = answer.headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
        start = int(said) if said.isdecimal() else -1
        if start != begun.size():
            begun.forget()
            raise _BrokenOff(f"the server sent bytes from {said or 'nowhere'} on")
    else:
        begun.part.unlink(missing_ok=True)
    begun.note(answer)
    with begun.part.open("ab") as file:
        while data := answer.read(_CHUNK):
            file.write(data)
            yield 1
        file.flush()
        os.fsync(file.fileno())


def _check(path: Path, sha256: str | None, md5: str | None) -> None:
    for name, wanted in (("sha256", sha256), ("md5", md5)):
        if wanted is None:
            continue
        with path.open("rb") as file:
            found = hashlib.file_digest(file, name).hexdigest()
        if found != wanted.strip().lower():
            what = f"its {name} is {found}, not {wanted}"
            raise BadInput(what, where=path, remedy="delete the file and fetch it again, or correct the checksum")

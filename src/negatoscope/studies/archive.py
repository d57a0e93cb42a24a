"""Files out of a .tgz that somebody else made: nothing is written outside the folder, nothing grows without end."""

from __future__ import annotations

import json
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from negatoscope.errors import BadInput
from negatoscope.watch import Watch, quiet
from negatoscope.whole_files import write_bytes, write_json

MAX_FILES = 100_000
MAX_BYTES_A_FILE = 2**28
MAX_BYTES = 2**36
_REMEDY = "this is not the archive that its publisher made: fetch it again"


def read_members(archive: Path, ending: str) -> Iterator[tuple[str, bytes]]:
    """(path in the archive, content) of every file with that ending, in its order, by reading through it once.

    Raises `BadInput` for an archive that is cut off or damaged, a member that climbs out or is a link, for more
    than 100,000 files, 256 MB a file or 64 GB in all.
    """
    total = 0
    try:
        with tarfile.open(archive, "r|*") as opened:
            for number, member in enumerate(opened):
                path = PurePosixPath(member.name)
                if path.is_absolute() or ".." in path.parts or "\\" in member.name:
                    raise BadInput(f"its member {member.name!r} climbs out", where=archive, remedy=_REMEDY)
                if member.isdir() or (member.isreg() and path.name.startswith("._")):  # macOS leaves these behind
                    continue
                if not member.isreg():
                    raise BadInput(f"its member {member.name!r} is no ordinary file", where=archive, remedy=_REMEDY)
                total += member.size
                if number >= MAX_FILES or member.size > MAX_BYTES_A_FILE or total > MAX_BYTES:
                    raise BadInput(f"grows too large at {member.name!r}", where=archive, remedy=_REMEDY)
                if path.suffix.lower() == ending:
                    content = opened.extractfile(member)
                    assert content is not None
                    yield member.name, content.read()
    except FileNotFoundError as error:
        raise BadInput("no such archive", where=archive, remedy="fetch it first") from error
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.filename not in (None, str(archive), archive):
            raise
        what = f"the archive is cut off or damaged ({error})"
        raise BadInput(what, where=archive, remedy="delete it and fetch it again") from error


def unpack(archive: Path, folder: Path, ending: str, total: int | None = None, watch: Watch = quiet) -> None:
    """Writes every file with that ending into one flat folder; run again, it does what is missing and no more."""
    done, stamp = folder / ".unpacked.json", {"archive": archive.name, "bytes": archive.stat().st_size}
    if done.is_file() and _read_stamp(done) == stamp:
        return
    names: set[str] = set()
    for name, content in watch(read_members(archive, ending), f"unpacking {archive.name}", total):
        flat = PurePosixPath(name).name
        if flat in names:
            raise BadInput(f"it holds two files {flat!r}", where=archive, remedy=_REMEDY)
        names.add(flat)
        path = folder / flat
        if not (path.is_file() and path.stat().st_size == len(content)):
            write_bytes(path, content)
    write_json(done, stamp)


def _read_stamp(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None

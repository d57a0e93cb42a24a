"""Files that are whole or not there: written under a temporary name in the same folder, flushed, then renamed."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from negatoscope.errors import Trouble, WrongUse


@contextmanager
def whole_file(path: Path | str) -> Iterator[Path]:
    """Yields a temporary path to write to. It takes its real name only if the block ends without an error."""
    path = Path(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        make_folder(path.parent)
        yield part
        with part.open("rb+") as written:
            os.fsync(written.fileno())
        part.replace(path)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Trouble(
                "the disk is full", where=path, remedy="free some space and run the same command again"
            ) from error
        if error.filename == str(part):  # told by the name that was given, not our temporary one
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        with suppress(NotADirectoryError):
            part.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Raises WrongUse where a file has its name."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise WrongUse("is a file, not a folder, or lies in one", where=folder, remedy="name another") from error


def write_text(path: Path | str, text: str) -> None:
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")


def write_bytes(path: Path | str, data: bytes) -> None:
    with whole_file(path) as part:
        part.write_bytes(data)


def write_json(path: Path | str, value: Any) -> None:
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")

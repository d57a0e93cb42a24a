"""Paths that other people's files name: they may not lead out of the folder they count from."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from negatoscope.errors import BadInput

_REMEDY = "correct the path: it has to lie inside that folder"


def file_inside(folder: Path, named: str) -> Path:
    """`folder / named`. Raises `BadInput` where that would climb out of the folder, by '..', by '/' or by a link."""
    path = PurePosixPath(named.replace("\\", "/"))
    if not named or "\0" in named or path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
        raise BadInput(f"the path {named!r} leads out of {folder}", remedy=_REMEDY)
    inside = folder / path
    steps = [inside, *list(inside.parents)[: len(path.parts) - 1]]
    if any(step.is_symlink() for step in steps) and not inside.resolve().is_relative_to(folder.resolve()):
        raise BadInput(f"the path {named!r} leads out of {folder} by a link", remedy=_REMEDY)
    return inside

"""What can go wrong, said in one line: what, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class Trouble(Exception):
    """Something a person can act on. The command line prints it as one line and exits with `exit_code`."""

    exit_code = 1

    def __init__(self, what: str, *, where: object = None, remedy: str | None = None) -> None:
        self.what, self.where, self.remedy = what, where, remedy
        parts = [f"{where}: {what}" if where is not None else what]
        if remedy:
            parts.append(remedy)
        super().__init__("; ".join(" ".join(part.split()) for part in parts))


class BadInput(Trouble):
    """A file or a value that is damaged, missing or not what it says it is."""


class WrongUse(Trouble):
    """A setting, name or argument that does not exist or does not fit."""

    exit_code = 2


def nearest_names(wrong: str, right: Iterable[str]) -> str:
    """`did you mean "beam"?`, or the list of what would have been right."""
    right = list(right)
    near = get_close_matches(wrong, right, n=3, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(repr(name) for name in near)}?"
    return f"known: {', '.join(sorted(right))}"

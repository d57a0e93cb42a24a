"""How long work tells of its progress, without knowing whether anybody looks.

A function that may run long takes `watch: Watch = quiet` and loops over `watch(items, "reading images", total)`.
The command line passes a watch that draws a Rich progress bar with rate and time left (`cli/progress.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")


class Watch(Protocol):
    def __call__(self, items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]: ...


def quiet(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """The watch of tests and of Python callers who did not ask for one."""
    return iter(items)

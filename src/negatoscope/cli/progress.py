"""The watch that draws: a Rich progress bar with count, rate and time left, on standard error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from negatoscope.watch import Watch, quiet

T = TypeVar("T")


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(
            "" if not speed else f"{speed:,.0f}/s" if speed >= 10 else f"{speed:.2f}/s", style="progress.data.speed"
        )


def watch_on(console: Console | None = None, *, silent: bool = False) -> Watch:
    """A watch for one command. Silent where nobody looks: with --json and where standard error is no terminal."""
    console = console or Console(stderr=True)
    if silent or not console.is_terminal:
        return quiet

    def watch(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        if total is None and hasattr(items, "__len__"):
            total = len(items)  # pyright: ignore[reportArgumentType]
        with Progress(*columns, console=console, transient=True) as bar:
            yield from bar.track(items, total=total, description=what)

    return watch

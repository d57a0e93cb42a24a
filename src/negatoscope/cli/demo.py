"""`negatoscope demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from negatoscope.cli.options import Json, print_json


def demo(
    into: Annotated[Path, typer.Option(help="The folder for studies, run, reports and page.")] = Path("demo"),
    studies: Annotated[int, typer.Option(min=50, help="How many phantom studies to draw.")] = 1500,
    epochs: Annotated[int | None, typer.Option(min=1, help="Fewer or more than the recipe says.")] = None,
    json: Json = False,
) -> None:
    """Draw phantom studies, train a small reporter on them, and show what it writes.

    Example: `negatoscope demo --into demo`
    """
    from rich.console import Console
    from rich.table import Table

    from negatoscope.cli.progress import watch_on
    from negatoscope.reading_room import demo as room

    shown = room.demo(into, studies=studies, epochs=epochs, watch=watch_on(silent=json))
    if json:
        print_json(vars(shown))
        return
    console = Console()
    console.print(f"\n[bold]{shown.example}[/bold], of the test split")
    console.print(f"[bold]written  [/bold] {shown.written}", highlight=False)
    console.print(f"[bold]reference[/bold] {shown.reference}\n", highlight=False)
    columns = list(next(iter(shown.scores.values())))
    table = Table("", *columns, title="test split")
    for name, figures in shown.scores.items():
        table.add_row(name, *(f"{figures[column]:.3f}" for column in columns))
    console.print(table)
    console.print(f"The page with pictures: {shown.page.resolve()}", soft_wrap=True)

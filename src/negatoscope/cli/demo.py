"""`negatoscope demo`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from negatoscope.cli.options import Json, print_json

if TYPE_CHECKING:
    from negatoscope.reading_room.real_films import RealFilms


def demo(
    into: Annotated[Path, typer.Option(help="The folder for studies, run, reports and page.")] = Path("demo"),
    studies: Annotated[int, typer.Option(min=50, help="How many phantom studies to draw.")] = 1500,
    epochs: Annotated[int | None, typer.Option(min=1, help="Fewer or more than the recipe says.")] = None,
    json: Json = False,
) -> None:
    """A report on a real radiograph by the model that ships; then draw phantom studies, train a small reporter on them,
    and show what it writes.

    Example: `negatoscope demo --into demo`
    """
    from rich.console import Console
    from rich.table import Table

    from negatoscope.cli.progress import watch_on
    from negatoscope.reading_room import demo as room
    from negatoscope.reading_room.real_films import real_films

    films = real_films(into)
    if films is not None and not json:
        _show_films(films)
    shown = room.demo(into, studies=studies, epochs=epochs, watch=watch_on(silent=json))
    if json:
        drafts = {name: draft.as_json() for name, draft in films.drafts.items()} if films else {}
        print_json({**vars(shown), "drafts": drafts})
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


def _show_films(films: RealFilms) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    console.print("\n[bold]Real films[/bold] of pydicom's test data, read by the model that ships")
    for name, draft in films.drafts.items():
        console.print(f"[bold]{name}[/bold]")
        for warning in draft.warnings:
            console.print(f"  warning: {warning}", style="red", markup=False)
        if not any(view.warning for view in draft.views):
            console.print(f"  {draft.text}", markup=False)
            likely = sorted(draft.observations, key=lambda one: -one.probability)[:3]
            console.print("  " + ", ".join(f"{one.name} {one.probability:.2f}" for one in likely), style="dim")
    console.print(f"The page with the evidence: {films.page.resolve()}\n", soft_wrap=True)

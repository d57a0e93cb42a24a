"""`negatoscope models`."""

from __future__ import annotations

from typing import Annotated

import typer

from negatoscope.cli.options import Json, print_json


def models(
    pattern: Annotated[str, typer.Argument(help="Names with wildcards.")] = "*",
    json: Json = False,
) -> None:
    """List the report generators with their paper, year and parameters.

    Parameters are those of the published size with 761 words, without the image encoder.

    Example: `negatoscope models 'r2gen*'`
    """
    from rich.console import Console
    from rich.table import Table

    from negatoscope.models.listing import list_reporters

    rows = list_reporters(pattern)
    if json:
        print_json([vars(row) for row in rows])
        return
    table = Table("name", "paper", "year", "parameters")
    for row in rows:
        table.add_row(row.name, row.paper, str(row.year), f"{row.parameters / 1e6:.1f} M")
    Console().print(table)

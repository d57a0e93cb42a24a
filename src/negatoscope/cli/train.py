"""`negatoscope train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from negatoscope.cli.options import Json, Set, changes_of, print_json


def train(
    recipe: Annotated[str, typer.Argument(help="A YAML file, or the name of a recipe that ships (see `--list`).")] = "",
    run: Annotated[Path | None, typer.Option(help="The run's folder; runs/RECIPE if not said.")] = None,
    set_: Set = None,
    list_: Annotated[bool, typer.Option("--list", help="Name the recipes that ship, and leave.")] = False,
    json: Json = False,
) -> None:
    """Train a reporter as a recipe says, or go on with a run that was interrupted.

    MODEL+ca.DATA is MODEL.DATA with Contrastive Attention, whichever recipe that is: nic+ca.phantom; +wcl, +mochi and
    +ithn add those losses, as --set 'losses+=[{name: wcl, weight: 0.2}]' does.

    Example: `negatoscope train nic.phantom --run runs/first --set train.epochs=3`
    """
    from rich.console import Console
    from rich.table import Table

    from negatoscope.cli.progress import watch_on
    from negatoscope.errors import WrongUse
    from negatoscope.recipes import recipe_named, recipe_names
    from negatoscope.training import loop
    from negatoscope.training.processes import is_first
    from negatoscope.training.recipe import load_recipe

    if list_:
        print_json(recipe_names()) if json else print("\n".join(recipe_names()))
        return
    if not recipe:
        raise WrongUse("no recipe was named", remedy="negatoscope train --list names those that ship")
    path, named = recipe_named(recipe)
    changes = {**named, **changes_of(set_)}
    folder = run or Path("runs") / (recipe if named else path.stem)
    done = loop.train(load_recipe(path, changes), folder, watch=watch_on(silent=json))
    if not is_first():
        return
    if json:
        print_json({"run": str(done.folder), "epochs": len(done.history), "best": done.best, "notes": done.notes})
        return
    table = Table("figure", "value", title=f"best of {len(done.history)} epochs, validation split: {done.folder}")
    for name, value in done.best.items():
        table.add_row(name, f"{value:.4g}")
    Console().print(table)
    for note in done.notes:
        print(note)

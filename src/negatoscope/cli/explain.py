"""`negatoscope explain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from negatoscope.cli.options import Json


def explain(
    run: Annotated[Path, typer.Argument(help="A run's folder (its best epoch is taken) or a .safetensors file.")],
    study: Annotated[str, typer.Argument(help="The id of a study; `negatoscope data show STORE --ids` lists them.")],
    out: Annotated[Path, typer.Option(help="The folder for the page, the JSON and one overlay a view.")],
    store: Annotated[Path | None, typer.Option(help="Another store than the one the run learned from.")] = None,
    nearest: Annotated[int, typer.Option(min=1, help="Normal studies to name for each head.")] = 5,
    device: Annotated[str, typer.Option(help="cpu, cuda ...")] = "cpu",
    json: Json = False,
) -> None:
    """Show what a reporter with Contrastive Attention compared a study with, and what set it apart, where.

    Example: `negatoscope explain runs/nic+ca.phantom phantom-000007 --out why`
    """
    from negatoscope.reading_room.explanation import explain_study

    done = explain_study(run, study, out, store=store, nearest=nearest, device=device)
    if json:
        print(done.json.read_text(encoding="utf-8"), end="")
        return
    for number, head in enumerate(done.explanation.heads, start=1):
        print(f"head {number}: " + ", ".join(f"{one.id} {one.share:.3f}" for one in head))
    print(f"contrastive information {done.explanation.strength:.3f}: {done.page.resolve()}")

"""`negatoscope import-checkpoint`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from negatoscope.cli.options import Json, Set, changes_of, print_json


def import_checkpoint(
    checkpoint: Annotated[Path, typer.Argument(help="The authors' .pth, or its state dict as .safetensors.")],
    model: Annotated[str, typer.Option(help="r2gen, r2gencmn or xpronet.")],
    vocabulary: Annotated[
        Path, typer.Option(help="The annotation.json it was trained on, or a vocabulary.json of ours.")
    ],
    into: Annotated[Path, typer.Option(help="The run folder to make.")],
    store: Annotated[Path, typer.Option(help="The store that `generate` reads unless told otherwise.")] = Path(
        "data/iu-xray"
    ),
    cleaning: Annotated[str, typer.Option(help="How its reports were cleaned: iu-xray or mimic-cxr.")] = "iu-xray",
    set_: Set = None,
    json: Json = False,
) -> None:
    """Make a run of the published R2Gen, R2GenCMN or XProNet from the authors' checkpoint.

    The file is converted to safetensors in a process of its own, without network; anything in it but tensors and plain
    settings is refused. `--set` names settings of the model that its tensors do not tell: heads, top_k, labels ...

    Example: `negatoscope import-checkpoint model_iu_xray.pth --model r2gen --vocabulary annotation.json --into
    runs/r2gen`
    """
    from negatoscope.errors import WrongUse, nearest_names
    from negatoscope.text.words import CLEANINGS
    from negatoscope.training import imported as room

    if cleaning not in CLEANINGS:
        raise WrongUse(f"unknown cleaning {cleaning!r}", where="--cleaning", remedy=nearest_names(cleaning, CLEANINGS))
    made = room.import_checkpoint(
        checkpoint,
        into,
        model=model,
        vocabulary=vocabulary,
        store=store,
        cleaning=cleaning,  # pyright: ignore[reportArgumentType]
        changes=changes_of(set_),
    )
    if json:
        print_json(vars(made))
        return
    print(f"{made.model}, {made.words} words, {made.parameters / 1e6:.1f} M parameters: {made.folder}")
    if made.note:
        print(f"Note: {made.note}.")

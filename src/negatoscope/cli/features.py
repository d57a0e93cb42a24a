"""`negatoscope features`: what a backbone sees in each picture of a store, computed once."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from negatoscope.cli.progress import watch_on


def features(
    store: Annotated[Path, typer.Argument(help="A folder that `negatoscope data import` made.")],
    out: Annotated[Path, typer.Option(help="Folder of the cache; an interrupted run goes on there.")],
    backbone: Annotated[str, typer.Option(help="resnet50, resnet50-v1, densenet121, vgg19 ..., or hub:FOLDER_OR_ID.")],
    weights: Annotated[
        Path | None, typer.Option(help=".safetensors, or a PyTorch .pth that holds nothing but tensors.")
    ] = None,
    size: Annotated[int, typer.Option(min=32, help="Side of the square that the backbone is given.")] = 224,
    fit: Annotated[str, typer.Option(help="How a picture becomes square: squash, crop or letterbox.")] = "squash",
    pooled: Annotated[bool, typer.Option("--pooled", help="One vector a picture, the mean of its patches.")] = False,
    precision: Annotated[str, typer.Option(help="auto (bf16 where the processor has it), float32 or bf16.")] = "auto",
    split: Annotated[str | None, typer.Option(help="Only the pictures of train, val, test or none.")] = None,
    batch: Annotated[int, typer.Option(min=1, help="Pictures at a time.")] = 16,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1 ...")] = "cpu",
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave unreadable pictures out, and list them.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
) -> None:
    """Compute the features of every picture once, for training without running the backbone.

    Example: `negatoscope features iu --backbone resnet50-v1 --weights resnet50.safetensors --out iu-resnet50`
    """
    from negatoscope.errors import WrongUse
    from negatoscope.settings import read_settings
    from negatoscope.studies.store import Store
    from negatoscope.vision.encoder import EncoderSettings
    from negatoscope.vision.extract import extract_features

    if weights is None and not backbone.startswith("hub:"):
        raise WrongUse(f"{backbone} without weights sees nothing", where="--weights", remedy="give a file of weights")
    said = {"backbone": backbone, "weights": weights, "image_size": size, "fit": fit}
    if precision != "auto":
        said["precision"] = precision
    settings = read_settings(EncoderSettings, said)
    done = extract_features(
        Store.open(store),
        settings,
        out,
        pooled=pooled,
        split=split,  # pyright: ignore[reportArgumentType]
        batch=batch,
        device=device,
        skip_bad=skip_bad,
        watch=watch_on(silent=as_json),
    )
    if as_json:
        print(json.dumps(asdict(done)))
        return
    for line in done.left_out:
        print(f"left out: {line}")
    key = done.key
    print(f"{done.cache}: {done.pictures} pictures, {key['patches']} x {key['width']} each, {key['precision']}")
    print(f"computed {done.computed} in {done.seconds:.1f} s, {done.rate:.1f} a second")

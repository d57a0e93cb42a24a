"""`negatoscope retrieve`: abnormal findings by CVSE, and whole reports, found among what training studies say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from negatoscope.cli.options import Json, Set, changes_of, print_json

if TYPE_CHECKING:
    from negatoscope.retrieval.pointing import Pointing

app = typer.Typer(no_args_is_help=True, help="Findings and whole reports, found among what training studies say.")

Run = Annotated[Path, typer.Argument(help="The run's folder that `retrieve train` made, or its .safetensors file.")]
Store_ = Annotated[Path | None, typer.Option("--store", help="Another store than the one that CVSE learned from.")]
Features = Annotated[Path | None, typer.Option(help="The cache of that store's features.")]
Split_ = Annotated[str, typer.Option("--split", help="train, val, test or none.")]


@app.command()
def train(
    recipe: Annotated[str, typer.Argument(help="A YAML file, or a recipe that ships (see `--list`).")] = "",
    run: Annotated[Path | None, typer.Option(help="The run's folder; runs/RECIPE if not said.")] = None,
    set_: Set = None,
    list_: Annotated[bool, typer.Option("--list", help="Name the recipes that ship, and leave.")] = False,
    json: Json = False,
) -> None:
    """Train CVSE: which groups of abnormal sentences fit which regions of a study's views.

    Example: `negatoscope retrieve train cvse.iu-xray --run runs/cvse --set store=iu-abn --set features=iu-resnet50`
    """
    from negatoscope.cli.findings import labeller
    from negatoscope.cli.progress import watch_on
    from negatoscope.errors import WrongUse
    from negatoscope.retrieval.recipe import cvse_recipe, cvse_recipe_names
    from negatoscope.retrieval.training import train_cvse

    if list_:
        print_json(cvse_recipe_names()) if json else print("\n".join(cvse_recipe_names()))
        return
    if not recipe:
        raise WrongUse("no recipe was named", remedy="negatoscope retrieve train --list names those that ship")
    folder = run or Path("runs") / Path(recipe).stem
    done = train_cvse(cvse_recipe(recipe, changes_of(set_)), folder, labeller=labeller(), watch=watch_on(silent=json))
    if json:
        print_json(
            {
                "run": str(done.folder),
                "groups": done.groups,
                "epochs": len(done.history),
                "best": done.best,
                "notes": done.notes,
            }
        )
        return
    figures = ", ".join(f"{name} {value:.4g}" for name, value in done.best.items())
    print(f"{done.groups:,} groups; best of {len(done.history)} epochs: {figures}; {done.folder}")
    for note in done.notes:
        print(note)


@app.command()
def findings(
    run: Run,
    out: Annotated[Path, typer.Option("--out", "-o", help="JSONL: `id`, `report`, and each finding with its maps.")],
    store: Store_ = None,
    features: Features = None,
    split: Split_ = "test",
    top: Annotated[int | None, typer.Option(min=1, help="Findings a study; without it the recipe's, 3.")] = None,
    calibrated: Annotated[
        bool, typer.Option("--calibrated", help="As many findings as reach the calibrated threshold, perhaps none.")
    ] = False,
    fewest: Annotated[int, typer.Option(min=0, help="With --calibrated: at least so many.")] = 0,
    most: Annotated[int, typer.Option(min=1, help="With --calibrated: at most so many.")] = 8,
    studies: Annotated[int, typer.Option(min=0, help="Training studies named with each finding.")] = 5,
    json: Json = False,
) -> None:
    """Tell the findings of each study: sentence, score, attention over each view, training studies that said the same.

    Example: `negatoscope retrieve findings runs/cvse --split val --out findings.jsonl --top 3`
    """
    from negatoscope.cli.progress import watch_on
    from negatoscope.errors import WrongUse
    from negatoscope.retrieval.findings import Telling, find, write_findings
    from negatoscope.retrieval.retriever import Retriever
    from negatoscope.studies.store import Store, known_split
    from negatoscope.vision.features import FeatureCache

    if calibrated and top is not None:
        raise WrongUse("--top and --calibrated exclude one another", remedy="--most bounds what --calibrated tells")
    retriever = Retriever.load(run)
    opened = Store.open(store or retriever.recipe.store)
    shown = [study for study in opened.studies(known_split(split)) if study.pictures]
    telling = Telling(top=top, calibrated=calibrated, fewest=fewest, most=most, studies=studies)
    cache = FeatureCache.open(features or retriever.recipe.features)
    count, told = write_findings(find(retriever, shown, cache, telling, watch_on(silent=json)), out)
    if json:
        print_json({"studies": count, "findings": told, "out": str(out)})
    else:
        print(f"{told:,} findings of {count:,} studies: {out}")


@app.command()
def reports(
    store: Annotated[Path, typer.Argument(help="Studies of its split are told by reports of its training studies.")],
    features: Annotated[Path, typer.Option(help="The cache of its features.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="JSONL: `id`, `report`, and where it comes from.")],
    way: Annotated[
        str,
        typer.Option(
            help="nearest: of the nearest study. consensus: the most typical of the k nearest. hybrid: findings by "
            "CVSE, and normal sentences for other regions."
        ),
    ] = "consensus",
    by: Annotated[str, typer.Option(help="What is near: features (pooled), or cvse (what CVSE sees).")] = "features",
    k: Annotated[int, typer.Option(min=1, help="Nearest studies that a consensus is of.")] = 50,
    cvse: Annotated[
        Path | None, typer.Option(help="A run of `retrieve train`, for --by cvse and --way hybrid.")
    ] = None,
    top: Annotated[
        int | None, typer.Option(min=1, help="Findings of a hybrid; without it as many as reach the threshold.")
    ] = None,
    split: Split_ = "test",
    json: Json = False,
) -> None:
    """Find a whole report for each study: the nearest training study's, a consensus, or a hybrid.

    Example: `negatoscope retrieve reports iu --features iu-resnet50 --split val --way consensus --out reports.jsonl`
    """
    from dataclasses import asdict

    from negatoscope.cli.progress import watch_on
    from negatoscope.retrieval.findings import Telling
    from negatoscope.retrieval.reports import retrieve_reports
    from negatoscope.retrieval.retriever import Retriever
    from negatoscope.studies.store import Store, known_split
    from negatoscope.vision.features import FeatureCache

    done = retrieve_reports(
        Store.open(store),
        FeatureCache.open(features),
        out,
        split=known_split(split),
        way=way,
        by=by,
        k=k,
        retriever=Retriever.load(cvse) if cvse else None,
        telling=Telling(top=top, calibrated=top is None),
        watch=watch_on(silent=json),
    )
    if json:
        print_json(asdict(done))
    else:
        print(f"{done.reports:,} reports ({done.distinct:,} distinct) from {done.training:,} studies: {done.out}")


@app.command()
def pointing(
    run: Run,
    store: Store_ = None,
    features: Features = None,
    split: Split_ = "val",
    picture: Annotated[
        Path | None, typer.Option(help="A PNG of the first study of each finding, its mask, and where CVSE looked.")
    ] = None,
    json: Json = False,
) -> None:
    """Measure how much of CVSE's attention falls inside the masks of findings: phantom studies have them.

    Example: `negatoscope retrieve pointing runs/cvse-phantom --split val --picture attention.png`
    """
    from dataclasses import asdict

    from negatoscope.cli.progress import watch_on
    from negatoscope.retrieval.pointing import masked_maps, summary
    from negatoscope.retrieval.retriever import Retriever
    from negatoscope.studies.store import Store, known_split
    from negatoscope.text.abnormal import AbnormalSentences
    from negatoscope.text.sentence_files import load_groups
    from negatoscope.vision.features import FeatureCache

    retriever = Retriever.load(run)
    folder = run if run.is_dir() else run.parent
    opened = Store.open(store or retriever.recipe.store)
    found, unknown = masked_maps(
        retriever,
        load_groups(folder / "groups").of_sentence(),
        opened,
        FeatureCache.open(features or retriever.recipe.features),
        AbnormalSentences.default(),
        split=known_split(split),
        watch=watch_on(silent=json),
    )
    done = summary(found, unknown)
    if picture is not None:
        from negatoscope.reading_room.finding_sheet import finding_sheet

        finding_sheet(retriever, opened, found, picture)
    if json:
        print_json(asdict(done))
    else:
        _show(done)


def _show(done: Pointing) -> None:
    from rich.console import Console
    from rich.table import Table

    columns = ("finding", "maps", "inside (95%)", "chance", "uniform", "best cell touches", "any cell would")
    table = Table(*columns, title=f"attention inside the mask, {done.studies} studies with one finding")
    for name, share in {**done.by_finding, "every finding": done.every}.items():
        inside = f"{share.inside:.3f} ({share.low:.3f} to {share.high:.3f})"
        asked = (share.chance, share.uniform, share.hit, share.hit_by_any)
        figures = ("-" if value is None else f"{value:.3f}" for value in asked)
        table.add_row(name, str(share.maps), inside, *figures)
    Console().print(table)
    if done.unknown:
        print(f"{done.unknown} sentences are in no group of the training studies")

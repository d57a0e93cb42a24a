"""`negatoscope data`: studies into a store, what is wrong with them, what is in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from negatoscope.errors import WrongUse

if TYPE_CHECKING:
    from negatoscope.studies.audit import Audit
    from negatoscope.studies.importing import ImportReport
    from negatoscope.studies.study import Study

app = typer.Typer(no_args_is_help=True, help="Import studies, audit them, look at them.")

_IMPORT_HELP = """
Take the studies of SOURCE at PATH into a store: one folder with a table and the images, which every other verb reads.

Sources: **iu-xray** (Open-i's archives), **r2gen-json** (annotation.json + images), **mimic-cxr** (PhysioNet's layout),
**coco** (Karpathy's split), **dicom** (any folder of DICOM files), **phantom** (drawn; needs no path).

Killed, stopped by Ctrl-C or by a full disk, the same command goes on where it stopped.

Examples:

    negatoscope data import r2gen-json ../iu_xray --into data/iu-xray

    negatoscope data import iu-xray downloads/ --into data/iu-xray --set download=true --short-side 320

    negatoscope data import mimic-cxr /mnt/mimic-cxr-jpg --into data/mimic --split seeded --seed 1 --skip-bad

R2Gen's split of IU X-Ray: train and val ids ship with the package; with the official annotation.json at hand,
`--split-file annotation.json` gives all three.
"""


@app.command("import", help=_IMPORT_HELP)
def import_(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="What kind of data it is; see above.")],
    path: Annotated[Path | None, typer.Argument(metavar="PATH", help="Where it lies; not for phantoms.")] = None,
    into: Annotated[Path | None, typer.Option("--into", "-o", help="The store's folder. [required]")] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the source; may be repeated.")
    ] = None,
    show_settings: Annotated[bool, typer.Option("--settings", help="Print the source's settings and leave.")] = False,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Go on past damaged studies and list them.")] = False,
    images: Annotated[str, typer.Option(help="copy them into the store, or reference them where they are.")] = "copy",
    short_side: Annotated[int | None, typer.Option(min=1, help="Make larger images this small.")] = None,
    form: Annotated[str, typer.Option(help="png or jpeg, for images that cannot be copied as they are.")] = "png",
    bits: Annotated[int, typer.Option(help="16 keeps deep images deep, 8 stores them as a screen shows them.")] = 16,
    split: Annotated[str, typer.Option(help="source, r2gen (IU X-Ray) or seeded (by patient).")] = "source",
    split_file: Annotated[Path | None, typer.Option(help="Ids and splits: annotation.json, CSV, JSON lines.")] = None,
    shares: Annotated[str, typer.Option(help="Train, val and test of a seeded split.")] = "0.7,0.1,0.2",
    seed: Annotated[int, typer.Option(help="Of a seeded split.")] = 0,
    workers: Annotated[int | None, typer.Option(min=1, help="Threads that decode images.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    from negatoscope.cli.progress import watch_on
    from negatoscope.studies.importing import import_studies
    from negatoscope.studies.sources import open_source, source_class

    if show_settings:
        _show_settings(source_class(source), as_json)
        return
    if into is None:
        raise WrongUse("where to?", remedy="name the store's folder: --into STORE")
    report = import_studies(
        open_source(source, path, dict(_pair(text) for text in setting or ())),
        into,
        skip_bad=skip_bad,
        images=_one_of("--images", images, ("copy", "reference")),
        short_side=short_side,
        form=_one_of("--form", form, ("png", "jpeg")),
        bits=_one_of("--bits", bits, (8, 16)),
        splitting=_splitting(split, split_file, shares, seed),
        workers=workers,
        watch=watch_on(silent=as_json),
    )
    if as_json:
        print(json.dumps(report.to_json(), ensure_ascii=False))
    else:
        _print_import(report)


@app.command()
def show(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="A store's folder.")],
    id: Annotated[str | None, typer.Argument(metavar="[ID]", help="A study; else the store as a whole.")] = None,
    ids: Annotated[bool, typer.Option("--ids", help="List the ids of its studies, one a line.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """What is in a store, or one study of it.

    Example: `negatoscope data show data/iu-xray CXR2384_IM-0942`
    """
    from negatoscope.studies.store import Store, row_of_study

    opened = Store.open(store)
    if ids:
        print(json.dumps(opened.ids(), ensure_ascii=False) if as_json else "\n".join(opened.ids()))
        return
    if id is None:
        about = opened.about.model_dump(mode="json")
        print(json.dumps(about, ensure_ascii=False) if as_json else _told(about))
        return
    study = opened.study(id)
    if as_json:
        row = row_of_study(study)
        print(json.dumps(row | {name: dict(row[name]) for name in ("sections", "labels", "masks")}, ensure_ascii=False))
    else:
        _print_study(study, opened.picture_path)


@app.command()
def audit(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A store, or a folder as import takes it.")],
    html: Annotated[Path | None, typer.Option(help="Write a page with thumbnails here as well.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """What quietly ruins results: reports or patients in two splits, blank, double or unreadable images, wrong views.

    Example: `negatoscope data audit data/iu-xray --html audit.html`
    """
    from negatoscope.cli.progress import watch_on
    from negatoscope.studies.audit import audit as audit_studies
    from negatoscope.studies.audit import write_audit_page

    found = audit_studies(path, watch=watch_on(silent=as_json))
    if html is not None:
        write_audit_page(found, html)
    if as_json:
        print(json.dumps(found.to_json(), ensure_ascii=False))
    else:
        _print_audit(found)


def _pair(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise WrongUse(f"--set {text!r} is no setting", remedy="write --set key=value")
    if value.lstrip().startswith(("[", "{")):
        import yaml

        return key.strip(), yaml.safe_load(value)
    return key.strip(), value.strip()


def _one_of(option: str, value: Any, right: tuple[Any, ...]) -> Any:
    if value not in right:
        raise WrongUse(f"{option} {value}", remedy=f"give {' or '.join(str(one) for one in right)}")
    return value


def _splitting(split: str, file: Path | None, shares: str, seed: int) -> Any:
    from pydantic import ValidationError

    from negatoscope.studies.splits import Splitting

    try:
        by = "file" if file is not None and split == "source" else split
        return Splitting.model_validate({"by": by, "file": file, "shares": shares.split(","), "seed": seed})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        option = ".".join(str(part) for part in first["loc"]) or "--split"
        raise WrongUse(f"{option}: {first['msg']}", remedy="see negatoscope data import --help") from error


def _show_settings(kind: Any, as_json: bool) -> None:
    schema = kind.Settings.model_json_schema()
    if as_json:
        print(json.dumps(schema))
        return
    if not schema["properties"]:
        print(f"source {kind.name} has no settings")
    for key, field in schema["properties"].items():
        print(f"--set {key}={json.dumps(field.get('default'))}   {' '.join(field.get('description', '').split())}")


def _print_import(report: ImportReport) -> None:
    splits = ", ".join(f"{split} {count:,}" for split, count in report.splits.items() if count)
    print(f"{report.store}: {report.studies:,} studies ({splits}), {report.pictures:,} pictures, {report.added:,} new")
    for what, count in report.left_out.items():
        print(f"left out: {count:,} x {what}")
    for bad in report.bad:
        print(f"damaged: {bad.id}: {bad.what}" + (f" ({bad.where})" if bad.where else ""))
    if report.damaged:
        print(f"{report.damaged:,} damaged studies were left out; {report.store / 'bad.jsonl'} lists them all")


def _print_audit(found: Audit) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("gravity", "found", "of", "what", "remedy", box=None, pad_edge=False)
    for fault in found.faults:
        table.add_row(fault.gravity, f"{fault.count:,}", f"{fault.of:,} {fault.unit}", fault.title, fault.remedy)
    console = Console(markup=False, highlight=False)
    console.print(f"{found.where}: {found.studies:,} studies, {found.pictures:,} pictures")
    console.print(table if found.faults else "nothing found")


def _print_study(study: Study, picture_path: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    rows: dict[str, str] = {"id": study.id, "split": study.split, "patient": study.patient, "report": study.report}
    rows |= dict(study.sections)
    rows["tags"] = "; ".join(study.tags)
    rows["labels"] = ", ".join(f"{name} {value:+d}" if value else f"{name} 0" for name, value in study.labels.items())
    for picture in study.pictures:
        size = f"{picture.width} x {picture.height}, {picture.bits} bits"
        rows[str(picture_path(picture))] = f"{picture.view} {picture.position} {size}"
    for name, text in rows.items():
        if text:
            table.add_row(name, text)
    Console(markup=False, highlight=False, soft_wrap=True).print(table)


def _told(about: dict[str, Any]) -> str:
    counts = ", ".join(f"{name} {count:,}" for name, count in about["counts"].items() if count)
    settings = json.dumps(about["settings"], ensure_ascii=False)
    return f"{about['source']} from {about['path'] or 'nowhere'}\n{counts}\nsettings: {settings}"

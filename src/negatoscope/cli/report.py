"""`negatoscope report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from negatoscope.cli.options import Json, print_json

if TYPE_CHECKING:
    from negatoscope.drafting.draft import Draft


def report(
    images: Annotated[
        list[Path],
        typer.Argument(help="One study's images (PNG, JPEG, DICOM), or a folder of studies.", metavar="IMAGE"),
    ],
    out: Annotated[Path | None, typer.Option(help="JSONL of a folder's reports; JSON of one study's draft.")] = None,
    page: Annotated[Path | None, typer.Option(help="One study: an HTML page with the evidence on the images.")] = None,
    model: Annotated[
        Path | None, typer.Option(help="A drafter that `negatoscope drafter train` made; the one that ships if unsaid.")
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave studies out whose images cannot be read, and name them.")
    ] = False,
    json: Json = False,
) -> None:
    """Draft a report for a chest radiograph: what was found, how sure, and on what each sentence rests.

    Frontal and lateral images are told apart by the program, in any order. A folder has one subfolder a study. Research
    use, not for diagnosis.

    Examples:

        negatoscope report frontal.png lateral.png --page draft.html

        negatoscope report chest.dcm --json

        negatoscope report studies/ --out reports.jsonl
    """
    from negatoscope.errors import WrongUse

    if len(images) == 1 and images[0].is_dir():
        if out is None:
            raise WrongUse("a folder of studies needs a file for its reports", remedy="--out reports.jsonl")
        if page is not None:
            raise WrongUse("--page is for one study", remedy="name its images")
        _folder(images[0], out, model, skip_bad, json)
        return
    if any(image.is_dir() for image in images):
        raise WrongUse("images and folders cannot be mixed")
    from negatoscope.drafting.kept import load_drafter
    from negatoscope.whole_files import write_json

    draft = load_drafter(model).draft(images, images[0].stem)
    if out is not None:
        write_json(out, draft.as_json())
    if page is not None:
        from negatoscope.reading_room.draft_page import draft_page

        draft_page(page, draft, images)
    if json:
        print_json(draft.as_json())
    else:
        _show(draft)


def _folder(folder: Path, out: Path, model: Path | None, skip_bad: bool, json: bool) -> None:
    from negatoscope.cli.progress import watch_on
    from negatoscope.drafting.folder import draft_folder
    from negatoscope.drafting.kept import load_drafter

    done = draft_folder(load_drafter(model), folder, out, skip_bad=skip_bad, watch=watch_on(silent=json))
    if json:
        said = {name: getattr(done, name) for name in ("studies", "images", "warned", "seconds", "left_out")}
        print_json({"out": str(done.out), **said})
        return
    rate = done.studies / max(done.seconds, 1e-9)
    print(f"{done.out}: {done.studies:,} reports of {done.images:,} images, {done.seconds:.0f} s, {rate:.1f} studies/s")
    if done.warned:
        print(f"{done.warned:,} studies with a warning: see `warnings` in their lines")
    for line in done.left_out:
        print(f"left out: {line}")


def _show(draft: Draft) -> None:
    from rich.console import Console
    from rich.table import Table

    from negatoscope.drafting.draft import NOTICE

    console = Console(highlight=False)
    for warning in draft.warnings:
        console.print(f"Warning: {warning}", style="bold red", markup=False)
    console.print(draft.text, markup=False)
    console.print()
    table = Table("sentence", "CheXpert's rules read", "words' p", "nearest training studies in which it was so")
    for one in draft.sentences:
        near = ", ".join(f"{study.id} ({study.closeness:.2f})" for study in one.similar)
        table.add_row(one.text, ", ".join(one.observations) or "nothing abnormal", f"{one.likely:.2f}", near)
    console.print(table)
    table = Table("observation", "probability", "95 %", "", "asked for")
    for one in sorted(draft.observations, key=lambda one: -one.probability):
        interval = f"{one.low:.2f} to {one.high:.2f}"
        table.add_row(one.name, f"{one.probability:.2f}", interval, one.in_words, "yes" if one.asked else "")
    console.print(table)
    near = ", ".join(f"{one.id} ({one.closeness:.2f})" for one in draft.nearest_normals)
    console.print(f"Nearest normal studies: {near}", markup=False)
    for one in draft.views:
        console.print(f"{one.file}: {one.view}, certainty {one.certainty:.2f}", markup=False)
    console.print(NOTICE, style="dim")

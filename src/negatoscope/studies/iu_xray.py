"""IU X-Ray as Open-i publishes it: NLMCXR_reports.tgz (3,955 reports as XML) and NLMCXR_png.tgz (7,470 images).

The path is a folder that holds the two archives, or what was extracted from them, or nothing yet
(`--set download=true`). Open-i has 104 reports without an image and 530 without findings: those are left out, counted
and listed. It has no split; R2Gen's stands in for it. It names no patients, and views only where a
caption does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal
from xml.etree import ElementTree

from negatoscope.errors import BadInput
from negatoscope.settings import Settings
from negatoscope.studies.archive import read_members, unpack
from negatoscope.studies.download import download
from negatoscope.studies.sources import Damaged, Found, Source
from negatoscope.studies.splits import Splitting, splitter
from negatoscope.studies.study import Picture, Study, View
from negatoscope.studies.view_words import view_from_words
from negatoscope.watch import Watch, quiet

REPORTS, IMAGES = "NLMCXR_reports.tgz", "NLMCXR_png.tgz"
_MAX_XML = 2**20
_SAFE_IMAGE_ID = re.compile(r"[A-Za-z0-9_.-]+")


class IuXraySettings(Settings):
    report: Literal["findings", "impression", "findings+impression"] = "findings"
    """The sections that make the report; a study that lacks one of them is left out."""
    download: bool = False
    """Fetch the archives into the folder first."""
    url: str = "https://openi.nlm.nih.gov/imgs/collections"
    """Where the archives are fetched from."""
    reports_sha256: str | None = None
    """The checksum that NLMCXR_reports.tgz has to have; Open-i publishes none."""
    images_sha256: str | None = None
    """The same of NLMCXR_png.tgz."""
    unpack_to: Path | None = None
    """Where the images of the archive go; beside it, in NLMCXR_png, if nothing is said."""


class IuXray(Source):
    name: ClassVar[str] = "iu-xray"
    Settings: ClassVar = IuXraySettings

    def __init__(self, path: Path, settings: Any = None) -> None:
        super().__init__(path, settings)
        self.folder = path
        self.report_sections = tuple(self.settings.report.split("+"))
        self.images = self.settings.unpack_to or path / "NLMCXR_png"

    def prepare(self, watch: Watch = quiet) -> None:
        wanted = {REPORTS: self.settings.reports_sha256, IMAGES: self.settings.images_sha256}
        if self.settings.download:
            for name, sha256 in wanted.items():
                download(f"{self.settings.url.rstrip('/')}/{name}", self.folder / name, sha256=sha256, watch=watch)
        if (self.folder / IMAGES).is_file():
            unpack(self.folder / IMAGES, self.images, ".png", total=7470, watch=watch)

    def examinations(self) -> Iterator[Found | Damaged]:
        split = splitter(Splitting(by="r2gen"))
        where_images_are = self._images()
        for name, content in sorted(self._reports(), key=lambda report: _number(report[0])):
            id = f"CXR{Path(name).stem}"
            try:
                study = _study(content, id, self.report_sections, where_images_are, self.images)
            except BadInput as error:
                yield Damaged(id, error.what, name, error.remedy or "")
                continue
            lacking = [section for section in self.report_sections if not study.sections.get(section)]
            if not study.pictures:
                yield Damaged(study.id, "a report without an image", name, known=True)
            elif lacking:
                yield Damaged(study.id, f"a report without {lacking[0]}", name, known=True)
            else:
                yield Found(replace(study, split=split(study)), where=name)

    def _reports(self) -> Iterator[tuple[str, bytes]]:
        archive = self.folder / REPORTS
        if archive.is_file():
            yield from ((f"{archive}:{name}", content) for name, content in read_members(archive, ".xml"))
            return
        paths = [*self.folder.glob("*.xml"), *self.folder.glob("*/*.xml")]
        if not paths:
            remedy = f"put {REPORTS} and {IMAGES} there, or fetch them: --set download=true"
            raise BadInput("no reports of Open-i here", where=self.folder, remedy=remedy)
        for path in paths:
            with path.open("rb") as file:
                yield str(path), file.read(_MAX_XML + 1)

    def _images(self) -> dict[str, Path]:
        """Image id -> file, wherever in the folder it was extracted to."""
        folders = dict.fromkeys((self.images, self.folder, self.folder / "images"))
        found = [path for folder in folders for path in folder.glob("*.png")] or self.folder.glob("*/*.png")
        return {path.stem: path for path in found}


def _number(name: str) -> tuple[int, str]:
    digits = re.search(r"(\d+)\.xml$", name)
    return (int(digits[1]) if digits else 0), name


def _study(
    content: bytes, id: str, sections_of_report: tuple[str, ...], images: dict[str, Path], folder: Path
) -> Study:
    """One XML file as a Study. Raises `BadInput`."""
    root = _parsed(content)
    said = root.find("uId")
    id = (said.get("id") if said is not None else None) or id
    sections = {}
    for part in root.iter("AbstractText"):
        if text := _words(part.text):
            sections[(part.get("Label") or "").lower()] = text
    mesh = root.find("MeSH")
    major, automatic = ([_words(term.text) for term in _terms(mesh, kind)] for kind in ("major", "automatic"))
    if automatic:
        sections["automatic tags"] = "; ".join(automatic)
    pictures = tuple(_picture(image, images, folder) for image in root.iter("parentImage"))
    report = " ".join(sections.get(name, "") for name in sections_of_report).strip()
    return Study(id, pictures, report, sections=sections, tags=tuple(filter(None, major)))


def _parsed(content: bytes) -> ElementTree.Element:
    """Declarations are refused before parsing: an entity can grow without end or name a file of this machine."""
    remedy = "fetch the reports again"
    if len(content) > _MAX_XML:
        raise BadInput("is too large for a report", remedy=remedy)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput("its text is not UTF-8", remedy=remedy) from error
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise BadInput("declares a document type or entities, which no report of Open-i does", remedy=remedy)
    try:
        return ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        raise BadInput(f"is no XML ({error})", remedy=remedy) from error


def _terms(mesh: ElementTree.Element | None, kind: str) -> list[ElementTree.Element]:
    return [] if mesh is None else mesh.findall(kind)


def _picture(image: ElementTree.Element, images: dict[str, Path], folder: Path) -> Picture:
    id = image.get("id", "")
    if not _SAFE_IMAGE_ID.fullmatch(id) or id.startswith("."):
        raise BadInput(f"names an image {id!r}", remedy="fetch the reports again")
    caption = _words(image.findtext("caption"))
    return Picture(str(images.get(id, folder / f"{id}.png")), view=view_of_caption(caption))


def view_of_caption(caption: str) -> View:
    """A caption stands for all images of its study, so nearly none tells anything: 'Portable AP chest' does.

    'XXXX and lateral' does not, nor does any that speaks of the lateral: the other view's name was taken out of it.
    """
    words = caption.lower().split()
    alone = "and" not in words and "views" not in words
    return "frontal" if alone and view_from_words(caption) == "frontal" else "unknown"


def _words(text: str | None) -> str:
    return " ".join((text or "").split())

"""Three real DICOM files of the package pydicom-data: a chest with several masses, a leg, a slice of a CT. The first
gets a report, the others a warning."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from negatoscope.drafting.draft import Draft
from negatoscope.drafting.kept import load_drafter
from negatoscope.reading_room.draft_page import draft_page

FILMS = {"a chest": "RG1_UNCR.dcm", "a leg": "RG3_UNCR.dcm", "a slice of a CT": "CT_small.dcm"}


@dataclass(frozen=True)
class RealFilms:
    drafts: dict[str, Draft]
    """What the film shows -> the draft."""
    page: Path


def real_films(into: Path | str) -> RealFilms | None:
    """None where pydicom-data is not installed."""
    from pydicom.data import get_testdata_file

    found = {shown: get_testdata_file(name, download=False) for shown, name in FILMS.items()}
    if not all(found.values()):
        return None
    drafter = load_drafter()
    drafts = {shown: drafter.draft([str(path)], shown) for shown, path in found.items()}
    chest = found["a chest"]
    page = draft_page(Path(into) / "chest.html", drafts["a chest"], [str(chest)])
    return RealFilms(drafts, page)

"""One examination: its images with their views, its report by section, its split and its labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

View = Literal["frontal", "lateral", "other", "unknown"]
Split = Literal["train", "val", "test", "none"]

# The 14 observations of CheXpert, in the order of the original labeler's columns.
OBSERVATIONS = (
    "No Finding",
    "Enlarged Cardiomediastinum",
    "Cardiomegaly",
    "Lung Lesion",
    "Lung Opacity",
    "Edema",
    "Consolidation",
    "Pneumonia",
    "Atelectasis",
    "Pneumothorax",
    "Pleural Effusion",
    "Pleural Other",
    "Fracture",
    "Support Devices",
)


@dataclass(frozen=True, slots=True)
class Picture:
    """One image file of a study."""

    path: str
    """Inside a store: relative to it, with forward slashes. At its source: wherever it lies."""
    view: View = "unknown"
    position: str = ""
    """As the source says it: PA, AP, LATERAL, LL ..., empty where it says nothing."""
    width: int = 0
    height: int = 0
    bits: int = 8
    sha256: str = ""
    """Of the decoded grey values and their shape, so that the same picture in two files is found."""


@dataclass(frozen=True, slots=True)
class Study:
    """One examination. Frozen: a change is a new Study, by `dataclasses.replace`."""

    id: str
    pictures: tuple[Picture, ...] = ()
    report: str = ""
    """What a reporter learns to write: as a rule the findings; the store says which sections it was made of."""
    split: Split = "none"
    patient: str = ""
    sections: Mapping[str, str] = field(default_factory=dict)
    """findings, impression, indication ...: whatever the source tells apart, lower-case names."""
    labels: Mapping[str, int] = field(default_factory=dict)
    """CheXpert observation -> 1 positive, 0 negative, -1 uncertain; a name that is missing was not mentioned."""
    tags: tuple[str, ...] = ()
    """MeSH or other terms, whole, as the source writes them: 'Opacity/lung/base/left'."""
    masks: Mapping[str, str] = field(default_factory=dict)
    """Phantoms only: '<finding>@<picture number>' -> path of a 1-bit PNG of where it is."""

    def pictures_seen_from(self, view: View) -> tuple[Picture, ...]:
        return tuple(picture for picture in self.pictures if picture.view == view)

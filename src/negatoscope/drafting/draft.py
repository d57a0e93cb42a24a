"""What a draft is: the report, sentence by sentence with what it was based on, and what there is to doubt."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from negatoscope.drafting.library import Near

NOTICE = "Draft by a program. Research use, not for diagnosis."


@dataclass(frozen=True)
class Observed:
    """One of the 14 observations."""

    name: str
    probability: float
    """Calibrated: of studies that get 0.3, about 30 % have it."""
    low: float
    high: float
    """95 % interval of the probability."""
    in_words: str
    asked: bool
    """Whether the report was asked to name it."""


@dataclass(frozen=True)
class View:
    file: str
    view: str
    certainty: float
    """That it is this view, 0.5 to 1."""
    warning: str | None
    """What there is to doubt about the image, or None."""


@dataclass(frozen=True)
class Sentence:
    text: str
    observations: tuple[str, ...]
    """Which the sentence names as present."""
    likely: float
    """Mean probability of its words, as the writer saw them."""
    heat: dict[str, list[list[float]]]
    """View -> a coarse map of where in the image its words come from, 0 to 1; empty where it was not asked for."""
    similar: tuple[Near, ...]
    """Training studies nearest to this one in which the same was found; for a sentence without a finding, normal
    ones."""


@dataclass(frozen=True)
class Draft:
    id: str
    report: str
    """The words as they are scored: lower case, apart, full stops as words."""
    text: str
    """The same for people."""
    sentences: tuple[Sentence, ...]
    observations: tuple[Observed, ...]
    nearest_normals: tuple[Near, ...]
    views: tuple[View, ...]
    warnings: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "notice": NOTICE}

    def as_row(self) -> dict[str, Any]:
        """For a line among hundreds: no maps."""
        found = {one.name: round(one.probability, 4) for one in self.observations}
        return {
            "id": self.id,
            "report": self.report,
            "text": self.text,
            "observations": found,
            "views": {one.file: one.view for one in self.views},
            "warnings": list(self.warnings),
        }

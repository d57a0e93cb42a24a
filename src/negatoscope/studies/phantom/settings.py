"""What a phantom collection is made of: how many studies, how large, how often each finding."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from negatoscope.errors import nearest_names
from negatoscope.settings import Settings

# Relative frequency among the findings of abnormal studies: few common, many rare, as in a real department, so that
# recall of the rare ones is worth measuring.
FREQUENCIES: dict[str, float] = {
    "cardiomegaly": 1.00,
    "effusion": 0.70,
    "atelectasis": 0.60,
    "consolidation": 0.45,
    "hyperinflation": 0.40,
    "nodule": 0.28,
    "edema": 0.22,
    "central line": 0.20,
    "surgical clips": 0.16,
    "pacemaker": 0.12,
    "fracture": 0.10,
    "pneumothorax": 0.08,
    "endotracheal tube": 0.06,
    "nasogastric tube": 0.05,
    "mass": 0.04,
}
FINDINGS = tuple(FREQUENCIES)

Share = Annotated[float, Field(ge=0, le=1)]


class PhantomSettings(Settings):
    """All that a phantom collection depends on. Study `i` depends on these and on `i` alone."""

    studies: int = Field(default=1000, ge=1)
    """How many."""
    size: int = Field(default=256, ge=64, le=1024)
    """Height and width of every picture, in pixels."""
    seed: int = Field(default=1, ge=0)
    """The same seed gives the same bytes."""
    normal_share: Share = 0.7
    """Share of studies without a finding."""
    frequencies: dict[str, float] = Field(default_factory=dict)
    """Finding -> relative frequency; what is not named keeps its place in `FREQUENCIES`, 0 leaves a finding out."""
    more_findings: tuple[Share, Share, Share] = (0.36, 0.25, 0.2)
    """Chance that an abnormal study has a second finding, then a third, then a fourth."""
    missing_lateral: Share = 0.05
    """Share of studies that have a frontal view only."""
    returning: Share = 0.25
    """Share of patients with two or three studies."""
    hedged: Share = 0.12
    """Share of hedgeable findings that the report words as uncertain."""
    noise: float = Field(default=1.0, ge=0, le=10)
    """Factor on the grain of every picture."""
    rotation: float = Field(default=3.0, ge=0, le=15)
    """Spread of the patient's rotation, in degrees."""
    collimated: Share = 0.3
    """Share of pictures with visible collimation borders."""

    @model_validator(mode="after")
    def _known_findings(self) -> Self:
        for name, weight in self.frequencies.items():
            if name not in FREQUENCIES:
                raise ValueError(f"no finding is called {name!r}, {nearest_names(name, FREQUENCIES)}")
            if not 0 <= weight < float("inf"):
                raise ValueError(f"the frequency of {name!r} must be a number from 0 up")
        if self.normal_share < 1 and not any(self.weights.values()):
            raise ValueError("every finding has frequency 0: set normal_share to 1 instead")
        return self

    @property
    def weights(self) -> dict[str, float]:
        return FREQUENCIES | self.frequencies

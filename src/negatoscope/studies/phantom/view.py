"""One picture while it is drawn: its fields, and where a point of the chest falls on it.

A finding works on these fields before bones and vessels are laid on top: it takes air from the lungs, adds attenuation,
breaks a rib, widens the vessels.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from negatoscope.studies.phantom.anatomy import Anatomy, Place, Pose
from negatoscope.studies.phantom.film import Field, Film


@dataclass(slots=True, kw_only=True)
class View:
    """What both views have. Fields are (H, W), profiles along the height (H,)."""

    film: Film
    anatomy: Anatomy
    pose: Pose
    turn: float
    """Sine of the patient's rotation."""
    tilt: float
    """Tangent of the tilt in the plane of the film."""
    t: Field
    """(H,): height as a fraction, 0 at the apex of the lungs, 1 at the costophrenic angles."""
    body: Field
    """Soft tissue, about 1 for the whole depth of the chest."""
    lung: Field
    """Path through the lungs, about 1 where it is longest, before heart and disease took from it."""
    air: Field
    """What is left of it. Where it goes, so do the lung's borders with its neighbours (the silhouette sign)."""
    extra: Field = field(init=False)
    """Attenuation on top: devices, nodules, thin lines."""
    filled: Field = field(init=False)
    """Share of the air that disease took; bronchi keep theirs and show in it as dark branches."""
    vessels: Field = field(init=False)
    """1 where vessels are drawn, 0 in air outside the lung."""
    bone_gap: Field | None = None
    """Factor on all bone: dark where it is broken."""
    fullness: float = 1.0
    """Factor on the width of all vessels."""
    upper: float = 0.0
    """How much wider the vessels above the hila are."""

    def __post_init__(self) -> None:
        self.extra, self.filled, self.vessels = self.film.blank(), self.film.blank(), self.film.ones()

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def height(self) -> float:
        """Of the lungs at this breath, in millimetres."""
        return self.anatomy.height * self.pose.inspiration

    def across(self, x: Field, y: Field) -> Field:
        """Where along the film (x, y) falls, before tilt."""
        raise NotImplementedError

    def shadow(self, x: Field, y: Field, z: Field) -> tuple[Field, Field]:
        """Where points, in millimetres, fall on the film."""
        u = self.across(x, y)
        return u + self.tilt * (z - 0.5 * self.anatomy.height), z - self.tilt * u

    def point(self, place: Place) -> tuple[float, float]:
        """Where a place in the chest falls on the film."""
        x, y, z = (np.float32(value) for value in self.millimetres(place))
        u, v = self.shadow(x, y, z)  # type: ignore[arg-type]
        return float(u), float(v)

    def millimetres(self, place: Place) -> Place:
        x, y, z = place
        return x * self.anatomy.half_width, y * self.anatomy.half_depth, z * self.height

    def gap(self) -> Field:
        """`bone_gap`, made when first asked for."""
        if self.bone_gap is None:
            self.bone_gap = self.film.ones()
        return self.bone_gap


@dataclass(slots=True, kw_only=True)
class FrontalView(View):
    u: Field
    """(H, W): millimetres from the middle, the patient's left positive, tilt taken out."""
    away: Field
    """(H, W): |u|."""
    outer: Field
    """(H,): how far out the side walls of the lungs are."""
    dome: Field
    """(W,): how far down the diaphragm's outline is."""
    right: Field
    """(H,): how far heart and great vessels reach to the right."""
    left: Field
    rib_offset: Field | None = None
    """(H, W): how far a broken rib's ends stand above or below their place."""
    clavicle_offset: dict[int, Field] = field(default_factory=dict)
    """Side -> (W,)."""

    @property
    def name(self) -> str:
        return "frontal"

    def across(self, x: Field, y: Field) -> Field:
        return x + self.turn * y


@dataclass(slots=True, kw_only=True)
class LateralView(View):
    y: Field
    """(H, W): millimetres from the middle of the chest, the front positive, tilt taken out."""
    front: Field
    """(H,): front wall of the lungs."""
    back: Field
    domes: tuple[Field, Field]
    """(W,) each: how far down the right and the left dome are."""
    heart_front: Field
    """(H,)."""
    heart_back: Field
    rib_offset: dict[int, Field] = field(default_factory=dict)
    """Side -> (H, W)."""

    @property
    def name(self) -> str:
        return "lateral"

    def across(self, x: Field, y: Field) -> Field:
        return self.turn * x - y

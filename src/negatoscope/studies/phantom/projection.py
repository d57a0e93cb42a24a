"""From a point in the chest to a point on the film, for either view."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from negatoscope.studies.phantom.anatomy import Anatomy, Pose
from negatoscope.studies.phantom.film import F, Field, Film

Points = NDArray[np.float32]


@dataclass(slots=True)
class View:
    """One picture while it is drawn. `air` is the path through aerated lung, 1 where it is longest; what fills a lung
    (heart, pus, water) takes air away, so that a filled lung loses its borders to its neighbour (the silhouette sign)."""

    name: str
    film: Film
    anatomy: Anatomy
    pose: Pose
    body: Field
    """Soft tissue, 1 for the whole depth of the chest."""
    air: Field
    lung: Field
    """Where a ray meets lung at all, 0 to 1: `air` before the heart and any disease took from it."""
    fall: tuple[float, float] = (0.0, 0.0)
    """Sine of the patient's rotation and tangent of the tilt."""
    borders: dict[str, Field] = field(default_factory=dict)
    """Profiles of the lungs' walls and domes that findings follow."""
    extra: Field = field(init=False)
    """Attenuation on top: devices, nodules, thin lines."""
    filled: Field = field(init=False)
    """Share of the air that disease took, where bronchi keep theirs and show as dark branches."""
    vessels: Field = field(init=False)
    """1 where vessels are drawn, 0 in air outside the lung."""
    fullness: float = 1.0
    upper: float = 0.0

    def __post_init__(self) -> None:
        self.extra, self.filled = self.film.blank(), self.film.blank()
        self.vessels = np.ones_like(self.extra)

    def shadow(self, x: Points | float, y: Points | float, z: Points | float) -> tuple[Points, Points]:
        """Where the point (x, y, z), millimetres, falls on the film."""
        turn, tilt = self.fall
        across = x + F(turn) * y if self.name == "frontal" else F(turn) * x - y
        middle = 0.5 * self.anatomy.height
        return (
            np.asarray(across + F(tilt) * (z - middle), dtype=np.float32),
            np.asarray(z - F(tilt) * across, dtype=np.float32),
        )

    def point(self, fractions: tuple[float, float, float]) -> tuple[float, float]:
        """Where a position told in fractions of half width, half depth and height falls."""
        x, y, z = self.millimetres(fractions)
        u, v = self.shadow(x, y, z)
        return float(u), float(v)

    def millimetres(self, fractions: tuple[float, float, float]) -> tuple[float, float, float]:
        anatomy = self.anatomy
        x, y, z = fractions
        return x * anatomy.half_width, y * anatomy.half_depth, z * anatomy.height * self.pose.inspiration

    @property
    def height(self) -> float:
        return self.anatomy.height * self.pose.inspiration

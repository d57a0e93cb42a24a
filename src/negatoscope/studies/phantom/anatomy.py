"""One patient's chest in numbers, and how the patient stood before the film.

Coordinates in millimetres: x towards the patient's left (the right of a frontal picture), y towards the front (the left
of a lateral picture), z down from the apex of the lungs. Positions inside the chest are also told as fractions:
x / half_width, y / half_depth, z / height.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from negatoscope.studies.phantom.settings import PhantomSettings

Place = tuple[float, float, float]
"""x, y, z as fractions of half width, half depth and height."""


@dataclass(frozen=True, slots=True)
class Anatomy:
    """What stays the same from one visit of a patient to the next."""

    woman: bool
    age: int
    half_width: float
    """Of the rib cage inside, at its widest."""
    height: float
    """Apex to costophrenic angle."""
    half_depth: float
    dome: tuple[float, float]
    """Height of the right and left dome, as a fraction of `height`; the right one stands higher."""
    arch: float
    """How much the domes bulge, as a fraction of `height`; small in hyperinflation."""
    heart: float
    """Factor on the heart's reach to either side."""
    heart_turn: float
    """Share of the heart that lies to the left, around a norm of 0."""
    knob: float
    """Radius of the aortic knob."""
    ribs: tuple[float, float, float]
    """Spacing, fall from spine to side in spacings, half thickness."""
    clavicle: tuple[float, float]
    """Height of the inner end, rise to the outer end."""
    wall: float
    """Soft tissue outside the ribs."""
    breasts: float
    spine_bend: float
    spine_wear: float
    """0 young and smooth, 1 worn: end plates shine."""
    bubble: tuple[float, float, float]
    """Of gas in the stomach: across, half width, half height."""
    vessels: int
    """Seed of the vessel tree."""
    lungs: float
    """How dark the lungs are against soft tissue."""


def draw_anatomy(rng: np.random.Generator) -> Anatomy:
    woman = bool(rng.random() < 0.5)
    half_width = rng.normal(131 if woman else 140, 6)
    age = int(np.clip(rng.normal(54, 18), 18, 94))
    habitus = float(np.clip(rng.normal(0, 1), -1.6, 2.4))
    right_dome = rng.normal(0.80, 0.015)
    return Anatomy(
        woman=woman,
        age=age,
        half_width=half_width,
        height=half_width * rng.normal(1.82, 0.09),
        half_depth=half_width * rng.normal(0.74, 0.04) + 3 * habitus,
        dome=(right_dome, right_dome + rng.normal(0.035, 0.012)),
        arch=rng.normal(0.115, 0.015),
        heart=float(np.clip(rng.normal(1.0, 0.045), 0.9, 1.08)),
        heart_turn=rng.normal(0, 0.03),
        knob=rng.normal(13, 1.5) + max(0, age - 55) * 0.09,
        ribs=(half_width * rng.normal(0.187, 0.006), rng.normal(1.45, 0.18), rng.normal(0.2, 0.02)),
        clavicle=(rng.normal(34, 7), rng.normal(26, 8)),
        wall=17 + 5.5 * habitus,
        breasts=float(np.clip(rng.normal(0.8, 0.3) + 0.1 * habitus, 0.2, 1.5)) if woman else 0.0,
        spine_bend=rng.normal(0, 2.2),
        spine_wear=float(np.clip((age - 50) / 40 + rng.normal(0, 0.15), 0, 1)),
        bubble=(rng.normal(0.52, 0.1), rng.uniform(12, 30), rng.uniform(8, 17)),
        vessels=int(rng.integers(2**31)),
        lungs=rng.normal(1, 0.05),
    )


@dataclass(frozen=True, slots=True)
class Pose:
    """How one picture was taken."""

    projection: str
    """PA, AP or LATERAL."""
    rotation: float
    """Of the patient about the long axis, in degrees."""
    tilt: float
    """In the plane of the film, in degrees."""
    width: float
    """Millimetres of patient across the film."""
    centre: tuple[float, float]
    """Offset of the patient from the middle of the film, in millimetres."""
    inspiration: float
    """Factor on the height of the lungs."""
    exposure: float
    """Shift of the grey curve: above 0 darker."""
    contrast: float
    noise: float
    collimation: tuple[float, float, float, float]
    """Left, top, right, bottom border as fractions of the film; 0 where the beam reaches the edge."""
    marker: tuple[str, float, float, float]
    """Text, and where: across and down as fractions, and turn in degrees."""
    arms: float
    """How far the arms are away from the body, 0 to 1."""
    places: tuple[float, ...]
    """Twelve numbers in [0, 1) that choose windows of grain."""


def draw_pose(rng: np.random.Generator, settings: PhantomSettings, view: str, bedside: bool, breath: float) -> Pose:
    """`bedside`: taken lying or sitting in bed, so AP, less inspired and poorer in contrast."""
    frontal = view == "frontal"
    borders = (0.0, 0.0, 0.0, 0.0)
    if rng.random() < settings.collimated:
        left, top, right, bottom = np.clip(rng.normal(0.01, 0.028, 4), 0, 0.075)
        borders = (float(left), float(top), float(right), float(bottom))
    side = "L" if not frontal or rng.random() < 0.75 else "R"
    if frontal:
        across = rng.uniform(0.87, 0.93) if side == "L" else rng.uniform(0.05, 0.1)
    else:
        across = rng.uniform(0.05, 0.12) if rng.random() < 0.5 else rng.uniform(0.85, 0.93)
    return Pose(
        projection="LATERAL" if not frontal else "AP" if bedside else "PA",
        rotation=float(np.clip(rng.normal(0, settings.rotation), -15, 15)),
        tilt=float(rng.normal(0, 1.2 if not bedside else 2.5)),
        width=float(rng.normal(372, 14) if frontal else rng.normal(368, 14)),
        centre=(float(rng.normal(0, 7)), float(rng.normal(0, 7))),
        inspiration=breath,
        exposure=float(rng.normal(0, 0.035)),
        contrast=float(np.clip(rng.normal(1, 0.12) * (0.88 if bedside else 1), 0.62, 1.35)),
        noise=float(settings.noise * rng.uniform(0.5, 1.3) * (1.4 if bedside else 1)),
        collimation=borders,
        marker=(side, float(across), float(rng.uniform(0.04, 0.13)), float(rng.normal(0, 8))),
        arms=float(rng.random()),
        places=tuple(float(p) for p in rng.random(12)),
    )

"""The lungs' vessels: one tree in three dimensions for each patient, seen from the front and from the side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from negatoscope.studies.phantom.film import F, Field, soften, splat
from negatoscope.studies.phantom.projection import View

_GENERATIONS = 6


@dataclass(frozen=True, slots=True)
class Tree:
    """Points along all branches as fractions of half width, half depth and height, by generation of branching."""

    points: tuple[Field, ...]
    """Each (n, 3)."""
    weights: tuple[Field, ...]
    """Each (n,): cross-section times the length a point stands for, in square millimetres times millimetres."""


def draw_tree(seed: int) -> Tree:
    """Both lungs at once: branches fork in two at a random angle, shorter and thinner at each generation."""
    rng = np.random.default_rng(seed)
    stems = 12
    side = np.repeat(np.array([-1.0, 1.0], dtype=np.float32), stems)
    # From the hilum, stems leave in all directions but the middle; more of them downwards, as blood does.
    angle = np.tile(np.linspace(-1.35, 1.55, stems), 2) + rng.normal(0, 0.12, 2 * stems)
    depth = rng.normal(0, 0.75, 2 * stems)
    way = np.stack((side * np.cos(angle) * 0.42 + side * 0.05, depth * 0.34, np.sin(angle) * 0.3), axis=1)
    start = np.stack((side * 0.24, rng.normal(-0.05, 0.05, 2 * stems), np.where(side < 0, 0.435, 0.405)), axis=1)
    start[:, 2] += 0.03 * np.sin(angle)
    length, radius = 0.46, 2.5
    points, weights = [], []
    for _ in range(_GENERATIONS):
        count = len(way)
        n = max(4, int(26 * length / 0.5))
        s = np.linspace(0, 1, n, endpoint=False, dtype=np.float32)[None, :, None]
        bow = rng.normal(0, 0.09, (count, 1, 3))
        path = start[:, None] + length * s * (way[:, None] + bow * s)
        jitter = rng.uniform(0.7, 1.25, (count, 1))
        thick = radius * jitter * (1 - 0.22 * s[..., 0])
        points.append(path.reshape(-1, 3).astype(np.float32))
        weights.append((thick**2 * (length * 110 / n)).ravel().astype(np.float32))
        end = start + length * (way + bow[:, 0])
        twist = rng.normal(0, 0.17, (2, count, 3))
        fork = rng.normal(0.0, 0.16, (count, 3))
        way = np.concatenate((way + fork + twist[0], way * 0.9 - fork + twist[1]))
        start = np.concatenate((end, end))
        length *= 0.74
        radius *= 0.74
    return Tree(tuple(points), tuple(weights))


def vessel_shadow(view: View, tree: Tree, fullness: float = 1.0, upper: float = 0.0) -> Field:
    """Attenuation of the tree. `fullness` widens all vessels, `upper` those above the hilum (as a failing heart does)."""
    film, anatomy = view.film, view.anatomy
    scale = np.array([anatomy.half_width, anatomy.half_depth, view.height], dtype=np.float32)
    shadow = film.blank()
    radius = 2.5 * fullness
    for first, last in ((0, 2), (2, 4), (4, _GENERATIONS)):
        points = np.concatenate(tree.points[first:last])
        weights = np.concatenate(tree.weights[first:last])
        if upper:
            weights = weights * (1 + F(upper) * np.clip((F(0.45) - points[:, 2]) * F(5), 0, 1))
        x, y, z = (points * scale).T
        u, v = view.shadow(x, y, z)
        drawn = splat(film, u, v, weights)
        spread = (0.5 * radius / film.mm) ** 2 / 0.5
        shadow += soften(drawn, round(spread))
        radius *= 0.55
    shadow *= F(fullness**2 * 0.0105 / film.mm**2 * 3.14159 / 2)
    return shadow

"""The lungs' vessels: one tree in three dimensions for each patient, seen from the front and from the side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from negatoscope.studies.phantom.film import Field, soften, splat
from negatoscope.studies.phantom.view import View

GENERATIONS = 6
_STEMS = 12  # on each side
_THINNER = 0.74  # a branch's radius against its parent's
# Attenuation for each square millimetre of cross-section a pixel's side; vessels look somewhat denser than blood, as
# the screen's edge enhancement has them.
_DENSITY = 0.0165


@dataclass(frozen=True, slots=True)
class Tree:
    """Points along all branches, by generation of branching."""

    points: tuple[Field, ...]
    """Each (n, 3): fractions of half width, half depth and height."""
    weights: tuple[Field, ...]
    """Each (n,): cross-section times the length that a point stands for, in cubic millimetres over pi."""


def draw_tree(seed: int) -> Tree:
    """Both lungs at once: branches fork in two at a random angle, shorter and thinner at each generation."""
    rng = np.random.default_rng(seed)
    side = np.repeat(np.array([-1.0, 1.0]), _STEMS)
    # Stems leave the hilum in all directions but the middle.
    angle = np.tile(np.linspace(-1.35, 1.55, _STEMS), 2) + rng.normal(0, 0.12, 2 * _STEMS)
    depth = rng.normal(0, 0.75, 2 * _STEMS)
    way = np.stack((side * (0.42 * np.cos(angle) + 0.05), 0.34 * depth, 0.3 * np.sin(angle)), axis=1)
    level = np.where(side < 0, 0.435, 0.405) + 0.03 * np.sin(angle)
    start = np.stack((0.24 * side, rng.normal(-0.05, 0.05, 2 * _STEMS), level), axis=1)
    way, start = way.astype(np.float32), start.astype(np.float32)
    length, radius = 0.46, 2.5
    points, weights = [], []
    for generation in range(GENERATIONS):
        count, n = len(way), max(4, int(52 * length))
        s = np.linspace(0, 1, n, endpoint=False, dtype=np.float32)[None, :, None]
        bow = 0.09 * rng.standard_normal((count, 1, 3), dtype=np.float32)
        points.append((start[:, None] + length * s * (way[:, None] + bow * s)).reshape(-1, 3))
        thick = radius * (0.7 + 0.55 * rng.random((count, 1), dtype=np.float32)) * (1 - 0.22 * s[..., 0])
        weights.append((thick * thick * (110 * length / n)).ravel())
        if generation == GENERATIONS - 1:
            break
        end = start + length * (way + bow[:, 0])
        fork, one, other = rng.standard_normal((3, count, 3), dtype=np.float32)
        way = np.concatenate((way + 0.16 * fork + 0.17 * one, 0.9 * way - 0.16 * fork + 0.17 * other))
        start = np.concatenate((end, end))
        length, radius = 0.74 * length, _THINNER * radius
    return Tree(tuple(points), tuple(weights))


def vessel_shadow(view: View, tree: Tree) -> Field:
    """Attenuation of the tree, wider all over or in the upper lungs as the view says. (H, W)"""
    film = view.film
    scale = np.array(view.millimetres((1.0, 1.0, 1.0)), dtype=np.float32)
    shadow = film.blank()
    radius = 2.1 * view.fullness
    half = GENERATIONS // 2
    for first in (0, half):  # wide branches, then narrow ones
        points, weights = (np.concatenate(part[first : first + half]) for part in (tree.points, tree.weights))
        if view.upper:
            weights = weights * (1 + view.upper * np.clip((0.45 - points[:, 2]) * 5, 0, 1))
        u, v = view.shadow(*(points * scale).T)
        drawn = splat(film, u, v, weights)
        # A disc of this radius has the variance radius² / 4 along an axis; each pass of the blur adds half a pixel.
        shadow += soften(drawn, round((0.5 * radius / film.mm) ** 2 / 0.5))
        radius *= _THINNER**half
    shadow *= _DENSITY * view.fullness**2 / film.mm**2
    return shadow

"""The film: a square of millimetres, and the few strokes that everything on it is drawn with.

Pictures are sums of attenuation along straight rays (Beer and Lambert: the logarithm of what arrives is linear in the
path through each tissue), so a structure is a field of path lengths, made from profiles along rows and columns.
All fields are float32; (H, 1) and (1, W) profiles broadcast, which keeps a picture at a few milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Field = NDArray[Any]  # float32 throughout; Python's own floats do not widen it
Mask = NDArray[np.bool_]

BANK = 1280  # cells on a side of the grain bank
CELL = 1.45  # millimetres a cell, where a structure's size must not change with that of the pixels


class Film:
    """`size` x `size` pixels over `width` millimetres; `u` runs along a row, `z` down from the apex of the lungs."""

    def __init__(self, size: int, width: float, u0: float, z0: float) -> None:
        self.size, self.width, self.u0, self.z0 = size, width, u0, z0
        self.mm = width / size  # millimetres a pixel
        steps = (np.arange(size, dtype=np.float32) + 0.5) * self.mm
        self.u: Field = steps + u0  # (W,)
        self.z: Field = steps + z0  # (H,)
        self.edge = max(1.6, 0.9 * self.mm)  # how soft the sharpest edge is: about a pixel at least

    def rows(self, top: float, bottom: float) -> slice:
        return self._span(top - self.z0, bottom - self.z0)

    def columns(self, left: float, right: float) -> slice:
        return self._span(left - self.u0, right - self.u0)

    def _span(self, start: float, stop: float) -> slice:
        first = min(max(int(start / self.mm), 0), self.size)
        return slice(first, min(max(int(stop / self.mm) + 1, first), self.size))

    def blank(self) -> Field:
        return np.zeros((self.size, self.size), dtype=np.float32)

    def ones(self) -> Field:
        return np.ones((self.size, self.size), dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Outline:
    """A fixed smooth curve: its value at each knot, level beyond the ends. Kept as a polygon of many corners."""

    knots: tuple[float, ...]
    values: tuple[float, ...]

    def __call__(self, at: Field) -> Field:
        return np.interp(at, *_polygon(self.knots, self.values)).astype(np.float32)


def through(knots: tuple[float, ...], values: tuple[float, ...], at: Field) -> Field:
    """A smooth curve through points that differ from one patient to the next, read at `at`."""
    x, y = np.array(knots), np.array(values)
    width = np.diff(x)
    secant = np.diff(y) / width
    slope = np.zeros_like(y)
    slope[1:-1] = (y[2:] - y[:-2]) / (x[2:] - x[:-2])
    m0, m1 = slope[:-1], slope[1:]
    at = np.clip(at, x[0], x[-1])
    piece = np.searchsorted(x[1:-1], at)
    s = at - x[piece]
    # Cubic Hermite: the value and slope at each knot, met from both sides.
    square, cube = (3 * secant - 2 * m0 - m1) / width, (m0 + m1 - 2 * secant) / width**2
    return (y[piece] + s * (m0[piece] + s * (square[piece] + s * cube[piece]))).astype(np.float32)


@lru_cache(maxsize=128)
def _polygon(knots: tuple[float, ...], values: tuple[float, ...]) -> tuple[Field, Field]:
    corners = np.linspace(knots[0], knots[-1], 600)
    return corners, through(knots, values, corners)


def ramp(distance: Field, width: float | Field) -> Field:
    """Path length through a round edge: 0 outside, rising as a circle's chord to 1 at `width` inside."""
    s = distance / width
    np.clip(s, 0, 1, out=s)  # against a number far faster than maximum and minimum
    s *= 2 - s
    return np.sqrt(s, out=s)


def step(distance: Field, width: float) -> Field:
    """0 to 1 over `width`, centred where `distance` is 0."""
    s = distance * (1 / width)
    s += 0.5
    return np.clip(s, 0, 1, out=s)


def bell(distance: Field, width: float) -> Field:
    """exp(-d²/2w²): 1 at distance 0, next to nothing at three times `width`."""
    s = distance * distance
    s *= -0.5 / width**2
    return np.exp(s, out=s)


def ball(film: Film, u: float, z: float, ru: float, rz: float, into: Field, amount: float) -> None:
    """Adds the path lengths through an ellipsoid, `amount` through its middle, to `into`; touches only its window."""
    rows, columns = film.rows(z - rz, z + rz), film.columns(u - ru, u + ru)
    du, dz = (film.u[columns] - u) / ru, (film.z[rows] - z) / rz
    inside = (1 - du * du)[None] - (dz * dz)[:, None]
    np.clip(inside, 0, 1, out=inside)
    into[rows, columns] += np.sqrt(inside, out=inside) * amount


def splat(film: Film, u: Field, z: Field, weight: Field) -> Field:
    """Points with weights, shared between the four nearest pixels: the fastest way to draw many thin lines."""
    size = film.size
    column, row = (u - film.u0) / film.mm - 0.5, (z - film.z0) / film.mm - 0.5
    keep = (column >= 0) & (row >= 0) & (column < size - 1) & (row < size - 1)
    column, row, weight = column[keep], row[keep], weight[keep]
    c, r = column.astype(np.int32), row.astype(np.int32)
    right, lower = column - c, row - r
    corner = r * size + c
    above, below = weight * (1 - lower), weight * lower
    where = np.concatenate((corner, corner + 1, corner + size, corner + size + 1))
    what = np.concatenate((above * (1 - right), above * right, below * (1 - right), below * right))
    return np.bincount(where, what, size * size).astype(np.float32).reshape(size, size)


def soften(field: Field, times: int) -> Field:
    """The binomial blur 1-2-1 along both axes, `times` over; each pass adds half a square pixel of variance."""
    for _ in range(times):
        wide = field * 0.5
        wide[:, 1:] += 0.25 * field[:, :-1]
        wide[:, :-1] += 0.25 * field[:, 1:]
        field = wide * 0.5
        field[1:] += 0.25 * wide[:-1]
        field[:-1] += 0.25 * wide[1:]
    return field


@lru_cache(maxsize=1)
def grain_bank() -> Field:
    """(4, BANK, BANK): grain at four scales, from white noise to clouds of some 30 cells, each of variance one.

    The same for every study. A study takes windows of it at its own places, for drawing normal deviates anew would cost
    as much as the rest of the picture.
    """
    rng = np.random.default_rng(20)
    bank = np.empty((4, BANK, BANK), dtype=np.float32)
    bank[0] = rng.standard_normal((BANK, BANK), dtype=np.float32)
    for level, cell in enumerate((3, 8, 32), start=1):
        coarse = rng.standard_normal((BANK // cell + 4, BANK // cell + 4), dtype=np.float32)
        bank[level] = _enlarged(_enlarged(coarse, cell).T, cell).T
        bank[level] /= bank[level].std()
    return bank


def _enlarged(field: Field, cell: int) -> Field:
    """Cubic B-spline along axis 0: smooth between samples that lie `cell` apart."""
    at = np.arange(BANK, dtype=np.float32) / cell
    first = at.astype(np.int32)
    t = (at - first)[:, None]
    weights = ((1 - t) ** 3, 3 * t**3 - 6 * t**2 + 4, -3 * t**3 + 3 * t**2 + 3 * t + 1, t**3)
    enlarged = np.zeros((BANK, field.shape[1]), dtype=np.float32)
    for k, weight in enumerate(weights):
        enlarged += weight * field[first + k]
    return enlarged / 6


def grain(film: Film, level: int, place: tuple[float, ...]) -> Field:
    """A window of the bank, a cell a pixel, chosen by `place` in [0, 1)²."""
    room = BANK - film.size
    row, column = int(place[0] * room), int(place[1] * room)
    return grain_bank()[level, row : row + film.size, column : column + film.size]


def cloud(film: Film, level: int, seed: int) -> Field:
    """A window of the bank whose cells keep their size in millimetres, whatever the pixels."""
    cells = int(film.width / CELL) + 1
    top, left = (int(start) for start in np.random.default_rng(seed).integers(0, BANK - cells, 2))
    at = (np.arange(film.size) * (cells / film.size)).astype(np.int32)
    return grain_bank()[level, top : top + cells, left : left + cells][at[:, None], at[None]]

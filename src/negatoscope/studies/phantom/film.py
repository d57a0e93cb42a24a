"""The film: a square of millimetres, and the few strokes that everything on it is drawn with.

Pictures are sums of attenuation along straight rays (Beer and Lambert: the logarithm of what arrives is linear in the
path through each tissue), so a structure is a field of path lengths, made from profiles along rows and columns.
All fields are float32; (H, 1) and (1, W) profiles broadcast, which is what keeps a picture at a few milliseconds.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Field = NDArray[np.float32]

F = np.float32


class Film:
    """`size` x `size` pixels over `width` millimetres; `u` runs along a row, `z` down from the apex of the lungs."""

    def __init__(self, size: int, width: float, u0: float, z0: float) -> None:
        self.size, self.width, self.u0, self.z0 = size, width, u0, z0
        self.mm = width / size  # millimetres a pixel
        steps = (np.arange(size, dtype=np.float32) + F(0.5)) * F(self.mm)
        self.u = steps + F(u0)  # (W,)
        self.z = steps + F(z0)  # (H,)
        self.edge = F(max(1.6, 0.9 * self.mm))  # how soft the sharpest edge is: never under a pixel

    def rows(self, top: float, bottom: float) -> slice:
        return self._span(top - self.z0, bottom - self.z0)

    def columns(self, left: float, right: float) -> slice:
        return self._span(left - self.u0, right - self.u0)

    def _span(self, start: float, stop: float) -> slice:
        first = min(max(int(start / self.mm), 0), self.size)
        return slice(first, min(max(int(stop / self.mm) + 1, first), self.size))

    def blank(self) -> Field:
        return np.zeros((self.size, self.size), dtype=np.float32)


def through(points: list[tuple[float, float]], at: Field) -> Field:
    """A smooth curve through `points` (x rising), read at `at`: cubic Hermite pieces, level beyond the ends."""
    x, y = np.asarray(points, dtype=np.float32).T
    slope = np.zeros_like(y)
    slope[1:-1] = (y[2:] - y[:-2]) / (x[2:] - x[:-2])
    where = np.clip(np.searchsorted(x, at) - 1, 0, len(x) - 2)
    width = x[where + 1] - x[where]
    t = np.clip((at - x[where]) / width, 0, 1).astype(np.float32)
    rise = y[where + 1] - y[where]
    m0, m1 = slope[where] * width, slope[where + 1] * width
    return y[where] + t * (m0 + t * (3 * rise - 2 * m0 - m1 + t * (m0 + m1 - 2 * rise)))


def ramp(distance: Field, width: float | Field) -> Field:
    """Path length through a round edge: 0 outside, rising as a circle's chord to 1 at `width` inside."""
    s = np.clip(distance / F(width) if np.isscalar(width) else distance / width, 0, 1)
    s *= 2 - s
    return np.sqrt(s, out=s)


def step(distance: Field, width: float) -> Field:
    """0 to 1 over `width`, centred where `distance` is 0."""
    s = distance * F(1 / width)
    s += F(0.5)
    return np.clip(s, 0, 1, out=s)


def bell(distance: Field, width: float) -> Field:
    """1 at distance 0, falling to 0 at about twice `width`: exp(-d²/2w²)."""
    s = distance * distance
    s *= F(-0.5 / width**2)
    return np.exp(s, out=s)


def ball(film: Film, u: float, z: float, ru: float, rz: float, into: Field, amount: float) -> None:
    """Adds the path lengths through an ellipsoid (1 through its middle) to `into`, touching only its window."""
    rows, columns = film.rows(z - rz, z + rz), film.columns(u - ru, u + ru)
    du = (film.u[columns] - F(u)) * F(1 / ru)
    dz = (film.z[rows] - F(z)) * F(1 / rz)
    inside = 1 - (du * du)[None] - (dz * dz)[:, None]
    np.maximum(inside, 0, out=inside)
    into[rows, columns] += np.sqrt(inside, out=inside) * F(amount)


def splat(film: Film, u: Field, z: Field, weight: Field) -> Field:
    """Points with weights, shared between the four nearest pixels: the fastest way to draw many thin lines."""
    size = film.size
    column = (u - F(film.u0)) * F(1 / film.mm) - F(0.5)
    row = (z - F(film.z0)) * F(1 / film.mm) - F(0.5)
    keep = (column >= 0) & (row >= 0) & (column < size - 1) & (row < size - 1)
    column, row, weight = column[keep], row[keep], weight[keep]
    c, r = column.astype(np.int32), row.astype(np.int32)
    fc, fr = column - c, row - r
    corner = r * size + c
    low, high = weight * (1 - fr), weight * fr
    where = np.concatenate((corner, corner + 1, corner + size, corner + size + 1))
    what = np.concatenate((low * (1 - fc), low * fc, high * (1 - fc), high * fc))
    return np.bincount(where, what, size * size).astype(np.float32).reshape(size, size)


def soften(field: Field, times: int) -> Field:
    """The binomial blur 1-2-1 along both axes, `times` over; each pass adds half a square pixel of variance."""
    for _ in range(times):
        wide = field * F(0.5)
        wide[:, 1:] += F(0.25) * field[:, :-1]
        wide[:, :-1] += F(0.25) * field[:, 1:]
        field = wide * F(0.5)
        field[1:] += F(0.25) * wide[:-1]
        field[:-1] += F(0.25) * wide[1:]
    return field


@lru_cache(maxsize=1)
def grain_bank() -> NDArray[np.float32]:
    """(4, 1280, 1280): grain at four scales, from white noise to clouds of some 40 pixels, each of variance one.

    The same for every study; a study takes windows of it at its own places, for drawing normal deviates anew would cost
    as much as the rest of the picture.
    """
    rng = np.random.default_rng(20)
    bank = np.empty((4, 1280, 1280), dtype=np.float32)
    bank[0] = rng.standard_normal((1280, 1280), dtype=np.float32)
    for level, cell in enumerate((3, 8, 32), start=1):
        coarse = rng.standard_normal((1280 // cell + 4, 1280 // cell + 4), dtype=np.float32)
        bank[level] = _enlarge(_enlarge(coarse, cell, 1280).T, cell, 1280).T
        bank[level] /= bank[level].std()
    return bank


def _enlarge(field: Field, cell: int, size: int) -> Field:
    """Cubic B-spline along the rows (axis 0): smooth between samples that lie `cell` pixels apart."""
    at = np.arange(size, dtype=np.float32) / F(cell)
    first = at.astype(np.int32)
    t = (at - first)[:, None]
    weights = ((1 - t) ** 3, 3 * t**3 - 6 * t**2 + 4, -3 * t**3 + 3 * t**2 + 3 * t + 1, t**3)
    return sum(weight * field[first + k] for k, weight in enumerate(weights)) / F(6)  # type: ignore[return-value]


def grain(film: Film, level: int, place: tuple[float, float]) -> Field:
    """A window of the bank, chosen by `place` in [0, 1)²."""
    room = 1280 - film.size
    row, column = int(place[0] * room), int(place[1] * room)
    return grain_bank()[level, row : row + film.size, column : column + film.size]

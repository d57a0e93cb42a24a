"""What is not the patient's own: tubes, lines, pacemakers, clips, sternal wires; metal and barium stripes in three
dimensions, so that both views agree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from negatoscope.studies.phantom.film import F, Field, ball, soften, splat, step
from negatoscope.studies.phantom.findings import Finding, Place
from negatoscope.studies.phantom.projection import View

Mask = NDArray[np.bool_]


def course(view: View, places: list[Place]) -> NDArray[np.float32]:
    """A smooth curve through the places, (n, 3) in millimetres, with points closer than half a pixel."""
    knots = np.array([view.millimetres(place) for place in places], dtype=np.float32)
    ends = np.concatenate((2 * knots[:1] - knots[1:2], knots, 2 * knots[-1:] - knots[-2:-1]))
    pieces = []
    for a, b, c, d in zip(ends[:-3], ends[1:-2], ends[2:-1], ends[3:]):
        n = max(2, int(np.abs(c - b).sum() / (0.45 * view.film.mm)))
        s = np.linspace(0, 1, n, endpoint=False, dtype=np.float32)[:, None]
        pieces.append(b + F(0.5) * s * (c - a + s * (2 * a - 5 * b + 4 * c - d + s * (3 * (b - c) + d - a))))
    return np.concatenate(pieces)


def wire(view: View, path: NDArray[np.float32], thick: float, strength: float) -> Field:
    """A round wire's shadow: `thick` in millimetres, `strength` the attenuation through its middle."""
    film = view.film
    u, v = view.shadow(path[:, 0], path[:, 1], path[:, 2])
    steps = np.hypot(np.diff(u, append=u[-1:]), np.diff(v, append=v[-1:])) / F(film.mm)
    drawn = splat(film, u, v, np.minimum(steps, 1).astype(np.float32))
    passes = round((0.3 * thick / film.mm) ** 2 / 0.5)
    wide = max(1.0, thick / film.mm)
    return soften(drawn, max(1, passes)) * F(strength * wide * 0.95)


def _lay(view: View, shadow: Field) -> Mask:
    view.extra += shadow
    return soften((shadow > F(0.03)).astype(np.float32), 1) > F(0.2)


def endotracheal_tube(view: View, finding: Finding) -> Mask:
    """Two walls and a stripe down the windpipe; ends above the carina."""
    tip = 0.335 - finding.millimetres / view.height
    places = [(-0.01, 0.2, -0.6), (0.0, 0.13, -0.3), (0.0, 0.06, -0.02), (-0.012, -0.03, tip)]
    path = course(view, places)
    shadow = wire(view, path, 1.6, 0.24)
    across = np.array([4.2, 0, 0] if view.name == "frontal" else [0, 4.2, 0], dtype=np.float32)
    for side in (-1, 1):
        shadow += wire(view, path + F(side) * across, 1.2, 0.13)
    mask = _lay(view, shadow)
    return mask


def nasogastric_tube(view: View, finding: Finding) -> Mask:
    x, y, z = finding.at
    places = [(0.03, 0.0, -0.6), (0.02, -0.1, -0.1), (0.04, -0.28, 0.25), (0.05, -0.36, 0.55), (0.12, -0.3, 0.78), (0.3, -0.1, 0.9), (x, y, z + 0.03)]  # fmt: skip
    path = course(view, places)
    return _lay(view, wire(view, path, 2.2, 0.2))


def central_line(view: View, finding: Finding) -> Mask:
    sign = finding.sides[0]
    bridge: list[Place] = [(0.1, 0.28, 0.17), (-0.1, 0.28, 0.215)] if sign > 0 else []
    if finding.kind == "jugular":
        start: list[Place] = [(sign * 0.36, 0.2, -0.3), (sign * 0.28, 0.22, -0.1), (sign * 0.2, 0.24, 0.07)]
    elif finding.kind == "port":
        start = [
            (sign * 0.62, 0.92, 0.3),
            (sign * 0.58, 0.85, 0.18),
            (sign * 0.45, 0.6, 0.07),
            (sign * 0.25, 0.3, 0.08),
        ]
    else:
        start = [
            (sign * 1.55, 0.0, 0.5),
            (sign * 1.35, 0.1, 0.25),
            (sign * 0.95, 0.25, 0.13),
            (sign * 0.5, 0.35, 0.1),
            (sign * 0.25, 0.3, 0.12),
        ]
    places = [*start, *bridge, (-0.195, 0.22, 0.25), finding.at]
    shadow = wire(view, course(view, places), 2.2 if finding.kind != "PICC" else 1.6, 0.2)
    if finding.kind == "port":
        u, v = view.point(start[0])
        disc = view.film.blank()
        if view.name == "frontal":
            ball(view.film, u, v, 12, 12, disc, 0.35)
            ball(view.film, u, v, 7, 7, disc, -0.2)
        else:
            ball(view.film, u, v, 5, 12, disc, 0.3)
        shadow += np.maximum(disc, 0)
    return _lay(view, shadow)


def pacemaker(view: View, finding: Finding) -> Mask:
    """A metal can under the skin below the clavicle, and one or two leads through the veins to the right heart."""
    film, sign = view.film, finding.sides[0]
    x, y, z = finding.at
    bridge: list[Place] = [(0.12, 0.3, 0.16), (-0.1, 0.28, 0.215)] if sign > 0 else []
    trunk: list[Place] = [
        (x, y, z - 0.08),
        (sign * 0.6, 0.7, 0.08),
        (sign * 0.35, 0.4, 0.09),
        *bridge,
        (-0.2, 0.2, 0.28),
        (-0.22, 0.15, 0.45),
    ]
    shadow = wire(view, course(view, [*trunk, (-0.2, 0.2, 0.62), (0.05, 0.4, 0.74), (0.3, 0.5, 0.765)]), 1.9, 0.2)
    if finding.kind == "dual":
        shadow += wire(
            view, course(view, [*trunk, (-0.22, 0.25, 0.56), (-0.25, 0.42, 0.54), (-0.24, 0.48, 0.48)]), 1.9, 0.2
        )
    u, v = view.point(finding.at)
    half_wide, half_high = (24.0, 20.0) if view.name == "frontal" else (5.0, 20.0)
    rows, columns = film.rows(v - 26, v + 26), film.columns(u - 30, u + 30)
    du, dz = (film.u[columns] - F(u))[None] / F(half_wide), (film.z[rows] - F(v))[:, None] / F(half_high)
    can = step(1 - (du**4 + dz**4) ** F(0.25), 2 * film.edge / half_high)
    can *= F(0.34)
    inner = step(F(0.8) - (du**4 + (dz + F(0.08)) ** 4) ** F(0.25), 0.1)
    can += F(0.16) * inner
    shadow[rows, columns] += can
    return _lay(view, shadow)


def surgical_clips(view: View, finding: Finding) -> Mask:
    rng = np.random.default_rng(finding.shape)
    shadow = view.film.blank()
    x0, y0, z0 = finding.at
    anatomy = view.anatomy
    places, spread = [finding.at] * (4 + int(4 * finding.amount)), (0.09, 0.12, 0.045)
    if finding.kind == "sternotomy":
        places, spread = [(0.2 + 0.32 * k / 4, 0.5, 0.4 + 0.09 * k) for k in range(5)], (0.05, 0.15, 0.02)
        for k in range(6):
            shadow += _sternal_loop(view, (0.0, 0.72 + 0.26 * min(1.0, k / 4), 0.2 + 0.095 * k), rng)
    for place in places:
        centre = np.array(place) + rng.normal(0, 1, 3) * spread
        middle = np.array(view.millimetres(tuple(centre)))
        way = rng.normal(0, 1, 3)
        way /= np.sqrt((way * way).sum())
        path = (middle + np.linspace(-4, 4, 24)[:, None] * way).astype(np.float32)
        shadow += wire(view, path, 1.6, 0.42)
    return _lay(view, shadow)


def _sternal_loop(view: View, place: Place, rng: np.random.Generator) -> Field:
    s = np.linspace(0, 2 * np.pi, 90)
    x, y, z = view.millimetres(place)
    lean = rng.normal(0, 0.12)
    u = 10 * np.cos(s)
    v = 4.5 * np.sin(s) + lean * u
    path = np.stack((x + u + rng.normal(0, 1.2), y + 7 * np.sin(s + 0.6), z + v), axis=1).astype(np.float32)
    return wire(view, path, 1.1, 0.42)

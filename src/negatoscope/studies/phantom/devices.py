"""What is not the patient's own: tubes, lines, pacemakers, clips and wires, laid out in three dimensions."""

from __future__ import annotations

import numpy as np

from negatoscope.studies.phantom.anatomy import Place
from negatoscope.studies.phantom.film import Field, Mask, ball, soften, splat, step
from negatoscope.studies.phantom.findings import Finding
from negatoscope.studies.phantom.view import FrontalView, View

# From the left side, veins cross to the right in front of the arch.
_CROSSING: list[Place] = [(0.11, 0.29, 0.165), (-0.1, 0.28, 0.215)]
_CARINA = 0.335


def _course(view: View, places: list[Place]) -> Field:
    """A smooth curve through the places, (n, 3) in millimetres, its points closer than half a pixel."""
    knots = np.array([view.millimetres(place) for place in places], dtype=np.float32)
    ends = np.concatenate((2 * knots[:1] - knots[1:2], knots, 2 * knots[-1:] - knots[-2:-1]))
    pieces = []
    for a, b, c, d in zip(ends[:-3], ends[1:-2], ends[2:-1], ends[3:]):  # Catmull and Rom
        n = max(2, int(float(np.abs(c - b).sum()) / (0.45 * view.film.mm)))
        s = np.linspace(0, 1, n, endpoint=False, dtype=np.float32)[:, None]
        pieces.append(b + 0.5 * s * (c - a + s * (2 * a - 5 * b + 4 * c - d + s * (3 * (b - c) + d - a))))
    return np.concatenate(pieces)


def _wire(view: View, path: Field, thick: float, density: float) -> Field:
    """A round wire's shadow: `thick` in millimetres, `density` about the attenuation through its middle."""
    film = view.film
    u, v = view.shadow(*path.T)
    steps = np.hypot(np.diff(u, append=u[-1:]), np.diff(v, append=v[-1:])) / film.mm
    drawn = splat(film, u, v, np.minimum(steps, 1))
    passes = max(1, round((0.3 * thick / film.mm) ** 2 / 0.5))
    return soften(drawn, passes) * (0.95 * density * max(1.0, thick / film.mm))


def _lay(view: View, shadow: Field) -> Mask:
    view.extra += shadow
    return soften((shadow > 0.03).astype(np.float32), 1) > 0.2


def endotracheal_tube(view: View, finding: Finding) -> Mask:
    """Two walls and a stripe down the windpipe; ends above the carina."""
    tip = _CARINA - finding.millimetres / view.height
    path = _course(view, [(-0.01, 0.2, -0.6), (0.0, 0.13, -0.3), (0.0, 0.06, -0.02), (-0.012, -0.03, tip)])
    shadow = _wire(view, path, 1.6, 0.24)
    across = np.array([4.2, 0, 0] if isinstance(view, FrontalView) else [0, 4.2, 0], dtype=np.float32)
    for side in (-1, 1):
        shadow += _wire(view, path + side * across, 1.2, 0.13)
    return _lay(view, shadow)


def nasogastric_tube(view: View, finding: Finding) -> Mask:
    x, y, z = finding.at
    gullet: list[Place] = [(0.03, 0.0, -0.6), (0.02, -0.1, -0.1), (0.04, -0.28, 0.25), (0.05, -0.36, 0.55)]
    path = _course(view, [*gullet, (0.12, -0.3, 0.78), (0.3, -0.1, 0.9), (x, y, z + 0.03)])
    return _lay(view, _wire(view, path, 2.2, 0.2))


def central_line(view: View, finding: Finding) -> Mask:
    """From neck, port or arm through the veins to where its tip lies."""
    sign = finding.sides[0]
    start: list[Place] = {
        "jugular": [(0.36, 0.2, -0.3), (0.28, 0.22, -0.1), (0.2, 0.24, 0.07)],
        "port": [(0.62, 0.92, 0.3), (0.58, 0.85, 0.18), (0.45, 0.6, 0.07), (0.25, 0.3, 0.08)],
        "PICC": [(1.55, 0.0, 0.5), (1.35, 0.1, 0.25), (0.95, 0.25, 0.13), (0.5, 0.35, 0.1), (0.25, 0.3, 0.12)],
    }[finding.kind]
    places: list[Place] = [(sign * x, y, z) for x, y, z in start]
    crossing = _CROSSING if sign > 0 else []
    thick, density = (1.6, 0.2) if finding.kind == "PICC" else (2.2, 0.15)
    shadow = _wire(view, _course(view, [*places, *crossing, (-0.195, 0.22, 0.25), finding.at]), thick, density)
    if finding.kind == "port":
        u, v = view.point(places[0])
        disc = view.film.blank()
        if isinstance(view, FrontalView):
            ball(view.film, u, v, 12, 12, disc, 0.35)
            ball(view.film, u, v, 7, 7, disc, -0.2)
        else:
            ball(view.film, u, v, 5, 12, disc, 0.3)
        shadow += np.maximum(disc, 0)
    return _lay(view, shadow)


def pacemaker(view: View, finding: Finding) -> Mask:
    """A metal can under the skin below the clavicle, and one or two leads through the veins to the right heart."""
    sign, (x, y, z) = finding.sides[0], finding.at
    crossing = _CROSSING if sign > 0 else []
    veins: list[Place] = [(x, y, z - 0.08), (0.6 * sign, 0.7, 0.08), (0.35 * sign, 0.4, 0.09), *crossing]
    veins += [(-0.2, 0.2, 0.28), (-0.22, 0.15, 0.45)]
    shadow = _wire(view, _course(view, [*veins, (-0.2, 0.2, 0.62), (0.05, 0.4, 0.74), (0.3, 0.5, 0.765)]), 1.9, 0.2)
    if finding.kind == "dual":
        atrium: list[Place] = [(-0.22, 0.25, 0.56), (-0.25, 0.42, 0.54), (-0.24, 0.48, 0.48)]
        shadow += _wire(view, _course(view, [*veins, *atrium]), 1.9, 0.2)
    _can(view, finding.at, shadow)
    return _lay(view, shadow)


def _can(view: View, at: Place, shadow: Field) -> None:
    """A rounded box, seen from its flat side in front and edge on from the side."""
    film = view.film
    u, v = view.point(at)
    wide, tall = (24.0, 20.0) if isinstance(view, FrontalView) else (5.0, 20.0)
    rows, columns = film.rows(v - 26, v + 26), film.columns(u - 30, u + 30)
    du, dz = ((film.u[columns] - u) / wide)[None], ((film.z[rows] - v) / tall)[:, None]
    can = 0.34 * step(1 - (du**4 + dz**4) ** 0.25, 2 * film.edge / tall)
    can += 0.16 * step(0.8 - (du**4 + (dz + 0.08) ** 4) ** 0.25, 0.1)
    shadow[rows, columns] += can


def surgical_clips(view: View, finding: Finding) -> Mask:
    """Short bits of metal where an operation was; after a sternotomy also the wires that close the sternum."""
    rng = np.random.default_rng(finding.shape)
    shadow = view.film.blank()
    places, spread = [finding.at] * (4 + int(4 * finding.amount)), (0.09, 0.12, 0.045)
    if finding.kind == "sternotomy":
        places, spread = [(0.2 + 0.08 * k, 0.5, 0.4 + 0.09 * k) for k in range(5)], (0.05, 0.15, 0.02)
        for k in range(6):
            shadow += _sternal_wire(view, (0.0, 0.72 + 0.26 * min(1.0, k / 4), 0.2 + 0.095 * k), rng)
    for x, y, z in places:
        dx, dy, dz = (rng.normal(0, 1, 3) * spread).tolist()
        middle = np.array(view.millimetres((x + dx, y + dy, z + dz)))
        way = rng.normal(0, 1, 3)
        way /= np.sqrt((way * way).sum())
        shadow += _wire(view, (middle + np.linspace(-4, 4, 24)[:, None] * way).astype(np.float32), 1.6, 0.42)
    return _lay(view, shadow)


def _sternal_wire(view: View, place: Place, rng: np.random.Generator) -> Field:
    s = np.linspace(0, 2 * np.pi, 90)
    x, y, z = view.millimetres(place)
    across = 10 * np.cos(s)
    down = 4.5 * np.sin(s) + rng.normal(0, 0.12) * across
    path = np.stack((x + across + rng.normal(0, 1.2), y + 7 * np.sin(s + 0.6), z + down), axis=1)
    return _wire(view, path.astype(np.float32), 1.1, 0.42)

"""Ribs, spine, clavicles, shoulder blades and arms as the frontal picture shows them."""

from __future__ import annotations

from typing import Any

import numpy as np

from negatoscope.studies.phantom.anatomy import Anatomy
from negatoscope.studies.phantom.film import Field, Outline, ball, bell, step, through
from negatoscope.studies.phantom.view import FrontalView

_SPINE_WIDTH = Outline((-0.3, 0.1, 0.6, 1.1), (12, 15, 17, 21))
_SPINE_DENSITY = Outline((-0.3, 0.0, 0.3, 0.7, 1.0), (0.2, 0.15, 0.1, 0.11, 0.15))
_SPINE_BEND = Outline((-0.4, 0.2, 0.6, 1.2), (0.0, 1.0, -0.6, 0.2))
_BLADE_INNER = Outline((0.0, 0.12, 0.25, 0.4, 0.52), (1.12, 0.93, 0.9, 0.93, 1.05))
_BLADE_OUTER = Outline((0.0, 0.1, 0.25, 0.4, 0.52), (1.28, 1.3, 1.2, 1.08, 1.06))
_CLAVICLE_THICKNESS = Outline((0.08, 0.2, 0.5, 0.9, 1.25), (8.5, 7.0, 5.0, 5.5, 7.5))
VERTEBRA = 0.98  # height of a vertebra with its disc, in rib spacings


def frontal_bones(view: FrontalView) -> Field:
    """Attenuation to add, with what fractures have moved."""
    bone = _ribs(view)
    _spine(view, bone)
    _clavicles(view, bone)
    _shoulders(view, bone)
    if view.bone_gap is not None:
        bone *= view.bone_gap
    return bone


def rib_height(anatomy: Anatomy, number: float, r: Any, high: float) -> Any:
    """How far down the back part of rib `number` runs at `r`, the share of the way out to the side wall."""
    spacing, fall, _ = anatomy.ribs
    return number * spacing - 0.02 * high + spacing * fall * (1.25 * r * r - 0.25 * r)


def _ribs(view: FrontalView) -> Field:
    """Each set of ribs is one family of curves; height told in rib numbers gives the rib and its rims."""
    film, (spacing, fall, thick) = view.film, view.anatomy.ribs
    r = view.away * (1 / (view.outer + 4))[:, None]
    z = film.z[:, None] + view.tilt * film.u[None]
    if view.rib_offset is not None:
        z += view.rib_offset
    z += 0.02 * view.height
    z *= 1 / spacing
    soft = max(0.03, 0.6 * film.mm / spacing)
    curve = r * r
    # Towards the side wall the ray runs along the rib.
    bone = _rims(z - fall * (1.25 * curve - 0.25 * r), thick, soft, 11.6)
    bone *= 0.052 / np.sqrt(np.clip(1.16 - curve, 0.12, 1))
    inside = step(1.02 - r, 0.06)
    bone *= inside
    bone *= step(r - 0.1, 0.1)
    # The front parts go on from there, down and inwards, and turn into cartilage that does not show.
    inwards = 1 - r
    fore = _rims(z - fall - inwards * (2.3 * inwards + 2.2), 1.12 * thick, 1.3 * soft, 6.6)
    fore *= inside
    fore *= 0.04 * step(r - 0.525, 0.25)
    bone += fore
    return bone


def _rims(number: Field, thick: float, soft: float, last: float) -> Field:
    """Brightness across a family of ribs: bright rims around a paler marrow; none above rib 1 or below `last`."""
    apart = np.abs(number - np.rint(number))
    band = (thick + 0.5 * soft - apart) * (1 / soft)
    np.clip(band, 0, 1, out=band)
    apart *= apart
    apart *= 0.38 / thick**2
    apart += 0.62
    band *= apart
    band *= (number > 0.45) & (number < last)
    return band


def _spine(view: FrontalView, bone: Field) -> None:
    film, anatomy, t = view.film, view.anatomy, view.t
    columns = film.columns(-45, 45)
    bend = _SPINE_BEND(t) * anatomy.spine_bend + 0.7 * view.turn * anatomy.half_depth
    u = view.u[:, columns] + bend[:, None]
    beside = np.abs(u)
    wide = _SPINE_WIDTH(t)
    phase = film.z / (VERTEBRA * anatomy.ribs[0]) + 0.2
    apart = np.abs(phase - np.rint(phase))  # 0 at a disc, 0.5 in the middle of a vertebra
    plate = (0.02 + 0.04 * anatomy.spine_wear) * bell(apart - 0.15, 0.035)
    inside = step(wide[:, None] - beside, 5)
    spine = inside * (_SPINE_DENSITY(t) - 0.03 * bell(apart, 0.07) + plate)[:, None]
    spine += bell(beside - (0.62 * wide)[:, None], 3.2) * (0.07 * bell(apart - 0.42, 0.12))[:, None]  # pedicles
    spine += bell(u, 2.6) * (0.08 * bell(apart - 0.2, 0.13))[:, None]  # spinous processes
    transverse = step(34 - beside, 5) - inside
    spine += np.clip(transverse, 0, 1) * (0.04 * bell(apart - 0.36, 0.09))[:, None]
    bone[:, columns] += spine


def _clavicles(view: FrontalView, bone: Field) -> None:
    film, anatomy = view.film, view.anatomy
    start, rise = anatomy.clavicle
    rows = film.rows(start - rise - 26, start + 30)
    for side in (-1, 1):
        x = (film.u - 0.75 * view.turn * anatomy.half_depth) * (side / anatomy.half_width)  # outwards positive
        falls = (0.0, 4.0, 0.35 * rise, 0.9 * rise, rise, rise + 1)
        line = through((0.08, 0.2, 0.45, 0.75, 1.0, 1.3), tuple(start - fall for fall in falls), x)
        line -= view.tilt * film.u
        if side in view.clavicle_offset:
            line += view.clavicle_offset[side]
        thick = _CLAVICLE_THICKNESS(x)
        apart = np.abs(film.z[rows, None] - line[None])
        band = step(thick[None] - apart, film.edge)
        band *= 0.6 + 0.4 * np.clip(apart / thick[None], 0, 1) ** 2
        band *= (0.12 * step(x - 0.1, 0.05) * step(1.26 - x, 0.05))[None]
        bone[rows] += band


def _shoulders(view: FrontalView, bone: Field) -> None:
    """Shoulder blades drawn off the lungs, heads of the humerus, upper arms."""
    film, half, high, t = view.film, view.anatomy.half_width, view.height, view.t
    start, rise = view.anatomy.clavicle
    rows = film.rows(-0.02 * high, 0.57 * high)
    for side in (-1, 1):
        columns = film.columns(*sorted((0.7 * side * half, 1.5 * side * half)))
        out = view.u[rows, columns] * (side / half)
        inner, outer = out - _BLADE_INNER(t[rows])[:, None], _BLADE_OUTER(t[rows])[:, None] - out
        blade = 0.045 * step(inner, 0.03) * step(outer, 0.04)
        blade += 0.06 * bell(outer, 0.03)
        blade += 0.036 * bell(inner, 0.02)
        blade *= (step(t[rows] - 0.02, 0.05) * step(0.51 - t[rows], 0.04))[:, None]
        bone[rows, columns] += blade
        _upper_arm(view, side, bone)
        ball(film, 1.47 * side * half, 0.13 * high, 0.19 * half, 0.2 * half, bone, 0.16)
        ball(film, 1.28 * side * half, 0.13 * high, 0.05 * half, 0.14 * half, bone, 0.1)  # socket of the joint
        ball(film, 1.4 * side * half, start - rise - 2, 0.17 * half, 0.035 * high, bone, 0.1)  # acromion


def _upper_arm(view: FrontalView, side: int, bone: Field) -> None:
    film, half, t = view.film, view.anatomy.half_width, view.t
    columns = film.columns(*sorted((1.4 * side * half, 2.1 * side * half)))
    if columns.start == columns.stop:
        return
    middle = 1.53 + t * (0.1 + 0.33 * view.pose.arms)
    apart = np.abs(view.u[:, columns] * (side / half) - middle[:, None])
    shaft = step(0.085 - apart, 0.02)
    shaft *= 0.55 + 0.45 * np.clip(apart / 0.085, 0, 1) ** 2
    bone[:, columns] += shaft * (0.2 * step(t - 0.2, 0.1))[:, None]

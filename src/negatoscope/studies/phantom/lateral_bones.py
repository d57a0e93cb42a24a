"""Ribs, spine, sternum and shoulder blades as the lateral picture shows them."""

from __future__ import annotations

import numpy as np

from negatoscope.studies.phantom.film import Field, Outline, ball, bell, step
from negatoscope.studies.phantom.frontal_bones import VERTEBRA
from negatoscope.studies.phantom.view import LateralView

_SPINE_LINE = Outline((-0.4, 0.0, 0.2, 0.6, 1.1), (22, 12, 17, 21, 27))
_SPINE_WIDTH = Outline((-0.3, 0.1, 0.6, 1.1), (9, 12.5, 15, 18))
_SPINE_DENSITY = Outline((0.0, 0.9, 1.06, 1.2), (0.1, 0.1, 0.045, 0.04))
_STERNUM = Outline((0.1, 0.14, 0.26, 0.27, 0.28, 0.55, 0.62), (0.0, 1.0, 1.0, 0.5, 1.0, 1.0, 0.0))
_BLADE = Outline((-0.1, 0.1, 0.25, 0.42), (-0.35, -0.5, -0.62, -0.72))


def lateral_bones(view: LateralView) -> Field:
    """Attenuation to add, with what fractures have moved."""
    bone = _ribs(view)
    _spine(view, bone)
    _sternum(view, bone)
    _blades(view, bone)
    if view.bone_gap is not None:
        bone *= view.bone_gap
    return bone


def _ribs(view: LateralView) -> Field:
    """Right and left ribs fall from the spine to the front; those farther from the film look fainter."""
    film, (spacing, _, thick) = view.film, view.anatomy.ribs
    inwards = (view.y - (view.back - 5)[:, None]) * (1 / (view.front - view.back + 10))[:, None]  # 0 back, 1 front
    soft = max(0.05, 0.75 * film.mm / spacing)
    # Towards the front and the back wall the ray runs along the rib; the front ends are cartilage.
    ends = step(inwards, 0.05)
    ends *= step(0.84 - inwards, 0.2)
    ends /= np.sqrt(np.clip(1.08 - (2 * inwards - 1) ** 2, 0.1, 1))
    curve = inwards * (1.45 - 0.45 * inwards)
    bone = film.blank()
    for side, strength in ((-1, 0.024), (1, 0.03)):
        number = (film.z / spacing + 0.45 + 0.16 * side + 1.5 * view.turn * side)[:, None] - (3.1 + 0.08 * side) * curve
        if side in view.rib_offset:
            number += view.rib_offset[side] / spacing
        nearest = np.rint(number)
        number -= nearest
        apart = np.abs(number, out=number)
        band = (thick + 0.5 * soft - apart) * (1 / soft)
        np.clip(band, 0, 1, out=band)
        band *= 0.6 + (0.4 / thick**2) * apart * apart
        band *= (nearest > -0.5) & (nearest < 10.5)
        band *= strength
        bone += band
    bone *= ends
    return bone


def _spine(view: LateralView, bone: Field) -> None:
    film, anatomy, t, deep = view.film, view.anatomy, view.t, view.anatomy.half_depth
    line, wide = 0.93 * view.back + _SPINE_LINE(t), _SPINE_WIDTH(t)
    columns = film.columns(-0.4 * deep, 1.5 * deep)
    forward = view.y[:, columns] - line[:, None]
    pitch = VERTEBRA * anatomy.ribs[0]
    slope = np.gradient(line, film.mm).astype(np.float32)
    phase = (film.z / pitch + 0.2)[:, None] + forward * (slope / pitch)[:, None]
    apart = np.abs(phase - np.rint(phase))  # 0 at a disc, 0.5 in the middle of a vertebra
    density = (0.03 + 0.05 * anatomy.spine_wear) * bell(apart - 0.15, 0.04)
    density += _SPINE_DENSITY(t)[:, None]
    density -= 0.062 * step(0.12 - apart, 0.08)
    density *= step(wide[:, None] - np.abs(forward), 4)
    # Pedicles, facets and spinous processes stand behind the bodies.
    behind = bell(forward + (wide + 11)[:, None], 6)
    behind *= 0.05 + 0.04 * np.cos(6.2832 * phase)
    density += behind
    bone[:, columns] += density


def _sternum(view: LateralView, bone: Field) -> None:
    columns = view.film.columns(-1.3 * view.anatomy.half_depth, 0)
    apart = np.abs(view.y[:, columns] - (view.front + 7)[:, None])
    plate = step(4.5 - apart, 2)
    plate *= 0.55 + 0.45 * np.clip(apart * apart / 20, 0, 1)
    bone[:, columns] += plate * (0.07 * _STERNUM(view.t))[:, None]


def _blades(view: LateralView, bone: Field) -> None:
    """The edges of both shoulder blades and the heads of the raised arms, over the upper back."""
    film, t, deep, high = view.film, view.t, view.anatomy.half_depth, view.height
    rows, columns = film.rows(-0.1 * high, 0.45 * high), film.columns(-0.4 * deep, 1.4 * deep)
    for back in (0.0, 0.17):
        apart = view.y[rows, columns] - ((_BLADE(t[rows]) - back) * deep)[:, None]
        blade = 0.045 * bell(apart, 2.6)
        blade += 0.03 * step(apart, 3) * step(0.3 * deep - apart, 14)
        bone[rows, columns] += blade * step(0.4 - 0.5 * back - t[rows], 0.05)[:, None]
        ball(film, (0.02 - back) * deep, (0.15 * back - 0.01) * high, 24, 24, bone, 0.12)

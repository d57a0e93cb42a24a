"""The frontal picture of a healthy chest: soft tissue, lungs and mediastinum. Bones are in `frontal_bones.py`."""

from __future__ import annotations

import math

import numpy as np

from negatoscope.studies.phantom.anatomy import Anatomy, Pose
from negatoscope.studies.phantom.film import Field, Film, Outline, ball, bell, ramp, step
from negatoscope.studies.phantom.view import FrontalView

# Outlines read off radiographs: height down as a fraction of the lungs' height, reach as one of the half width.
_SIDE_WALL = Outline(
    (0.0, 0.015, 0.06, 0.12, 0.22, 0.35, 0.5, 0.7, 0.88, 1.02, 1.2),
    (0.34, 0.46, 0.6, 0.71, 0.82, 0.905, 0.96, 1.0, 1.0, 0.97, 0.93),
)
_MIDDLE_WALL = Outline((0.0, 0.02, 0.07, 0.14, 0.9), (0.32, 0.24, 0.17, 0.13, 0.12))
_LEFT_BORDER = Outline(
    (-0.2, 0.0, 0.12, 0.2, 0.3, 0.36, 0.43, 0.5, 0.58, 0.66, 0.74, 0.81, 0.88, 0.96, 1.06),
    (0.15, 0.13, 0.16, 0.19, 0.21, 0.215, 0.26, 0.325, 0.435, 0.525, 0.58, 0.6, 0.575, 0.48, 0.3),
)
_RIGHT_BORDER = Outline(
    (-0.2, 0.0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.7, 0.78, 0.88, 1.0),
    (0.15, 0.13, 0.16, 0.18, 0.195, 0.21, 0.27, 0.315, 0.315, 0.27, 0.2),
)
_TRUNK = Outline(
    (-0.6, -0.3, -0.2, -0.13, -0.09, -0.04, 0.03, 0.12, 0.22, 0.32, 0.42, 0.55, 0.75, 1.0, 1.3),
    (0.43, 0.42, 0.47, 0.68, 1.0, 1.4, 1.62, 1.66, 1.52, 1.3, 1.17, 1.12, 1.12, 1.14, 1.18),
)
_THICKNESS = Outline((-0.5, -0.2, -0.05, 0.1, 0.3, 0.6, 0.9, 1.3), (0.5, 0.55, 0.68, 0.8, 0.92, 0.97, 1.08, 1.14))
_ROUNDING = Outline((-0.2, 0.0, 0.3, 0.6), (0.35, 0.28, 0.42, 0.5))
_OPACITY = Outline((0.0, 0.2, 0.45, 0.65, 1.0), (0.62, 0.72, 0.78, 0.84, 0.88))
_GROWTH = Outline((0.36, 0.6), (0.0, 1.0))
_WINDPIPE = Outline((-0.2, 0.2, 0.3), (0.0, -2.0, -3.0))
# Reach against how far the diaphragm falls from the top of the dome.
_DOME = Outline(
    (0.0, 0.15, 0.32, 0.46, 0.6, 0.75, 0.87, 0.95, 1.0, 1.1),
    (0.05, 0.035, 0.008, 0.0, 0.012, 0.05, 0.105, 0.16, 0.2, 0.26),
)
_USUAL_ARCH = 0.115


def frontal_view(anatomy: Anatomy, pose: Pose, size: int, shift: float) -> FrontalView:
    """The picture up to where findings begin. `shift`: of the mediastinum to the patient's left, in millimetres."""
    half, high = anatomy.half_width, anatomy.height * pose.inspiration
    film = Film(size, pose.width, pose.centre[0] - pose.width / 2, pose.centre[1] + 0.55 * high - pose.width / 2)
    turn, tilt = math.sin(math.radians(pose.rotation)), math.tan(math.radians(pose.tilt))
    t = film.z / high
    u = film.u[None] - (tilt * (film.z - 0.5 * anatomy.height))[:, None]
    away = np.abs(u)
    outer, dome = _SIDE_WALL(t) * half, _dome_line(film, anatomy, high) + tilt * film.u
    lung = _lungs(film, t, away, outer, dome, half, high)
    # The side turned towards the film has less tissue before it.
    lung *= 1 + (0.5 * turn / half) * film.u[None]
    right, left = heart_borders(anatomy, t)
    # The heart lies in front of the axis that the patient turns about.
    shift += 0.25 * turn * anatomy.half_depth
    body = _soft_tissue(film, anatomy, pose, t, away, outer)
    view = FrontalView(
        film=film, anatomy=anatomy, pose=pose, turn=turn, tilt=tilt, t=t, body=body, lung=lung, air=lung,
        u=u, away=away, outer=outer, dome=dome, right=right - shift, left=left + shift,
    )  # fmt: skip
    view.air = lung * (1 - _mediastinum(view, shift))
    return view


def _lungs(film: Film, t: Field, away: Field, outer: Field, dome: Field, half: float, high: float) -> Field:
    lung = ramp(outer[:, None] - away, 0.62 * half)
    lung *= ramp(away - (_MIDDLE_WALL(t) * half)[:, None], 20)
    lung *= ramp(film.z, 0.3 * high)[:, None]
    # Behind the dome's outline a little lung reaches farther down, getting thinner.
    below = film.z[:, None] - dome[None]
    under = step(below, film.edge)
    under *= 0.85
    below *= 1 / 34
    under += 0.15 * np.clip(below, 0, 1, out=below)
    lung *= 1 - under
    return lung


def _dome_line(film: Film, anatomy: Anatomy, high: float) -> Field:
    """How far down the diaphragm's outline is, (W,); right and left dome run into each other at the spine."""
    r = film.u / anatomy.half_width
    right, left = anatomy.dome
    leftness = step(r, 0.2)
    return (right + (left - right) * leftness + _DOME(np.abs(r)) * (anatomy.arch / _USUAL_ARCH)) * high


def heart_borders(anatomy: Anatomy, t: Field) -> tuple[Field, Field]:
    """How far heart and great vessels reach to the right and left of the middle, in millimetres, (H,) each."""
    grow = 1 + (anatomy.heart - 1) * _GROWTH(t)
    left = _LEFT_BORDER(t) * grow * ((1 + anatomy.heart_turn) * anatomy.half_width)
    right = _RIGHT_BORDER(t) * (1 + 1.15 * (grow - 1)) * ((1 - anatomy.heart_turn) * anatomy.half_width)
    # A large heart bulges out, not only at its apex.
    left += bell(t - 0.62, 0.13) * (0.12 * max(anatomy.heart - 1, 0) * anatomy.half_width)
    return right, left


def _mediastinum(view: FrontalView, shift: float) -> Field:
    """How much of the air heart, great vessels and hila take: 0 none, 1 all. (H, W)"""
    anatomy, film, half, high, t = view.anatomy, view.film, view.anatomy.half_width, view.height, view.t
    fill = ramp(view.left[:, None] - view.u, 46)
    fill *= ramp(view.right[:, None] + view.u, 34)
    fill *= _OPACITY(t)[:, None]
    knob = film.blank()
    ball(film, 0.12 * half + 0.3 * anatomy.knob + shift, 0.235 * high, anatomy.knob, 1.1 * anatomy.knob, knob, 0.75)
    np.maximum(fill, knob, out=fill)
    # The descending aorta runs down beside the spine, seen through the heart.
    columns = film.columns(-40, 0.35 * half + anatomy.knob)
    u = view.u[:, columns]
    aorta = step(0.165 * half + 0.2 * anatomy.knob - u, 3)
    aorta *= (0.28 * step(t - 0.25, 0.06) * step(0.95 - t, 0.3))[:, None]
    aorta *= step(u + 2, 8)
    fill[:, columns] += aorta * (1 - fill[:, columns])
    for side, level in ((-1, 0.435), (1, 0.405)):  # the left hilum stands higher
        middle = 0.25 * side * half + shift
        rows, columns = film.rows((level - 0.16) * high, (level + 0.16) * high), film.columns(middle - 28, middle + 28)
        hilum = bell(film.z[rows] - level * high, 0.055 * high)[:, None] * bell(film.u[columns] - middle, 0.07 * half)
        fill[rows, columns] += 0.34 * hilum * (1 - fill[rows, columns])
    return fill


def _soft_tissue(film: Film, anatomy: Anatomy, pose: Pose, t: Field, away: Field, outer: Field) -> Field:
    half, high = anatomy.half_width, anatomy.height * pose.inspiration
    wide = _TRUNK(t) * half + 1.2 * (anatomy.wall - 12) * step(t - 0.42, 0.5)
    body = ramp(wide[:, None] - away, (_ROUNDING(t) * half)[:, None])
    body *= (_THICKNESS(t) * (1 + 0.006 * (anatomy.wall - 17)))[:, None]
    # Arms hang beside the trunk, nearer or farther.
    middle = half * (1.5 + t * (0.12 + 0.35 * pose.arms))
    arm = ramp(0.22 * half - np.abs(away - middle[:, None]), 0.22 * half)
    arm *= (0.62 * step(t - 0.05, 0.16))[:, None]
    np.maximum(body, arm, out=body)
    if anatomy.breasts:
        _breasts(film, anatomy, high, body)
    body += (0.1 * step(t - 0.82, 0.2))[:, None] * step(outer[:, None] - away, 30)
    return body


def _breasts(film: Film, anatomy: Anatomy, high: float, body: Field) -> None:
    """Thicker downwards to a sharp lower border, fading out above."""
    wide = 0.46 * anatomy.half_width * (0.72 + 0.28 * anatomy.breasts)
    middle, tall = (0.67 + 0.05 * anatomy.breasts) * high, 0.85 * wide
    shade = film.blank()
    for side in (-1, 1):
        ball(film, 0.56 * side * anatomy.half_width, middle, wide, tall, shade, 0.15 * anatomy.breasts)
    rows = film.rows(middle - tall, middle + tall)
    body[rows] += shade[rows] * step(film.z[rows] - middle + 0.35 * tall, 1.4 * tall)[:, None]


def frontal_gas(view: FrontalView) -> Field:
    """Windpipe, main bronchi, gas in stomach and bowel: air outside the lungs."""
    film, anatomy, pose, half, high = view.film, view.anatomy, view.pose, view.anatomy.half_width, view.height
    columns = film.columns(-60, 60)
    x = view.u[:, columns] - (0.1 * view.turn * anatomy.half_depth + _WINDPIPE(view.t))[:, None]
    pipe = ramp(8.5 - np.abs(x), 8.5) * step(0.33 - view.t, 0.06)[:, None]
    rows = film.rows(0.28 * high, 0.32 * high + 46)
    along = film.z[rows] - 0.32 * high
    for slope in (-0.62, 1.15):  # the right main bronchus is the steeper one
        bronchus = ramp(7.5 - np.abs(x[rows] - (slope * along)[:, None]), 7.5)
        pipe[rows] += bronchus * (0.7 * step(along, 8) * step(34 - along, 16))[:, None]
    gas = film.blank()
    gas[:, columns] = 0.115 * pipe
    across, wide, tall = anatomy.bubble
    top = anatomy.dome[1] * high + 11 + tall
    ball(film, across * half, top, wide, tall, gas, 0.26)
    if pose.projection == "PA":  # upright, gas stands above a level of fluid
        below = film.rows(top + 0.35 * tall, top + tall)
        gas[below, film.columns(across * half - wide, across * half + wide)] = 0
    for k in range(3):
        right, down, wide, tall = pose.places[k : k + 10 : 3]
        ball(film, (2 * right - 1) * 0.8 * half, (1.08 + 0.2 * down) * high, 9 + 16 * wide, 6 + 9 * tall, gas, 0.12)
    return gas

"""The lateral picture of a healthy chest: the patient faces the left of the film, both lungs lie over each other."""

from __future__ import annotations

import math

import numpy as np

from negatoscope.studies.phantom.anatomy import Anatomy, Pose
from negatoscope.studies.phantom.film import Field, Film, Outline, ball, bell, ramp, step
from negatoscope.studies.phantom.view import LateralView

# Outlines read off radiographs: height down as a fraction of the lungs' height, reach as one of the half depth.
_FRONT_WALL = Outline(
    (0.0, 0.04, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95, 1.2),
    (0.12, 0.34, 0.5, 0.68, 0.86, 0.96, 1.0, 0.99, 0.93, 0.85),
)
_BACK_WALL = Outline(
    (0.0, 0.04, 0.12, 0.25, 0.4, 0.55, 0.75, 0.9, 1.05, 1.2),
    (-0.32, -0.56, -0.78, -0.96, -1.04, -1.06, -1.0, -0.9, -0.78, -0.7),
)
_HEART_FRONT = Outline((0.1, 0.25, 0.36, 0.45, 0.55, 0.65, 0.9), (0.3, 0.3, 0.45, 0.66, 0.86, 1.0, 1.05))
_HEART_BACK = Outline(
    (0.1, 0.3, 0.4, 0.52, 0.65, 0.76, 0.86, 1.0), (-0.2, -0.08, -0.1, -0.18, -0.22, -0.18, -0.08, 0.05)
)
_HEART_OPACITY = Outline((0.05, 0.3, 0.42, 0.6, 0.8, 1.0), (0.2, 0.22, 0.3, 0.46, 0.54, 0.56))
_AORTA = Outline((0.2, 0.35, 0.7, 1.0), (-0.5, -0.62, -0.66, -0.6))
_BREAST = Outline((0.2, 0.4, 0.52, 0.64, 0.74, 0.84, 0.94), (0.0, 0.35, 0.8, 1.0, 0.92, 0.4, 0.0))
_SKIN_FRONT = Outline((-0.6, -0.25, -0.12, 0.0, 0.15), (0.5, 0.42, 0.4, 0.6, 0.85))
_SKIN_BACK = Outline(
    (-0.6, -0.3, -0.15, 0.0, 0.15, 0.35, 0.6, 0.9, 1.2),
    (-0.5, -0.55, -0.85, -1.12, -1.3, -1.4, -1.36, -1.2, -1.1),
)
_THICKNESS = Outline((-0.5, -0.12, 0.0, 0.12, 0.25, 0.7, 0.95, 1.2), (0.75, 0.85, 1.12, 1.12, 1.0, 1.0, 1.06, 1.08))
_WINDPIPE = Outline((-0.3, 0.0, 0.35, 0.45), (0.12, 0.05, -0.12, -0.16))
# Reach, back to front, against how far a dome falls from its top.
_DOME = Outline(
    (-1.1, -0.95, -0.75, -0.5, -0.2, 0.1, 0.4, 0.7, 0.9, 1.1),
    (0.27, 0.225, 0.155, 0.085, 0.022, 0.0, 0.008, 0.05, 0.1, 0.16),
)
_USUAL_ARCH = 0.115


def lateral_view(anatomy: Anatomy, pose: Pose, size: int) -> LateralView:
    """The picture up to where findings begin."""
    deep, high = anatomy.half_depth, anatomy.height * pose.inspiration
    film = Film(size, pose.width, pose.centre[0] - pose.width / 2, pose.centre[1] + 0.47 * high - pose.width / 2)
    turn, tilt = math.sin(math.radians(pose.rotation)), math.tan(math.radians(pose.tilt))
    t = film.z / high
    y = (tilt * (film.z - 0.5 * anatomy.height))[:, None] - film.u[None]
    front, back = _FRONT_WALL(t) * deep, _BACK_WALL(t) * deep
    domes = _dome_lines(film, anatomy, high, tilt)
    lung = step(domes[0][None] - film.z[:, None], film.edge)
    lung += step(domes[1][None] - film.z[:, None], film.edge)
    lung *= 0.5
    lung *= ramp(front[:, None] - y, 26)
    lung *= ramp(y - back[:, None], 30)
    lung *= ramp(film.z, 0.22 * high)[:, None]
    heart_front, heart_back = heart_profile(anatomy, t)
    body = _soft_tissue(film, anatomy, pose, t, y, front)
    view = LateralView(
        film=film, anatomy=anatomy, pose=pose, turn=turn, tilt=tilt, t=t, body=body, lung=lung, air=lung,
        y=y, front=front, back=back, domes=domes, heart_front=heart_front, heart_back=heart_back,
    )  # fmt: skip
    view.air = lung * (1 - _mediastinum(view))
    return view


def _dome_lines(film: Film, anatomy: Anatomy, high: float, tilt: float) -> tuple[Field, Field]:
    flat = anatomy.arch / _USUAL_ARCH
    reach = -film.u / anatomy.half_depth
    fall = _DOME(reach) * flat
    # Flat domes too end in a deep angle at the back.
    fall += (1 - flat) * 0.2 * np.clip((-0.3 - reach) * 1.2, 0, 1)
    right, left = ((fall + top) * high + tilt * film.u for top in anatomy.dome)
    return right, left


def heart_profile(anatomy: Anatomy, t: Field) -> tuple[Field, Field]:
    """Front and back of heart and great vessels in millimetres, (H,) each."""
    grow = anatomy.heart - 1
    # An enlarged heart reaches back to the spine and fills the clear space behind the sternum.
    front = _HEART_FRONT(t) + 0.55 * max(grow, 0) * bell(t - 0.45, 0.1)
    back = _HEART_BACK(t) - 0.75 * grow * step(t - 0.5, 0.3)
    return front * anatomy.half_depth, back * anatomy.half_depth


def _mediastinum(view: LateralView) -> Field:
    """How much of the air heart, aorta and hila take: 0 none, 1 all. Lung lies on both sides of it, so never all."""
    film, anatomy, t, y = view.film, view.anatomy, view.t, view.y
    fill = ramp(view.heart_front[:, None] - y, 34)
    fill *= ramp(y - view.heart_back[:, None], 44)
    fill *= _HEART_OPACITY(t)[:, None]
    vessels = film.blank()
    u, z = view.point((0.1, -0.22, 0.27))
    ball(film, u, z, 1.9 * anatomy.knob, 1.5 * anatomy.knob, vessels, 0.2)
    columns = film.columns(0.2 * anatomy.half_depth, anatomy.half_depth)
    aorta = bell(y[:, columns] - (_AORTA(t) * anatomy.half_depth)[:, None], 11)
    vessels[:, columns] += aorta * (0.12 * step(t - 0.28, 0.1))[:, None]
    for place, size in (((-0.3, 0.0, 0.43), 15.0), ((0.25, -0.16, 0.4), 17.0)):
        u, z = view.point(place)
        rows, columns = film.rows(z - 3 * size, z + 3 * size), film.columns(u - 3 * size, u + 3 * size)
        vessels[rows, columns] += 0.3 * bell(film.z[rows] - z, size)[:, None] * bell(film.u[columns] - u, 0.8 * size)
    fill += vessels * (1 - fill)
    return np.clip(fill, 0, 0.96, out=fill)


def _soft_tissue(film: Film, anatomy: Anatomy, pose: Pose, t: Field, y: Field, front: Field) -> Field:
    deep = anatomy.half_depth
    chest = front + 0.8 * anatomy.wall + 6 + 21 * anatomy.breasts * _BREAST(t)
    above = step(0.12 - t, 0.16)
    skin = _SKIN_FRONT(t) * deep * above + chest * (1 - above)
    back = _SKIN_BACK(t) * deep - 0.9 * anatomy.wall + 8
    body = ramp(skin[:, None] - y, 0.55 * deep)
    body *= ramp(y - back[:, None], 0.5 * deep)
    body *= _THICKNESS(t)[:, None]
    # Arms are held up and forward, over the neck and out of the picture.
    reach = 0.5 + 0.9 * pose.arms
    up = np.maximum(0.1 - t, 0)
    middle = (up * (1 + 2.2 * up) * 2.2 * reach - 0.12) * deep
    wide = (0.3 + 0.55 * reach * up) * deep
    rows = film.rows(film.z0, 0.2 * anatomy.height)
    arm = ramp(wide[rows, None] - np.abs(y[rows] - middle[rows, None]), 0.42 * deep)
    body[rows] += arm * (0.42 * step(0.06 - t[rows], 0.24))[:, None]
    return body


def lateral_gas(view: LateralView) -> Field:
    """Windpipe and the stomach's bubble."""
    film, anatomy, deep = view.film, view.anatomy, view.anatomy.half_depth
    columns = film.columns(-0.6 * deep, 0.6 * deep)
    pipe = ramp(8 - np.abs(view.y[:, columns] - (_WINDPIPE(view.t) * deep)[:, None]), 8)
    gas = film.blank()
    _, wide, tall = anatomy.bubble
    top = anatomy.dome[1] * view.height + 13 + tall
    ball(film, -0.12 * deep, top, wide, tall, gas, 0.22)
    gas[film.rows(top + 0.35 * tall, top + tall)] = 0
    gas[:, columns] += pipe * (0.1 * step(0.42 - view.t, 0.05))[:, None]
    return gas

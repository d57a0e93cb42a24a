"""The lateral picture of a healthy chest: the patient faces the left of the film, both lungs lie over each other."""

from __future__ import annotations

import numpy as np

from negatoscope.studies.phantom.anatomy import Anatomy, Pose
from negatoscope.studies.phantom.film import F, Field, Film, ball, bell, ramp, step, through
from negatoscope.studies.phantom.projection import View

# Fractions of the lungs' height (down) and of the chest's half depth (front positive).
_FRONT_WALL = [(0.0, 0.12), (0.04, 0.34), (0.1, 0.5), (0.2, 0.68), (0.35, 0.86), (0.5, 0.96), (0.65, 1.0), (0.8, 0.99), (0.95, 0.93), (1.2, 0.85)]  # fmt: skip
_BACK_WALL = [(0.0, -0.32), (0.04, -0.56), (0.12, -0.78), (0.25, -0.96), (0.4, -1.04), (0.55, -1.06), (0.75, -1.0), (0.9, -0.9), (1.05, -0.78), (1.2, -0.7)]  # fmt: skip
_DOME = [(-1.1, 0.27), (-0.95, 0.225), (-0.75, 0.155), (-0.5, 0.085), (-0.2, 0.022), (0.1, 0.0), (0.4, 0.008), (0.7, 0.05), (0.9, 0.1), (1.1, 0.16)]  # fmt: skip
_HEART_FRONT = [(0.1, 0.3), (0.25, 0.3), (0.36, 0.45), (0.45, 0.66), (0.55, 0.86), (0.65, 1.0), (0.9, 1.05)]
_HEART_BACK = [(0.1, -0.2), (0.3, -0.12), (0.4, -0.17), (0.52, -0.27), (0.65, -0.33), (0.76, -0.3), (0.86, -0.2), (1.0, -0.05)]  # fmt: skip
_SKIN_FRONT = [(-0.6, 0.5), (-0.25, 0.42), (-0.12, 0.4), (0.0, 0.6), (0.15, 0.85)]
_SKIN_BACK = [(-0.6, -0.5), (-0.3, -0.55), (-0.15, -0.85), (0.0, -1.12), (0.15, -1.3), (0.35, -1.4), (0.6, -1.36), (0.9, -1.2), (1.2, -1.1)]  # fmt: skip


def lateral_view(anatomy: Anatomy, pose: Pose, size: int) -> View:
    """Soft tissue, lungs and heart. Fields are (H, W); `y` grows towards the left of the film."""
    deep, high = anatomy.half_depth, anatomy.height * pose.inspiration
    film = Film(size, pose.width, pose.centre[0] - pose.width / 2, pose.centre[1] + 0.47 * high - pose.width / 2)
    turn, tilt = float(np.sin(np.radians(pose.rotation))), float(np.tan(np.radians(pose.tilt)))
    t = film.z / F(high)
    lean = (film.z - F(0.5 * anatomy.height)) * F(tilt)
    y = lean[:, None] - film.u[None]
    front, back = through(_FRONT_WALL, t) * F(deep), through(_BACK_WALL, t) * F(deep)

    along = -film.u * F(1 / deep)
    shape = through(_DOME, along) * F(anatomy.arch / 0.115)
    # Posterior angles keep their depth when the domes flatten.
    shape += (1 - F(anatomy.arch / 0.115)) * F(0.2) * np.clip((F(-0.3) - along) * F(1.2), 0, 1)
    domes = [(shape + F(rise)) * F(high) + film.u * F(tilt) for rise in anatomy.dome]
    within = ramp(front[:, None] - y, 26)
    within *= ramp(y - back[:, None], 30)
    within *= ramp(film.z, 0.22 * high)[:, None]
    air = film.blank()
    for dome in domes:
        air += step(dome[None] - film.z[:, None], film.edge)
    air *= F(0.5)
    air *= within

    view = View("lateral", film, anatomy, pose, body=_soft_tissue(film, anatomy, pose, t, y, front), air=air, lung=air, fall=(turn, tilt))  # fmt: skip
    view.borders = {"front": front, "back": back, "right dome": domes[0], "left dome": domes[1], "within": within, "t": t, "y": y, "lean": lean}  # fmt: skip
    view.air = air * (1 - _heart(view))
    return view


def heart_profile(anatomy: Anatomy, t: Field) -> tuple[Field, Field]:
    """Front and back of heart and great vessels in millimetres, (H,) each."""
    grow = F(anatomy.heart)
    front = through(_HEART_FRONT, t) * F(anatomy.half_depth)
    back = through(_HEART_BACK, t)
    back -= (grow - 1) * F(0.75) * step(t - F(0.5), 0.3)
    # An enlarged heart also fills the clear space behind the sternum.
    front += np.clip(grow - 1, 0, 1) * F(0.55 * anatomy.half_depth) * bell(t - F(0.45), 0.1)
    return front, back * F(anatomy.half_depth)


def _heart(view: View) -> Field:
    anatomy, t, y = view.anatomy, view.borders["t"], view.borders["y"]
    front, back = heart_profile(anatomy, t)
    view.borders["heart front"], view.borders["heart back"] = front, back
    fill = ramp(front[:, None] - y, 22)
    fill *= ramp(y - back[:, None], 26)
    strength = through([(0.05, 0.25), (0.3, 0.24), (0.42, 0.36), (0.6, 0.54), (0.8, 0.6), (1.0, 0.6)], t)
    fill *= strength[:, None]
    # Arch and descending aorta, then the hila, in the middle of the chest.
    arch = view.film.blank()
    u, z = view.point((0.1, -0.22, 0.27))
    ball(view.film, u, z, 1.9 * anatomy.knob, 1.5 * anatomy.knob, arch, 0.2)
    line = through([(0.2, -0.5), (0.35, -0.62), (0.7, -0.66), (1.0, -0.6)], t) * F(anatomy.half_depth)
    aorta = bell(y - line[:, None], 11)
    aorta *= (F(0.12) * step(t - F(0.28), 0.1))[:, None]
    arch += aorta
    for x, yy, z0, size, amount in ((-0.3, 0.0, 0.43, 15, 0.3), (0.25, -0.16, 0.4, 17, 0.3)):
        u, z = view.point((x, yy, z0))
        rows, columns = view.film.rows(z - 3 * size, z + 3 * size), view.film.columns(u - 3 * size, u + 3 * size)
        hilum = bell(view.film.z[rows] - F(z), size)[:, None] * bell(view.film.u[columns] - F(u), size * 0.8)[None]
        arch[rows, columns] += hilum * F(amount)
    fill += arch * (1 - fill)
    return np.minimum(fill, F(0.96), out=fill)


def _soft_tissue(film: Film, anatomy: Anatomy, pose: Pose, t: Field, y: Field, front: Field) -> Field:
    deep, high = anatomy.half_depth, anatomy.height * pose.inspiration
    chest = front + F(0.8 * anatomy.wall + 6)
    high_up = step(F(0.12) - t, 0.16)
    skin = through(_SKIN_FRONT, t) * F(deep) * high_up + chest * (1 - high_up)
    back = through(_SKIN_BACK, t) * F(deep) - F(0.9 * anatomy.wall - 8)
    body = ramp(skin[:, None] - y, 0.55 * deep)
    body *= ramp(y - back[:, None], 0.5 * deep)
    body *= through([(-0.5, 0.75), (-0.12, 0.85), (0.0, 1.12), (0.12, 1.12), (0.25, 1.0), (0.7, 1.0), (0.95, 1.06), (1.2, 1.08)], t)[:, None]  # fmt: skip
    if anatomy.breasts:
        ball(film, -(1.0 * deep + 8), 0.68 * high, 34 * anatomy.breasts + 6, 42 * anatomy.breasts, body, 0.2)
    # Arms are held up and forward: over the neck and out of the picture.
    slope = 0.75 + 0.9 * pose.arms
    line = (film.z - F(0.06 * high)) * F(-slope) - F(0.12 * deep)
    arm = ramp(F(0.36 * deep) - np.abs(y - line[:, None]), 0.36 * deep)
    arm *= (F(0.5) * step(F(0.13) - t, 0.16))[:, None]
    body += arm
    return body


def lateral_bones(view: View) -> Field:
    film = view.film
    bone = _ribs(view)
    _spine(view, bone)
    _sternum(view, bone)
    _blades(view, bone)
    return bone


def _ribs(view: View) -> Field:
    """Right and left ribs fall from the spine to the front; those farther from the film are drawn larger and fainter."""
    film, anatomy, high = view.film, view.anatomy, view.height
    spacing, _, thick = anatomy.ribs
    y, front, back = view.borders["y"], view.borders["front"], view.borders["back"]
    reach = 1 / (front - back + 10)
    r = (front[:, None] + F(5) - y) * reach[:, None]  # 0 in front, 1 at the back
    soft = max(0.05, 0.75 * film.mm / spacing)
    ends = step(F(1.0) - r, 0.05)
    ends *= np.clip((r - F(0.06)) * F(5), 0, 1)
    around = np.clip(F(1.08) - (2 * r - 1) ** 2, 0.1, 1)
    np.sqrt(around, out=around)
    ends /= around
    sets = []
    for side, strength in ((-1, 0.024), (1, 0.03)):
        fall = 3.1 + 0.08 * side
        number = (film.z * F(1 / spacing))[:, None] + F(0.45 + 0.16 * side + 1.5 * view.fall[0] * side)
        nudge = view.borders.get(f"rib_offset_{side}")
        if nudge is not None:
            number = number + nudge * F(1 / spacing)
        down = number - F(fall) * (1 - r) * (F(1.45) - F(0.45) * (1 - r))
        nearest = np.rint(down)
        apart = np.abs(down - nearest)
        band = np.clip((F(thick) - apart) * F(1 / soft) + F(0.5), 0, 1)
        band *= F(0.6) + F(0.4 / thick**2) * apart * apart
        band *= (nearest > -0.5) & (nearest < 10.5)
        band *= ends
        sets.append(band * F(strength))
    return sets[0] + sets[1]


def _spine(view: View, bone: Field) -> None:
    film, anatomy = view.film, view.anatomy
    t, y, back = view.borders["t"], view.borders["y"], view.borders["back"]
    line = back * F(0.93) + through([(-0.4, 22), (0.0, 12), (0.2, 17), (0.6, 21), (1.1, 27)], t)
    line += F(0.25 * anatomy.half_depth) * step(F(0.02) - t, 0.3) * 0
    columns = film.columns(0.2 * anatomy.half_depth, 1.5 * anatomy.half_depth)
    apart_y = y[:, columns] - line[:, None]
    beside = np.abs(apart_y)
    wide = through([(-0.3, 9), (0.1, 12.5), (0.6, 15), (1.1, 18)], t)
    body = step(wide[:, None] - beside, 3)
    pitch = anatomy.ribs[0] * 0.98
    slope = np.gradient(line, film.mm).astype(np.float32)
    phase = film.z[:, None] * F(1 / pitch) + F(0.2) + apart_y * (slope / F(pitch))[:, None]
    apart = np.abs(phase - np.rint(phase))
    plate = bell(apart - F(0.15), 0.04)
    disc = step(F(0.12) - apart, 0.08)
    plate *= F(0.03 + 0.05 * anatomy.spine_wear)
    plate += F(0.13)
    plate -= F(0.075) * disc
    body *= plate
    # Pedicles, facets and spinous processes behind the bodies.
    behind = bell(apart_y + (wide + 11)[:, None], 6)
    behind *= F(0.05) + F(0.04) * np.cos(phase * F(6.2832))
    body += behind
    bone[:, columns] += body


def _sternum(view: View, bone: Field) -> None:
    film, front, t, y = view.film, view.borders["front"], view.borders["t"], view.borders["y"]
    columns = film.columns(-1.3 * view.anatomy.half_depth, 0)
    apart = y[:, columns] - (front + 7)[:, None]
    plate = step(F(4.5) - np.abs(apart), 2)
    plate *= F(0.55) + F(0.45 / 20) * np.minimum(apart * apart, 20)
    joints = through([(0.1, 0), (0.14, 1), (0.26, 1), (0.27, 0.5), (0.28, 1), (0.55, 1), (0.62, 0)], t)
    plate *= (joints * F(0.07))[:, None]
    bone[:, columns] += plate


def _blades(view: View, bone: Field) -> None:
    """The edges of both shoulder blades, and the heads of the raised arms, over the upper back."""
    film, anatomy, t, y = view.film, view.anatomy, view.borders["t"], view.borders["y"]
    deep = anatomy.half_depth
    columns = film.columns(-0.4 * deep, 1.4 * deep)
    rows = film.rows(-0.1 * view.height, 0.45 * view.height)
    for shift in (0.0, 0.17):
        line = through([(-0.1, -0.35), (0.1, -0.5), (0.25, -0.62), (0.42, -0.72)], t[rows]) * F(deep) - F(shift * deep)
        apart = y[rows, columns] - line[:, None]
        edge = bell(apart, 2.6)
        edge *= F(0.045)
        edge += F(0.03) * step(apart, 3) * step(F(0.3 * deep) - apart, 14)
        edge *= step(F(0.4 - 0.5 * shift) - t[rows], 0.05)[:, None]
        bone[rows, columns] += edge
        ball(film, (0.02 - shift) * deep, (-0.01 + 0.15 * shift) * view.height, 24, 24, bone, 0.12)


def lateral_gas(view: View) -> Field:
    film, anatomy, high = view.film, view.anatomy, view.height
    t, y = view.borders["t"], view.borders["y"]
    columns = film.columns(-0.6 * anatomy.half_depth, 0.6 * anatomy.half_depth)
    line = through([(-0.3, 0.12), (0.0, 0.05), (0.35, -0.12), (0.45, -0.16)], t) * F(anatomy.half_depth)
    pipe = ramp(F(8) - np.abs(y[:, columns] - line[:, None]), 8)
    pipe *= (F(0.1) * step(F(0.42) - t, 0.05))[:, None]
    gas = film.blank()
    gas[:, columns] = pipe
    _, wide, tall = anatomy.bubble
    top = anatomy.dome[1] * high + 13 + tall
    stomach = film.blank()
    ball(film, -0.12 * anatomy.half_depth, top, wide, tall, stomach, 0.22)
    stomach *= step(F(top + 0.35 * tall) - film.z, film.edge)[:, None]
    gas += stomach
    return gas

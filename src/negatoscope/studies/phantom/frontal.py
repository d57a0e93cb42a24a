"""The frontal picture of a healthy chest: soft tissue, lungs, heart and bones, each a few profiles."""

from __future__ import annotations

import numpy as np

from negatoscope.studies.phantom.anatomy import Anatomy, Pose
from negatoscope.studies.phantom.film import F, Field, Film, ball, bell, ramp, step, through
from negatoscope.studies.phantom.projection import View

# Outlines as fractions of the lungs' height (down) and of the rib cage's half width (across), read off radiographs.
_SIDE_WALL = [(0.0, 0.34), (0.015, 0.46), (0.06, 0.6), (0.12, 0.71), (0.22, 0.82), (0.35, 0.905), (0.5, 0.96), (0.7, 1.0), (0.88, 1.0), (1.02, 0.97), (1.2, 0.93)]  # fmt: skip
_MIDDLE_WALL = [(0.0, 0.32), (0.02, 0.24), (0.07, 0.17), (0.14, 0.13), (0.9, 0.12)]
_LEFT_BORDER = [(-0.2, 0.15), (0.0, 0.13), (0.12, 0.16), (0.2, 0.19), (0.3, 0.21), (0.36, 0.215), (0.43, 0.27), (0.5, 0.32), (0.6, 0.42), (0.7, 0.52), (0.79, 0.585), (0.85, 0.59), (0.93, 0.53), (1.05, 0.4)]  # fmt: skip
_RIGHT_BORDER = [(-0.2, 0.15), (0.0, 0.13), (0.1, 0.16), (0.25, 0.18), (0.4, 0.195), (0.5, 0.21), (0.6, 0.27), (0.7, 0.315), (0.78, 0.315), (0.88, 0.27), (1.0, 0.2)]  # fmt: skip
_DOME = [(0.0, 0.05), (0.15, 0.035), (0.32, 0.008), (0.46, 0.0), (0.6, 0.012), (0.75, 0.05), (0.87, 0.105), (0.95, 0.16), (1.0, 0.2), (1.1, 0.26)]  # fmt: skip
_TRUNK = [(-0.6, 0.43), (-0.3, 0.42), (-0.2, 0.47), (-0.13, 0.68), (-0.09, 1.0), (-0.04, 1.4), (0.03, 1.62), (0.12, 1.66), (0.22, 1.5), (0.31, 1.2), (0.4, 1.03), (0.6, 1.03), (0.9, 1.05), (1.3, 1.1)]  # fmt: skip
_THICKNESS = [(-0.5, 0.5), (-0.2, 0.55), (-0.05, 0.68), (0.1, 0.8), (0.3, 0.92), (0.6, 0.97), (0.9, 1.08), (1.3, 1.14)]


def frontal_view(anatomy: Anatomy, pose: Pose, size: int, shift: float = 0.0) -> View:
    """Soft tissue, lungs and heart; bones and vessels come after the findings. `shift`: of the mediastinum, millimetres."""
    half, high = anatomy.half_width, anatomy.height * pose.inspiration
    film = Film(size, pose.width, pose.centre[0] - pose.width / 2, pose.centre[1] + 0.46 * high - pose.width / 2)
    turn, tilt = float(np.sin(np.radians(pose.rotation))), float(np.tan(np.radians(pose.tilt)))
    t = film.z / F(high)
    lean = (film.z - F(0.5 * anatomy.height)) * F(tilt)  # (H,): how far tilt moves each row
    u = film.u[None] - lean[:, None]  # (H, W)
    away = np.abs(u)

    outer = through(_SIDE_WALL, t) * F(half)
    inner = through(_MIDDLE_WALL, t) * F(half)
    dome = _dome_line(film, anatomy, high) + film.u * F(tilt)
    lung = ramp(outer[:, None] - away, 0.62 * half)
    lung *= ramp(away - inner[:, None], 20)
    lung *= (ramp(film.z, 0.3 * high) * F(1 + 0.1 * 0))[:, None]
    below = film.z[:, None] - dome[None]
    under = step(below, film.edge)
    under *= F(0.85)
    under += F(0.15) * np.clip(below * F(1 / 34), 0, 1)
    lung *= 1 - under
    # The turned side lies nearer the film: its lung looks a little brighter.
    lung *= 1 + F(0.5 * turn / half) * film.u[None]

    view = View("frontal", film, anatomy, pose, body=_soft_tissue(film, anatomy, pose, t, u, away, outer), air=lung, lung=lung, fall=(turn, tilt))  # fmt: skip
    view.borders = {"outer": outer, "inner": inner, "dome": dome, "lean": lean, "t": t, "u": u, "away": away}
    view.air = lung * (1 - _mediastinum(view, shift + turn * 0.25 * anatomy.half_depth))
    return view


def _dome_line(film: Film, anatomy: Anatomy, high: float) -> Field:
    """Height of the diaphragm's outline above each column, (W,)."""
    r = film.u * F(1 / anatomy.half_width)
    bulge = through(_DOME, np.abs(r)) * F(anatomy.arch / 0.115)
    rise = np.where(r < 0, F(anatomy.dome[0]), F(anatomy.dome[1]))
    rise += F(anatomy.dome[0] - anatomy.dome[1]) * np.clip(F(0.5) - np.abs(r) * F(5), 0, F(0.5)) * np.sign(r)
    return (rise + bulge).astype(np.float32) * F(high)


def heart_borders(anatomy: Anatomy, t: Field) -> tuple[Field, Field]:
    """How far heart and great vessels reach to the right and left of the middle, in millimetres, (H,) each."""
    grow = through([(0.36, 1.0), (0.6, anatomy.heart), (1.0, anatomy.heart)], t)
    big = np.clip(anatomy.heart - 1, 0, 1)
    left = through(_LEFT_BORDER, t) * grow * F((1 + anatomy.heart_turn) * anatomy.half_width)
    right = through(_RIGHT_BORDER, t) * (1 + (grow - 1) * F(1.15)) * F((1 - anatomy.heart_turn) * anatomy.half_width)
    # A large heart rounds its left side out, not only its apex.
    left += bell(t - F(0.62), 0.13) * F(0.12 * big * anatomy.half_width)
    return right, left


def _mediastinum(view: View, shift: float) -> Field:
    """How much of the air heart, great vessels and spine take: 0 none, 1 all. (H, W)"""
    anatomy, film, high = view.anatomy, view.film, view.height
    t, u = view.borders["t"], view.borders["u"]
    right, left = heart_borders(anatomy, t)
    centre = u - F(shift)
    fill = ramp(left[:, None] - centre, 34)
    fill *= ramp(right[:, None] + centre, 28)
    fill *= through([(0.0, 0.75), (0.4, 0.8), (0.6, 0.86), (1.0, 0.86)], t)[:, None]
    knob = film.blank()
    ball(film, 0.12 * anatomy.half_width + 0.3 * anatomy.knob + shift, 0.235 * high, anatomy.knob, anatomy.knob * 1.1, knob, 0.75)  # fmt: skip
    np.maximum(fill, knob, out=fill)
    # The descending aorta runs down beside the spine, seen through the heart.
    aorta = step(F(0.165 * anatomy.half_width + 0.2 * anatomy.knob) - u, 3.0)
    aorta *= (F(0.28) * step(t - F(0.25), 0.06) * step(F(0.95) - t, 0.3))[:, None]
    aorta *= step(u + F(2), 8)
    fill += aorta * (1 - fill)
    view.borders["right"], view.borders["left"] = right - F(shift), left + F(shift)
    for side, drop in ((-1, 0.435), (1, 0.405)):  # hila: the left one stands higher
        hilum = film.blank()
        ball(film, side * 0.27 * anatomy.half_width + shift, drop * high, 0.13 * anatomy.half_width, 0.085 * high, hilum, 0.3)  # fmt: skip
        fill += hilum * (1 - fill)
    return fill


def _soft_tissue(film: Film, anatomy: Anatomy, pose: Pose, t: Field, u: Field, away: Field, outer: Field) -> Field:
    half, high = anatomy.half_width, anatomy.height * pose.inspiration
    beside = through(_TRUNK, t) * F(half)
    wide = np.maximum(beside, (outer + F(1.25 * anatomy.wall)) * step(t - F(0.3), 0.2))
    rounding = through([(-0.2, 0.35), (0.0, 0.28), (0.3, 0.42), (0.6, 0.5)], t) * F(half)
    body = ramp(wide[:, None] - away, rounding[:, None])
    body *= (through(_THICKNESS, t) * F(1 + 0.006 * (anatomy.wall - 17)))[:, None]
    # Arms hang beside the trunk, nearer or farther.
    line = F(half) * (F(1.5) + t * F(0.12 + 0.35 * pose.arms))
    arm = ramp(F(0.22 * half) - np.abs(away - line[:, None]), 0.22 * half)
    arm *= (F(0.62) * step(t - F(0.05), 0.16))[:, None]
    np.maximum(body, arm, out=body)
    if anatomy.breasts:
        for side in (-1, 1):
            size = 0.42 * half * (0.75 + 0.25 * anatomy.breasts)
            ball(film, side * 0.52 * half, 0.66 * high, size, size * 0.85, body, 0.13 * anatomy.breasts)
    body += (F(0.1) * step(t - F(0.82), 0.2))[:, None] * step(outer[:, None] - away, 30)
    return body


def frontal_bones(view: View) -> Field:
    """Ribs, clavicles, shoulder blades, spine: attenuation to add. Uses `rib_offset` and `clavicle_offset` of fractures."""
    film, anatomy, pose = view.film, view.anatomy, view.pose
    bone = _ribs(view)
    bone += _spine(view)
    _clavicles(view, bone)
    _shoulders(view, bone)
    return bone


def rib_height(anatomy: Anatomy, number: float, r: Field | float, high: float) -> Field | float:
    """How far down the back part of rib `number` runs at `r`, the share of the way out to the side wall."""
    spacing, fall, _ = anatomy.ribs
    return (number * spacing - 0.02 * high) + spacing * fall * (r * r * 1.25 - 0.25 * r)


def _ribs(view: View) -> Field:
    """Each set of ribs is one family of curves: the height within the family, in rib numbers, looks a profile up."""
    film, anatomy, high = view.film, view.anatomy, view.height
    spacing, fall, thick = anatomy.ribs
    outer, away, lean = (view.borders[k] for k in ("outer", "away", "lean"))
    reach = outer + F(4)
    r = away * (1 / reach)[:, None]
    tilt = view.fall[1]
    z = film.z[:, None] + film.u[None] * F(tilt)
    nudge = view.borders.get("rib_offset")
    if nudge is not None:
        z = z + nudge
    curve = r * r
    curve *= F(1.25)
    curve -= F(0.25) * r
    down = z * F(1 / spacing) + F(0.02 * high / spacing)
    back = down - F(fall) * curve
    steep = F(fall) + F(2.3) * (1 - r) ** 2 + F(2.2) * (1 - r)
    front = down - steep
    soft = max(0.03, 0.6 * film.mm / spacing)
    bone = _rib_profile(back, thick, soft, 11.6)
    # At the side wall the ray runs along the rib.
    along = np.clip(F(1.12) - r * r, 0.06, 1)
    np.sqrt(along, out=along)
    bone *= F(0.052) / along
    inside = step(F(1.02) - r, 0.06)
    bone *= inside
    bone *= step(r - F(0.1), 0.1)
    fore = _rib_profile(front, thick * 1.12, soft * 1.3, 6.6)
    fore *= inside
    fore *= np.clip((r - F(0.4)) * F(4), 0, 1)
    fore *= F(0.04)
    bone += fore
    return bone


def _rib_profile(number: Field, thick: float, soft: float, last: float) -> Field:
    """Brightness across a family of ribs: bright rims around a paler marrow; no rib above 0.4 or below `last`."""
    nearest = np.rint(number)
    apart = np.abs(number - nearest)
    band = np.clip((F(thick) - apart) * F(1 / soft) + F(0.5), 0, 1)
    band *= F(0.62) + F(0.38 / thick**2) * apart * apart
    band *= (number > 0.45) & (number < last)
    return band


def _spine(view: View) -> Field:
    film, anatomy, pose, high = view.film, view.anatomy, view.pose, view.height
    turn, _ = view.fall
    bend = through([(-0.4, 0), (0.2, 1.0), (0.6, -0.6), (1.2, 0.2)], view.borders["t"]) * F(anatomy.spine_bend)
    u = view.borders["u"] + (bend + F(turn * 0.7 * anatomy.half_depth))[:, None]
    wide = through([(-0.3, 12), (0.1, 15), (0.6, 17), (1.1, 21)], view.borders["t"])
    columns = film.columns(-45, 45)
    u, beside = u[:, columns], np.abs(u[:, columns])
    body = step(wide[:, None] - beside, 3.0)
    pitch = anatomy.ribs[0] * 0.98
    phase = film.z * F(1 / pitch) + F(0.2)
    apart = np.abs(phase - np.rint(phase))  # 0 at a disc, 0.5 in the middle of a vertebra
    disc = bell(apart, 0.07)
    plate = bell(apart - F(0.15), 0.035)
    rows = F(0.16) + F(0.08) * (view.borders["t"] > 0.75) - F(0.05) * disc + F(0.02 + 0.05 * anatomy.spine_wear) * plate
    body *= rows[:, None]
    pedicle = bell(beside - wide[:, None] * F(0.62), 3.2)
    pedicle *= (F(0.07) * bell(apart - F(0.42), 0.12))[:, None]
    body += pedicle
    spinous = bell(u, 2.6)
    spinous *= (F(0.08) * bell(apart - F(0.2), 0.13))[:, None]
    body += spinous
    transverse = step(F(34) - beside, 5) - step(wide[:, None] - beside, 3)
    transverse *= (F(0.04) * bell(apart - F(0.36), 0.09))[:, None]
    body += transverse
    field = film.blank()
    field[:, columns] = body
    return field


def _clavicles(view: View, bone: Field) -> None:
    film, anatomy = view.film, view.anatomy
    turn, tilt = view.fall
    half = anatomy.half_width
    start, rise = anatomy.clavicle
    for side in (-1, 1):
        x = (film.u - F(turn * 0.75 * anatomy.half_depth)) * F(side / half)  # outwards positive
        line = through([(0.08, start), (0.2, start - 4), (0.45, start - 0.35 * rise), (0.75, start - 0.9 * rise), (1.0, start - rise), (1.3, start - rise - 1)], x)  # fmt: skip
        line = line - film.u * F(tilt)
        thick = through([(0.08, 8.5), (0.2, 7), (0.5, 5), (0.9, 5.5), (1.25, 7.5)], x)
        if f"clavicle_{side}" in view.borders:
            line = line + view.borders[f"clavicle_{side}"]
        ends = step(x - F(0.1), 0.05) * step(F(1.26) - x, 0.05)
        rows = film.rows(start - rise - 26, start + 22)
        apart = np.abs(film.z[rows, None] - line[None])
        band = step(thick[None] - apart, film.edge)
        band *= F(0.6) + F(0.4) * np.minimum(apart / thick[None], 1) ** 2
        band *= ends[None] * F(0.12)
        bone[rows] += band


def _shoulders(view: View, bone: Field) -> None:
    """Shoulder blades drawn off the lungs, heads of the humerus, upper arms."""
    film, anatomy, pose, high = view.film, view.anatomy, view.pose, view.height
    half, t = anatomy.half_width, view.borders["t"]
    u = view.borders["u"]
    start, rise = anatomy.clavicle
    for side in (-1, 1):
        columns = film.columns(*sorted((side * 0.7 * half, side * 2.0 * half)))
        if columns.start == columns.stop:
            continue
        out = u[:, columns] * F(side / half)
        inner = through([(0.0, 1.12), (0.12, 0.93), (0.25, 0.9), (0.4, 0.93), (0.52, 1.05)], t)
        outer = through([(0.0, 1.28), (0.1, 1.3), (0.25, 1.2), (0.4, 1.08), (0.52, 1.06)], t)
        blade = step(out - inner[:, None], 0.03)
        blade *= step(outer[:, None] - out, 0.04)
        rim = bell(out - outer[:, None], 0.03)
        rim += F(0.6) * bell(out - inner[:, None], 0.02)
        rim *= F(0.06)
        blade *= F(0.045)
        blade += rim
        blade *= (step(t - F(0.02), 0.05) * step(F(0.51) - t, 0.04))[:, None]
        arm = F(1.53) + t * F(0.1 + 0.33 * pose.arms)
        shaft = np.abs(out - arm[:, None])
        hollow = F(0.55) + F(0.45) * np.minimum(shaft * F(1 / 0.085), 1) ** 2
        humerus = step(F(0.085) - shaft, 0.02)
        humerus *= hollow
        humerus *= (F(0.2) * step(t - F(0.2), 0.1))[:, None]
        blade += humerus
        bone[:, columns] += blade
        ball(film, side * 1.47 * half, 0.13 * high, 0.19 * half, 0.2 * half, bone, 0.16)
        ball(film, side * 1.28 * half, 0.13 * high, 0.05 * half, 0.14 * half, bone, 0.1)
        ball(film, side * 1.4 * half, start - rise - 2, 0.17 * half, 0.035 * high, bone, 0.1)


def frontal_gas(view: View) -> Field:
    """Windpipe, main bronchi, gas in stomach and bowel: air outside the lungs."""
    film, anatomy, high = view.film, view.anatomy, view.height
    turn, tilt = view.fall
    t, u = view.borders["t"], view.borders["u"]
    columns = film.columns(-60, 60)
    x = u[:, columns] - F(turn * 0.1 * anatomy.half_depth) - through([(-0.2, 0), (0.2, -2), (0.3, -3)], t)[:, None]
    pipe = ramp(F(8.5) - np.abs(x), 8.5) * step(F(0.33) - t, 0.06)[:, None]
    for side, slope in ((-1, 0.62), (1, 1.15)):
        along = film.z - F(0.32 * high)
        line = side * slope * along
        pipe += ramp(F(7.5) - np.abs(x - line[:, None]), 7.5) * (F(0.7) * step(along, 8) * step(F(34) - along, 16))[:, None]
    gas = film.blank()
    gas[:, columns] = pipe * F(0.115)
    across, wide, tall = anatomy.bubble
    top = anatomy.dome[1] * high + 11 + tall
    stomach = film.blank()
    ball(film, across * anatomy.half_width, top, wide, tall, stomach, 0.26)
    # Upright, gas stands above a level of fluid.
    if view.pose.projection == "PA":
        stomach *= step(F(top + 0.35 * tall) - film.z, film.edge)[:, None]
    gas += stomach
    for k in range(3):
        place = view.pose.places
        ball(film, (place[k] * 2 - 1) * 0.8 * anatomy.half_width, (1.08 + 0.2 * place[k + 3]) * high, 9 + 16 * place[k + 6], 6 + 9 * place[k + 5], gas, 0.12)  # fmt: skip
    return gas

"""How each finding of lung, pleura, heart and bone changes a picture, and the mask of where it does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from negatoscope.studies.phantom.anatomy import Anatomy
from negatoscope.studies.phantom.film import Field, Mask, Outline, ball, bell, cloud, soften, splat, step
from negatoscope.studies.phantom.findings import Finding
from negatoscope.studies.phantom.frontal_bones import rib_height
from negatoscope.studies.phantom.view import FrontalView, LateralView, View

AnyView = FrontalView | LateralView

_GAP_FRONTAL = Outline((0.0, 0.06, 0.15, 0.3, 0.55, 0.8, 0.95), (2.2, 1.75, 1.25, 0.95, 0.7, 0.42, 0.2))
_GAP_LATERAL = Outline((0.0, 0.12, 0.3, 0.6, 0.9), (1.52, 0.96, 0.6, 0.4, 0.12))


def diseased(anatomy: Anatomy, findings: tuple[Finding, ...]) -> Anatomy:
    """The anatomy as the findings have changed it: a larger heart, flat domes, a raised one."""
    for finding in findings:
        more = finding.amount
        if finding.name == "cardiomegaly":
            anatomy = replace(anatomy, heart=1.15 + 0.42 * more)
        elif finding.name == "hyperinflation":
            anatomy = _hyperinflated(anatomy, more)
        elif finding.kind == "linear":
            anatomy = replace(anatomy, dome=_raised(anatomy, finding, 0.015 + 0.03 * more))
        elif finding.kind == "lobar" and finding.where == "left lower lobe":
            anatomy = replace(anatomy, dome=_raised(anatomy, finding, 0.05))
    return anatomy


def _hyperinflated(anatomy: Anatomy, more: float) -> Anatomy:
    right, left = anatomy.dome
    return replace(
        anatomy,
        height=anatomy.height * (1.05 + 0.07 * more),
        half_depth=anatomy.half_depth * (1.08 + 0.1 * more),
        arch=anatomy.arch * (0.62 - 0.32 * more),
        dome=(right + 0.055 + 0.02 * more, left + 0.05 + 0.02 * more),
        heart=anatomy.heart * (0.88 - 0.08 * more),
        lungs=anatomy.lungs * (1.05 + 0.08 * more),
    )


def _raised(anatomy: Anatomy, finding: Finding, by: float) -> tuple[float, float]:
    right, left = anatomy.dome
    return (right - by if -1 in finding.sides else right, left - by if 1 in finding.sides else left)


def mediastinal_shift(findings: tuple[Finding, ...]) -> float:
    """Millimetres to the patient's left: large pneumothoraces and effusions push, collapsed lobes pull."""
    shift = 0.0
    for finding in findings:
        if finding.name in ("pneumothorax", "effusion") and finding.side != "bilateral":
            shift -= finding.sides[0] * max(finding.amount - 0.6, 0) * 35
        if finding.kind == "lobar":
            shift += finding.sides[0] * 6
    return shift


def _half(view: FrontalView, sign: int) -> Field:
    """1 on this side of the middle. (H, W)"""
    return step(view.u * sign, 8)


def cardiomegaly(view: AnyView, finding: Finding) -> Mask:
    """The anatomy has grown already; the mask is the heart above the diaphragm."""
    rows = ((view.t > 0.4) & (view.t < 0.92))[:, None]
    z = view.film.z[:, None]
    if isinstance(view, FrontalView):
        return rows & (view.u < view.left[:, None]) & (view.u > -view.right[:, None]) & (z < view.dome[None] + 8)
    inside = (view.y < np.minimum(view.heart_front, view.front)[:, None]) & (view.y > view.heart_back[:, None])
    return rows & inside & (z < view.domes[1][None] + 6)


def hyperinflation(view: AnyView, finding: Finding) -> Mask:
    return view.lung > 0.2


def consolidation(view: AnyView, finding: Finding) -> Mask:
    """Pus for air in part of a lobe, up to its fissure; vessels vanish and air-filled bronchi stand out."""
    film, radius = view.film, finding.millimetres
    u, z = view.point(finding.at)
    wide = (1.15 if isinstance(view, FrontalView) else 1.05) * radius
    apart = (((film.u - u) / wide) ** 2)[None] + (((film.z - z) / (0.9 * radius)) ** 2)[:, None]
    patch = 1.12 - np.sqrt(apart)
    patch += 0.1 * cloud(film, 2, finding.shape)
    patch += 0.12 * cloud(film, 3, finding.shape)
    np.clip(1.25 * patch, 0, 1, out=patch)
    patch *= patch * (3 - 2 * patch)
    patch *= _lobe(view, finding)
    # From the side the other lung lies over it, with its air.
    patch *= (0.62 + 0.28 * finding.amount) * (1.0 if isinstance(view, FrontalView) else 0.62)
    mask = (patch * np.clip(view.lung, 0, 1)) > 0.16
    view.air = view.air * (1 - patch)
    view.filled += patch
    return mask


def _lobe(view: AnyView, finding: Finding) -> Field:
    """1 inside the lobe, 0 beyond its fissure. From the front only the minor fissure is seen edge on."""
    where = finding.where
    if isinstance(view, FrontalView):
        inside = _half(view, finding.sides[0])
        if where == "right upper lobe":
            return inside * step(0.43 - view.t, 0.02)[:, None]
        if where == "right middle lobe":
            return inside * step(view.t - 0.44, 0.02)[:, None]
        return inside
    # The oblique fissure runs from high at the back to low in front.
    forward = view.y / view.anatomy.half_depth - (2.09 * view.t - 1.22)[:, None]
    if "lower" in where:
        return step(-forward, 0.08)
    inside = step(forward, 0.08)
    if where == "right upper lobe":
        inside *= step(0.44 - view.t, 0.02)[:, None]
    if where == "right middle lobe":
        inside *= step(view.t - 0.44, 0.02)[:, None]
    return inside


def effusion(view: AnyView, finding: Finding) -> Mask:
    """Fluid in the pleural space, its upper border curved upwards along the wall."""
    film = view.film
    rise = 36 + 34 * finding.amount + 220 * max(finding.amount - 0.38, 0)
    unequal = 0.7 + 0.3 * (finding.shape % 1000) / 1000
    mask = np.zeros((film.size, film.size), dtype=bool)
    for sign, tall in zip(finding.sides, (rise, unequal * rise)):
        if isinstance(view, FrontalView):
            out = np.clip(view.away / view.anatomy.half_width, 0, 1)
            level = (0.995 * view.height - tall) + (70 - 20 * finding.amount) * (1 - out * out * out)
            fluid = step(film.z[:, None] - level, 9)
            fluid *= _half(view, sign)
            strength = 0.94
        else:
            reach = np.clip(view.y / view.anatomy.half_depth, -1, 1)
            back, front = np.clip(-reach, 0, 1), np.clip(reach, 0, 1)
            level = (1.01 * view.height - 0.95 * tall) + 44 * (1 - back * back * back) - 22 * front * front * front
            fluid = step(film.z[:, None] - level, 9)
            strength = 0.5
        mask |= (fluid > 0.5) & (view.lung > 0.05)
        view.air = view.air * (1 - strength * fluid)
        view.extra += (0.04 * strength) * fluid * np.clip(2 * view.lung, 0, 1)
    return mask


def pneumothorax(view: AnyView, finding: Finding) -> Mask:
    """Air outside the lung: blacker, without vessels, bounded by the thin line of the visceral pleura."""
    film, gap = view.film, 10 + 46 * finding.amount
    if isinstance(view, FrontalView):
        sign = finding.sides[0]
        beyond = view.u * sign - (view.outer - gap * _GAP_FRONTAL(view.t))[:, None]
        own, share, shine = _half(view, sign), 1.0, 0.085
    else:
        beyond = view.y - (view.front - gap * _GAP_LATERAL(view.t))[:, None]
        own, share, shine = film.ones(), 0.5, 0.06
    space = step(beyond, film.edge)
    space *= own
    lung = np.clip(view.lung, 0, 1)
    collapsed = (1 - space) * own * ((0.1 + 0.32 * finding.amount) * share)
    view.air = view.air * (1 - collapsed) + space * lung * (0.13 * share)
    view.vessels *= 1 - share * space
    view.extra += shine * own * bell(beyond, max(0.9, 0.55 * film.mm)) * np.clip(4 * lung, 0, 1)
    return (space > 0.5) & (view.lung > 0.06)


def nodule(view: AnyView, finding: Finding) -> Mask:
    """A ball of tissue."""
    body = view.film.blank()
    radius = finding.millimetres / 2
    density = 0.05 + 0.0124 * radius
    ball(view.film, *view.point(finding.at), radius, radius, body, density)
    view.extra += np.clip(body, 0, 0.36)
    return body > 0.12 * density


def mass(view: AnyView, finding: Finding) -> Mask:
    """A few overlapping balls, so that the border is lobulated."""
    film, radius = view.film, finding.millimetres / 2
    u, z = view.point(finding.at)
    body = film.blank()
    for x, y, down in np.random.default_rng(finding.shape).normal(0, 0.2, (6, 3)).clip(-0.35, 0.35).tolist():
        lobule = film.blank()
        across = x if isinstance(view, FrontalView) else -y
        size = 0.76 * radius
        ball(film, u + across * radius, z + down * radius, size, size, lobule, 0.05 + 0.0105 * radius)
        np.maximum(body, lobule, out=body)
    body = soften(body, max(1, round(1.5 / film.mm)))
    view.extra += np.clip(body, 0, 0.34)
    return body > 0.12 * (0.05 + 0.0105 * radius)


def atelectasis(view: AnyView, finding: Finding) -> Mask:
    return _collapsed_lobe(view, finding) if finding.kind == "lobar" else _plates(view, finding)


def _plates(view: AnyView, finding: Finding) -> Mask:
    """Thin plates of collapsed lung, nearly level: a line in both views."""
    film, more = view.film, finding.amount
    rng = np.random.default_rng(finding.shape)
    drawn = film.blank()
    _, y, z = finding.at
    for sign in finding.sides:
        for number in range(1 + (more > 0.3) + (more > 0.6)):
            out, forward, down, long, slope, bow = (float(chance) for chance in rng.random(6))
            u, v = view.point((sign * (0.5 + 0.2 * out), y + 0.3 * forward - 0.1, z - 0.045 * number + 0.02 * down))
            half = 17 + 20 * long + 12 * more
            slant = (0.35 * slope + 0.05) * (-sign if isinstance(view, FrontalView) else 0.8)
            rows, columns = film.rows(v - 26, v + 26), film.columns(u - half, u + half)
            along = (film.u[columns] - u) / half
            line = v + slant * half * along + (along * along - 0.4) * (6 * bow - 2)
            plate = bell(film.z[rows, None] - line[None], max(1.5, 0.75 * film.mm) + 0.9 * more)
            drawn[rows, columns] += plate * np.clip(3 - 3 * np.abs(along), 0, 1)[None]
    drawn *= np.clip(3 * view.lung, 0, 1)
    view.extra += (0.1 + 0.05 * more) * drawn
    return drawn > 0.25


def _collapsed_lobe(view: AnyView, finding: Finding) -> Mask:
    """A lobe without air: a wedge with one sharp border, drawn towards hilum and middle."""
    sign, lower, t = finding.sides[0], finding.where == "left lower lobe", view.t[:, None]
    if isinstance(view, FrontalView):
        out = view.u * (sign / view.anatomy.half_width)
        if lower:  # a triangle behind the heart, from the hilum to the dome
            wedge = step((0.95 * t - 0.2) - out, 0.025) * step(t - 0.42, 0.05)
        else:  # the minor fissure is lifted and bowed upwards
            wedge = step(0.39 - (0.2 + 0.08 * finding.amount) * np.clip(out - 0.12, 0, 3) - t, 0.02)
        wedge = wedge * _half(view, sign) * 0.9
    else:
        forward = view.y / view.anatomy.half_depth
        if lower:
            wedge = step(-0.77 + 0.5 * t - forward, 0.05) * step(t - 0.45, 0.1)
        else:
            # Both fissures have drawn up towards a fan that stands on the hilum.
            before, behind = np.clip(forward + 0.05, 0, 3), np.clip(-0.05 - forward, 0, 3)
            wedge = step(0.42 - 0.26 * before - 0.75 * behind - t, 0.04)
        wedge *= 0.6
    view.air = view.air * (1 - wedge)
    view.filled += wedge
    return (wedge * np.clip(view.lung, 0, 1)) > 0.25


def edema(view: AnyView, finding: Finding) -> Mask:
    """Water around the hila: haze, wide indistinct vessels, septal lines at the bases."""
    film, more = view.film, finding.amount
    haze = film.blank()
    hila = ((-0.4, 0.0, 0.5), (0.42, 0.0, 0.48)) if isinstance(view, FrontalView) else ((0.0, -0.1, 0.48),)
    for place in hila:
        u, z = view.point(place)
        haze += bell(film.z - z, 0.2 * view.height)[:, None] * bell(film.u - u, 0.27 * view.anatomy.half_width)[None]
    haze *= 0.9 + 0.11 * cloud(film, 2, finding.shape) + 0.18 * cloud(film, 3, finding.shape)
    haze += 0.16 * np.clip(view.t - 0.35, 0, 1)[:, None]
    haze *= 0.4 + 0.56 * more
    np.clip(haze, 0, 0.9, out=haze)
    view.air = view.air * (1 - haze)
    view.fullness = max(view.fullness, 1.12 + 0.2 * more)
    view.upper = max(view.upper, 0.4 + 0.5 * more)
    view.extra += _septal_lines(view, finding)
    return (haze * np.clip(view.lung, 0, 1)) > 0.15


def _septal_lines(view: View, finding: Finding) -> Field:
    """Kerley B lines: short, level, at the side walls of the bases."""
    rng = np.random.default_rng(finding.shape)
    s = np.linspace(0, 1, 40)
    lines = []
    for side in (-1, 1):
        for number in range(5 + int(4 * finding.amount)):
            x = side * (0.985 - 0.1 * s) * view.anatomy.half_width
            z = (0.66 + 0.026 * number + 0.006 * rng.random()) * view.height + 2 * s * rng.normal()
            y = rng.uniform(-0.7, 0.6) * view.anatomy.half_depth - 0.2 * view.anatomy.half_width * s
            lines.append((x, y, z))
    u, v = view.shadow(*np.concatenate(lines, axis=1).astype(np.float32))
    weights = np.full(len(u), 0.018 / view.film.mm, dtype=np.float32)
    return splat(view.film, u, v, weights) * np.clip(2 * view.lung, 0, 1)


def fracture(view: AnyView, finding: Finding) -> Mask:
    return _broken_clavicle(view, finding) if finding.kind == "clavicle" else _broken_rib(view, finding)


def _broken_rib(view: AnyView, finding: Finding) -> Mask:
    """The ends stand apart by most of the rib's thickness, with a dark gap between them."""
    film, anatomy, sign = view.film, view.anatomy, finding.sides[0]
    x, y, number = finding.at
    z = float(rib_height(anatomy, number, abs(x), view.height))
    if isinstance(view, FrontalView):
        row = int(np.clip((z - film.z0) / film.mm, 0, film.size - 1))
        u = x * (float(view.outer[row]) + 4)
        if view.rib_offset is None:
            view.rib_offset = film.blank()
        offset = view.rib_offset
    else:
        u, _ = view.point((x, y, 0.5))
        offset = view.rib_offset.setdefault(sign, film.blank())
    rows, columns = film.rows(z - 24, z + 24), film.columns(u - 60, u + 60)
    down = film.z[rows] - z
    along = (film.u[columns] - u)[None] + (0.35 * sign * down)[:, None]
    ends = np.sign(along) * np.exp(np.abs(along) * (-1 / 20))
    offset[rows, columns] += ends * ((5.5 + 2.5 * finding.amount) * bell(down, 10))[:, None]
    near = bell(down, 7)[:, None]
    view.gap()[rows, columns] *= 1 - bell(along, max(1.7, 0.8 * film.mm)) * near
    # The broken ends shine where the fragments overlap.
    view.extra[rows, columns] += 0.05 * bell(np.abs(along) - 4.2, 1.6) * near
    mask = film.blank()
    ball(film, u, z, 14, 12, mask, 1)
    return mask > 0


def _broken_clavicle(view: AnyView, finding: Finding) -> Mask:
    film, sign = view.film, finding.sides[0]
    mask = film.blank()
    if isinstance(view, LateralView):
        return mask > 0  # hidden by the shoulders
    start, rise = view.anatomy.clavicle
    u, z = finding.at[0] * view.anatomy.half_width, start - 0.75 * rise
    out = (film.u - u) * sign
    # The outer end drops by the weight of the arm, the inner one is pulled up.
    drop = np.where(out > 0, 1.0, -0.35) * np.exp(np.abs(out) * (-1 / 28)) * (7 + 6 * finding.amount)
    view.clavicle_offset[sign] = drop.astype(np.float32)
    rows = film.rows(z - 26, z + 30)
    view.gap()[rows] *= (1 - 0.85 * bell(out, max(1.6, 0.8 * film.mm)))[None]
    ball(film, u, z + 3, 20, 18, mask, 1)
    return mask > 0

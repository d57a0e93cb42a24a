"""How each finding of lung, pleura, heart and bone changes a picture, and the mask of where it does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from negatoscope.studies.phantom.anatomy import Anatomy
from negatoscope.studies.phantom.film import F, Field, ball, bell, grain_bank, soften, splat, step, through
from negatoscope.studies.phantom.findings import Finding
from negatoscope.studies.phantom.frontal import rib_height
from negatoscope.studies.phantom.projection import View

Mask = NDArray[np.bool_]


def diseased(anatomy: Anatomy, findings: tuple[Finding, ...]) -> Anatomy:
    """The anatomy as the findings have changed it: a larger heart, flat domes, a raised one."""
    for finding in findings:
        more = finding.amount
        if finding.name == "cardiomegaly":
            anatomy = replace(anatomy, heart=1.24 + 0.4 * more)
        elif finding.name == "hyperinflation":
            right, left = anatomy.dome
            anatomy = replace(
                anatomy,
                height=anatomy.height * (1.05 + 0.07 * more),
                half_depth=anatomy.half_depth * (1.08 + 0.1 * more),
                arch=anatomy.arch * (0.62 - 0.32 * more),
                dome=(right + 0.055 + 0.02 * more, left + 0.05 + 0.02 * more),
                heart=anatomy.heart * (0.88 - 0.08 * more),
                lungs=anatomy.lungs * (1.05 + 0.08 * more),
            )
        elif finding.name == "atelectasis" and finding.kind == "linear":
            anatomy = replace(anatomy, dome=_raised(anatomy, finding, 0.015 + 0.03 * more))
        elif finding.name == "atelectasis" and finding.where == "left lower lobe":
            anatomy = replace(anatomy, dome=_raised(anatomy, finding, 0.05))
    return anatomy


def _raised(anatomy: Anatomy, finding: Finding, by: float) -> tuple[float, float]:
    right, left = anatomy.dome
    return (right - by if -1 in finding.sides else right, left - by if 1 in finding.sides else left)


def mediastinal_shift(findings: tuple[Finding, ...], anatomy: Anatomy) -> float:
    """Millimetres towards the patient's left: large pneumothoraces and effusions push, collapsed lobes pull."""
    shift = 0.0
    for finding in findings:
        if finding.name in ("pneumothorax", "effusion") and finding.side != "bilateral" and finding.amount > 0.6:
            shift -= finding.sides[0] * (finding.amount - 0.6) * 35
        if finding.kind == "lobar":
            shift += finding.sides[0] * 6
    return shift


def _cloud(view: View, level: int, shape: int) -> Field:
    """Grain whose cells keep their size in millimetres, whatever the pixels: a window of the bank, enlarged or thinned."""
    bank = grain_bank()[level]
    rng = np.random.default_rng(shape)
    side = int(view.film.width / 1.45) + 1  # the bank is laid out at 1.45 mm a cell
    top, left = rng.integers(0, 1280 - side, 2)
    at = (np.arange(view.film.size) * (side / view.film.size)).astype(np.int32)
    return bank[top : top + side, left : left + side][at[:, None], at[None]]


def _side_of_film(view: View, sign: int) -> Field:
    """1 on this side of the middle, (1, W) or (H, W)."""
    return step(view.borders["u"] * F(sign), 8)


def cardiomegaly(view: View, finding: Finding) -> Mask:
    t, film = view.borders["t"], view.film
    rows = (t > 0.4) & (t < 0.9)
    if view.name == "frontal":
        u = view.borders["u"]
        inside = (u < view.borders["left"][:, None]) & (u > -view.borders["right"][:, None])
        return inside & rows[:, None] & (film.z[:, None] < view.borders["dome"][None] + F(8))
    y = view.borders["y"]
    inside = (y < view.borders["heart front"][:, None]) & (y > view.borders["heart back"][:, None])
    inside &= y < view.borders["front"][:, None]
    return inside & rows[:, None] & (film.z[:, None] < view.borders["left dome"][None] + F(6))


def hyperinflation(view: View, finding: Finding) -> Mask:
    return view.lung > F(0.2)


def consolidation(view: View, finding: Finding) -> Mask:
    """Pus for air in part of a lobe, up to its fissure; vessels vanish and air-filled bronchi stand out."""
    film = view.film
    u, z = view.point(finding.at)
    r = finding.millimetres
    wide = 1.15 * r if view.name == "frontal" else 1.05 * r
    distance = ((film.u - F(u)) * F(1 / wide))[None] ** 2 + ((film.z - F(z)) * F(1 / (0.9 * r)))[:, None] ** 2
    cloud = F(0.1) * _cloud(view, 2, finding.shape) + F(0.12) * _cloud(view, 3, finding.shape)
    patch = F(1.12) - np.sqrt(distance) + cloud
    patch *= F(1.25)
    np.clip(patch, 0, 1, out=patch)
    patch *= patch * (3 - 2 * patch)
    patch *= _lobe(view, finding)
    share = F(0.55 + 0.33 * finding.amount) * (F(1.0) if view.name == "frontal" else F(0.62))
    patch *= share
    mask = (patch * np.minimum(view.lung, 1)) > F(0.16)
    view.air *= 1 - patch
    view.filled += patch
    return mask


def _lobe(view: View, finding: Finding) -> Field:
    """1 inside the lobe, 0 beyond the fissure. In the frontal picture only the minor fissure shows as a border."""
    film, high = view.film, view.height
    where = finding.where
    if view.name == "frontal":
        z = film.z[:, None]
        side = _side_of_film(view, finding.sides[0])
        if where == "right upper lobe":
            return side * step(F(0.43 * high) - z, 5)
        if where == "right middle lobe":
            return side * step(z - F(0.44 * high), 5)
        return side
    y = view.borders["y"] * F(1 / view.anatomy.half_depth)
    t = view.borders["t"][:, None]
    # The oblique fissure runs from high at the back to low in front.
    behind = F(0.72) * (t - F(0.24)) * F(2.9) - F(0.72) - y
    if "lower" in where:
        return step(behind, 0.08)
    inside = step(-behind, 0.08)
    if where == "right upper lobe":
        inside = inside * step(F(0.44) - t, 0.02)
    if where == "right middle lobe":
        inside = inside * step(t - F(0.44), 0.02)
    return inside


def effusion(view: View, finding: Finding) -> Mask:
    """Fluid in the pleural space, its upper border curved upwards along the wall."""
    film, high = view.film, view.height
    tall = 16 + 34 * finding.amount + 130 * max(0.0, finding.amount - 0.35)
    mask = np.zeros((film.size, film.size), dtype=bool)
    for k, sign in enumerate(finding.sides):
        rise = tall * (1 if k == 0 else 0.7 + 0.3 * ((finding.shape >> 3) % 100) / 100)
        if view.name == "frontal":
            r = np.clip(view.borders["away"] * F(1 / view.anatomy.half_width), 0, 1.0)
            level = F(0.995 * high - rise) + F(50 + 20 * (1 - finding.amount)) * (1 - r * r * r)
            fluid = step(film.z[:, None] - level, 9)
            fluid *= _side_of_film(view, sign)
            strength = F(0.94)
        else:
            r = np.clip((view.borders["y"] * F(1 / view.anatomy.half_depth)), -1.02, 1)
            back = np.clip(-r, 0, 1)
            level = F(1.0 * high - 0.9 * rise) + F(58) * (1 - back * back * back) - F(22) * np.clip(r, 0, 1) ** 3
            fluid = step(film.z[:, None] - level, 9)
            strength = F(0.5 if len(finding.sides) == 1 else 0.55)
        fluid *= strength
        mask |= (fluid > 0.5 * strength) & (view.lung > F(0.05))
        view.air *= 1 - fluid
        # Fluid also lies where the dome was: below it is as dense as above, so the outline goes.
        view.extra += F(0.04) * fluid * np.minimum(view.lung * 2, 1)
    return mask


def pneumothorax(view: View, finding: Finding) -> Mask:
    """Air outside the lung: blacker, without vessels, bounded by the thin line of the visceral pleura."""
    film, t = view.film, view.borders["t"]
    gap = 10 + 46 * finding.amount
    if view.name == "frontal":
        sign = finding.sides[0]
        profile = through(
            [(0.0, 2.2), (0.06, 1.75), (0.15, 1.25), (0.3, 0.95), (0.55, 0.7), (0.8, 0.42), (0.95, 0.2)], t
        )
        edge = view.borders["outer"] - profile * F(gap)
        beyond = view.borders["u"] * F(sign) - edge[:, None]
        own = _side_of_film(view, sign)
        share = F(1.0)
    else:
        profile = through([(0.0, 1.9), (0.12, 1.2), (0.3, 0.75), (0.6, 0.5), (0.9, 0.15)], t)
        edge = view.borders["front"] - profile * F(0.8 * gap)
        beyond = view.borders["y"] - edge[:, None]
        own = np.ones((1, 1), dtype=np.float32)
        share = F(0.5)
    space = step(beyond, film.edge) * own
    line = bell(beyond, max(0.9, 0.55 * film.mm)) * own
    line *= np.clip(view.lung * 4, 0, 1)
    collapsed = (1 - space) * own * F(0.1 + 0.32 * finding.amount) * share
    view.air *= 1 - collapsed
    view.air += space * np.minimum(view.lung, 1) * F(0.13) * share
    view.vessels *= 1 - space * share
    view.extra += line * F(0.085 if view.name == "frontal" else 0.06)
    return (space > 0.5) & (view.lung > F(0.06))


def nodule(view: View, finding: Finding) -> Mask:
    """A ball of tissue; masses are a few overlapping ones, so that their border is lobulated."""
    film = view.film
    u, z = view.point(finding.at)
    radius = finding.millimetres / 2
    body = film.blank()
    dense = 0.05 + 0.0062 * 2 * radius
    if finding.name == "nodule":
        ball(film, u, z, radius, radius, body, dense)
    else:
        rng = np.random.default_rng(finding.shape)
        offsets = rng.normal(0, 0.3, (4, 3)).clip(-0.55, 0.55)
        for dx, dy, dz in offsets:
            du = dx if view.name == "frontal" else -dy
            lobule = film.blank()
            ball(film, u + du * radius, z + dz * radius, 0.74 * radius, 0.74 * radius, lobule, 0.8 * dense)
            np.maximum(body, lobule, out=body)
        body = soften(body, max(1, round(1.5 / film.mm)))
    mask = body > F(0.12 * dense)
    view.extra += np.minimum(body, F(0.36))
    return mask


mass = nodule


def atelectasis(view: View, finding: Finding) -> Mask:
    return _collapsed_lobe(view, finding) if finding.kind == "lobar" else _plates(view, finding)


def _plates(view: View, finding: Finding) -> Mask:
    """Thin plates of collapsed lung, nearly level: a line in both views."""
    film, anatomy, high = view.film, view.anatomy, view.height
    rng = np.random.default_rng(finding.shape)
    drawn = film.blank()
    x0, y0, z0 = finding.at
    for sign in finding.sides:
        for k in range(1 + int(finding.amount > 0.3) + int(finding.amount > 0.6)):
            dx, dy, dz, long, slope, bow = rng.random(6)
            x, y = sign * (0.5 + 0.2 * dx) * anatomy.half_width, (y0 + 0.3 * dy - 0.1) * anatomy.half_depth
            z = (z0 - 0.045 * k + 0.02 * dz) * high
            half = 17 + 20 * long + 12 * finding.amount
            u, v = view.shadow(x, y, z)
            slant = (0.35 * slope + 0.05) * (-sign if view.name == "frontal" else 0.8)
            columns, rows = film.columns(float(u) - half, float(u) + half), film.rows(float(v) - 26, float(v) + 26)
            across = (film.u[columns] - F(u)) * F(1 / half)
            line = F(v) + across * F(slant * half) + (across * across - F(0.4)) * F(6 * bow - 2)
            thick = max(1.5, 0.75 * film.mm) + 0.9 * finding.amount
            band = bell(film.z[rows, None] - line[None], thick)
            band *= np.clip((1 - np.abs(across)) * F(3), 0, 1)[None]
            drawn[rows, columns] += band
    # A light haze around them: the base is less aerated as a whole.
    visible = np.clip(view.lung * 3, 0, 1)
    drawn *= visible
    view.extra += drawn * F(0.1 + 0.05 * finding.amount)
    return drawn > F(0.25)


def _collapsed_lobe(view: View, finding: Finding) -> Mask:
    """A lobe without air: a wedge with one sharp border, drawn towards hilum and middle."""
    film, anatomy, high = view.film, view.anatomy, view.height
    sign = finding.sides[0]
    t = view.borders["t"][:, None]
    if view.name == "frontal":
        out = view.borders["u"] * F(sign / anatomy.half_width)
        if finding.where == "left lower lobe":
            # A triangle behind the heart, from the hilum to the dome.
            wedge = step((F(0.2) + (t - F(0.42)) * F(0.95)) - out, 0.025) * step(t - F(0.42), 0.05)
        else:
            # The minor fissure is lifted and bowed upwards.
            wedge = step((F(0.39) - F(0.2 + 0.08 * finding.amount) * np.clip(out - F(0.12), 0, 1)) - t, 0.02)
        wedge *= _side_of_film(view, sign)
        strength = 0.9
    else:
        y = view.borders["y"] * F(1 / anatomy.half_depth)
        if finding.where == "left lower lobe":
            wedge = step(F(-0.28) - F(0.5) * (F(0.98) - t) - y, 0.05) * step(t - F(0.45), 0.1)
        else:
            wedge = step((F(0.36) - F(0.18) * np.abs(y)) - t, 0.03) * step(F(0.5) - np.abs(y - F(0.08)), 0.12)
        strength = 0.6
    wedge *= F(strength)
    view.air *= 1 - wedge
    view.filled += wedge
    return (wedge * np.minimum(view.lung, 1)) > F(0.25)


def edema(view: View, finding: Finding) -> Mask:
    """Water around the hila: haze, wide indistinct vessels, septal lines at the bases."""
    film, anatomy = view.film, view.anatomy
    more = finding.amount
    haze = film.blank()
    centres = ((-0.4, 0.5), (0.42, 0.48)) if view.name == "frontal" else ((0.0, 0.48),)
    for x, t0 in centres:
        u, z = view.point((x, 0.0 if view.name == "frontal" else -0.1, t0))
        haze += bell(film.z - F(z), 0.2 * view.height)[:, None] * bell(film.u - F(u), 0.27 * anatomy.half_width)[None]
    haze *= F(0.9) + F(0.22) * _cloud(view, 2, finding.shape) + F(0.14) * _cloud(view, 3, finding.shape)
    haze += F(0.16) * np.clip(view.borders["t"] - F(0.35), 0, 1)[:, None]
    haze *= F(0.4 + 0.56 * more)
    np.clip(haze, 0, 0.9, out=haze)
    view.air *= 1 - haze
    view.fullness = max(view.fullness, 1.12 + 0.2 * more)
    view.upper = max(view.upper, 0.4 + 0.5 * more)
    view.extra += _septal_lines(view, finding)
    return (haze * np.minimum(view.lung, 1)) > F(0.15)


def _septal_lines(view: View, finding: Finding) -> Field:
    """Kerley B lines: short, level, at the side walls of the bases."""
    film = view.film
    rng = np.random.default_rng(finding.shape)
    lines = []
    for sign in (-1, 1):
        for k in range(5 + int(4 * finding.amount)):
            x = sign * (0.985 - 0.1 * np.linspace(0, 1, 40)) * view.anatomy.half_width
            z = (0.66 + 0.026 * k + 0.006 * rng.random()) * view.height + np.linspace(0, 2, 40) * rng.normal()
            y = np.full(40, rng.uniform(-0.7, 0.6) * view.anatomy.half_depth)
            lines.append(np.stack((x, y, z)))
    x, y, z = np.concatenate(lines, axis=1).astype(np.float32)
    if view.name == "lateral":
        y = y + (np.abs(x) - view.anatomy.half_width) * 2
    u, v = view.shadow(x, y, z)
    return splat(film, u, v, np.full(len(u), F(0.018 / film.mm), dtype=np.float32)) * np.minimum(view.lung * 2, 1)


def fracture(view: View, finding: Finding) -> Mask:
    return _broken_clavicle(view, finding) if finding.kind == "clavicle" else _broken_rib(view, finding)


def _broken_rib(view: View, finding: Finding) -> Mask:
    """The ends stand apart by most of the rib's thickness, with a dark gap between them."""
    film, anatomy = view.film, view.anatomy
    sign, (x, y, number) = finding.sides[0], finding.at
    if view.name == "frontal":
        row = 0.5 + 0.08 * (number - 6)
        width = float(through([(0, 0.8), (0.3, 0.92), (0.6, 1.0)], np.array([row], dtype=np.float32))[0])
        u = x * anatomy.half_width * width
        z = float(rib_height(anatomy, number, abs(x), view.height))
        key = "rib_offset"
    else:
        u, _ = view.point((x, y, 0.5))
        z = float(rib_height(anatomy, number, abs(x), view.height))
        key = f"rib_offset_{sign}"
    rows, columns = film.rows(z - 24, z + 24), film.columns(u - 60, u + 60)
    level = film.z[rows] - F(z)
    along = (film.u[columns] - F(u))[None] + level[:, None] * F(0.35 * sign)
    shift = np.sign(along) * np.exp(-np.abs(along) * F(1 / 20))
    shift *= F(5.5 + 2.5 * finding.amount)
    shift *= bell(level, 10)[:, None]
    offset = view.borders.setdefault(key, film.blank())
    offset[rows, columns] += shift
    near = bell(level, 7)[:, None]
    gap = view.borders.setdefault("gap", np.ones_like(view.air))
    gap[rows, columns] *= 1 - bell(along, max(1.7, 0.8 * film.mm)) * near
    # The broken ends shine where the fragments overlap.
    view.extra[rows, columns] += F(0.05) * bell(np.abs(along) - F(4.2), 1.6) * near
    mask = film.blank()
    ball(film, u, z, 14, 12, mask, 1)
    return mask > 0


def _broken_clavicle(view: View, finding: Finding) -> Mask:
    film, anatomy = view.film, view.anatomy
    mask = film.blank()
    if view.name == "lateral":
        return mask > 0  # hidden by the shoulders
    sign = finding.sides[0]
    start, rise = anatomy.clavicle
    u = finding.at[0] * anatomy.half_width
    z = start - 0.75 * rise - (film.mm if rise < 0 else 0)
    out = (film.u - F(u)) * F(sign)
    drop = np.where(out > 0, F(1), F(-0.35)) * np.exp(-np.abs(out) * F(1 / 28)) * F(7 + 6 * finding.amount)
    view.borders[f"clavicle_{sign}"] = drop.astype(np.float32)
    gap = view.borders.setdefault("gap", np.ones_like(view.air))
    rows = film.rows(z - 26, z + 30)
    gap[rows] *= (1 - F(0.85) * bell(out, max(1.6, 0.8 * film.mm)))[None]
    ball(film, u, z + 3, 20, 18, mask, 1)
    return mask > 0

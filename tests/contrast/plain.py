"""WCL, MoCHi and ITHN as their papers print them, written out in loops over plain Python floats, beside the losses
under test."""

from __future__ import annotations

import math
from collections.abc import Sequence

Vector = Sequence[float]


def dot(a: Vector, b: Vector) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def cosine(a: Vector, b: Vector) -> float:
    return dot(a, b) / math.sqrt(dot(a, a) * dot(b, b))


def wcl(
    z_x: Sequence[Vector],
    z_y: Sequence[Vector],
    clusters: Sequence[int],
    tau: float,
    alpha: float,
    own: float,
    imposter: Sequence[Vector] = (),
) -> float:
    """Eq. 4, over the batch's mean; `own` is the weight of j = i below the line: alpha as printed, 1 as released."""
    total = 0.0
    for i, x in enumerate(z_x):
        below = 0.0
        for j, y in enumerate(z_y):
            weight = own if i == j else alpha if clusters[i] == clusters[j] else 1.0
            below += weight * math.exp(cosine(x, y) / tau)
        if imposter:
            below += math.exp(cosine(x, imposter[i]) / tau)
        total -= math.log(math.exp(cosine(x, z_y[i]) / tau) / below)
    return total / len(z_x)


def info_nce(a: Sequence[Vector], b: Sequence[Vector], tau: float) -> float:
    total = 0.0
    for i, x in enumerate(a):
        similar = [cosine(x, y) / tau for y in b]
        total += math.log(sum(math.exp(s) for s in similar)) - similar[i]
    return total / len(a)


def mochi(u_: Sequence[Vector], u: Sequence[Vector], lam: float) -> list[list[float]]:
    """Eq. 2."""
    return [[(1 - lam) * b + lam * a for a, b in zip(mine, other, strict=True)] for mine, other in zip(u, u_)]


def ithn(z: Sequence[Vector], u: Sequence[Vector], u_: Sequence[Vector], lam: float) -> list[list[float]]:
    """Eq. 6 and 7, a sample at a time."""
    made = []
    for image, mine, other in zip(z, u, u_, strict=True):
        line = [a - b for a, b in zip(mine, other)]
        length = math.sqrt(dot(line, line))
        along = dot([a - b for a, b in zip(image, other)], line) / length
        p = [b + along * step / length for b, step in zip(other, line)]
        made.append([(1 - lam) * b + lam * place for b, place in zip(other, p)])
    return made


def released_ithn(z: Sequence[Vector], u: Sequence[Vector], u_: Sequence[Vector], lam: float) -> list[list[float]]:
    """As the authors' code does: p_i = u-_i + sum_j ((z_i - u-_i) . d_j) d_j / |d_j|, d_j = u_j - u-_j."""
    lines = [[a - b for a, b in zip(mine, other)] for mine, other in zip(u, u_)]
    made = []
    for image, other in zip(z, u_, strict=True):
        p = list(other)
        for line in lines:
            along = dot([a - b for a, b in zip(image, other)], line) / math.sqrt(dot(line, line))
            p = [place + along * step for place, step in zip(p, line)]
        made.append([(1 - lam) * b + lam * place for b, place in zip(other, p)])
    return made


def s3(z: Sequence[Vector], h: Sequence[Vector], *, released: bool = False) -> list[list[float]]:
    """Eq. 10 with its diagonal negated; released: nothing but that diagonal, h as long as it is."""
    if released:
        return [[-dot(x, y) if i == j else 0.0 for j, y in enumerate(h)] for i, x in enumerate(z)]
    return [[(-1 if i == j else 1) * cosine(x, y) for j, y in enumerate(h)] for i, x in enumerate(z)]


def similar(
    z: Sequence[Vector],
    u: Sequence[Vector],
    z_: Sequence[Vector],
    u_: Sequence[Vector],
    third: Sequence[Vector],
    tau: float,
    tau_third: float | None = None,
) -> list[list[float]]:
    """Eq. 11, over the temperature."""
    last = tau if tau_third is None else tau_third
    return [
        [(cosine(z[i], u[j]) / tau + cosine(z_[i], u_[j]) / tau + third[i][j] / last) / 3 for j in range(len(z))]
        for i in range(len(z))
    ]


def clip(rows: Sequence[Vector]) -> float:
    """Eq. 12: over images and over reports, softmax cross-entropy whose target is the diagonal."""
    columns = list(zip(*rows))
    total = 0.0
    for matrix in (rows, columns):
        for i, row in enumerate(matrix):
            total += math.log(sum(math.exp(s) for s in row)) - row[i]
    return total / (2 * len(rows))

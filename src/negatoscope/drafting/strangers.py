"""Pictures that are no chest radiograph: what the warning is measured on, never what it learns from.

Drawn, so that anybody can draw them again: grey values (side, side) uint8.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PIL import Image, ImageDraw

Grey = np.ndarray


def noise(rng: np.random.Generator, side: int) -> Grey:
    """White, coarse, or heavy-tailed."""
    way = rng.integers(3)
    if way == 0:
        return rng.integers(0, 256, (side, side), dtype=np.uint8)
    if way == 1:
        block = int(rng.choice([4, 8, 16, 32]))
        small = rng.integers(0, 256, (-(-side // block), -(-side // block)), dtype=np.uint8)
        return np.kron(small, np.ones((block, block), np.uint8))[:side, :side]
    return _eight_bit(rng.standard_t(2, (side, side)))


def gradients(rng: np.random.Generator, side: int) -> Grey:
    """From one corner to another, or from a point outwards."""
    y, x = _field(side)
    if rng.random() < 0.5:
        angle = rng.uniform(0, 2 * np.pi)
        values = x * np.cos(angle) + y * np.sin(angle)
    else:
        values = np.hypot(x - rng.uniform(0, 1), y - rng.uniform(0, 1))
    return _eight_bit(values ** rng.uniform(0.5, 2) if values.min() >= 0 else values)


def shapes(rng: np.random.Generator, side: int) -> Grey:
    """Discs, boxes and lines on an even ground."""
    image = Image.new("L", (side, side), int(rng.integers(256)))
    draw = ImageDraw.Draw(image)
    for _ in range(int(rng.integers(3, 15))):
        x, y, u, v = np.sort(rng.integers(0, side, (2, 2)), axis=0).ravel().tolist()
        kind = draw.ellipse if rng.random() < 0.4 else draw.rectangle if rng.random() < 0.6 else draw.line
        kind([x, y, u + 1, v + 1], fill=int(rng.integers(256)))
    return np.asarray(image)


def text(rng: np.random.Generator, side: int) -> Grey:
    """A page of letters, as a scanned letter is."""
    image = Image.new("L", (side, side), 245)
    draw = ImageDraw.Draw(image)
    for row in range(6, side - 10, 12):
        letters = "".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz     "), side // 6))
        draw.text((6, row), letters[: int(rng.integers(side // 12, side // 6 + 1))], fill=20)
    return np.asarray(image)


def textures(rng: np.random.Generator, side: int) -> Grey:
    """Checks, stripes, rings of wood."""
    y, x = _field(side)
    often = rng.uniform(4, 40)
    way = rng.integers(3)
    if way == 0:
        values = np.floor(x * often) + np.floor(y * often)
        return _eight_bit(values % 2)
    if way == 1:
        angle = rng.uniform(0, np.pi)
        return _eight_bit(np.sin(2 * np.pi * often * (x * np.cos(angle) + y * np.sin(angle))))
    bent = np.hypot(x - rng.uniform(-1, 2), 3 * (y - 0.5)) + 0.05 * np.sin(9 * x + rng.uniform(0, 6))
    return _eight_bit(np.sin(2 * np.pi * often * bent))


def clouds(rng: np.random.Generator, side: int) -> Grey:
    """Noise whose power falls as 1/f^2, as that of photographs does."""
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side)[None])
    frequency[0, 0] = 1
    shape = frequency.shape
    spectrum = (rng.normal(size=shape) + 1j * rng.normal(size=shape)) / frequency ** rng.uniform(0.8, 1.6)
    return _eight_bit(np.fft.irfft2(spectrum, (side, side)))


def landscapes(rng: np.random.Generator, side: int) -> Grey:
    """A sky that grows lighter downwards, hills one behind the other, a sun or none."""
    y, x = _field(side)
    values = 0.6 + 0.35 * y + 0.05 * (clouds(rng, side) / 255 - 0.5)
    if rng.random() < 0.5:
        values[np.hypot(x - rng.uniform(0.1, 0.9), y - 0.2) < 0.07] = 1.0
    for number in range(int(rng.integers(2, 5))):
        waves = sum(rng.normal(0, 0.5 / k) * np.sin(2 * np.pi * k * x[0] + rng.uniform(0, 6)) for k in range(1, 9))
        ridge = 0.45 + 0.13 * number + 0.05 * waves
        ground = (0.5 - 0.12 * number) * (0.75 + 0.5 * clouds(rng, side) / 255)
        values = np.where(y > ridge, ground, values)
    return _eight_bit(values, low=0.0, high=1.0)


STRANGERS: dict[str, Callable[[np.random.Generator, int], Grey]] = {
    "noise": noise,
    "gradients": gradients,
    "shapes": shapes,
    "text": text,
    "textures": textures,
    "clouds": clouds,
    "landscapes": landscapes,
}


def _field(side: int) -> tuple[np.ndarray, np.ndarray]:
    y, x = np.mgrid[0:side, 0:side] / side
    return y, x


def _eight_bit(values: np.ndarray, low: float | None = None, high: float | None = None) -> Grey:
    low, high = (float(np.percentile(values, q)) if said is None else said for q, said in ((1, low), (99, high)))
    return np.rint(np.clip((values - low) / max(high - low, 1e-9), 0, 1) * 255).astype(np.uint8)

"""What a glance at a picture tells: whether it is blank, which others it equals or nearly equals, its view."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from negatoscope.errors import BadInput
from negatoscope.studies.pixels import read_pixels, to_8bit

SIDE = 16
"""Of the small copy that is kept of every picture while an audit runs."""
_BLANK = 12  # grey levels of 255 between the darkest and brightest part; of real radiographs none has less than 60
_BITS = SIDE * SIDE


@dataclass(frozen=True, slots=True)
class Glance:
    """One picture, looked at once."""

    sha256: str = ""
    blank: bool = False
    small: bytes = bytes(_BITS)
    """(16, 16) uint8."""
    steps: bytes = bytes(_BITS // 8)
    """256 bits: whether each of 16 x 17 coarse parts is brighter than its left neighbour."""
    aspect: float = 1.0
    """Width over height."""
    trouble: str = ""
    """Why it cannot be read."""


def glance(path: Path, sha256: str = "") -> Glance:
    """Decodes a picture and keeps what the audit needs of it. A stored hash is trusted: the picture's file is not."""
    from PIL import Image

    try:
        pixels = read_pixels(path)
    except BadInput as error:
        return Glance(trouble=error.what)
    picture = Image.fromarray(to_8bit(pixels))
    small = np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.BOX))
    wide = np.asarray(picture.resize((SIDE + 1, SIDE), Image.Resampling.BOX))
    dark, bright = np.percentile(small, (1, 99))
    return Glance(
        sha256=sha256 or pixels.sha256(),
        blank=bool(bright - dark < _BLANK),
        small=small.tobytes(),
        steps=np.packbits(wide[:, 1:] > wide[:, :-1]).tobytes(),
        aspect=pixels.width / pixels.height,
    )


def near_pairs(steps: np.ndarray, at_most: int = 10) -> Iterator[tuple[int, int, int]]:
    """(first, second, bits that differ) of every two rows of (n, 32) uint8 that differ in `at_most` of 256 bits.

    Cut into `at_most` + 1 bands, two such rows agree in at least one whole band: only rows that share a band are
    compared. Coding a radiograph anew or halving it changes 2 to 9 bits; two different ones differ in 27 or more.
    """
    words = np.ascontiguousarray(steps).view(np.uint64)  # (n, 4)
    for number in range(at_most + 1):
        keys = _band(steps, number, at_most + 1)
        order = np.argsort(keys, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(keys[order]) != 0, True])
        for run in np.flatnonzero(np.diff(starts) > 1):
            rows = order[starts[run] : starts[run + 1]]
            for at, row in enumerate(rows[:-1]):
                others = rows[at + 1 :]
                apart = np.bitwise_count(words[others] ^ words[row]).sum(axis=1)
                for other, bits in zip(others[apart <= at_most].tolist(), apart[apart <= at_most].tolist()):
                    first, second = sorted((int(row), other))
                    yield first, second, bits


def _band(steps: np.ndarray, number: int, bands: int) -> np.ndarray:
    """(n, 32) uint8 -> (n,) uint32: every so many bits of 256, spread over the picture, from bit `number` on."""
    keys = np.empty(len(steps), dtype=np.uint32)
    for start in range(0, len(steps), 16384):
        bits = np.unpackbits(steps[start : start + 16384], axis=1)[:, number::bands].astype(np.uint32)
        keys[start : start + len(bits)] = bits @ (1 << np.arange(bits.shape[1], dtype=np.uint32))
    return keys


@dataclass(frozen=True)
class Doubts:
    """What the pictures say of their views, as far as a small classifier can tell."""

    lateral: np.ndarray
    """(n,) probability of a lateral view, for each labelled picture from a fit that did not see its study."""
    accuracy: float
    """Share of labelled pictures that it told rightly, each from a fit that did not see its study."""
    fitted_on: int


def view_doubts(
    small: np.ndarray,
    aspects: np.ndarray,
    lateral: np.ndarray,
    studies: np.ndarray,
    *,
    seed: int = 0,
    most: int = 20_000,
) -> Doubts | None:
    """Frontal or lateral, by logistic regression on the data's own labels, cross-validated over studies in five folds.

    small (n, 256) uint8, aspects (n,), lateral (n,) 1, 0 or -1 where no label says it, studies (n,) numbers. None
    where there are fewer than 25 pictures of either view. Nobody's weights are shipped: the data judge themselves, so
    that labels which are wrong everywhere in the same way stay unseen.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    labelled = np.flatnonzero(lateral >= 0)
    if min((lateral == 0).sum(), (lateral == 1).sum()) < 25:
        return None
    rng = np.random.default_rng(seed)
    fold = rng.integers(0, 5, int(studies.max()) + 1)[studies]  # a study's pictures share their fold
    learned_from = labelled if len(labelled) <= most else rng.choice(labelled, most, replace=False)
    told = np.zeros(len(small))
    for held_out in range(5):
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
        rows = learned_from[fold[learned_from] != held_out]
        model.fit(_features(small[rows], aspects[rows]), lateral[rows])
        ask = np.flatnonzero(fold == held_out)
        for part in np.array_split(ask, len(ask) // 10_000 + 1):
            if len(part):
                told[part] = model.predict_proba(_features(small[part], aspects[part]))[:, 1]
    right = (told[labelled] > 0.5) == lateral[labelled]
    return Doubts(told, float(right.mean()), len(learned_from))


def _features(small: np.ndarray, aspects: np.ndarray) -> np.ndarray:
    """(n, 256) and (n,) -> (n, 385): grey values without exposure, how unlike left and right are, width over height."""
    grey = small.astype(np.float32)
    grey = (grey - grey.mean(axis=1, keepdims=True)) / (grey.std(axis=1, keepdims=True) + 1)
    square = grey.reshape(-1, SIDE, SIDE)
    unlike = np.abs(square - square[:, :, ::-1])[:, :, : SIDE // 2].reshape(len(grey), -1)
    return np.column_stack([grey, unlike, aspects])

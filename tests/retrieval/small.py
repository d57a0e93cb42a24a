"""Small stores, caches and corpora for the tests of this room."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from negatoscope.vision.features import FeatureCache, FeatureKey, array_path
from negatoscope.whole_files import write_json, write_text


def cache_of(
    folder: Path, hashes: Sequence[str], *, patches: int = 9, width: int = 16, maps: dict[str, np.ndarray] | None = None
) -> tuple[FeatureCache, dict[str, np.ndarray]]:
    """A cache with these pictures' features, drawn at random where none are given."""
    key = FeatureKey(
        backbone="drawn",
        weights="0" * 64,
        image_size=32,
        fit="squash",
        precision="float32",
        pooled=False,
        patches=patches,
        width=width,
    )
    rng = np.random.default_rng(0)
    held = {name: rng.normal(size=(patches, width)).astype(np.float16) for name in hashes} | (maps or {})
    folder = folder / "features"
    write_text(folder / "cache.json", key.model_dump_json())
    np.save(array_path(folder, 0), np.stack([held[name] for name in hashes]).astype(np.float16))
    write_json(array_path(folder, 0).with_suffix(".json"), list(hashes))
    return FeatureCache.open(folder), held

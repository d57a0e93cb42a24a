"""Small stores, caches and corpora for the tests of this room."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from negatoscope.studies.store import About, Store, write_about, write_part
from negatoscope.studies.study import Picture, Study
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


# What each finding is told as; every wording also occurs elsewhere, so that a group has several.
SAID = {
    "heart": ("The heart is enlarged.", "The heart is moderately enlarged."),
    "left effusion": ("There is a small left pleural effusion.", "Small left pleural effusion is seen."),
    "right effusion": ("There is a small right pleural effusion.", "Small right pleural effusion is seen."),
    "fracture": ("There is an old rib fracture.", "Old rib fracture is noted."),
}
NORMAL = ("The lungs are clear.", "No pneumothorax is seen.")
WIDTH, SIDE = 24, 3


def place_of(finding: int, view: str) -> int:
    """The cell of the grid where a finding shines."""
    return (2 * finding + (4 if view == "lateral" else 0)) % (SIDE * SIDE)


def drawn_studies(count: int, *, seed: int = 0, normal: float = 0.2) -> tuple[list[Study], dict[str, np.ndarray]]:
    """Studies whose findings shine at one place of the frontal view's features and another of the lateral's, and the
    features of their pictures. Every seventh has no lateral view."""
    rng = np.random.default_rng(seed)
    names = list(SAID)
    of_finding = rng.normal(size=(len(names), WIDTH))
    studies, maps = [], {}
    for number in range(count):
        chosen = (
            [] if rng.random() < normal else sorted(rng.choice(len(names), rng.integers(1, 3), replace=False).tolist())
        )
        said = [SAID[names[k]][rng.integers(2)] for k in chosen]
        pictures = []
        for view in ("frontal", "lateral")[: 1 if number % 7 == 6 else 2]:
            seen = rng.normal(size=(SIDE * SIDE, WIDTH)) * 0.3
            for k in chosen:
                seen[place_of(k, view)] += 2 * of_finding[k]
            name = f"{number}-{view}"
            maps[name] = seen.astype(np.float16)
            pictures.append(Picture(f"{name}.png", view, sha256=name))  # pyright: ignore[reportArgumentType]
        if number % 5 == 0:
            pictures.reverse()  # the lateral picture may come first
        split = ("train", "train", "train", "val")[number % 4]
        studies.append(Study(f"s{number:03}", tuple(pictures), " ".join([*said, *NORMAL]), split))  # pyright: ignore[reportArgumentType]
    return studies, maps


def store_at(root: Path, studies: Sequence[Study], **about: Any) -> Store:
    write_part(root, 0, studies)
    splits = {split: sum(study.split == split for study in studies) for split in ("train", "val", "test", "none")}
    pictures = sum(len(study.pictures) for study in studies)
    counts = {"studies": len(studies), "pictures": pictures, **splits, "damaged": 0}
    write_about(root, About(complete=True, source="drawn", parts=1, counts=counts, **about))
    return Store.open(root)


def drawn_store(root: Path, count: int = 120) -> tuple[Store, FeatureCache]:
    studies, maps = drawn_studies(count)
    cache, _ = cache_of(root, list(maps), patches=SIDE * SIDE, width=WIDTH, maps=maps)
    return store_at(root / "store", studies), cache

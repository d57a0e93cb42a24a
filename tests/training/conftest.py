"""A small store of drawn pictures whose reports follow from them, for runs of seconds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from negatoscope.studies.pixels import read_pixels
from negatoscope.studies.store import SCHEMA, About, Store, write_about, write_part
from negatoscope.studies.study import Picture, Split, Study
from negatoscope.training.recipe import Recipe, recipe_of

REPORTS = {
    "left": "the left lung is white . the right lung is clear .",
    "right": "the right lung is white . the left lung is clear .",
    "none": "both of the lungs are clear . no effusion is seen .",
}
assert len({len(report.split()) for report in REPORTS.values()}) == 1, "so that the parts of a batch weigh the same"


def _study(root: Path, number: int, split: Split) -> Study:
    """A white half, or none: a convolution learns it at once."""
    rng = np.random.default_rng(number)
    finding = ("left", "right", "none")[number % 3]
    grey = rng.integers(0, 40, (32, 32), dtype=np.uint8)
    if finding != "none":
        grey[:, 16:] += np.uint8(200) * (finding == "left")
        grey[:, :16] += np.uint8(200) * (finding == "right")
    pictures = []
    for view in ("frontal", "lateral")[: 1 + number % 2]:
        path = f"images/{number}-{view}.png"
        Image.fromarray(grey).save(root / path)
        digest = read_pixels(root / path).sha256()
        pictures.append(Picture(path, view, width=32, height=32, sha256=digest))  # pyright: ignore[reportArgumentType]
    return Study(
        f"s{number:03}", tuple(pictures), REPORTS[finding], split, labels={"Lung Opacity": int(finding != "none")}
    )


@pytest.fixture(scope="session")
def small_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("store")
    (root / "images").mkdir()
    studies = [_study(root, i, "train" if i < 24 else "val" if i < 33 else "test") for i in range(36)]
    write_part(root, 0, studies)
    counts = {
        "studies": 36,
        "pictures": sum(len(s.pictures) for s in studies),
        "train": 24,
        "val": 9,
        "test": 3,
        "none": 0,
    }
    write_about(root, About(complete=True, source="drawn", parts=1, counts=counts))
    assert len(Store.open(root)) == 36
    assert SCHEMA
    return root


@pytest.fixture
def small_recipe(small_store: Path) -> Callable[..., Recipe]:
    def make(**train: Any) -> Recipe:
        return recipe_of(
            {
                "data": {
                    "store": str(small_store),
                    "augment": {"margin": 1.1},
                    "vocabulary": {"cutoff": 1, "max_words": 20},
                },
                "encoder": {"backbone": "resnet10-narrow", "image_size": 32},
                "model": {"name": "nic", "width": 24, "dropout": 0.2},
                "train": {"epochs": 2, "batch": 6, "lr": 3e-3, "encoder_lr": 1e-3, "precision": "float32", **train},
                "decode": {"beam": 1, "max_words": 20},
            }
        )

    return make

"""Features of pictures, computed once: a folder of memory-mapped half-precision arrays, found by the picture's hash.

    cache.json         what the features are: backbone, the hash of its weights, size, precision (FeatureKey)
    part-00000.npy     (pictures, N, D) float16
    part-00000.json    the SHA-256 of each of its pictures, in order; written last: without it there is no part

Two pictures with the same grey values are one entry. An interrupted run goes on after its last whole part.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from negatoscope.errors import BadInput, WrongUse
from negatoscope.settings import Settings
from negatoscope.studies.loader import Seen
from negatoscope.studies.store import Store
from negatoscope.studies.study import Picture, Study
from negatoscope.vision.encoder import CACHED, EncoderSettings, cached_width
from negatoscope.vision.precision import Precision
from negatoscope.vision.prepare import Fit
from negatoscope.vision.weights import load_backbone, weights_hash

FORMAT = 1
_REMEDY = "make the features anew: negatoscope features STORE --out ANOTHER_FOLDER"


class FeatureKey(Settings):
    """All that decides what the features of a picture are."""

    format: int = FORMAT
    backbone: str
    weights: str
    """SHA-256 over the backbone's tensors."""
    stages: tuple[int, ...] = ()
    image_size: int
    fit: Fit
    precision: Precision
    pooled: bool
    """One vector a picture, the mean of its patches."""
    patches: int
    width: int


class FeatureCache:
    """Opened once, read lazily: a part is mapped when its first picture is asked for."""

    def __init__(self, path: Path, key: FeatureKey) -> None:
        self.path, self.key = path, key
        self.parts = 0
        self._rows: dict[str, tuple[int, int]] = {}  # hash -> part, row
        self._sizes: list[int] = []
        self._arrays: dict[int, np.memmap] = {}
        while (listed := listed_in(path, self.parts)) is not None:
            self._rows |= {sha256: (self.parts, row) for row, sha256 in enumerate(listed)}
            self._sizes.append(len(listed))
            self.parts += 1

    @classmethod
    def open(cls, path: Path | str) -> FeatureCache:
        """Raises BadInput where there is no cache or a damaged one."""
        path = Path(path)
        key = read_key(path)
        if key is None:
            remedy = "make them first: negatoscope features STORE --out CACHE"
            raise BadInput("no cache of features here", where=path, remedy=remedy)
        return cls(path, key)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, sha256: str) -> bool:
        return sha256 in self._rows

    def get(self, sha256: str) -> np.ndarray:
        """The features of a picture, (N, D) float16: a view into the file, nothing is read before it is used.

        Raises BadInput for a picture that the cache does not hold.
        """
        if sha256 not in self._rows:
            remedy = "run the same `negatoscope features` again over the whole store"
            raise BadInput(
                f"no features of the picture {sha256[:12] or 'without hash'}", where=self.path, remedy=remedy
            )
        part, row = self._rows[sha256]
        return self._array(part)[row]

    def must_fit(self, settings: EncoderSettings) -> None:
        """Raises WrongUse, naming the first difference, where an encoder of these settings would compute other
        features."""
        if settings.backbone.startswith(CACHED):
            must_agree(self.path, self.key, {"width": cached_width(settings.backbone)})
            return
        wanted: dict[str, Any] = {
            "backbone": settings.backbone,
            "stages": settings.stages,
            "image_size": settings.image_size,
            "fit": settings.fit,
        }
        must_agree(self.path, self.key, wanted)
        # Read last: it takes a moment, and a wrong name would make it fail less clearly.
        wanted["weights"] = weights_hash(load_backbone(settings.backbone, settings.weights))
        must_agree(self.path, self.key, wanted)

    def _array(self, part: int) -> np.memmap:
        if part not in self._arrays:
            path = array_path(self.path, part)
            try:
                array = np.load(path, mmap_mode="r", allow_pickle=False)
            except (OSError, ValueError, EOFError) as error:
                raise BadInput(f"a part of the cache is damaged ({error})", where=path, remedy=_REMEDY) from error
            if array.dtype != np.float16 or array.shape != (self._sizes[part], self.key.patches, self.key.width):
                raise BadInput(f"a part of the cache is damaged (it holds {array.shape})", where=path, remedy=_REMEDY)
            self._arrays[part] = array
        return self._arrays[part]

    def __getstate__(self) -> dict[str, Any]:
        # A memory map that travels to a worker process would travel with its contents.
        return self.__dict__ | {"_arrays": {}}


@dataclass(frozen=True)
class LookAtFeatures:
    """How the loader sees a study whose pictures' features are cached."""

    cache: FeatureCache

    @classmethod
    def open(cls, path: Path | str, settings: EncoderSettings) -> LookAtFeatures:
        """Raises WrongUse for a cache that another encoder made."""
        cache = FeatureCache.open(path)
        cache.must_fit(settings)
        return cls(cache)

    def __call__(self, store: Store, study: Study, pictures: Sequence[Picture | None], epoch: int) -> Seen:
        """Features (V, N, D); zeros where a slot holds no picture."""
        if not any(pictures):
            raise BadInput("none of its pictures can be shown", where=study.id, remedy="leave the study out")
        key = self.cache.key
        features = torch.zeros(len(pictures), key.patches, key.width, dtype=torch.float16)
        for slot, picture in enumerate(pictures):
            if picture is not None:
                features[slot] = torch.from_numpy(self._of(study, picture))
        return Seen(study.report, features=features)

    def _of(self, study: Study, picture: Picture) -> np.ndarray:
        try:
            return np.array(self.cache.get(picture.sha256))
        except BadInput as error:
            raise BadInput(error.what, where=f"study {study.id}: {error.where}", remedy=error.remedy) from error


# --- the folder
# ----------------------------------------------------------------------------------------------------------


def array_path(path: Path, part: int) -> Path:
    return path / f"part-{part:05d}.npy"


def listed_in(path: Path, part: int) -> list[str] | None:
    """The hashes of a part's pictures; None where there is no such part."""
    listed = array_path(path, part).with_suffix(".json")
    try:
        hashes = json.loads(listed.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise BadInput("a part of the cache is damaged", where=listed, remedy=_REMEDY) from error
    return hashes


def read_key(path: Path) -> FeatureKey | None:
    try:
        said = json.loads((path / "cache.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        raise BadInput("is no cache of features", where=path / "cache.json", remedy=_REMEDY) from error
    try:
        return FeatureKey.model_validate(said)
    except ValueError as error:
        raise BadInput("is no cache of features of this version", where=path / "cache.json", remedy=_REMEDY) from error


def must_agree(path: Path, key: FeatureKey, wanted: dict[str, Any]) -> None:
    for name, value in wanted.items():
        known = getattr(key, name)
        if known != value:
            shown, wish = (str(it)[:12] if name == "weights" else it for it in (known, value))
            raise WrongUse(
                f"features of {name} {shown!r}, and {wish!r} is wanted",
                where=path,
                remedy="give the same backbone, weights and settings, or another folder",
            )

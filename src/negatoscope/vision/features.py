"""Features of pictures, computed once: a folder of memory-mapped half-precision arrays, found by the picture's hash.

    cache.json         what the features are: backbone, the hash of its weights, size, precision (FeatureKey)
    part-00000.npy     (pictures, N, D) float16
    part-00000.json    the SHA-256 of each of its pictures, in order; written last: without it there is no part

Two pictures with the same grey values are one entry. An interrupted run goes on after its last whole part.
"""

from __future__ import annotations

import fcntl
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from negatoscope.errors import BadInput, Trouble, WrongUse
from negatoscope.settings import Settings
from negatoscope.studies.loader import Seen
from negatoscope.studies.pixels import read_pixels
from negatoscope.studies.store import Store
from negatoscope.studies.study import Picture, Split, Study
from negatoscope.vision.encoder import Encoder, EncoderSettings, build_encoder
from negatoscope.vision.precision import Precision, fast_precision
from negatoscope.vision.prepare import Fit, as_shown, prepare
from negatoscope.vision.read_ahead import read_ahead
from negatoscope.vision.weights import load_backbone, weights_hash
from negatoscope.watch import Watch, quiet
from negatoscope.whole_files import whole_file, write_json

FORMAT = 1
PICTURES_A_PART = 256  # 49 x 2048 of each: 51 MB, the most that an interruption costs
_REMEDY = "make the features anew: negatoscope features STORE --out ANOTHER_FOLDER"


class FeatureKey(Settings):
    """All that decides what the features of a picture are."""

    format: int = FORMAT
    backbone: str
    weights: str
    """SHA-256 over the backbone's tensors."""
    image_size: int
    fit: Fit
    precision: Precision
    pooled: bool
    """One vector a picture, the mean of its patches."""
    patches: int
    width: int


@dataclass(frozen=True)
class Extraction:
    """What `extract_features` did."""

    cache: str
    pictures: int
    """In the cache now, of those that were asked for."""
    computed: int
    """By this run; the others were there already."""
    seconds: float
    rate: float
    """Pictures a second of this run."""
    left_out: tuple[str, ...]
    """One line for each picture that could not be read (with skip_bad)."""
    key: dict[str, Any] = field(default_factory=dict)


class FeatureCache:
    """Opened once, read lazily: a part is mapped when its first picture is asked for."""

    def __init__(self, path: Path, key: FeatureKey) -> None:
        self.path, self.key = path, key
        self.parts = 0
        self._rows: dict[str, tuple[int, int]] = {}  # hash -> part, row
        self._sizes: list[int] = []
        self._arrays: dict[int, np.memmap] = {}
        while (listed := _listed(path, self.parts)) is not None:
            self._rows |= {sha256: (self.parts, row) for row, sha256 in enumerate(listed)}
            self._sizes.append(len(listed))
            self.parts += 1

    @classmethod
    def open(cls, path: Path | str) -> FeatureCache:
        """Raises BadInput where there is no cache or a damaged one."""
        path = Path(path)
        key = _read_key(path)
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
        wanted: dict[str, Any] = {
            "backbone": settings.backbone,
            "image_size": settings.image_size,
            "fit": settings.fit,
        }
        _must_agree(self.path, self.key, wanted)
        # Read last: it takes a moment, and a wrong name would make it fail less clearly.
        wanted["weights"] = weights_hash(load_backbone(settings.backbone, settings.weights))
        _must_agree(self.path, self.key, wanted)

    def _array(self, part: int) -> np.memmap:
        if part not in self._arrays:
            path = _array_path(self.path, part)
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


def extract_features(
    store: Store,
    settings: EncoderSettings,
    out: Path | str,
    *,
    pooled: bool = False,
    split: Split | None = None,
    batch: int = 16,
    device: str = "cpu",
    skip_bad: bool = False,
    pictures_a_part: int = PICTURES_A_PART,
    watch: Watch = quiet,
) -> Extraction:
    """The features of every picture of a store (or one split of it), into the folder `out`; what is there already
    stays.

    Without `settings.precision` the fastest of the device is taken and recorded. Raises WrongUse where `out` holds
    features of another kind, BadInput for a picture that cannot be read or that changed since its import, unless
    `skip_bad`.
    """
    out = Path(out)
    precision = settings.precision or fast_precision(device)
    encoder = build_encoder(settings.model_copy(update={"frozen": True, "precision": precision})).to(device).eval()
    key = key_of(encoder, settings, precision, pooled=pooled)
    with _alone(out):
        cache = _started(out, key)
        pictures = _distinct(store, split)
        wanted = {sha256: at for sha256, at in pictures.items() if sha256 not in cache}
        left_out: list[str] = []
        began = perf_counter()
        read = read_ahead(wanted.items(), lambda item: _read(*item, store, settings), ahead=2 * batch)
        shown = watch(read, "computing features", len(wanted))
        found = _features_of(_good(shown, left_out, skip_bad=skip_bad), encoder, batch, device, pooled)
        computed = 0
        for part, group in enumerate(_groups(found, pictures_a_part), start=cache.parts):
            _write_part(out, part, group)
            computed += len(group)
        seconds = perf_counter() - began
    rate = computed / seconds if computed else 0.0
    held = len(pictures) - len(left_out)
    return Extraction(str(out), held, computed, seconds, rate, tuple(left_out), key.model_dump())


def key_of(encoder: Encoder, settings: EncoderSettings, precision: Precision, *, pooled: bool) -> FeatureKey:
    assert encoder.backbone is not None
    with torch.no_grad():
        device = next(encoder.backbone.parameters()).device
        seen = encoder.maps(torch.zeros(1, 1, settings.image_size, settings.image_size, device=device))
    return FeatureKey(
        backbone=settings.backbone,
        weights=weights_hash(encoder.backbone),
        image_size=settings.image_size,
        fit=settings.fit,
        precision=precision,
        pooled=pooled,
        patches=1 if pooled else seen.shape[2] * seen.shape[3],
        width=encoder.width,
    )


# --- reading pictures -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Place:
    study: str
    path: str


def _distinct(store: Store, split: Split | None) -> dict[str, _Place]:
    places: dict[str, _Place] = {}
    for study in store.studies(split):
        for picture in study.pictures:
            if not picture.sha256:
                raise BadInput(
                    "a picture without its hash", where=f"study {study.id}: {picture.path}", remedy="import it anew"
                )
            places.setdefault(picture.sha256, _Place(study.id, picture.path))
    return places


def _read(sha256: str, place: _Place, store: Store, settings: EncoderSettings) -> tuple[str, Tensor] | BadInput:
    """The picture ready for the encoder, or why not: a thread that raised would lose its place in the order."""
    path = store.picture_path(place.path)
    where = f"study {place.study}: {path}"
    try:
        pixels = read_pixels(path)
    except BadInput as error:
        return BadInput(error.what, where=where, remedy=error.remedy)
    if pixels.sha256() != sha256:
        return BadInput("the picture is not the one that was imported", where=where, remedy="import the store anew")
    return sha256, prepare(as_shown(pixels), settings.image_size, fit=settings.fit)


def _good(
    read: Iterable[tuple[str, Tensor] | BadInput], left_out: list[str], *, skip_bad: bool
) -> Iterator[tuple[str, Tensor]]:
    for one in read:
        if not isinstance(one, BadInput):
            yield one
        elif skip_bad:
            left_out.append(str(one))
        else:
            raise one


# --- computing
# ----------------------------------------------------------------------------------------------------------


def _features_of(
    pictures: Iterable[tuple[str, Tensor]], encoder: Encoder, batch: int, device: str, pooled: bool
) -> Iterator[tuple[str, np.ndarray]]:
    """Each picture's hash and features (N, D) float16."""
    for group in _groups(pictures, batch):
        images = torch.stack([image for _, image in group]).to(device)  # (n, 1, H, W)
        with torch.inference_mode():
            seen = encoder.maps(images).float().flatten(2).transpose(1, 2)  # (n, N, D)
            half = (seen.mean(1, keepdim=True) if pooled else seen).half().cpu().numpy()
        if not np.isfinite(half).all():
            raise Trouble("a feature is too large for half precision or no number", where=encoder.__class__.__name__)
        yield from zip((sha256 for sha256, _ in group), half)


def _groups(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    group: list[Any] = []
    for item in items:
        group.append(item)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


# --- the folder
# ----------------------------------------------------------------------------------------------------------


def _array_path(path: Path, part: int) -> Path:
    return path / f"part-{part:05d}.npy"


def _listed(path: Path, part: int) -> list[str] | None:
    """The hashes of a part's pictures; None where there is no such part."""
    listed = _array_path(path, part).with_suffix(".json")
    try:
        hashes = json.loads(listed.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise BadInput("a part of the cache is damaged", where=listed, remedy=_REMEDY) from error
    return hashes


def _write_part(path: Path, part: int, group: Sequence[tuple[str, np.ndarray]]) -> None:
    array = np.stack([features for _, features in group])  # (pictures, N, D)
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(array))
    with whole_file(_array_path(path, part)) as temporary, temporary.open("wb") as file:
        # Not np.save: on a full disk it forgets why writing failed.
        file.write(head.getvalue())
        file.write(array.data)
    write_json(_array_path(path, part).with_suffix(".json"), [sha256 for sha256, _ in group])


def _read_key(path: Path) -> FeatureKey | None:
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


def _started(path: Path, key: FeatureKey) -> FeatureCache:
    known = _read_key(path)
    if known is None:
        write_json(path / "cache.json", key.model_dump())
    else:
        _must_agree(path, known, key.model_dump())
    return FeatureCache(path, key)


def _must_agree(path: Path, key: FeatureKey, wanted: dict[str, Any]) -> None:
    for name, value in wanted.items():
        known = getattr(key, name)
        if known != value:
            shown, wish = (str(it)[:12] if name == "weights" else it for it in (known, value))
            raise WrongUse(
                f"features of {name} {shown!r}, and {wish!r} is wanted",
                where=path,
                remedy="give the same backbone, weights and settings, or another folder",
            )


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Two processes that write the same parts would mix up whose pictures they hold."""
    path.mkdir(parents=True, exist_ok=True)
    with (path / ".writing").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Trouble(
                "another process is writing features here", where=path, remedy="wait for it to end"
            ) from error
        yield

"""The features of a store's pictures into a cache: read ahead in threads, computed in batches, written part by part."""

from __future__ import annotations

import fcntl
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from negatoscope.errors import BadInput, Trouble
from negatoscope.studies.pixels import read_pixels
from negatoscope.studies.store import Store
from negatoscope.studies.study import Split
from negatoscope.vision.encoder import Encoder, EncoderSettings, build_encoder
from negatoscope.vision.features import FeatureCache, FeatureKey, array_path, must_agree, read_key
from negatoscope.vision.precision import Precision, checked_device, fast_precision
from negatoscope.vision.prepare import as_shown, prepare
from negatoscope.vision.read_ahead import read_ahead
from negatoscope.vision.weights import weights_hash
from negatoscope.watch import Watch, quiet
from negatoscope.whole_files import make_folder, whole_file, write_json

PICTURES_A_PART = 256  # 49 x 2048 of each: 51 MB, the most that an interruption costs


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
    checked_device(device)
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
        stages=settings.stages,
        weights=weights_hash(encoder.backbone),
        image_size=settings.image_size,
        fit=settings.fit,
        precision=precision,
        pooled=pooled,
        patches=1 if pooled else seen.shape[2] * seen.shape[3],
        width=encoder.width,
    )


@dataclass(frozen=True)
class _Place:
    study: str
    path: str


def _distinct(store: Store, split: Split | None) -> dict[str, _Place]:
    places: dict[str, _Place] = {}
    for study in store.studies(split):
        for picture in study.pictures:
            if not picture.sha256:
                where = f"study {study.id}: {picture.path}"
                raise BadInput("a picture without its hash", where=where, remedy="import it anew")
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


def _write_part(path: Path, part: int, group: Sequence[tuple[str, np.ndarray]]) -> None:
    array = np.stack([features for _, features in group])  # (pictures, N, D)
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(array))
    with whole_file(array_path(path, part)) as temporary, temporary.open("wb") as file:
        # Not np.save: on a full disk it forgets why writing failed.
        file.write(head.getvalue())
        file.write(array.data)
    write_json(array_path(path, part).with_suffix(".json"), [sha256 for sha256, _ in group])


def _started(path: Path, key: FeatureKey) -> FeatureCache:
    known = read_key(path)
    if known is None:
        write_json(path / "cache.json", key.model_dump())
    else:
        must_agree(path, known, key.model_dump())
    return FeatureCache(path, key)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Two processes that write the same parts would mix up whose pictures they hold."""
    make_folder(path)
    with (path / ".writing").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            said = "another process is writing features here"
            raise Trouble(said, where=path, remedy="wait for it to end") from error
        yield

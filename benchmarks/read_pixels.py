"""How fast `read_pixels` is, as a ratio to plain Pillow or pydicom in the same process, and what it needs in memory.

    python benchmarks/read_pixels.py                    drawn pictures, and pydicom-data's real radiograph if installed
    python benchmarks/read_pixels.py --images FOLDER    your own JPEG or PNG files instead of the drawn ones

What the plain readers do not do, and ours does: tells the format by content, checks size and checksums before it
decodes, turns MONOCHROME1, keeps 16 bit. `+ to_8bit` adds the window or percentiles.
"""

from __future__ import annotations

import argparse
import io
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pydicom
from PIL import Image
from pydicom.data import get_testdata_file

from negatoscope.studies.pixels import read_pixels, to_8bit


def plain_pillow(data: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(image if image.mode.startswith("I") else image.convert("L"))


def plain_pydicom(data: bytes) -> np.ndarray:
    return pydicom.dcmread(io.BytesIO(data)).pixel_array


def drawn(rng: np.random.Generator, size: int, depth: int) -> np.ndarray:
    """(size, size) uint8 or uint16 with the smoothness and the noise of a radiograph."""
    coarse = Image.fromarray(rng.random((24, 24), dtype=np.float32)).resize((size, size), Image.Resampling.BICUBIC)
    grey = np.clip(np.asarray(coarse) + rng.normal(0, 0.01, (size, size)), 0, 1)
    return (grey * (2**depth - 1)).astype(np.uint8 if depth == 8 else np.uint16)


def encoded(grey: np.ndarray, form: str) -> bytes:
    data = io.BytesIO()
    Image.fromarray(grey).save(data, form)
    return data.getvalue()


def per_second(read: Callable[[bytes], object], files: list[bytes], seconds: float) -> float:
    """Files a second: the best of three goes, so that a busy machine does not decide."""
    best = 0.0
    for _ in range(3):
        start, count = time.perf_counter(), 0
        while time.perf_counter() - start < seconds / 3:
            for data in files:
                read(data)
            count += len(files)
        best = max(best, count / (time.perf_counter() - start))
    return best


def cases(arguments: argparse.Namespace) -> dict[str, tuple[list[bytes], Callable[[bytes], np.ndarray]]]:
    rng = np.random.default_rng(arguments.seed)
    if arguments.images:
        paths = sorted(path for path in arguments.images.rglob("*") if path.suffix in (".jpg", ".png"))[:200]
        return {f"{len(paths)} files of {arguments.images}": ([path.read_bytes() for path in paths], plain_pillow)}
    found: dict[str, tuple[list[bytes], Callable[[bytes], np.ndarray]]] = {}
    for size, depth, form in (
        (320, 8, "JPEG"),
        (320, 8, "PNG"),
        (2048, 8, "JPEG"),
        (2048, 8, "PNG"),
        (2048, 16, "PNG"),
    ):
        pictures = [encoded(drawn(rng, size, depth), form) for _ in range(4 if size < 1000 else 1)]
        found[f"{form} {depth} bit, {size} x {size}"] = (pictures, plain_pillow)
    for name in ("RG1_UNCR.dcm", "RG1_J2KR.dcm"):
        path = get_testdata_file(name, download=False)
        if path is not None:
            found[f"{name} 15 bit, 1841 x 1955"] = ([Path(str(path)).read_bytes()], plain_pydicom)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each figure")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(f"{'':36}{'plain':>10}{'read_pixels':>14}{'ratio':>8}{'+ to_8bit':>12}{'ratio':>8}    (files a second)")
    for name, (files, plain) in cases(arguments).items():
        bare = per_second(plain, files, arguments.seconds)
        ours = per_second(read_pixels, files, arguments.seconds)
        shown = per_second(lambda data: to_8bit(read_pixels(data)), files, arguments.seconds)
        print(f"{name:36}{bare:10.1f}{ours:14.1f}{ours / bare:8.2f}{shown:12.1f}{shown / bare:8.2f}")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()

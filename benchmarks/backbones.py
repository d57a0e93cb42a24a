"""Images a second through a backbone, float32 against bf16 with channels last; cached features against computing.

    python benchmarks/backbones.py [--backbones resnet50 densenet121] [--images 32] [--threads 2]

Every figure is a ratio to a peer that ran in the same process, the two taking turns; cosine similarity says what the
lower precision does to the features; peak memory is the whole process's, one process a backbone.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from time import perf_counter

import numpy as np

TURNS = 3


def best_of_turns(*peers: Callable[[], object]) -> list[float]:
    """Seconds of each peer, the best of `TURNS`, taking turns so that a busy moment of the machine hits all of them."""
    for peer in peers:
        peer()
    best = [float("inf")] * len(peers)
    for _ in range(TURNS):
        for number, peer in enumerate(peers):
            began = perf_counter()
            peer()
            best[number] = min(best[number], perf_counter() - began)
    return best


def forward(name: str, images: int, weights: Path | None) -> None:
    import torch

    from negatoscope.vision.encoder import Encoder
    from negatoscope.vision.weights import load_backbone

    torch.manual_seed(0)
    backbone = load_backbone(name, weights)
    ways = {
        "plain": {"channels_last": False, "precision": "float32"},
        "last": {"channels_last": True, "precision": "float32"},
        "low": {"channels_last": True, "precision": "bf16"},
    }
    x = _smooth_pictures(images)
    out: dict[str, torch.Tensor] = {}

    def run(what: str) -> Callable[[], None]:
        encoder = Encoder(deepcopy(backbone), frozen=True, **ways[what]).eval()

        def once() -> None:
            out[what] = encoder.maps(x).float()

        return once

    seconds, of_last, of_low = best_of_turns(*map(run, ways))
    flat = {what: seen.flatten(2).transpose(1, 2) for what, seen in out.items()}  # (n, N, D)
    patches = torch.nn.functional.cosine_similarity(flat["plain"], flat["low"], dim=2)
    overall = torch.nn.functional.cosine_similarity(flat["plain"].mean(1), flat["low"].mean(1), dim=1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{name:14s} {images / seconds:8.1f} {images / of_last:8.1f} {images / of_low:8.1f} images/s"
        f"   bf16 {of_last / of_low:4.2f} x   cosine of patches {patches.mean():.5f} (least {patches.min():.5f}),"
        f" of means {overall.min():.5f}   peak {peak:,.0f} MiB",
        flush=True,
    )


def cache(name: str, images: int) -> None:
    """Epochs of pictures from the cache against decoding and encoding them, and what the cache weighs."""
    import torch
    from safetensors.torch import save_file

    from negatoscope.studies.loader import StudyLoader
    from negatoscope.vision import backbones
    from negatoscope.vision.augment import LookAtFiles
    from negatoscope.vision.encoder import EncoderSettings, build_encoder
    from negatoscope.vision.extract import extract_features
    from negatoscope.vision.features import LookAtFeatures

    with tempfile.TemporaryDirectory() as folder:
        store = _store_of_noise(Path(folder) / "store", images)
        torch.manual_seed(0)
        save_file(backbones.build(name).state_dict(), Path(folder) / "w.safetensors")
        settings = EncoderSettings(backbone=name, weights=Path(folder) / "w.safetensors", frozen=True, precision="bf16")
        done = extract_features(store, settings, Path(folder) / "cache", device="cpu")
        encoder = build_encoder(settings).eval()
        files = StudyLoader(store, "train", LookAtFiles(), slots=1)
        cached = StudyLoader(store, "train", LookAtFeatures.open(Path(folder) / "cache", settings), slots=1)

        def epoch(loader: StudyLoader) -> Callable[[], None]:
            def once() -> None:
                for batch in loader.epoch():
                    encoder(batch)

            return once

        slow, fast = best_of_turns(epoch(files), epoch(cached))
        size = sum(path.stat().st_size for path in (Path(folder) / "cache").iterdir()) / images / 1024
    print(
        f"{name}: extracting {done.rate:.1f} pictures/s; an epoch from files {images / slow:.1f} a second,"
        f" from the cache {images / fast:.1f}: {slow / fast:.1f} x; {size:.0f} KiB a picture"
    )


def _smooth_pictures(images: int):
    """(n, 1, 224, 224): low frequencies as in a radiograph; white noise would flatter the lower precision."""
    import torch

    coarse = torch.rand(images, 1, 14, 14, generator=torch.Generator().manual_seed(0))
    return torch.nn.functional.interpolate(coarse, 224, mode="bicubic").clamp(0, 1)


def _store_of_noise(path: Path, images: int):
    from PIL import Image

    from negatoscope.studies.pixels import read_pixels
    from negatoscope.studies.store import About, Store, write_about, write_part
    from negatoscope.studies.study import Picture, Study

    (path / "images").mkdir(parents=True)
    rng = np.random.default_rng(0)
    studies = []
    for number in range(images):
        coarse = Image.fromarray(rng.integers(0, 256, (24, 20), dtype=np.uint8))
        name = f"images/{number}.png"
        coarse.resize((320, 384), Image.Resampling.BICUBIC).save(path / name)
        picture = Picture(name, "frontal", sha256=read_pixels(path / name).sha256())
        studies.append(Study(f"s{number}", (picture,), "a report", "train"))
    write_part(path, 0, studies)
    write_about(path, About(source="noise", complete=True, parts=1, counts={"studies": images}))
    return Store.open(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--backbones", nargs="+", default=["resnet50", "densenet121", "vgg19", "mobilenetv2", "resnet101"]
    )
    parser.add_argument("--weights", type=Path, help="of the one backbone; else untrained")
    parser.add_argument("--images", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    args = parser.parse_args()

    import torch

    torch.set_num_threads(args.threads)
    if args.alone:
        forward(args.alone, args.images, args.weights)
        return
    print(f"{args.images} pictures of 224 x 224, {args.threads} threads")
    print(f"{'':14s} {'float32':>8s} {'+last':>8s} {'bf16':>8s}")
    for name in args.backbones:
        same = ["--images", str(args.images), "--threads", str(args.threads)]
        same += ["--weights", str(args.weights)] if args.weights else []
        subprocess.run([sys.executable, __file__, "--alone", name, *same], check=True)
    cache(args.backbones[0], 4 * args.images)


if __name__ == "__main__":
    main()

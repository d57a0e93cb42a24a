"""How fast CVSE scores studies against groups of findings from cached features, and in how much memory.

    OMP_NUM_THREADS=2 python benchmarks/cvse_scoring.py [--studies 25000] [--groups 1300] [--attention conditional]

A cache of 7 x 7 x 2048 features is drawn (seeded) and written to disk; the studies' two views are rows of it, so every
study is read from the memory-mapped files and scored as `retrieve findings` does. Only the best three groups of each
are kept. The peer is equation 2 written out for one study at a time, every region beside every sentence, in the same
process. Scores of both agree, or the run fails.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from negatoscope.models.cvse import CVSE, CVSESettings
from negatoscope.retrieval.recipe import CVSERecipe
from negatoscope.retrieval.retriever import Kind, Retriever, score_studies
from negatoscope.retrieval.seen import features_of
from negatoscope.studies.study import Picture, Study
from negatoscope.vision.features import FeatureCache, FeatureKey, array_path
from negatoscope.whole_files import write_json, write_text

PICTURES, PATCHES, WIDTH, SENTENCE = 1024, 49, 2048, 128


def drawn_cache(folder: Path) -> FeatureCache:
    key = FeatureKey(
        backbone="drawn",
        weights="0" * 64,
        image_size=224,
        fit="squash",
        precision="bf16",
        pooled=False,
        patches=PATCHES,
        width=WIDTH,
    )
    rng = np.random.default_rng(1)
    write_text(folder / "cache.json", key.model_dump_json())
    np.save(array_path(folder, 0), rng.random((PICTURES, PATCHES, WIDTH), np.float32).astype(np.float16))
    write_json(array_path(folder, 0).with_suffix(".json"), [str(number) for number in range(PICTURES)])
    return FeatureCache.open(folder)


def drawn_studies(count: int) -> list[Study]:
    rows = np.random.default_rng(2).integers(0, PICTURES, (count, 2))
    return [
        Study(str(n), (Picture("f", "frontal", sha256=str(f)), Picture("l", "lateral", sha256=str(l))))
        for n, (f, l) in enumerate(rows.tolist())
    ]


def written_out(model: CVSE, features: Tensor, present: Tensor, v: Tensor) -> Tensor:
    """(1, S): d of one study, every difference between a region and a sentence made: (N, S, d) a view."""
    regions = model.regions(features, present)
    maps = model.maps(regions, v)[0]  # (S, V, N)
    of_views = []
    for view in range(2):
        m = regions.places[0, view]  # (N, d)
        far = (m[:, None] - v[None]).square().sum(-1)  # (N, S)
        of_views.append(-(maps[:, view].T * far).sum(0))
    return torch.stack(of_views).mean(0, keepdim=True)


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=25_000)
    parser.add_argument("--groups", type=int, default=1300)
    parser.add_argument("--attention", choices=("printed", "conditional"), default="printed")
    parser.add_argument("--precision", choices=("auto", "float32", "bf16"), default="auto")
    asked = parser.parse_args()
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        cache = drawn_cache(Path(folder))
        settings = CVSESettings(attention=asked.attention)
        recipe = CVSERecipe(store=Path("none"), features=cache.path, model=settings, precision=asked.precision)
        model = CVSE(settings, WIDTH, SENTENCE).eval()
        kinds = tuple(Kind(f"group {n}", 1, "", "", (), ()) for n in range(asked.groups))
        retriever = Retriever(recipe, model, kinds, torch.randn(asked.groups, SENTENCE), cache.key)
        studies, before = drawn_studies(asked.studies), peak()
        next(score_studies(retriever, studies[:32], cache))
        kept, first, start, busy = [], None, time.perf_counter(), time.process_time()
        for scores in score_studies(retriever, studies, cache):
            first = scores[:8] if first is None else first
            kept.append(scores.topk(3).indices)
        seconds, busy = time.perf_counter() - start, time.process_time() - busy
        assert first is not None
        told = f"{'bf16' if recipe.bf16 else 'float32'}, {asked.attention} attention, {torch.get_num_threads()} threads"
        print(f"{asked.studies:,} studies x {asked.groups:,} groups: {seconds:.1f} s, {told}")
        each = 1000 * busy / asked.studies
        print(f"ours          {asked.studies / seconds:>7,.0f} studies/s, {each:.1f} ms of CPU each")
        print(f"peak memory   {peak():>7,.0f} MiB, {before:,.0f} of them before the first score")
        v = retriever.sentences()
        start, theirs = time.perf_counter(), []
        with torch.inference_mode():
            for study in studies[:8]:
                theirs.append(written_out(model, *features_of([study], cache), v))
        rate = 8 / (time.perf_counter() - start)
        print(f"written out   {rate:>7,.1f} studies/s; ours is {asked.studies / seconds / rate:.0f} times as fast")
        largest = float((torch.cat(theirs) - first).abs().max())
        print(f"largest difference of a score {largest:.1e}; peak memory with the peer {peak():,.0f} MiB")
        assert largest < (0.02 if recipe.bf16 else 1e-4)


if __name__ == "__main__":
    main()

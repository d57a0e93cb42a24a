"""How long it takes to find each study's nearest report, and how many an index overlooks.

    python benchmarks/neighbours.py [--exact 3000] [--many 370000] [--k 10] [--threads 2]

Exact: every pair of `--exact` unit vectors, 128 wide as tfidf makes them. Index: `--many` vectors, as many as
MIMIC-CXR has pictures, built and searched by usearch; recall is the share of the true k nearest, found by looking at
every pair for 1,000 of the rows. Vectors are drawn around 2,000 centres of different sizes, as reports gather around
what is often said.
"""

from __future__ import annotations

import argparse
import os
import resource
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

WIDTH, CENTRES, ASKED = 128, 2000, 1000


def drawn(rows: int, seed: int = 0) -> NDArray[np.float32]:
    draw = np.random.default_rng(seed)
    centres = draw.normal(size=(CENTRES, WIDTH))
    shares = 1 / np.arange(1, CENTRES + 1)
    chosen = centres[draw.choice(CENTRES, rows, p=shares / shares.sum())] + 0.7 * draw.normal(size=(rows, WIDTH))
    return (chosen / np.linalg.norm(chosen, axis=1, keepdims=True)).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exact", type=int, default=3000)
    parser.add_argument("--many", type=int, default=370_000)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    said = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(said.threads)
    from negatoscope.contrast.neighbours import Corpus, find_neighbours, nearest_by_index, nearest_exactly
    from negatoscope.text.embed import TfidfSvd

    vectors = drawn(said.exact)
    nearest_exactly(vectors, said.k)
    began = perf_counter()
    nearest_exactly(vectors, said.k)
    print(f"exact    {said.exact:>9,} vectors: {perf_counter() - began:6.3f} s")

    reports = invented(said.exact)
    corpus = Corpus(tuple(map(str, range(said.exact))), tuple(reports))
    began = perf_counter()
    found = find_neighbours(corpus, TfidfSvd(), said.k)
    print(f"         {found.about['studies']:>9,} reports, embedded and searched: {perf_counter() - began:6.3f} s")

    vectors = drawn(said.many)
    began = perf_counter()
    places, _ = nearest_by_index(vectors, said.k)
    took = perf_counter() - began
    asked = np.random.default_rng(1).choice(said.many, min(ASKED, said.many), replace=False)
    began = perf_counter()
    exact, _ = nearest_exactly(vectors, said.k, rows=asked)
    whole = (perf_counter() - began) * said.many / len(asked)
    for k in (1, said.k):
        hits = [len(set(a) & set(b)) / k for a, b in zip(exact[:, :k].tolist(), places[asked][:, :k].tolist())]
        print(f"index    {said.many:>9,} vectors: recall at {k:<2} {np.mean(hits):.4f}")
    print(f"         built and searched in {took:.0f} s; every pair would take {whole:.0f} s")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")


def invented(count: int) -> list[str]:
    """Reports of six sentences out of sixty."""
    draw = np.random.default_rng(3)
    parts = ("heart", "left lung", "right lung", "aorta", "mediastinum", "spine", "pleura", "diaphragm", "hilum", "rib")
    said = ("is normal", "is enlarged", "is unchanged", "shows a scar", "is tortuous", "is blurred")
    sentences = [f"The {part} {state}." for part in parts for state in said]
    return [" ".join(draw.choice(sentences, 6, replace=False)) for _ in range(count)]


if __name__ == "__main__":
    main()

"""Bootstrap of all metrics from rows of counts, beside scoring drawn studies again: time, ratio, memory.

    python benchmarks/bootstrap.py [--studies 4000] [--draws 1000] [--again 3] [--repeat 3]

Reports are drawn (seeded) from sentence frames, as in language_metrics.py. The peer scores each draw as a new corpus,
as who has a scorer and no rows must do; a few draws of it are timed. METEOR, the labeler and the tokens remember what
they have read, so the peer is given every advantage. Also the paired permutation test of two models, and how far the
rows' figures are from those of scoring again (CIDEr weighs n-grams by the draw's own references there, and distinct
reports are counted anew)."""

from __future__ import annotations

import argparse
import time
import tracemalloc

import numpy as np

from language_metrics import drawn
from negatoscope.metrics.clinical import Clinical
from negatoscope.metrics.evaluate import Evaluation, score
from negatoscope.metrics.pairs import Pairs
from negatoscope.metrics.resampling import Counts, bootstrap, paired_permutation


def pairs_of(said: list[str], asked: list[str]) -> Pairs:
    ids = tuple(str(k) for k in range(len(said)))
    return Pairs(ids, tuple(said), tuple((text,) for text in asked), by="id")


def scored(said: list[str], asked: list[str], training: list[str], clinical: Clinical) -> Evaluation:
    return score(pairs_of(said, asked), training=training, ready={"clinical": clinical})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=4000)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--again", type=int, default=3, help="draws that are scored again")
    parser.add_argument("--repeat", type=int, default=3)
    wanted = parser.parse_args()

    rng = np.random.default_rng(0)
    asked, said, other = (drawn(wanted.studies, rng) for _ in range(3))
    clinical, training = Clinical("all"), asked[:100]
    start = time.perf_counter()
    first, second = scored(said, asked, training, clinical), scored(other, asked, training, clinical)
    whole = (time.perf_counter() - start) / 2
    counts = Counts.of(first)
    print(f"{first.n:,} studies, metrics: {', '.join(first.metrics)}")
    print(f"{len(first.figures)} figures from {counts.rows.shape[1]} counts a row")

    for name, why in first.left_out.items():
        print(f"left out: {name} ({why})")
    print(f"scoring once: {whole:.2f} s")

    times, ours = [], {}
    for _ in range(wanted.repeat):
        start = time.perf_counter()
        ours = bootstrap([counts], wanted.draws, seed=0)[0]
        times.append(time.perf_counter() - start)
    start = time.perf_counter()
    paired_permutation(counts, Counts.of(second), wanted.draws)
    permuted = time.perf_counter() - start

    start, apart = time.perf_counter(), {}
    draws = np.random.default_rng(0).integers(0, first.n, (wanted.draws, first.n))[: wanted.again]
    for k, draw in enumerate(draws):
        again = scored([said[i] for i in draw], [asked[i] for i in draw], training, clinical).figures
        for figure, value in again.items():
            apart[figure] = max(apart.get(figure, 0.0), abs(value - ours[figure][k]))
    theirs = (time.perf_counter() - start) / wanted.again

    ours_once = min(times) / wanted.draws
    print(f"bootstrap, {wanted.draws:,} draws: {min(times):.2f} s ({1000 * ours_once:.2f} ms a draw)")
    print(f"permutation test, {wanted.draws:,} swaps: {permuted:.2f} s")
    minutes = theirs * wanted.draws / 60
    print(f"scoring a draw again: {theirs:.2f} s, all of them {minutes:.0f} min; ratio {theirs / ours_once:,.0f}")
    same = [figure for figure, value in apart.items() if value < 1e-9]
    print(f"figures equal to scoring again to 1e-9: {len(same)} of {len(apart)}; the others:")
    for figure, value in apart.items():
        if value >= 1e-9:
            print(f"  {figure}: up to {value:.3g} of {first.figures[figure]:.3g}")
    tracemalloc.start()
    bootstrap([counts], wanted.draws)
    peak, held = tracemalloc.get_traced_memory()[1] / 2**20, counts.rows.nbytes / 2**20
    print(f"peak memory of the bootstrap: {peak:.0f} MiB, the rows themselves {held:.0f} MiB")


if __name__ == "__main__":
    main()

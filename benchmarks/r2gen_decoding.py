"""R2Gen's beam search, ours against the authors' code on the same random weights: seconds, their ratio, the words.

    python benchmarks/r2gen_decoding.py FOLDER_OF_THE_AUTHORS_REPOSITORY [studies] [threads]

Beam 3, 60 words, full size. Random weights never end a report, so nothing is saved by stopping early; a second run of
ours, whose end mark is likely enough that reports end after some words, shows what stopping saves there.
"""

from __future__ import annotations

import copy
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from negatoscope.decoding import DecodeSettings, write
from negatoscope.models.r2gen import R2Gen
from negatoscope.studies.batch import Batch
from published import r2gen_twice

BEAM, LONGEST = 3, 60


def best_of(times: int, work: Callable[[], Any]) -> tuple[float, Any]:
    """The least of so many seconds, and the answer: others on the machine only ever add to a time."""
    seconds, answer = [], None
    for _ in range(times):
        began = time.perf_counter()
        answer = work()
        seconds.append(time.perf_counter() - began)
    return min(seconds), answer


def words_of(reporter: R2Gen, batch: Batch) -> list[tuple[int, ...]]:
    return [best[0].words for best in write(reporter, batch, DecodeSettings(beam=BEAM, max_words=LONGEST))]


def main() -> None:
    repository = Path(sys.argv[1])
    studies, threads = (int(said) for said in (*sys.argv[2:], *("16", "2")[len(sys.argv) - 2 :]))
    torch.set_num_threads(threads)
    theirs, ours = r2gen_twice(repository)
    theirs, ours = theirs.eval(), ours.eval()
    features = torch.randn(studies, 2, 49, 2048).abs() * 0.5
    batch = Batch(tuple(map(str, range(studies))), torch.ones(studies, 2, dtype=torch.bool), features=features)

    quick, written = best_of(3, lambda: words_of(ours, batch))
    low = copy.deepcopy(ours).bfloat16()  # once, not at every product
    with torch.autocast("cpu", torch.bfloat16):
        quicker, written_low = best_of(3, lambda: words_of(low, batch))
    with torch.inference_mode():
        slow, (rows, _) = best_of(1, lambda: theirs(features.mean((1, 2)), features.flatten(1, 2), mode="sample"))
    expected = [tuple(row[: row.index(0)] if 0 in row else row) for row in rows.tolist()]
    assert written == expected, "the words differ"
    again, _ = best_of(3, lambda: words_of(ours, batch))
    quick = min(quick, again)

    same = sum(one == other for one, other in zip(written_low, expected, strict=True))
    with torch.no_grad():
        ours.out.bias[0] += 4.0
    ending, short = best_of(3, lambda: words_of(ours, batch))
    mean = sum(map(len, short)) / studies
    print(f"{studies} studies, beam {BEAM}, {LONGEST} words, {threads} threads")
    print(f"authors' code      {slow:7.2f} s")
    print(f"ours, float32      {quick:7.2f} s   {slow / quick:5.1f} times   identical words in {studies} of {studies}")
    print(f"ours, bf16         {quicker:7.2f} s   {slow / quicker:5.1f} times   identical words in {same} of {studies}")
    print(f"ours, ends likely  {ending:7.2f} s   {mean:.0f} words a report on the mean")
    print(f"peak memory        {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()

"""R2Gen's beam search, ours against the authors' code on the same random weights: seconds, their ratio, the words.

    python benchmarks/r2gen_decoding.py FOLDER_OF_THE_AUTHORS_REPOSITORY [--studies 16] [--threads 2] [--rounds 2]

Beam 3, 60 words, full size. Theirs and ours take turns in one process, and each is told by its quickest round: others
on the machine only ever add to a time. Processor seconds, of all threads, are printed beside them. Random weights never
end a report, so nothing is saved by stopping early; a last run of ours, whose reports end after 20 words, shows what
stopping saves. Before all that both read the same reports: how far apart their log-probabilities are.
"""

from __future__ import annotations

import argparse
import copy
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from negatoscope.decoding import DecodeSettings, write
from negatoscope.models.r2gen import R2Gen
from negatoscope.studies.batch import Batch
from published import r2gen_twice
from r2gen_training import batch_of

BEAM, LONGEST = 3, 60
Words = list[tuple[int, ...]]


@dataclass
class Peer:
    """One way to write the same reports, and how long each round of it took."""

    write: Callable[[], Words]
    times: int = 1
    """Of each round: ours are short."""
    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    words: Words = field(default_factory=list)

    def turn(self) -> None:
        for _ in range(self.times):
            began, worked = time.perf_counter(), time.process_time()
            self.words = self.write()
            self.wall.append(time.perf_counter() - began)
            self.processor.append(time.process_time() - worked)


def words_of(reporter: R2Gen, batch: Batch) -> Words:
    return [best[0].words for best in write(reporter, batch, DecodeSettings(beam=BEAM, max_words=LONGEST))]


def low_words_of(reporter: R2Gen, batch: Batch) -> Words:
    with torch.autocast("cpu", torch.bfloat16):
        return words_of(reporter, batch)


@torch.inference_mode()
def authors_words(theirs: Any, batch: Batch) -> Words:
    assert batch.features is not None
    rows, _ = theirs(batch.features.mean((1, 2)), batch.features.flatten(1, 2), mode="sample")
    return [tuple(row[: row.index(0)] if 0 in row else row) for row in rows.tolist()]


@torch.inference_mode()
def apart(theirs: Any, ours: R2Gen) -> float:
    """The largest difference of a log-probability while reading 16 reports of 60 words."""
    batch = batch_of(16, LONGEST, 1)
    assert batch.features is not None
    said = theirs(batch.features.mean((1, 2)), batch.features.flatten(1, 2), batch.words, mode="forward")
    return (said - ours(batch).logits.log_softmax(-1)).abs().max().item()


def shorter(reporter: R2Gen, batch: Batch) -> tuple[float, float]:
    """Seconds, and the mean words, of reports that end as soon as they may, after 20 words."""
    with torch.no_grad():
        reporter.out.bias[0] += 4.0
    settings = DecodeSettings(beam=BEAM, max_words=LONGEST, min_words=20)
    peer = Peer(lambda: [best[0].words for best in write(reporter, batch, settings)], times=3)
    peer.turn()
    return min(peer.wall), sum(map(len, peer.words)) / len(peer.words)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("repository", type=Path)
    parser.add_argument("--studies", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    said = parser.parse_args()
    torch.set_num_threads(said.threads)
    theirs, ours = r2gen_twice(said.repository)
    theirs, ours = theirs.eval(), ours.eval()
    features = torch.randn(said.studies, 2, 49, 2048).abs() * 0.5
    present = torch.ones(said.studies, 2, dtype=torch.bool)
    batch = Batch(tuple(map(str, range(said.studies))), present, features=features)
    difference = apart(theirs, ours)
    print(f"log-probabilities of the same words at most {difference:.1e} apart")
    assert difference < 1e-4
    low = copy.deepcopy(ours).bfloat16()  # once, not at every product

    authors = Peer(lambda: authors_words(theirs, batch))
    peers = {
        "authors' code": authors,
        "ours, float32": Peer(lambda: words_of(ours, batch), times=3),
        "ours, bf16": Peer(lambda: low_words_of(low, batch), times=3),
    }
    for number in range(said.rounds):
        for name, peer in peers.items():
            peer.turn()
            print(f"round {number + 1}: {name:16} {min(peer.wall):7.2f} s", file=sys.stderr, flush=True)
    print(f"{said.studies} studies, beam {BEAM}, {LONGEST} words, {said.threads} threads, best of {said.rounds} rounds")
    for name, peer in peers.items():
        wall, processor = min(peer.wall), min(peer.processor)
        same = sum(one == other for one, other in zip(peer.words, authors.words, strict=True))
        print(
            f"{name:16} {wall:7.2f} s {min(authors.wall) / wall:6.1f} times   {processor:7.2f} processor seconds "
            f"{min(authors.processor) / processor:6.1f} times   identical words in {same} of {said.studies}"
        )
    assert peers["ours, float32"].words == authors.words, "the words differ"
    seconds, mean = shorter(ours, batch)
    print(f"ours, ends sooner {seconds:6.2f} s   {mean:.0f} words a report on the mean")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()

"""BLEU, ROUGE-L and CIDEr here and in pycocoevalcap 1.2, in one process: time, memory, and whether the figures agree.

    python benchmarks/language_metrics.py [--pairs 590 4000] [--repeat 3] [--meteor] [--tokens]

Pairs are reports of some 45 words drawn (seeded) from sentence frames. Each time is the best of `--repeat` runs, ours
and theirs by turns; memory is what each side allocates at its peak, in a run of its own that is not timed. Diversity
and lengths have no peer: their time is in our sum all the same. `--meteor` adds METEOR on both sides (theirs is a Java
program, started once as pycocoevalcap does; ours from a loaded index on: benchmarks/meteor.py has both from a standing
start); `--tokens` the Penn Treebank words beside Stanford's program."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pycocoevalcap
from pycocoevalcap.bleu.bleu import Bleu as TheirBleu
from pycocoevalcap.cider.cider import Cider as TheirCider
from pycocoevalcap.rouge.rouge import Rouge as TheirRouge

from negatoscope.metrics.bleu import Bleu
from negatoscope.metrics.cider import Cider
from negatoscope.metrics.diversity import Diversity
from negatoscope.metrics.lengths import Lengths
from negatoscope.metrics.metric import Metric
from negatoscope.metrics.rouge import Rouge
from negatoscope.metrics.tokenise import ptb_tokens

FRAMES = (
    "the {side} lung is clear .",
    "there is {no} {size} {side} pleural effusion .",
    "{no} pneumothorax is seen on the {side} .",
    "the cardiac silhouette is {size} and the mediastinal contours are {change} .",
    "{size} opacity at the {side} base may represent atelectasis or pneumonia .",
    "heart size is {size} , {change} compared with the prior study .",
    "the endotracheal tube ends {n} cm above the carina .",
    "{no} focal consolidation , effusion , or edema is present .",
    "degenerative changes of the thoracic spine are {change} .",
)
SLOTS = {
    "side": ("left", "right"),
    "size": ("small", "moderate", "large", "mild", "minimal", "normal"),
    "no": ("no", "no evidence of", "a", "a persistent"),
    "change": ("unchanged", "stable", "improved", "increased", "within normal limits"),
    "n": tuple("2345678"),
}
Texts = list[str]
Runs = Mapping[str, tuple[Callable[[Texts, list[Texts]], object], Callable[[Texts, list[Texts]], object] | None]]


def drawn(count: int, rng: np.random.Generator) -> Texts:
    def report() -> str:
        frames = rng.choice(FRAMES, rng.integers(3, 8))
        return " ".join(f.format(**{slot: rng.choice(words) for slot, words in SLOTS.items()}) for f in frames)

    return [report() for _ in range(count)]


def here(metric: Metric, figure: str) -> Callable[[Texts, list[Texts]], float]:
    return lambda said, asked: float(metric.figures(metric.rows(said, asked).sum(axis=0))[figure])


def there(scorer: Callable[[dict, dict], tuple]) -> Callable[[Texts, list[Texts]], float]:
    """The last figure: BLEU-4 of four."""
    return lambda said, asked: float(
        np.atleast_1d(scorer(dict(enumerate(asked)), dict(enumerate([text] for text in said)))[0])[-1]
    )


def runs(meteor: bool) -> Runs:
    sides: dict = {
        "BLEU-4": (
            here(Bleu(), "BLEU-4"),
            there(lambda asked, said: TheirBleu(4).compute_score(asked, said, verbose=0)),
        ),
        "ROUGE-L": (here(Rouge(), "ROUGE-L"), there(lambda asked, said: TheirRouge().compute_score(asked, said))),
        "CIDEr": (here(Cider(), "CIDEr"), there(lambda asked, said: TheirCider().compute_score(asked, said))),
        "diversity": (here(Diversity(), "diversity"), None),
        "lengths": (here(Lengths(), "words"), None),
    }
    if meteor:
        from pycocoevalcap.meteor.meteor import Meteor as TheirMeteor

        from negatoscope.metrics.meteor import Meteor

        ours = Meteor()
        ours.rows(["heart"], [["heart"]])
        sides["METEOR"] = (here(ours, "METEOR"), there(lambda asked, said: TheirMeteor().compute_score(asked, said)))
    return sides


def seconds(run: Callable[[Texts, list[Texts]], object], said: Texts, asked: list[Texts]) -> tuple[float, object]:
    start = time.perf_counter()
    figure = run(said, asked)
    return time.perf_counter() - start, figure


def peak(run: Callable[[Texts, list[Texts]], object], said: Texts, asked: list[Texts]) -> float:
    """MiB"""
    tracemalloc.start()
    run(said, asked)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 2**20


def compare(pairs: int, repeat: int, meteor: bool) -> None:
    rng = np.random.default_rng(0)
    said, asked = drawn(pairs, rng), [[text] for text in drawn(pairs, rng)]
    print(f"\n{pairs:,} pairs, {np.mean([len(text.split()) for text in said]):.0f} words a report")
    print(f"{'':10}{'ours s':>10}{'theirs s':>10}{'ratio':>8}{'ours MiB':>10}{'theirs MiB':>12}{'difference':>12}")
    sums = np.zeros(2)
    for name, (ours, theirs) in runs(meteor).items():
        java = name == "METEOR"
        times: list[list[float]] = [[], []]
        figures: list = [None, None]
        # Their METEOR has hung when it was started several times in one process.
        for _ in range(1 if java else repeat):
            for side, run in enumerate((ours, theirs)):
                if run is not None:
                    took, figures[side] = seconds(run, said, asked)
                    times[side].append(took)
        best = [min(side) if side else 0.0 for side in times]
        sums += best
        row = f"{name:10}{best[0]:10.3f}"
        if theirs is None:
            print(f"{row}{'no peer':>10}{'':8}{peak(ours, said, asked):10.1f}")
            continue
        row += f"{best[1]:10.3f}{best[1] / best[0]:8.1f}{peak(ours, said, asked):10.1f}"
        row += f"{'(Java)':>12}" if java else f"{peak(theirs, said, asked):12.1f}"
        print(f"{row}{abs(figures[0] - figures[1]):12.1e}")
    print(f"{'together':10}{sums[0]:10.3f}{sums[1]:10.3f}{sums[1] / sums[0]:8.1f}")


def compare_tokens(pairs: int) -> None:
    jar = Path(next(iter(pycocoevalcap.__path__))) / "tokenizer" / "stanford-corenlp-3.4.1.jar"
    texts = drawn(2 * pairs, np.random.default_rng(1))
    start = time.perf_counter()
    ours = [" ".join(ptb_tokens(text)) for text in texts]
    took = time.perf_counter() - start
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write("\n".join(texts))
        file.flush()
        command = ["java", "-cp", str(jar), "edu.stanford.nlp.process.PTBTokenizer", "-preserveLines", "-lowerCase"]
        start = time.perf_counter()
        out = subprocess.run([*command, file.name], capture_output=True, check=True).stdout.decode().split("\n")
        java = time.perf_counter() - start
    equal = sum(a == b.rstrip() for a, b in zip(ours, out))
    print(f"tokens of {len(texts):,} texts: {took:.3f} s, Java {java:.3f} s, ratio {java / took:.1f}; {equal:,} equal")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--pairs", type=int, nargs="+", default=[590, 4000])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--meteor", action="store_true")
    parser.add_argument("--tokens", action="store_true")
    asked = parser.parse_args(arguments)
    for pairs in asked.pairs:
        compare(pairs, asked.repeat, asked.meteor)
        if asked.tokens:
            compare_tokens(pairs)


if __name__ == "__main__":
    main(sys.argv[1:])

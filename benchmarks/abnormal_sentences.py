"""How fast abnormal sentences are told, on one core, against a plain word-and-character linear model of scikit-learn.

    OMP_NUM_THREADS=1 python benchmarks/abnormal_sentences.py [--sentences 40000]

Sentences are drawn (seeded) from frames in the style of the reports and every one is different, so no cache of
sentences could help. Both read the same sentences in the same process; rates are by CPU time. The peer has the usual
recipe (TF-IDF over words 1-3 and characters 2-5, logistic regression) and is fitted to what ours says: its accuracy is
not the question.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np

from negatoscope.text.abnormal import AbnormalSentences

FRAMES = (
    "There is a {size} {side} pleural effusion measuring {n} mm, {change} since the examination of {n}/{n}.",
    "No focal consolidation, pleural effusion or pneumothorax on image {n} of {n}.",
    "{Size} calcified granuloma in the {side} {zone}, {n} mm, {change}.",
    "Heart size is normal, cardiothoracic ratio 0.{n}.",
    "The {side} picc line ends {n} cm above the carina.",
    "The lungs are clear without focal airspace disease, {n} posterior ribs are seen.",
    "{Size} degenerative changes of the thoracic spine at T{n}, {change}.",
)
SLOTS = {
    "size": ("small", "moderate", "large", "minimal", "trace"),
    "Size": ("Mild", "Moderate", "Severe", "Stable", "Unchanged"),
    "side": ("right", "left"),
    "zone": ("upper lobe", "lower lobe", "base", "apex", "midlung"),
    "change": ("unchanged", "increased", "decreased", "stable", "new"),
}


def drawn(count: int, seed: int) -> list[str]:
    """Different sentences."""
    rng = np.random.default_rng(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        frame = FRAMES[rng.integers(len(FRAMES))]
        for slot, values in SLOTS.items():
            frame = frame.replace(f"{{{slot}}}", values[rng.integers(len(values))])
        while "{n}" in frame:
            frame = frame.replace("{n}", str(rng.integers(1, 10_000)), 1)
        found[frame] = None
    return list(found)


def rate(of: Callable[[list[str]], object], sentences: list[str]) -> float:
    start = time.process_time()
    of(sentences)
    return len(sentences) / (time.process_time() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=40_000)
    sentences = drawn(parser.parse_args().sentences, seed=1)
    ours = AbnormalSentences.default()
    ours.probability(sentences[:1])

    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline, make_union

    views = make_union(TfidfVectorizer(ngram_range=(1, 3)), TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5)))
    peer = make_pipeline(views, LogisticRegression(max_iter=200))
    some = drawn(3000, seed=2)
    peer.fit(some, ours.abnormal(some))

    our_rate, peer_rate = rate(ours.probability, sentences), rate(peer.predict_proba, sentences)
    print(f"ours          {our_rate:>9,.0f} sentences/s of CPU time ({len(sentences):,} different ones)")
    print(f"scikit-learn  {peer_rate:>9,.0f} sentences/s; ours is {our_rate / peer_rate:.1f} times as fast")
    print(f"peak memory   {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB, scikit-learn included")


if __name__ == "__main__":
    main()

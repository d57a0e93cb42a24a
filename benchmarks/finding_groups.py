"""How long 100,000 abnormal sentences take to group, and what scikit-learn's KMeans takes for the same vectors.

    OMP_NUM_THREADS=2 python benchmarks/finding_groups.py [--sentences 100000] [--peer]

Sentences are paraphrases drawn (seeded) from frames, all different. It also checks that no group mixes exclusive terms.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from negatoscope.text.embed import TfidfSvd
from negatoscope.text.group import GroupSettings, fitting_number, group_sentences, poles_of

_SLOTS = {
    "opening": "there is/there is again/again seen is/we note/interval development of/stable/redemonstrated",
    "size": "small/smaller/large/larger/mild/moderate/severe/minimal/low/high/patchy/dense",
    "side": "right/left/bilateral/right-sided/left-sided/midline",
    "zone": "upper lobe/lower lobe/middle lobe/lingular/basilar/apical/perihilar/costophrenic/hilar",
    "finding": (
        "pleural effusion/pneumothorax/airspace opacity/atelectasis/consolidation/calcified granuloma/scarring/mass/"
        "pulmonary nodule/interstitial edema/rib fracture/volume loss/pleural thickening/infiltrate/bulla/lymph node/"
        "elevation of the diaphragm/enlargement of the heart/catheter"
    ),
    "change": "improved/improving/worsened/worsening/unchanged/increased/decreasing/resolving/stable",
    "ending": "since the prior study/compared to the previous radiograph//which may be chronic/suggesting infection",
}
SLOTS = {slot: values.split("/") for slot, values in _SLOTS.items()}


def drawn(count: int, seed: int) -> list[str]:
    """Different sentences, words in one of two orders."""
    rng = np.random.default_rng(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        said = {slot: values[rng.integers(len(values))] for slot, values in SLOTS.items()}
        if rng.random() < 0.5:
            text = "{opening} {size} {side} {zone} {finding} {change} {ending} measuring {n} mm"
        else:
            text = "{opening} {finding} in the {side} {zone} region {size} and {change} {ending} on image {n}"
        found[" ".join(text.format(**said, n=rng.integers(1, 40)).split()) + "."] = None
    return list(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=100_000)
    parser.add_argument("--peer", action="store_true", help="Run scikit-learn's KMeans on the same vectors too.")
    asked = parser.parse_args()
    sentences = drawn(asked.sentences, seed=1)
    start = time.perf_counter()
    groups = group_sentences(sentences, TfidfSvd(), GroupSettings())
    ours = time.perf_counter() - start
    print(f"{len(sentences):,} sentences into {len(groups.groups):,} groups: {ours:.1f} s")
    mixed = sum(len(set(poles_of([said for said, _ in group.members]).tolist())) > 1 for group in groups.groups)
    print(f"groups that mix exclusive terms: {mixed}")
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")
    if asked.peer:
        from sklearn.cluster import KMeans

        embedder = TfidfSvd().fit(sentences)
        vectors = embedder.embed(sentences)
        start = time.perf_counter()
        KMeans(fitting_number(len(sentences)), n_init=1, max_iter=GroupSettings().rounds, random_state=0).fit(vectors)
        print(f"scikit-learn's KMeans alone, as many rounds: {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()

"""Sentences that say the same finding: K-Means over their vectors, then apart what excludes one another.

Six sets of terms exclude one another (right / left / bilateral, ...). Inside each K-Means group every sentence has a
0/1 vector of the poles it names, and DBSCAN over these vectors parts the group. Two different 0/1 vectors are at least
1 apart, so with a radius below 1 and no smallest size DBSCAN's clusters are the sets of equal vectors: that is how it
is computed here. Every sentence of a group therefore names the same poles, and none is lost as an outlier.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from negatoscope.errors import BadInput, WrongUse
from negatoscope.settings import Settings
from negatoscope.text.abnormal import words
from negatoscope.text.embed import Embedder, TfidfSvd
from negatoscope.watch import Watch, quiet

# The six sets; in each, the poles that exclude one another, with every inflected form.
EXCLUSIVE: dict[str, dict[str, str]] = {
    "side": {
        "right": "right rightward rightwards rightsided",
        "left": "left leftward leftwards leftsided",
        "bilateral": "bilateral bilaterally",
    },
    "size": {
        "small": "small smaller smallest",
        "large": "great greater greatest greatly large larger largest largely",
    },
    "level": {"low": "low lower lowest lowered lowering lowers", "high": "high higher highest highly"},
    "growth": {
        "increased": (
            "elevate elevates elevated elevating elevation elevations "
            "enlarge enlarges enlarged enlarging enlargement enlargements "
            "increase increases increased increasing increasingly "
            "widen widens widened widening"
        ),
        "decreased": (
            "shrink shrinks shrank shrunk shrunken shrinking shrinkage "
            "decrease decreases decreased decreasing decreasingly"
        ),
    },
    "course": {
        "improved": (
            "improve improves improved improving improvement improvements "
            "resolve resolves resolved resolving resolution "
            "clear clears cleared clearing clearer clearest clearance"
        ),
        "worsened": "worsen worsens worsened worsening worse worst",
    },
    "severity": {
        "mild": "mild milder mildest mildly mildness",
        "severe": "severe severer severest severely severity",
    },
}
POLES: tuple[tuple[str, str], ...] = tuple((set_, pole) for set_, poles in EXCLUSIVE.items() for pole in poles)
_BIT: dict[str, int] = {
    form: 1 << POLES.index((set_, pole))
    for set_, poles in EXCLUSIVE.items()
    for pole, forms in poles.items()
    for form in forms.split()
}

Labeller = Callable[[Sequence[str]], list[list[str]]]
"""The observations that each sentence affirms. The command line passes CheXpert's."""


class GroupSettings(Settings):
    """How to group."""

    groups: int | None = None
    """K of K-Means. None: the paper's 500, or fewer where that would leave under ten different sentences a group."""
    rounds: int = 30
    """K-Means ends after so many rounds at the latest."""
    exclusive: bool = True
    """Part what excludes one another; false is the paper's ablation."""
    seed: int = 0


@dataclass(frozen=True)
class Group:
    """Sentences that say the same."""

    id: int
    sentence: str
    """The most central one: the one that is written for the group."""
    size: int
    """Sentences in the corpus, repeated ones counted each time."""
    members: tuple[tuple[str, int], ...]
    """Different sentences with how often each occurs, most central first."""
    cluster: int
    """The K-Means group it is part of."""
    poles: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Exclusive terms that every member names: {"side": ("left",)}."""
    labels: tuple[str, ...] = ()

    @property
    def side(self) -> str:
        return " and ".join(self.poles.get("side", ()))

    @property
    def severity(self) -> str:
        return " and ".join(self.poles.get("severity", ()))


@dataclass(frozen=True)
class Groups:
    """All groups, largest first, with what made them."""

    groups: tuple[Group, ...]
    embedder: str
    fingerprint: str
    settings: GroupSettings

    def of_sentence(self) -> dict[str, int]:
        """Every sentence of the corpus -> the id of its group."""
        return {sentence: group.id for group in self.groups for sentence, _ in group.members}


def poles_of(sentences: Sequence[str]) -> NDArray[np.int64]:
    """(n,) bits: bit i is set where the sentence has a form of `POLES[i]`."""
    codes = np.zeros(len(sentences), np.int64)
    for number, sentence in enumerate(sentences):
        for word in words(sentence):
            codes[number] |= _BIT.get(word, 0)
    return codes


def named_poles(code: int) -> dict[str, tuple[str, ...]]:
    named: dict[str, tuple[str, ...]] = {}
    for bit, (set_, pole) in enumerate(POLES):
        if code >> bit & 1:
            named[set_] = (*named.get(set_, ()), pole)
    return named


def fitting_number(distinct: int) -> int:
    """The paper's 500 groups, or a tenth of the different sentences where they are few."""
    return max(1, min(500, distinct // 10))


def group_sentences(
    sentences: Sequence[str],
    embedder: Embedder | None = None,
    settings: GroupSettings | None = None,
    *,
    labeller: Labeller | None = None,
    watch: Watch = quiet,
) -> Groups:
    """The groups of a corpus of abnormal sentences.

    Raises BadInput for an empty one, WrongUse for more groups than different sentences.
    """
    settings = settings or GroupSettings()
    embedder = embedder or TfidfSvd(seed=settings.seed)
    counts = Counter(" ".join(sentence.split()) for sentence in sentences)
    del counts[""]
    if not counts:
        raise BadInput("no sentence to group", remedy="a corpus of normal reports has no abnormal sentences")
    distinct = list(counts)
    times = np.array([counts[sentence] for sentence in distinct])
    number = fitting_number(len(distinct)) if settings.groups is None else settings.groups
    if not 1 <= number <= len(distinct):
        raise WrongUse(
            f"{number} groups for {len(distinct)} different sentences",
            remedy="ask for fewer, or for none in particular",
        )
    vectors = embedder.fit(distinct).embed(distinct)  # (n, d)
    cluster = k_means(vectors, times, number, settings, watch)  # (n,)
    codes = poles_of(distinct) if settings.exclusive else np.zeros(len(distinct), np.int64)
    groups = [
        _group(members, distinct, times, vectors, int(cluster[members[0]]), int(codes[members[0]]))
        for members in _equal((cluster.astype(np.int64) << len(POLES)) | codes)
    ]
    groups.sort(key=lambda group: (-group.size, group.sentence))
    labels = labeller([group.sentence for group in groups]) if labeller else [[] for _ in groups]
    numbered = (
        Group(number, group.sentence, group.size, group.members, group.cluster, group.poles, tuple(said))
        for number, (group, said) in enumerate(zip(groups, labels, strict=True))
    )
    return Groups(tuple(numbered), embedder.name, embedder.fingerprint(), settings)


def k_means(
    vectors: NDArray[np.float32], times: NDArray[np.int64], number: int, settings: GroupSettings, watch: Watch = quiet
) -> NDArray[np.int64]:
    """(n,) numbers of groups. Rows are of unit length, so the nearest centre is the one with the largest product."""
    rng = np.random.default_rng(settings.seed)
    centres = vectors[_spread(vectors, times, number, rng)]
    cluster = np.full(len(vectors), -1)
    for _ in watch(range(settings.rounds), "K-Means", settings.rounds):
        nearest, closeness = _nearest(vectors, centres)
        settled = (nearest == cluster).mean()
        cluster = nearest
        if settled > 0.9995:
            break
        centres = _means(vectors, times, cluster, number)
        # A centre that lost all its sentences takes the one that fits worst where it is.
        empty = np.flatnonzero(np.bincount(cluster, minlength=number) == 0)
        centres[empty] = vectors[np.argsort(closeness, kind="stable")[: len(empty)]]
    return cluster


def _spread(
    vectors: NDArray[np.float32], times: NDArray[np.int64], number: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """(K,) first centres, as k-means++ draws them: each with probability by its squared distance to those before."""
    chosen = np.empty(number, np.int64)
    chosen[0] = rng.choice(len(vectors), p=times / times.sum())
    distance = np.full(len(vectors), np.inf)
    for k in range(1, number):
        distance = np.minimum(distance, np.maximum(2.0 - 2.0 * (vectors @ vectors[chosen[k - 1]]), 0.0))
        reach = np.cumsum(distance * times)
        chosen[k] = min(np.searchsorted(reach, rng.random() * reach[-1], side="right"), len(vectors) - 1)
    return chosen


def _nearest(
    vectors: NDArray[np.float32], centres: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """(n,) nearest centre, (n,) its product; 8,192 sentences at a time, so that no (n, K) matrix is ever whole."""
    nearest, closeness = np.empty(len(vectors), np.int64), np.empty(len(vectors), np.float32)
    for at in range(0, len(vectors), 8192):
        products = vectors[at : at + 8192] @ centres.T  # (m, K)
        nearest[at : at + 8192] = best = products.argmax(1)
        closeness[at : at + 8192] = products[np.arange(len(best)), best]
    return nearest, closeness


def _means(
    vectors: NDArray[np.float32], times: NDArray[np.int64], cluster: NDArray[np.int64], number: int
) -> NDArray[np.float32]:
    """(K, d) mean directions, each sentence as often as it occurs."""
    from scipy.sparse import csr_matrix

    from negatoscope.text.embed import unit_rows

    belongs = csr_matrix((times.astype(np.float32), (cluster, np.arange(len(cluster)))), shape=(number, len(cluster)))
    return unit_rows(belongs @ vectors)


def _equal(keys: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Row numbers with equal keys, together."""
    order = np.argsort(keys, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)


def _group(
    members: NDArray[np.int64],
    distinct: list[str],
    times: NDArray[np.int64],
    vectors: NDArray[np.float32],
    cluster: int,
    code: int,
) -> Group:
    """The most central sentence has the largest product with the sum of all: the largest mean cosine to the others."""
    centrality = vectors[members] @ (times[members].astype(np.float32) @ vectors[members])
    ranked = members[np.lexsort((-times[members], -centrality.round(5)))]
    said = tuple((distinct[i], int(times[i])) for i in ranked.tolist())
    return Group(-1, said[0][0], int(times[members].sum()), said, cluster, named_poles(code))

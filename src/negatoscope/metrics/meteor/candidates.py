"""All matches that METEOR's four modules find between predictions and references, in the program's order.

The order counts: of alignments that are equally good the search keeps those whose matches were found first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from negatoscope.errors import Trouble
from negatoscope.metrics.meteor.corpus import Corpus, Occurrences
from negatoscope.metrics.meteor.index import Index
from negatoscope.metrics.meteor.ranges import ranges
from negatoscope.metrics.meteor.relations import EXACT, PARAPHRASE, Relation, paraphrase_relation, word_relation

_MOST_MATCHES = 20_000_000  # some 2 GB


@dataclass(frozen=True)
class Candidates:
    """Matches of many pairs of texts, sorted by pair, start in the reference, and then as found."""

    pair: np.ndarray
    ref_start: np.ndarray
    ref_length: np.ndarray
    hyp_start: np.ndarray
    hyp_length: np.ndarray
    module: np.ndarray

    def __len__(self) -> int:
        return len(self.pair)


class Matcher:
    """What one corpus needs to find the candidates of any pairs of its texts."""

    def __init__(self, corpus: Corpus, index: Index) -> None:
        self.corpus = corpus
        self.words = word_relation(corpus.vocabulary, index)
        self.paraphrases = paraphrase_relation(corpus, index.paraphrases)
        self.paraphrased = self.paraphrases.turned()

    def candidates(self, hyp: np.ndarray, ref: np.ndarray) -> Candidates:
        """Of the pairs of text numbers (hyp[0], ref[0]), (hyp[1], ref[1]) ..."""
        words, phrases = self.corpus.words, self.corpus.phrases
        pair, r, h, module = _join(hyp, ref, words, self.words)
        # A text equal to its reference is aligned word by word: only exact matches.
        kept = (module == EXACT) | (hyp != ref)[pair]
        pair, r, h, module = pair[kept], r[kept], h[kept], module[kept]
        there = hyp != ref
        numbers = np.flatnonzero(there)
        ref_pair, ref_r, ref_h, ref_rank = _join(hyp[there], ref[there], phrases, self.paraphrases)
        hyp_pair, hyp_r, hyp_h, hyp_rank = _join(hyp[there], ref[there], phrases, self.paraphrased)
        found = Candidates(
            pair=np.concatenate([pair, numbers[ref_pair], numbers[hyp_pair]]),
            ref_start=np.concatenate([words.start[r], phrases.start[ref_r], phrases.start[hyp_r]]),
            ref_length=np.concatenate([words.length[r], phrases.length[ref_r], phrases.length[hyp_r]]),
            hyp_start=np.concatenate([words.start[h], phrases.start[ref_h], phrases.start[hyp_h]]),
            hyp_length=np.concatenate([words.length[h], phrases.length[ref_h], phrases.length[hyp_h]]),
            module=np.concatenate([module, np.full(len(ref_pair) + len(hyp_pair), PARAPHRASE)]),
        )
        # Within one start in the reference. Words: module, place. Phrases of the reference that the prediction
        # paraphrases: length, the table's order, place. Phrases of the prediction that the reference paraphrases:
        # place, length, the table's order.
        way = np.repeat([0, 1, 2], [len(pair), len(ref_pair), len(hyp_pair)])
        nothing = np.zeros(len(pair), np.int64)
        a = np.concatenate([module, phrases.length[ref_r], phrases.start[hyp_h]])
        b = np.concatenate([words.start[h], ref_rank, phrases.length[hyp_h]])
        c = np.concatenate([nothing, phrases.start[ref_h], hyp_rank])
        order = np.lexsort((c, b, a, way, found.ref_start, found.pair))
        return Candidates(**{name: column[order] for name, column in vars(found).items()})


def _join(
    hyp: np.ndarray, ref: np.ndarray, things: Occurrences, relation: Relation
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(pair, occurrence in the reference, occurrence in the prediction, rank) for all that `relation` relates.

    Raises Trouble where a pair has more matches than memory should hold.
    """
    pair_r, r = ranges(things.first[ref], things.first[ref + 1])
    asker, entry = ranges(relation.first[things.kind[r]], relation.first[things.kind[r] + 1])
    pair_h, h = ranges(things.first[hyp], things.first[hyp + 1])
    at_hand = pair_h * things.kinds + things.kind[h]
    asked = pair_r[asker] * things.kinds + relation.other[entry]
    start, stop = np.searchsorted(at_hand, asked, "left"), np.searchsorted(at_hand, asked, "right")
    if (matches := int((stop - start).sum())) > _MOST_MATCHES:
        raise Trouble(
            f"a prediction and a reference that agree in {matches:,} pairs of words are too long for METEOR",
            remedy="cut the reports, or leave METEOR out",
        )
    question, answer = ranges(start, stop)
    asker, entry = asker[question], entry[question]
    return pair_r[asker], r[asker], h[answer], relation.rank[entry]

"""Which words and phrases METEOR lets stand for one another: by stem, by WordNet synset, by the paraphrase table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from negatoscope.metrics.meteor.corpus import Corpus
from negatoscope.metrics.meteor.index import Index, Table, word_keys
from negatoscope.metrics.meteor.ranges import firsts, ranges
from negatoscope.metrics.meteor.stem import stem

EXACT, STEM, SYNONYM, PARAPHRASE = range(4)

# WordNet's rules of detachment: nouns, verbs, adjectives. The first that leads to a known lemma counts.
_DETACHMENT = (
    ("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y"),
    ("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", ""),
    ("er", ""), ("est", ""), ("er", "e"), ("est", "e"),
)  # fmt: skip


@dataclass(frozen=True)
class Relation:
    """Kinds related to kind k: `other[first[k] : first[k + 1]]`, ranked: words by module, phrases as in the table."""

    first: np.ndarray
    other: np.ndarray
    rank: np.ndarray

    @classmethod
    def of(cls, one: np.ndarray, other: np.ndarray, rank: np.ndarray, kinds: int) -> Relation:
        order = np.argsort(one, kind="stable")
        return cls(firsts(one, kinds), other[order], rank[order])

    def turned(self) -> Relation:
        """The same, from the other side."""
        kinds = len(self.first) - 1
        one = np.repeat(np.arange(kinds), np.diff(self.first))
        return Relation.of(self.other, one, self.rank, kinds)


def word_relation(vocabulary: list[str], index: Index) -> Relation:
    """A word matches itself, others of its stem, and others that share a synset with it; one word may do both."""
    same = np.arange(len(vocabulary))
    stem_number: dict[str, int] = {}
    stems = np.array([stem_number.setdefault(stem(word), len(stem_number)) for word in vocabulary], np.int64)
    by_module = {
        EXACT: (same, same),
        STEM: _pairs_that_share(same, stems),
        SYNONYM: _pairs_that_share(*_word_synsets(vocabulary, index)),
    }
    rank = np.concatenate([np.full(len(one), module) for module, (one, _) in by_module.items()])
    one, other = (np.concatenate(side) for side in zip(*by_module.values()))
    return Relation.of(one, other, rank, len(vocabulary))


def paraphrase_relation(corpus: Corpus, paraphrases: Table) -> Relation:
    """Phrase of the corpus -> its paraphrases that occur in the corpus too, ranked as the table has them."""
    rows = corpus.phrase_rows
    start = paraphrases.first[rows].astype(np.int64)
    one, entry = ranges(start, paraphrases.first[rows + 1].astype(np.int64))
    kind_of_row = np.full(len(paraphrases.keys), -1, np.int32)
    kind_of_row[rows] = np.arange(len(rows), dtype=np.int32)
    other = kind_of_row[paraphrases.values[entry]]
    occurs = other >= 0
    return Relation.of(one[occurs], other[occurs], (entry - start[one])[occurs], len(rows))


def _pairs_that_share(word: np.ndarray, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All ordered pairs of different words that are in one group, each once."""
    order = np.argsort(group, kind="stable")
    word, group = word[order], group[order]
    entry, partner = ranges(np.searchsorted(group, group, "left"), np.searchsorted(group, group, "right"))
    pairs = np.unique(np.column_stack([word[entry], word[partner]]), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return pairs[:, 0], pairs[:, 1]


def _word_synsets(vocabulary: list[str], index: Index) -> tuple[np.ndarray, np.ndarray]:
    """(word, synset) pairs: the synsets of the word as it stands, and of its base form."""
    keys = word_keys(vocabulary)
    irregular_row = index.irregular.find(keys)
    irregular = np.flatnonzero(irregular_row >= 0)
    row = irregular_row[irregular]
    owner, entry = ranges(index.irregular.first[row], index.irregular.first[row + 1])
    regular = np.flatnonzero(irregular_row < 0)
    base_word, base_row = _bases(vocabulary, regular, index.synsets)
    word = np.concatenate([np.arange(len(keys)), irregular[owner], base_word])
    row = np.concatenate([index.synsets.find(keys), index.synsets.find(index.irregular.values[entry]), base_row])
    word, row = word[row >= 0], row[row >= 0]
    owner, entry = ranges(index.synsets.first[row], index.synsets.first[row + 1])
    return word[owner], index.synsets.values[entry]


def _bases(vocabulary: list[str], regular: np.ndarray, synsets: Table) -> tuple[np.ndarray, np.ndarray]:
    """(word, lemma row) for the words that a rule of detachment leads to a lemma: its first success."""
    owner: list[int] = []
    candidates: list[str] = []
    for number in regular.tolist():
        word = vocabulary[number]
        if len(word) <= 2 or word.endswith("ss"):
            continue
        bases = [word.removesuffix(suffix) + ending for suffix, ending in _DETACHMENT if word.endswith(suffix)]
        owner += [number] * len(bases)
        candidates += bases
    row = synsets.find(word_keys(candidates))
    word, first = np.unique(np.array(owner, np.int64)[row >= 0], return_index=True)
    return word, row[row >= 0][first]

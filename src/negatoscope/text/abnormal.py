"""Does a sentence of a report tell of something abnormal? A small network in NumPy: over 20,000 sentences a second on one core.

Two views of a sentence add up to one logit:

- its word order: hashed runs of one to four words, pairs with a gap, and each word together with the negation it stands under;
- its meaning: word vectors (a word's own, plus the mean of its character n-grams, so that a word never seen still has one), one
  layer of filters over spans of one to four words, the largest answer of each filter over the sentence.

Trained by `negatoscope.text.abnormal_training`, which states how; the weights in `data/abnormal.safetensors` come from it.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from negatoscope.errors import BadInput
from negatoscope.settings import Settings
from negatoscope.whole_files import whole_file

FORMAT = "negatoscope abnormal sentences 1"
LONGEST = 512
"""Words of a sentence that are read; what follows is ignored."""

# Numbers whole ("1.5"), letters with their digits ("T11"). Commas, hyphens, slashes and full stops part words and say nothing:
# the corpora differ in whether they keep them.
_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W_]+|[;:?]")
_DIGITS = re.compile(r"\d+(?:[.,]\d+)*")
_BLANKED = re.compile(r"(?:x{3,}|_{2,})")  # how Open-I and MIMIC-CXR hide names and dates

# What opens a scope in which findings are denied, and what closes it again.
DENIALS = frozenset(
    "no not nor none without never negative absent absence free unremarkable cleared resolved resolution denies "
    "neither rather excluded".split()
)
TURNS = frozenset("but however although though except aside apart otherwise with which ; : ? <s> </s>".split())
_START, _END = "<s>", "</s>"


class Shape(Settings):
    """Sizes of the network."""

    width: int = 64
    """Numbers of a word vector."""
    filters: int = 48
    """Filters a span."""
    spans: tuple[int, ...] = (1, 2, 3, 4)
    """Words that a filter sees at once."""
    order_bits: int = 17
    """The word-order features share 2 ** order_bits weights."""
    piece_bits: int = 12
    """The character n-grams share 2 ** piece_bits vectors."""
    pieces: tuple[int, ...] = (3, 4, 5)
    """Lengths of the character n-grams."""


def words(sentence: str) -> list[str]:
    """The words as the network reads them: lower case, every number one `0`, every blanked name `xxxx`."""
    found = [_DIGITS.sub("0", word) for word in _WORD.findall(_BLANKED.sub(" xxxx ", sentence.lower()))]
    return found[:LONGEST]


@dataclass(frozen=True)
class Reading:
    """Some sentences, flat. W words in all, the marks of start and end among them; S sentences."""

    rows: NDArray[np.int64]  # (W,) into the lexicon
    owner: NDArray[np.int64]  # (W,) number of the sentence
    starts: NDArray[np.int64]  # (S,) where each sentence begins

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.starts, append=len(self.rows))  # (S,)


class Lexicon:
    """What is known of each distinct word before any weight: its hash, whether it denies or turns, its character n-grams."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.row: dict[str, int] = {}
        self.words: list[str] = []
        self.hashes: list[int] = []
        self.cues: list[int] = []
        self.grams: list[NDArray[np.int64]] = []
        for mark in (_START, _END):
            self._add(mark)

    def __len__(self) -> int:
        return len(self.words)

    def _add(self, word: str) -> int:
        row = self.row[word] = len(self.words)
        self.words.append(word)
        self.hashes.append(zlib.crc32(word.encode()))
        self.cues.append(1 if word in DENIALS else 2 if word in TURNS else 0)
        self.grams.append(self._pieces(word))
        return row

    def _pieces(self, word: str) -> NDArray[np.int64]:
        if word in (_START, _END):
            return np.zeros(0, np.int64)
        framed = f"<{word[:40]}>"
        pieces = {framed[i : i + n] for n in self.shape.pieces for i in range(len(framed) - n + 1)} or {framed}
        return np.array([zlib.crc32(piece.encode()) % (1 << self.shape.piece_bits) for piece in sorted(pieces)], np.int64)

    def read(self, sentences: Sequence[str]) -> Reading:
        """Sentences as rows of this lexicon, which learns their new words."""
        rows: list[int] = []
        starts: list[int] = []
        known = self.row
        for sentence in sentences:
            starts.append(len(rows))
            rows.append(0)
            for word in words(sentence):
                row = known.get(word)
                rows.append(self._add(word) if row is None else row)
            rows.append(1)
        first = np.array(starts, np.int64)
        return Reading(np.array(rows, np.int64), np.repeat(np.arange(len(first)), np.diff(first, append=len(rows))), first)


_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2 ** 64 divided by the golden ratio: multiplying by it spreads neighbours apart


def denied(cues: NDArray[np.int64]) -> NDArray[np.int64]:
    """(W,) 1 where the nearest cue up to this word is a denial. Starts and ends of sentences are turns."""
    place = np.where(cues > 0, np.arange(len(cues)), 0)
    return (cues[np.maximum.accumulate(place)] == 1).astype(np.int64)


def order_features(
    hashes: NDArray[np.uint64], under: NDArray[np.int64], owner: NDArray[np.int64], bits: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Word-order features of flat sentences: `(F,)` weights' numbers and `(F,)` the sentences they belong to."""
    shift = np.uint64(64 - bits)
    buckets, owners = [], []

    def add(kind: int, key: NDArray[np.uint64], whose: NDArray[np.int64]) -> None:
        buckets.append((((key + np.uint64(kind)) * _MIX) >> shift).astype(np.int64))
        owners.append(whose)

    run = hashes * _MIX
    add(1, run, owner)
    add(5, run ^ (under.astype(np.uint64) + np.uint64(7)), owner)
    for n in (2, 3, 4):  # runs of n words
        run = (run[:-1] ^ (run[:-1] >> np.uint64(29))) * _MIX + hashes[n - 1 :]
        inside = owner[: len(run)] == owner[n - 1 :]
        add(n, run[inside], owner[: len(run)][inside])
    for gap in (2, 3):  # pairs with one or two words between
        pair = hashes[:-gap] * _MIX + (hashes[gap:] << np.uint64(20))
        inside = owner[:-gap] == owner[gap:]
        add(8 + gap, pair[inside], owner[:-gap][inside])
    return np.concatenate(buckets), np.concatenate(owners)


@dataclass(frozen=True)
class Weights:
    """The network. V words have a vector of their own; d is the width, f the filters, P the sum of the spans."""

    vocabulary: tuple[str, ...]
    vectors: NDArray[np.float32]  # (V, d)
    pieces: NDArray[np.float32]  # (2 ** piece_bits, d)
    scope: NDArray[np.float32]  # (2, d) added to a word that is affirmed, denied
    filters: NDArray[np.float32]  # (d, f * P): for each span, for each place in it, f filters
    filter_bias: NDArray[np.float32]  # (f * spans,)
    out: NDArray[np.float32]  # (f * spans,)
    order: NDArray[np.float32]  # (2 ** order_bits,)
    bias: float


class AbnormalSentences:
    """The trained classifier. `AbnormalSentences.default()` needs no file and no download."""

    def __init__(self, shape: Shape, weights: Weights, *, scale: float, shift: float, threshold: float, about: Mapping[str, object]) -> None:
        self.shape, self.weights = shape, weights
        self.scale, self.shift = scale, shift
        self.threshold = threshold
        """The probability from which a sentence counts as abnormal, chosen on training reports."""
        self.about = dict(about)
        self._forget()

    def _forget(self) -> None:
        self._lexicon = Lexicon(self.shape)
        self._own = {word: number for number, word in enumerate(self.weights.vocabulary)}
        self._vectors = np.zeros((0, self.shape.width), np.float32)
        self._hashes = np.zeros(0, np.uint64)
        self._cues = np.zeros(0, np.int64)

    @staticmethod
    @lru_cache(maxsize=1)
    def default() -> AbnormalSentences:
        """The one that ships with the package."""
        return AbnormalSentences.load(Path(str(files("negatoscope.text") / "data" / "abnormal.safetensors")))

    def probability(self, sentences: Sequence[str]) -> NDArray[np.float64]:
        """(S,) calibrated probability that each sentence is abnormal; 0 where it has no word at all."""
        if isinstance(sentences, str):
            sentences = [sentences]
        if len(self._lexicon) > 200_000:
            self._forget()
        logits = [self._logits(part) for part in _parts(sentences)]
        z = np.concatenate(logits).astype(np.float64) if logits else np.zeros(0)
        return np.where(np.isneginf(z), 0.0, 1.0 / (1.0 + np.exp(-np.clip(self.scale * z + self.shift, -50, 50))))

    def abnormal(self, sentences: Sequence[str]) -> NDArray[np.bool_]:
        """(S,) whether each sentence is abnormal, by the shipped threshold."""
        return self.probability(sentences) >= self.threshold

    def _logits(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        reading = self._lexicon.read(sentences)
        self._learn_words()
        under = denied(self._cues[reading.rows])
        logits = self._meaning(reading, under) + self._order(reading, under) + np.float32(self.weights.bias)
        return np.where(reading.lengths > 2, logits, -np.inf)

    def _learn_words(self) -> None:
        """Vectors of the words that the lexicon has met since the last time."""
        first, last = len(self._vectors), len(self._lexicon)
        if first == last:
            return
        fresh = np.zeros((last - first, self.shape.width), np.float32)
        for at in range(first, last):
            own = self._own.get(self._lexicon.words[at])
            if own is not None:
                fresh[at - first] = self.weights.vectors[own]
            grams = self._lexicon.grams[at]
            if len(grams):
                fresh[at - first] += self.weights.pieces[grams].mean(0)
        self._vectors = np.concatenate([self._vectors, fresh])
        self._hashes = np.array(self._lexicon.hashes, np.uint64)
        self._cues = np.array(self._lexicon.cues, np.int64)

    def _order(self, reading: Reading, under: NDArray[np.int64]) -> NDArray[np.float32]:
        buckets, owners = order_features(self._hashes[reading.rows], under, reading.owner, self.shape.order_bits)
        count = len(reading.starts)
        total = np.bincount(owners, self.weights.order[buckets], count)
        return (total / np.sqrt(np.bincount(owners, minlength=count))).astype(np.float32)

    def _meaning(self, reading: Reading, under: NDArray[np.int64]) -> NDArray[np.float32]:
        shape, weights = self.shape, self.weights
        x = self._vectors[reading.rows] + weights.scope[under]  # (W, d)
        answers = x @ weights.filters  # (W, f * P)
        largest = []
        at = 0
        for span in shape.spans:
            heard = answers[:, at : at + shape.filters].copy()  # (W, f): the span that begins at each word
            for place in range(1, span):
                at += shape.filters
                # Past the last word of a sentence a span sees nothing.
                inside = reading.owner[place:] == reading.owner[:-place]
                heard[:-place][inside] += answers[place:, at : at + shape.filters][inside]
            at += shape.filters
            largest.append(np.maximum.reduceat(heard, reading.starts, axis=0))  # (S, f)
        strongest = np.maximum(np.concatenate(largest, 1) + weights.filter_bias, 0)  # (S, f * spans)
        return strongest @ weights.out

    def save(self, path: Path | str) -> None:
        """One safetensors file: weights as half floats, everything else as its metadata."""
        from safetensors.numpy import save_file

        w = self.weights
        tensors = {
            name: np.ascontiguousarray(getattr(w, name), dtype=np.float16)
            for name in ("vectors", "pieces", "scope", "filters", "filter_bias", "out", "order")
        }
        head = {
            "shape": self.shape.model_dump(mode="json"),
            "vocabulary": w.vocabulary,
            "bias": w.bias,
            "scale": self.scale,
            "shift": self.shift,
            "threshold": self.threshold,
            "about": self.about,
        }
        with whole_file(path) as part:
            save_file(tensors, part, metadata={"format": FORMAT, "head": json.dumps(head, ensure_ascii=False)})

    @classmethod
    def load(cls, path: Path | str) -> AbnormalSentences:
        """Raises BadInput where the file is missing, damaged or something else."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, "numpy") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name).astype(np.float32) for name in file.keys()}  # noqa: SIM118
        except FileNotFoundError as error:
            raise BadInput("no such file", where=path) from error
        except (SafetensorError, OSError) as error:
            raise BadInput(f"not a safetensors file ({error})", where=path) from error
        if metadata.get("format") != FORMAT:
            raise BadInput(
                "holds no abnormal-sentence classifier", where=path, remedy="train one: negatoscope findings train --help"
            )
        try:
            head = json.loads(metadata["head"])
            weights = Weights(vocabulary=tuple(head["vocabulary"]), bias=float(head["bias"]), **tensors)
            shape = Shape.model_validate(head["shape"])
            return cls(
                shape,
                weights,
                scale=head["scale"],
                shift=head["shift"],
                threshold=head["threshold"],
                about=head["about"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(f"damaged ({error})", where=path) from error


def _parts(sentences: Sequence[str], size: int = 1024) -> Iterator[Sequence[str]]:
    """A thousand at a time: the (W, f * P) answers of so many stay in the processor's cache."""
    for at in range(0, len(sentences), size):
        yield sentences[at : at + size]

"""Does a sentence of a report tell of something abnormal? A linear model in NumPy, no download.

Two views of a sentence, each of unit length, add up to one logit:

- its word order: hashed runs of one to four words, pairs with a gap, and each word with whether it is under a denial;
- its spelling: the hashed character n-grams of every word, so that a word never seen still says something.

With o the F order features of a sentence and p its G character n-grams,

    logit = sum_i order[o_i] / sqrt(F) + sum_j pieces[p_j] / sqrt(G) + bias

Trained by `negatoscope.text.abnormal_training`, which says how and made the weights in `data/abnormal.safetensors`.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from negatoscope.errors import BadInput
from negatoscope.settings import Settings
from negatoscope.whole_files import write_bytes

FORMAT = "negatoscope abnormal sentences 1"
LONGEST = 512
"""Words of a sentence that are read; what follows is ignored."""

# Numbers whole ("1.5"), letters with their digits ("T11"), names that MIMIC-CXR hid ("___"). Commas, hyphens, slashes
# and full stops part words and say nothing: corpora differ in whether they keep them.
_WORD = re.compile(r"\d+(?:[.,]\d+)*|_{2,}|[^\W_]+|[;:?]")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_HIDDEN = re.compile(r"x{3,}|_{2,}")

# What opens a scope in which findings are denied, and what closes it again.
_DENIALS = """no not nor none without never negative absent absence free unremarkable cleared resolved resolution denies
neither rather excluded"""
_TURNS = "but however although though except aside apart otherwise with which ; : ? <s> </s>"
DENIALS, TURNS = frozenset(_DENIALS.split()), frozenset(_TURNS.split())
START, END = "<s>", "</s>"

_PIECES = (2, 3, 4, 5, 6)  # lengths of the character n-grams
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2 ** 64 over the golden ratio: multiplying by it spreads neighbours far apart


class Shape(Settings):
    """Sizes of the model: each view shares 2 ** bits weights."""

    order_bits: int = 18
    piece_bits: int = 18


class SentenceClassifier(Protocol):
    """What can tell abnormal sentences: the default below, or a fine-tuned encoder (`abnormal_encoder.py`)."""

    threshold: float

    def probability(self, sentences: Sequence[str]) -> NDArray[np.float64]: ...


def words(sentence: str) -> list[str]:
    """The words as the model reads them: lower case, every number `0`, every hidden name `xxxx`."""
    return [normal_form(word) for word in _WORD.findall(sentence.lower())[:LONGEST]]


def normal_form(word: str) -> str:
    return "xxxx" if _HIDDEN.fullmatch(word) else _NUMBER.sub("0", word)


class Lexicon(dict[str, int]):
    """What is known of each distinct spelling before any weight: hash, cue, character n-grams.

    Looking a word up adds it.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.hashes: list[int] = []
        self.cues: list[int] = []
        """1 where the word denies, 2 where it turns, else 0."""
        self.pieces: list[NDArray[np.int64]] = []
        for mark in (START, END):  # rows 0 and 1
            self.__missing__(mark)

    def __missing__(self, spelling: str) -> int:
        word = normal_form(spelling)
        row = self[spelling] = len(self.hashes)
        self.hashes.append(zlib.crc32(word.encode()))
        self.cues.append(1 if word in DENIALS else 2 if word in TURNS else 0)
        self.pieces.append(np.zeros(0, np.int64) if word in (START, END) else self._pieces_of(word))
        return row

    def _pieces_of(self, word: str) -> NDArray[np.int64]:
        framed = f"<{word[:40]}>"
        pieces = sorted({framed[i : i + n] for n in _PIECES for i in range(len(framed) - n + 1)})
        return np.array([zlib.crc32(piece.encode()) & ((1 << self.shape.piece_bits) - 1) for piece in pieces], np.int64)

    def read(self, sentences: Sequence[str]) -> Reading:
        """Sentences as rows of this lexicon, framed by the marks of start and end."""
        rows: list[int] = []
        starts: list[int] = []
        row = self.__getitem__
        for sentence in sentences:
            starts.append(len(rows))
            rows.append(0)
            rows.extend(map(row, _WORD.findall(sentence.lower())[:LONGEST]))
            rows.append(1)
        first = np.array(starts, np.int64)
        lengths = np.diff(first, append=len(rows))
        return Reading(np.array(rows, np.int64), np.repeat(np.arange(len(first)), lengths), lengths)


class Reading(NamedTuple):
    """S sentences, flat: W words in all, the marks of start and end among them."""

    rows: NDArray[np.int64]  # (W,) into the lexicon
    owner: NDArray[np.int64]  # (W,) number of the sentence
    lengths: NDArray[np.int64]  # (S,)


def denied(cues: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(W,) whether the nearest cue up to this word is a denial. Starts and ends of sentences are turns."""
    place = np.where(cues > 0, np.arange(len(cues)), 0)
    return cues[np.maximum.accumulate(place)] == 1


def order_features(
    hashes: NDArray[np.uint64], cues: NDArray[np.int64], owner: NDArray[np.int64], bits: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Word-order features of flat sentences: (F,) numbers of weights, (F,) the sentences they belong to."""
    shift = np.uint64(64 - bits)
    buckets, owners = [], []

    def add(kind: int, key: NDArray[np.uint64], whose: NDArray[np.int64]) -> None:
        buckets.append((((key + np.uint64(kind)) * _MIX) >> shift).astype(np.int64))
        owners.append(whose)

    run = hashes * _MIX
    add(1, run, owner)
    add(5, run ^ (denied(cues).astype(np.uint64) + np.uint64(7)), owner)
    for n in (2, 3, 4):  # runs of n words
        run = (run[:-1] ^ (run[:-1] >> np.uint64(29))) * _MIX + hashes[n - 1 :]
        inside = owner[: len(run)] == owner[n - 1 :]
        add(n, run[inside], owner[: len(run)][inside])
    for gap in (2, 3):  # pairs with one or two words between
        pair = hashes[:-gap] * _MIX + (hashes[gap:] << np.uint64(20))
        inside = owner[:-gap] == owner[gap:]
        add(8 + gap, pair[inside], owner[:-gap][inside])
    return np.concatenate(buckets), np.concatenate(owners)


class AbnormalSentences:
    """The trained classifier. `AbnormalSentences.default()` needs no file and no download."""

    def __init__(
        self,
        shape: Shape,
        order: NDArray[np.float32],
        pieces: NDArray[np.float32],
        bias: float,
        *,
        slope: float = 1.0,
        shift: float = 0.0,
        threshold: float = 0.5,
        about: Mapping[str, object] | None = None,
    ) -> None:
        self.shape, self.order, self.pieces, self.bias = shape, order, pieces, bias
        self.slope, self.shift = slope, shift
        """Calibration: probability = sigmoid(slope * logit + shift)."""
        self.threshold = threshold
        """The probability from which a sentence counts as abnormal, chosen on training reports."""
        self.about = dict(about or {})
        self._lock = Lock()
        self._forget_words()

    @staticmethod
    @lru_cache(maxsize=1)
    def default() -> AbnormalSentences:
        """The one that ships with the package."""
        return AbnormalSentences.load(Path(str(files("negatoscope.text") / "data" / "abnormal.safetensors")))

    def probability(self, sentences: Sequence[str]) -> NDArray[np.float64]:
        """(S,) calibrated probability that each sentence is abnormal; 0 where a sentence has no word at all."""
        z = self.logits(sentences)
        calibrated = 1.0 / (1.0 + np.exp(-np.clip(self.slope * z + self.shift, -50, 50)))
        return np.where(np.isneginf(z), 0.0, calibrated)

    def abnormal(self, sentences: Sequence[str]) -> NDArray[np.bool_]:
        """(S,) whether each sentence is abnormal, by `threshold`."""
        return self.probability(sentences) >= self.threshold

    def logits(self, sentences: Sequence[str]) -> NDArray[np.float64]:
        """(S,) before calibration; minus infinity where a sentence has no word."""
        with self._lock:
            if len(self._lexicon) > 200_000:
                self._forget_words()
            return np.concatenate([np.zeros(0), *(self._logits(part) for part in _thousands(sentences))])

    def _forget_words(self) -> None:
        self._lexicon = Lexicon(self.shape)
        self._hashes = np.zeros(0, np.uint64)
        self._cues = np.zeros(0, np.int64)
        self._spelling = np.zeros((0, 2))  # of each word: sum of its pieces' weights, their number

    def _learn_words(self) -> None:
        """What the weights say of the words that the lexicon has met since the last time."""
        lexicon = self._lexicon
        fresh = lexicon.pieces[len(self._hashes) :]
        if fresh:
            said = np.array([(self.pieces[pieces].sum(dtype=np.float64), len(pieces)) for pieces in fresh])
            self._spelling = np.concatenate([self._spelling, said])
            self._hashes = np.array(lexicon.hashes, np.uint64)
            self._cues = np.array(lexicon.cues, np.int64)

    def _logits(self, sentences: Sequence[str]) -> NDArray[np.float64]:
        rows, owner, lengths = self._lexicon.read(sentences)
        self._learn_words()
        count = len(sentences)
        buckets, owners = order_features(self._hashes[rows], self._cues[rows], owner, self.shape.order_bits)
        order = np.bincount(owners, self.order[buckets], count) / np.sqrt(np.bincount(owners, minlength=count))
        spelt, number = self._spelling[rows].T
        spelling = np.bincount(owner, spelt, count) / np.sqrt(np.maximum(np.bincount(owner, number, count), 1.0))
        return np.where(lengths > 2, order + spelling + self.bias, -np.inf)

    def save(self, path: Path | str) -> None:
        """One safetensors file: weights as half floats, everything else as its metadata."""
        from safetensors.numpy import save

        head = {
            "shape": self.shape.model_dump(mode="json"),
            "bias": self.bias,
            "slope": self.slope,
            "shift": self.shift,
            "threshold": self.threshold,
            "about": self.about,
        }
        tensors = {"order": self.order.astype(np.float16), "pieces": self.pieces.astype(np.float16)}
        write_bytes(path, save(tensors, metadata={"format": FORMAT, "head": json.dumps(head, ensure_ascii=False)}))

    @classmethod
    def load(cls, path: Path | str) -> AbnormalSentences:
        """Raises BadInput where the file is missing, damaged or something else."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, "numpy") as file:
                metadata = file.metadata() or {}
                if metadata.get("format") != FORMAT:
                    raise BadInput(
                        "holds no classifier of abnormal sentences",
                        where=path,
                        remedy="train one: negatoscope findings train --help",
                    )
                order, pieces = (file.get_tensor(name).astype(np.float32) for name in ("order", "pieces"))
            head = json.loads(metadata["head"])
            shape = Shape.model_validate(head.pop("shape"))
            if order.shape != (1 << shape.order_bits,) or pieces.shape != (1 << shape.piece_bits,):
                raise BadInput("damaged: its weights do not have the sizes it names", where=path)
            return cls(shape, order, pieces, **head)
        except FileNotFoundError as error:
            raise BadInput("no such file", where=path) from error
        except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
            raise BadInput(f"cannot be read as a classifier ({error})", where=path) from error


def _thousands(sentences: Sequence[str], size: int = 1024) -> Iterator[Sequence[str]]:
    """So many at a time stay in the processor's cache."""
    for at in range(0, len(sentences), size):
        yield sentences[at : at + size]

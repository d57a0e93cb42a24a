"""METEOR's data in a form that loads at once: built once from `sources`, kept in the user's cache.

Words and phrases stand there as 64-bit keys. A word's key is the start of its BLAKE2b hash; a phrase's key folds its
words' keys, so the keys of all n-grams of a corpus come out of n array products:

    key(w_1 ... w_n) = key(w_1 ... w_{n-1}) * M + key(w_n)   (mod 2^64, M odd)

The 2.6 million phrases have as many different keys; a phrase of a report that is not among them is taken for one that
is with a chance of 10^-13.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from pathlib import Path

import numpy as np

from negatoscope.errors import Trouble, WrongUse
from negatoscope.metrics.meteor.ranges import firsts
from negatoscope.metrics.meteor.sources import Sources
from negatoscope.watch import Watch, quiet
from negatoscope.whole_files import whole_file

LONGEST_PHRASE = 7
_LAYOUT = 1
_FOLD = np.uint64(0x9E3779B97F4A7C15)
_BLOCK = 4 << 20


def word_keys(words: Iterable[str | bytes]) -> np.ndarray:
    """(n,) uint64"""
    encoded = (word if isinstance(word, bytes) else word.encode("utf-8", "surrogatepass") for word in words)
    return np.frombuffer(b"".join(blake2b(word, digest_size=8).digest() for word in encoded), "<u8")


def fold(phrases: np.ndarray, next_words: np.ndarray) -> np.ndarray:
    """Keys of phrases grown by one word."""
    return phrases * _FOLD + next_words


@dataclass(frozen=True)
class Table:
    """Some values for each of many keys: those of `keys[row]` are `values[first[row] : first[row + 1]]`."""

    keys: np.ndarray
    """(rows,) uint64, sorted."""
    first: np.ndarray
    """(rows + 1,) int32"""
    values: np.ndarray

    @classmethod
    def of(cls, keys: np.ndarray, values: np.ndarray) -> Table:
        """From (key, value) pairs; the values of one key keep their order."""
        unique, row = np.unique(keys, return_inverse=True)
        return cls(unique, firsts(row, len(unique)).astype(np.int32), values[np.argsort(row, kind="stable")])

    def find(self, keys: np.ndarray) -> np.ndarray:
        """(n,) row of each key, -1 where there is none."""
        if not len(self.keys):
            return np.full(len(keys), -1)
        row = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[row] == keys, row, -1)


@dataclass(frozen=True)
class Index:
    paraphrases: Table
    """Every phrase of the table -> the rows of its paraphrases, in the file's order."""
    synsets: Table
    """Lemma -> its synset numbers."""
    irregular: Table
    """Irregular form -> its bases' keys."""


def cache_folder() -> Path:
    """The platform's place for what can be made again."""
    if asked := os.environ.get("XDG_CACHE_HOME"):
        return Path(asked) / "negatoscope"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "negatoscope" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "negatoscope"
    return Path.home() / ".cache" / "negatoscope"


def load_index(sources: Sources, folder: Path | None = None, watch: Watch = quiet) -> Index:
    """From the cache, or built and written there where it is missing, damaged or made of other data. Raises Trouble."""
    path = (folder or cache_folder()) / f"meteor-1.5-en-{_LAYOUT}-{sources.checksum}.safetensors"
    index = _read(path)
    if index is None:
        index = build_index(sources, watch)
        _write(index, path)
    return index


def build_index(sources: Sources, watch: Watch = quiet) -> Index:
    irregular = list(sources.irregular_forms())
    synsets = list(sources.synsets())
    numbers_a_lemma = [len(numbers) for _, numbers in synsets]
    return Index(
        paraphrases=_paraphrases(sources, watch),
        synsets=Table.of(
            np.repeat(word_keys(lemma for lemma, _ in synsets), numbers_a_lemma),
            np.fromiter(chain.from_iterable(numbers for _, numbers in synsets), np.int32),
        ),
        irregular=Table.of(word_keys(form for form, _ in irregular), word_keys(base for _, base in irregular)),
    )


def _paraphrases(sources: Sources, watch: Watch) -> Table:
    vocabulary: dict[bytes, int] = {}
    keys: list[np.ndarray] = []
    ends: list[np.ndarray] = []  # (2, entries) of each block: a phrase and its paraphrase, as numbers of `keys`
    seen = 0
    blocks = sources.paraphrase_blocks(_BLOCK)
    for phrases, paraphrases in watch(blocks, "building METEOR's index, once", sources.unpacked_size // _BLOCK + 1):
        number: dict[bytes, int] = {}  # of each phrase once: a block names many of them often
        for phrase in chain(phrases, paraphrases):
            number.setdefault(phrase, seen + len(number))
        ends.append(np.array([[number[phrase] for phrase in side] for side in (phrases, paraphrases)], np.int32))
        keys.append(_phrase_keys(list(number), vocabulary))
        seen += len(number)
    every, row = np.unique(np.concatenate(keys), return_inverse=True)
    one, other = row.astype(np.int32)[np.concatenate(ends, axis=1)]
    return Table(every, firsts(one, len(every)).astype(np.int32), other[np.argsort(one, kind="stable")])


def _phrase_keys(phrases: Sequence[bytes], vocabulary: dict[bytes, int]) -> np.ndarray:
    """(n,) keys; `vocabulary` remembers the words' keys from block to block."""
    length = np.array([phrase.count(b" ") + 1 for phrase in phrases], np.int64)
    words = b" ".join(phrases).split(b" ") if phrases else []
    unseen = list(set(words) - vocabulary.keys())
    vocabulary.update(zip(unseen, word_keys(unseen).tolist()))
    key = np.fromiter(map(vocabulary.__getitem__, words), np.uint64, len(words))
    start = np.cumsum(length) - length
    phrase = np.zeros(len(phrases), np.uint64)
    for place in range(int(length.max(initial=0))):
        long_enough = np.flatnonzero(length > place)
        phrase[long_enough] = fold(phrase[long_enough], key[start[long_enough] + place])
    return phrase


_TABLES = ("paraphrases", "synsets", "irregular")


def _write(index: Index, path: Path) -> None:
    from safetensors.numpy import save_file

    arrays = {f"{name}.{part}": array for name in _TABLES for part, array in vars(getattr(index, name)).items()}
    try:
        with whole_file(path) as part:
            save_file(arrays, part, metadata={"crc32": _checksum(arrays)})
    except (OSError, WrongUse) as error:
        why = error.what if isinstance(error, WrongUse) else error.strerror
        raise Trouble(
            f"METEOR's index cannot be written there ({why})",
            where=path,
            remedy="set XDG_CACHE_HOME to a folder that can be written",
        ) from error


def _read(path: Path) -> Index | None:
    """None where there is no index, or a damaged one."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            recorded = (file.metadata() or {}).get("crc32")
        if _checksum(arrays) != recorded:
            return None
        parts = ("keys", "first", "values")
        return Index(**{name: Table(*(arrays[f"{name}.{part}"] for part in parts)) for name in _TABLES})
    except (OSError, SafetensorError, KeyError):
        return None


def _checksum(arrays: dict[str, np.ndarray]) -> str:
    crc = 0
    for name in sorted(arrays):
        crc = zlib.crc32(arrays[name].data, zlib.crc32(name.encode(), crc))
    return f"{crc:08x}"

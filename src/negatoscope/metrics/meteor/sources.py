"""METEOR's data in the user's own installation of pycocoevalcap: a paraphrase table beside a jar, word lists inside it.

Only the files are read: nothing of that package is imported (its modules start Java), nothing of it is copied into
this one.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from negatoscope.errors import BadInput, Trouble

_FUNCTION_WORDS = "function/english.words"
_NONBREAKING = "nonbreaking/english.prefixes"
_IRREGULAR = "synonym/english.exceptions"
_SYNSETS = "synonym/english.synsets"
_WORD_LISTS = (_FUNCTION_WORDS, _NONBREAKING, _IRREGULAR, _SYNSETS)


@dataclass(frozen=True)
class Sources:
    jar: Path
    paraphrases: Path

    @property
    def checksum(self) -> str:
        """Eight hex digits over the CRC-32s that the archives carry: known without unpacking anything."""
        with self._open_jar() as jar:
            carried = [jar.getinfo(name).CRC.to_bytes(4, "little") for name in _WORD_LISTS]
        with self.paraphrases.open("rb") as packed:
            packed.seek(-8, 2)
            carried.append(packed.read(8))
        return f"{zlib.crc32(b''.join(carried)):08x}"

    @property
    def unpacked_size(self) -> int:
        """Bytes of the unpacked paraphrase table, from the end of the gzip file."""
        with self.paraphrases.open("rb") as packed:
            packed.seek(-4, 2)
            return int.from_bytes(packed.read(4), "little")

    def function_words(self) -> list[str]:
        return self._lines(_FUNCTION_WORDS)

    def nonbreaking(self) -> dict[str, bool]:
        """Abbreviations that keep their dot; True where only before a number."""
        entries = [line.split() for line in self._lines(_NONBREAKING)]
        entries = [entry for entry in entries if entry and not entry[0].startswith("#")]
        return {entry[0]: entry[1:2] == ["#NUMERIC_ONLY#"] for entry in entries}

    def irregular_forms(self) -> Iterator[tuple[str, str]]:
        """(form, base): ("wolves", "wolf")."""
        lines = self._lines(_IRREGULAR)
        for base, forms in zip(lines[::2], lines[1::2]):
            for form in forms.split():
                yield form, base

    def synsets(self) -> Iterator[tuple[str, list[int]]]:
        """(lemma, WordNet's synset numbers)."""
        lines = self._lines(_SYNSETS)
        for lemma, numbers in zip(lines[::2], lines[1::2]):
            yield lemma, [int(number) for number in numbers.split()]

    def paraphrase_blocks(self, block_size: int) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """Phrases and, in step, their paraphrases. An entry is three lines: probability, phrase, paraphrase."""
        waiting = b""
        try:
            with gzip.open(self.paraphrases) as table:
                while block := table.read(block_size):
                    lines = (waiting + block).split(b"\n")
                    whole = (len(lines) - 1) // 3 * 3
                    waiting = b"\n".join(lines[whole:])
                    yield lines[1:whole:3], lines[2:whole:3]
        except (OSError, EOFError, zlib.error) as error:
            raise BadInput(f"not a whole gzip file ({error})", where=self.paraphrases, remedy=_REINSTALL) from error

    def _lines(self, name: str) -> list[str]:
        with self._open_jar() as jar:
            return jar.read(name).decode("utf-8").splitlines()

    def _open_jar(self) -> ZipFile:
        try:
            return ZipFile(self.jar)
        except (OSError, BadZipFile) as error:
            raise BadInput(f"not a whole jar ({error})", where=self.jar, remedy=_REINSTALL) from error


_REINSTALL = "pip install --force-reinstall pycocoevalcap==1.2"


def find_sources() -> Sources:
    """Raises Trouble where pycocoevalcap is not installed."""
    spec = find_spec("pycocoevalcap")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        meteor = Path(folder) / "meteor"
        sources = Sources(meteor / "meteor-1.5.jar", meteor / "data" / "paraphrase-en.gz")
        if sources.jar.is_file() and sources.paraphrases.is_file():
            return sources
    raise Trouble("METEOR needs its paraphrase table and word lists", remedy="pip install 'negatoscope[meteor]'")


def meteor_available() -> bool:
    """Whether METEOR's data is installed; costs a look at a few folders."""
    try:
        find_sources()
    except Trouble:
        return False
    return True

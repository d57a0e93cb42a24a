"""What a report is turned into before it is scored. Two protocols, by name:

r2gen   as R2Gen and its descendants score: cleaned, cut to 60 (IU X-Ray) or 100 (MIMIC-CXR) words, rare words as <unk>.
full    the whole report, lower-cased, in words.

A reference under `r2gen` loses its last word earlier than the name says: the published code counts the start mark, so
that of "60 words" 59 are left, and a reference that was cut has no full stop at its end. A prediction may have all 60.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, cast, get_args

from negatoscope.errors import BadInput, WrongUse, nearest_names
from negatoscope.metrics.form_readers import Role
from negatoscope.text.words import UNKNOWN, Cleaning, Vocabulary, cleaning_named

Tokens = Literal["spaces", "ptb"]
PROTOCOLS = ("full", "r2gen")
SHIPPED = ("iu-xray",)
"""Vocabularies that come with the package: facts about public training splits."""

# Where a run folder has its vocabulary.
_IN_A_RUN = "vocabulary.json"


@dataclass(frozen=True)
class Protocol:
    """How texts are prepared. Frozen; its `line` stands in every signature."""

    name: Literal["r2gen", "full"] = "full"
    tokens: Tokens = "ptb"
    vocabulary: Vocabulary | None = None
    """With its cleaning and its longest report; none under `full`."""

    @property
    def line(self) -> str:
        if self.vocabulary is None:
            return self.name
        words = self.vocabulary.words
        digest = hashlib.sha256("\n".join(words).encode()).hexdigest()[:8]
        return f"{self.name}.{self.vocabulary.cleaning}.{self.vocabulary.max_words}.{len(words)}-{digest}"

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.vocabulary.words if self.vocabulary else ())

    def sentences(self, text: str, role: Role) -> str:
        """What a labeler reads: under `full` the report as it is, under `r2gen` what its authors gave to CheXpert."""
        if self.vocabulary is None:
            return text
        if role == "reference":
            return self.vocabulary.as_scored(text)
        words = as_words(text, self.vocabulary.cleaning)[: self.vocabulary.max_words]
        return " ".join(word if word in self._known else UNKNOWN for word in words)

    def words(self, texts: Sequence[str], role: Role) -> list[str]:
        """What BLEU and its kind read: words with one blank between them."""
        texts = [self.sentences(text, role) for text in texts]
        if self.tokens == "ptb":
            from negatoscope.metrics.tokenise import ptb_words

            return [" ".join(ptb_words(text)) for text in texts]
        return [" ".join(text.lower().split()) for text in texts]


def as_words(text: str, cleaning: Cleaning) -> list[str]:
    """A prediction's words after cleaning. Text that cleaning would leave alone, but for a full stop at the end, is
    the output of a model that writes cleaned words and ran to its limit: it is taken as it is, as the published code
    does."""
    words = text.split()
    cleaned = cleaning_named(cleaning)(text).split()
    # Cleaning eats the brackets of <unk>.
    as_if = ["unk" if word == UNKNOWN else word for word in words]
    return words if cleaned in (as_if, [*as_if, "."]) else cleaned


def protocol_named(
    name: str,
    *,
    vocabulary: str | Path | Vocabulary | None = None,
    tokens: str | None = None,
    max_words: int | None = None,
) -> Protocol:
    """`vocabulary` under r2gen: 'iu-xray', a run folder, or a JSON file. `tokens` is 'ptb' under full and 'spaces'
    under r2gen where nothing is said. Raises WrongUse for what does not fit together."""
    if name not in PROTOCOLS:
        raise WrongUse(f"no protocol {name!r}", remedy=nearest_names(name, PROTOCOLS))
    if tokens is not None and tokens not in get_args(Tokens):
        raise WrongUse(f"no tokenisation {tokens!r}", remedy=nearest_names(tokens, get_args(Tokens)))
    taken = cast(Tokens | None, tokens)
    if name == "full":
        if vocabulary is not None or max_words is not None:
            raise WrongUse(
                "the protocol full neither cuts nor replaces words", remedy="--protocol r2gen has a vocabulary"
            )
        return Protocol("full", taken or "ptb")
    if vocabulary is None:
        raise WrongUse(
            "the protocol r2gen needs a vocabulary",
            remedy="--vocabulary iu-xray, a run folder, or a JSON file of words",
        )
    words = vocabulary if isinstance(vocabulary, Vocabulary) else vocabulary_named(vocabulary)
    if max_words is not None:
        if max_words < 2:
            raise WrongUse(f"cut to {max_words} words leaves nothing of a reference", remedy="at least 2; 60 is usual")
        words = replace(words, max_words=max_words)
    return Protocol("r2gen", taken or "spaces", words)


def vocabulary_named(name: str | Path) -> Vocabulary:
    """A shipped vocabulary by name, or from a run folder, a checkpoint, or a JSON file: a Vocabulary's own, or a bare
    list."""
    if str(name) in SHIPPED:
        text = files("negatoscope.text").joinpath(f"data/{name}.json").read_text(encoding="utf-8")
        return Vocabulary.from_json(json.loads(text), where=f"{name}.json")
    path = Path(name)
    if path.is_dir():
        path = path / _IN_A_RUN
        if not path.is_file():
            raise BadInput("no vocabulary in this folder", where=path.parent, remedy=f"a run folder holds {_IN_A_RUN}")
    if not path.exists():
        raise WrongUse(
            f"no vocabulary {str(name)!r}: no file, no run folder, and none that ships",
            remedy=nearest_names(str(name), SHIPPED),
        )
    if path.suffix == ".safetensors":
        return _from_checkpoint(path)
    return Vocabulary.from_json(_with_unknown(_json_at(path)), where=path)


def _from_checkpoint(path: Path) -> Vocabulary:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as opened:
            header = opened.metadata() or {}
    except SafetensorError as error:
        raise BadInput(f"damaged checkpoint ({error})", where=path) from error
    if "vocabulary" not in header:
        raise BadInput("weights without a vocabulary: not a checkpoint of negatoscope", where=path)
    return Vocabulary.from_json(json.loads(header["vocabulary"]), where=path)


def _json_at(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadInput(f"not JSON ({error})", where=path) from error


def _with_unknown(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return {"words": value if UNKNOWN in value else [*value, UNKNOWN]}

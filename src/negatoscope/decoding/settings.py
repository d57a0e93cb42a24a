"""How reports are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field, model_validator

from negatoscope.settings import Settings


class DecodeSettings(Settings):
    method: Literal["beam", "sample"] = "beam"
    beam: int = Field(default=3, ge=1, le=10)
    """Beams a study; 1 is greedy."""
    best: int = Field(default=1, ge=1, le=10)
    """Reports a study, best first. At most `beam` when searching; the number of draws when sampling."""
    max_words: int = Field(default=60, ge=1)
    min_words: int = Field(default=0, ge=0)
    length_penalty: float = Field(default=0.0, ge=0)
    """a: a report's score is the sum of its log-probabilities divided by its length to the power a. 0 leaves the sum,
    1 the mean."""
    block_trigrams: bool = False
    """Never write three words in a row that the report already holds."""
    suppress_unknown: bool = False
    """Never write <unk>."""
    temperature: float = Field(default=1.0, gt=0)
    top_k: int = Field(default=0, ge=0)
    """Sampling: draw among the k likeliest words; 0 for all."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Sampling: draw among the likeliest words that hold this share of the probability."""
    seed: int = 0

    @model_validator(mode="after")
    def _fits(self) -> DecodeSettings:
        if self.method == "beam" and self.best > self.beam:
            raise ValueError(f"best = {self.best} needs a beam of at least {self.best}, it is {self.beam}")
        if self.min_words >= self.max_words:
            raise ValueError(f"min_words = {self.min_words} leaves no room below max_words = {self.max_words}")
        return self


@dataclass(frozen=True)
class Written:
    """One report in word numbers, without the end mark."""

    words: tuple[int, ...]
    score: float
    """What it was ranked by: the sum of its log-probabilities over its length to the power `length_penalty`."""
    log_probabilities: tuple[float, ...]
    """Of each word, and of the end where the report came to one."""

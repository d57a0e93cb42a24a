"""The columns of each paper's table, so that one command prints a row that can be laid beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from negatoscope.errors import WrongUse, nearest_names

_BLEU = tuple(f"BLEU-{n}" for n in (1, 2, 3, 4))


def _ce(setting: str, *measures: str) -> tuple[str, ...]:
    return tuple(f"CE {measure} ({setting})" for measure in measures)


@dataclass(frozen=True)
class PaperTable:
    figures: tuple[str, ...]
    metrics: tuple[str, ...]
    """What must be computed for them."""
    clinical: str | None = None
    """The setting of clinical efficacy."""


TABLES: Mapping[str, PaperTable] = {
    "r2gen": PaperTable(
        (*_BLEU, "METEOR", "ROUGE-L", *_ce("r2gen", "precision", "recall", "F1")),
        ("bleu", "meteor", "rouge", "clinical"),
        "r2gen",
    ),
    "ca": PaperTable(
        (*_BLEU, "METEOR", "ROUGE-L", *_ce("r2gen", "precision", "recall", "F1")),
        ("bleu", "meteor", "rouge", "clinical"),
        "r2gen",
    ),
    "wcl": PaperTable(
        ("BLEU-1", "BLEU-4", "METEOR", "ROUGE-L", *_ce("wcl", "precision", "recall", "F1")),
        ("bleu", "meteor", "rouge", "clinical"),
        "wcl",
    ),
    "cvse": PaperTable(
        (*_ce("cvse", "accuracy", "precision", "recall"), "BLEU-4", "BLEU-1", "ROUGE-L", "METEOR"),
        ("clinical", "bleu", "rouge", "meteor"),
        "cvse",
    ),
    "ithn": PaperTable(
        (*_BLEU, "METEOR", "ROUGE-L", "CIDEr", *_ce("r2gen", "precision", "recall", "F1"), "diversity"),
        ("bleu", "meteor", "rouge", "cider", "clinical", "diversity"),
        "r2gen",
    ),
    "chexbert": PaperTable(
        tuple(f"CE F1, {average} {over} (chexbert)" for over in (14, 5) for average in ("micro", "macro")),
        ("clinical",),
        "chexbert",
    ),
}


def table_named(name: str) -> PaperTable:
    if name not in TABLES:
        raise WrongUse(f"no table {name!r}", remedy=nearest_names(name, TABLES))
    return TABLES[name]

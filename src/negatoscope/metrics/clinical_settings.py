"""What "CE F1" has meant: every way to make one figure of the labels of 14 observations, and the literature's by name.

A way is an average, a set of observations and what uncertain counts as: `macro-14-negative`, `micro-5-positive`,
`example-13-ignore`. A setting is what a paper prints: one or several ways, and the figures it takes of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Literal

from negatoscope.errors import WrongUse, nearest_names
from negatoscope.studies.study import OBSERVATIONS

Uncertain = Literal["positive", "negative", "ignore"]
Average = Literal["macro", "micro", "weighted", "example"]
Measure = Literal["precision", "recall", "F1", "accuracy"]
Over = Literal[14, 13, 5]

UNCERTAIN: tuple[Uncertain, ...] = ("positive", "negative", "ignore")
AVERAGES: tuple[Average, ...] = ("macro", "micro", "weighted", "example")
MEASURES: tuple[Measure, ...] = ("precision", "recall", "F1", "accuracy")

FIVE = ("Cardiomegaly", "Edema", "Consolidation", "Atelectasis", "Pleural Effusion")
NOT_ABNORMAL = ("No Finding", "Support Devices")
SETS: Mapping[Over, tuple[int, ...]] = {
    14: tuple(range(14)),
    13: tuple(k for k, name in enumerate(OBSERVATIONS) if name != "No Finding"),
    5: tuple(k for k, name in enumerate(OBSERVATIONS) if name in FIVE),
}
"""Which of the 14: all, all but No Finding, the five that CheXpert's authors chose."""
ABNORMAL = tuple(k for k, name in enumerate(OBSERVATIONS) if name not in NOT_ABNORMAL)
"""The twelve whose presence makes a study abnormal."""


@dataclass(frozen=True)
class Way:
    """One way to average over observations (or studies), and the figures that are shown of it."""

    average: Average
    over: Over
    uncertain: Uncertain
    shown: tuple[Measure, ...] = MEASURES

    def __str__(self) -> str:
        return f"{self.average}-{self.over}-{self.uncertain}"


@dataclass(frozen=True)
class Setting:
    name: str
    ways: tuple[Way, ...] = ()
    each: tuple[Measure, ...] = ()
    """Also shown for each of the 14, with what uncertain counts as in the first way."""
    asks: Uncertain | None = None
    """Contrastive Attention's two questions of each study, with what uncertain counts as."""


PRF: tuple[Measure, ...] = ("precision", "recall", "F1")

LITERATURE: Mapping[str, Setting] = {
    "r2gen": Setting("r2gen", (Way("macro", 14, "negative", PRF),)),
    "wcl": Setting("wcl", (Way("macro", 14, "positive", PRF),)),
    "cvse": Setting(
        "cvse",
        (Way("macro", 14, "positive", ("accuracy", "precision", "recall")),),
        each=("accuracy", "precision", "recall"),
    ),
    "chexbert": Setting(
        "chexbert",
        (
            Way("micro", 14, "positive", ("F1",)),
            Way("macro", 14, "positive", ("F1",)),
            Way("micro", 5, "positive", ("F1",)),
            Way("macro", 5, "positive", ("F1",)),
        ),
    ),
    "findings": Setting("findings", (Way("micro", 13, "positive", ("F1",)), Way("macro", 13, "positive", ("F1",)))),
    "example": Setting("example", (Way("example", 14, "positive", PRF),)),
    "ca": Setting("ca", asks="positive"),
}
"""r2gen also stands for those that follow it, Contrastive Attention and ITHN among them. findings leaves No Finding
out: with it, one normal report for everybody scores well."""

USUAL_SETTINGS = ("r2gen", "wcl", "chexbert", "findings", "example", "ca")
"""What is shown where nobody says otherwise."""


def every_setting() -> dict[str, Setting]:
    """The literature's, each way by its own name, and the two questions under each policy."""
    ways = (Way(*said) for said in product(AVERAGES, SETS, UNCERTAIN))
    asked = {f"ca-{policy}": Setting(f"ca-{policy}", asks=policy) for policy in UNCERTAIN}
    return {**LITERATURE, **{str(way): Setting(str(way), (way,)) for way in ways}, **asked}


def settings_named(names: str | tuple[str, ...] | list[str]) -> tuple[Setting, ...]:
    """'wcl', 'r2gen,micro-5-ignore', 'usual' (those of USUAL_SETTINGS) or 'all'. Raises WrongUse for a name that does
    not exist."""
    every = every_setting()
    asked = [name.strip() for name in names.split(",") if name.strip()] if isinstance(names, str) else list(names)
    chosen: dict[str, Setting] = {}
    for name in asked:
        if name not in ("usual", "all") and name not in every:
            remedy = nearest_names(name, ("usual", "all", *every))
            raise WrongUse(f"no setting of clinical efficacy {name!r}", remedy=remedy)
        meant = USUAL_SETTINGS if name == "usual" else tuple(every) if name == "all" else (name,)
        chosen |= {one: every[one] for one in meant}
    if not chosen:
        raise WrongUse("no setting of clinical efficacy is named", remedy="usual, all, " + ", ".join(LITERATURE))
    return tuple(chosen.values())

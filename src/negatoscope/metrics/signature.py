"""How a figure was made, in one line, as sacreBLEU does: figures whose lines differ are not compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from negatoscope import __version__
from negatoscope.errors import BadInput, WrongUse


@dataclass(frozen=True)
class Signature:
    """`protocol:r2gen.iu-xray.60.760-1f2e3d4c|tokens:spaces|metrics:bleu=pycocoevalcap-1.2|labels:none|n:590|references:0a1b...`"""

    protocol: str
    """Name and everything that changes a score: cleaning, cut, vocabulary."""
    tokens: str
    metrics: tuple[tuple[str, str], ...]
    """(metric, its version), sorted by name."""
    n: int
    """Studies scored."""
    references: str
    """The first 16 digits of the SHA-256 of the references' ids and texts as given."""
    labels: str = "none"
    """Label policy of clinical metrics: labeler, what uncertain counts as, which observations."""
    negatoscope: str = __version__

    def __str__(self) -> str:
        return "|".join(f"{name}:{value}" for name, value in self._said().items())

    def of(self, metric: str) -> Signature:
        """The signature of one metric's figures."""
        return Signature(**{**_plain(self), "metrics": tuple(pair for pair in self.metrics if pair[0] == metric)})

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "metrics": dict(self.metrics), "text": str(self)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any], *, where: object = "signature") -> Signature:
        names = {field.name for field in fields(cls)}
        missing = names - value.keys()
        if missing or not isinstance(value.get("metrics"), Mapping):
            raise BadInput(f"not a signature: lacks {', '.join(sorted(missing)) or 'metrics'}", where=where)
        known = {name: value[name] for name in names}
        return cls(**{**known, "metrics": tuple(sorted(value["metrics"].items()))})

    def _said(self) -> dict[str, str]:
        said = {name: str(value) for name, value in _plain(self).items()}
        said["metrics"] = ",".join(f"{name}={version}" for name, version in self.metrics) or "none"
        return said


def difference(a: Signature, b: Signature) -> str | None:
    """What keeps figures of `a` and `b` from being compared, in words; None if nothing does.

    Metrics are held against each other where both have them. The program's own version alone keeps nothing apart: each
    metric has its version."""
    apart = []
    for name, words in _WORDS.items():
        one, other = getattr(a, name), getattr(b, name)
        if one != other:
            apart.append(f"{words} ({one} and {other})")
    ours, theirs = dict(a.metrics), dict(b.metrics)
    apart += [
        f"version of {name} ({ours[name]} and {theirs[name]})"
        for name in ours
        if name in theirs and ours[name] != theirs[name]
    ]
    return ", ".join(apart) or None


def refuse_unlike(a: Signature, b: Signature, names: tuple[str, str] = ("the first", "the second")) -> None:
    """Raises WrongUse naming the difference."""
    apart = difference(a, b)
    if apart:
        raise WrongUse(
            f"{names[0]} and {names[1]} cannot be compared: they differ in {apart}",
            remedy="score both with one protocol against one file of references",
        )


_WORDS = {
    "protocol": "protocol",
    "tokens": "tokenisation",
    "labels": "label policy",
    "n": "number of studies",
    "references": "references",
}


def _plain(signature: Signature) -> dict[str, Any]:
    return {field.name: getattr(signature, field.name) for field in fields(signature)}

"""Options that several verbs share, and how a `key=value` is read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any

import typer
import yaml

from negatoscope.errors import WrongUse

Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output in place of tables and bars.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change one setting: --set train.lr=1e-3. May be given often."),
]


def changes_of(said: Iterable[str] | None) -> dict[str, Any]:
    """['train.lr=1e-3'] -> {'train.lr': 0.001}: values are read as YAML reads them."""
    changes = {}
    for one in said or ():
        key, equals, value = one.partition("=")
        if not equals or not key:
            raise WrongUse(f"--set {one!r} is no KEY=VALUE", remedy="for example --set train.epochs=5")
        changes[key] = _value(value)
    return changes


def _value(text: str) -> Any:
    try:
        return float(text) if "e" in text.lower() else yaml.safe_load(text)  # YAML takes 1e-3 for a word
    except ValueError:
        return yaml.safe_load(text)


def seeds_of(text: str) -> tuple[int, ...]:
    """'1,2,3' -> (1, 2, 3), each once. Raises WrongUse."""
    try:
        numbers = tuple(dict.fromkeys(int(part) for part in text.split(",") if part.strip()))
    except ValueError as error:
        raise WrongUse(f"no seeds: {text!r}", where="--seeds", remedy="for example 1,2,3") from error
    if not numbers:
        raise WrongUse("no seeds", where="--seeds", remedy="for example 1,2,3")
    return numbers


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=1, ensure_ascii=False, default=str))

"""Settings as typed classes: a misspelt or ill-typed key is one line that names the key, the file and the nearest
right spelling."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from negatoscope.errors import BadInput, WrongUse, nearest_names

S = TypeVar("S", bound="Settings")


class Settings(BaseModel):
    """Base of every component's settings: frozen, no unknown keys, docstrings of the fields are their help."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _only_known_keys(cls, value: Any) -> Any:
        if isinstance(value, dict):
            for key in value:
                if key not in cls.model_fields:
                    said = {"key": repr(str(key)), "near": nearest_names(str(key), cls.model_fields)}
                    raise PydanticCustomError("unknown_key", "unknown key {key}, {near}", said)
        return value


def read_settings(kind: type[S], value: Any, *, where: object = None) -> S:
    """A value (as from YAML) as settings; raises WrongUse naming the key."""
    try:
        return kind.model_validate({} if value is None else value)
    except ValidationError as error:
        raise WrongUse(_first(error), where=where) from error


def read_yaml(path: Path | str) -> dict[str, Any]:
    """A YAML file that holds a mapping; raises BadInput naming the line."""
    path = Path(path)
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise BadInput("no such file", where=path) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadInput(f"not YAML ({error})", where=path) from error
    if not isinstance(value, dict):
        raise BadInput("holds no settings: expected 'key: value' lines", where=path)
    return value


def put(value: dict[str, Any], key: str, new: Any) -> None:
    """Into nested mappings: 'train.lr' is value['train']['lr']."""
    *above, last = key.split(".")
    for part in above:
        value = value.setdefault(part, {})
    value[last] = new


def _first(error: ValidationError) -> str:
    """The first complaint, and how many more there are: several at once hide one another."""
    complaints = error.errors(include_url=False)
    first = complaints[0]
    key = ".".join(str(part) for part in first["loc"])
    said = f"{key}: {first['msg']}" if key else first["msg"]
    if first["type"] != "unknown_key" and "input" in first and not isinstance(first["input"], dict):
        said += f" (it is {first['input']!r})"
    return said if len(complaints) == 1 else f"{said} (and {len(complaints) - 1} more)"

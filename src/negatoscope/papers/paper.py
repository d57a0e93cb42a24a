"""A paper's tables as YAML: each row a recipe, a retrieval or a quotation, beside the figures that were printed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from negatoscope.errors import BadInput, WrongUse, nearest_names
from negatoscope.settings import Settings, read_settings, read_yaml

Form = Literal["complete", "abnormal"]
"""What a table's reports are: whole, or their abnormal sentences alone (MIMIC-ABN there, IU-ABN here)."""


class Row(Settings):
    name: str
    label: str
    recipe: str | None = None
    """Of `negatoscope train --list`, without the data set: hlstm."""
    retrieval: Literal["cvse", "cvse+exclusive"] | None = None
    """Reports that are found, not written."""
    quoted: str | None = None
    """Whose figures these are, where the paper itself only quotes or nobody can run it: never trained here."""
    changes: dict[str, Any] = Field(default_factory=dict)
    """Of the recipe, as its own YAML has them."""
    losses: tuple[dict[str, Any], ...] = ()
    """Beside the recipe's own; one of the same name takes its place."""
    against: str | None = None
    """The row of the same table that this one is tested against."""
    published: dict[str, dict[str, float]] = Field(default_factory=dict)
    """Data set -> figure -> value, as printed."""

    @model_validator(mode="after")
    def _is_one_thing(self) -> Row:
        if sum(said is not None for said in (self.recipe, self.retrieval, self.quoted)) != 1:
            raise ValueError(f"row {self.name!r} must have exactly one of recipe, retrieval and quoted")
        return self


class Table(Settings):
    title: str
    columns: tuple[str, ...]
    reports: Form = "complete"
    rows: tuple[Row, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _rows_fit(self) -> Table:
        names = [row.name for row in self.rows]
        for row in self.rows:
            if names.count(row.name) > 1:
                raise ValueError(f"two rows are called {row.name!r}")
            if row.against is not None and row.against not in names:
                raise ValueError(f"row {row.name!r} is to be tested against {row.against!r}, which is no row")
            for data, figures in row.published.items():
                unknown = [figure for figure in figures if figure not in self.columns]
                if unknown:
                    raise ValueError(f"row {row.name!r} has a figure {unknown[0]!r} of {data}, which is no column")
        return self

    def row(self, name: str) -> Row:
        for row in self.rows:
            if row.name == name:
                return row
        raise WrongUse(f"no row {name!r}", remedy=nearest_names(name, [row.name for row in self.rows]))


class Paper(Settings):
    paper: str
    setting: dict[str, str] = Field(default_factory=dict)
    """How the paper's figures were made: encoder, resolution, decoding, words, split."""
    tables: dict[str, Table]


def paper_names() -> list[str]:
    found = (path.name for path in files("negatoscope.papers").iterdir())
    return sorted(name.removesuffix(".yaml") for name in found if name.endswith(".yaml"))


def paper_named(name: str) -> Paper:
    """Raises WrongUse for a paper that is not here, with the nearest names."""
    if name not in paper_names():
        raise WrongUse(f"no paper {name!r}", remedy=nearest_names(name, paper_names()))
    path = Path(str(files("negatoscope.papers") / f"{name}.yaml"))
    return read_settings(Paper, read_yaml(path), where=path)


def table_of(paper: Paper, table: str, *, where: object = None) -> Table:
    if table not in paper.tables:
        raise WrongUse(f"no table {table!r}", where=where, remedy=nearest_names(table, paper.tables))
    return paper.tables[table]


def chosen_rows(table: Table, names: tuple[str, ...]) -> tuple[Row, ...]:
    """All rows, or those named and the rows that they are tested against, in the table's order."""
    if not names:
        return table.rows
    wanted = {table.row(name).name for name in names}
    wanted |= {against for name in names if (against := table.row(name).against)}
    return tuple(row for row in table.rows if row.name in wanted)


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`changes` laid over `base`, key by key, however deep."""
    both = dict(base)
    for key, value in changes.items():
        inner = both.get(key)
        both[key] = merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return both


def with_losses(losses: list[dict[str, Any]], more: tuple[dict[str, Any], ...]) -> list[dict[str, Any]]:
    """The recipe's own losses and the row's; raises BadInput for one without a name."""
    if any("name" not in loss for loss in more):
        raise BadInput("a loss without a name", where="losses")
    by_name = {str(loss["name"]): dict(loss) for loss in losses} | {str(loss["name"]): dict(loss) for loss in more}
    return list(by_name.values())

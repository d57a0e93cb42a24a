"""Labels that somebody else made, by the original labeler, by CheXbert or by hand, in place of ours: a CSV with the 14
columns of 1.0, 0.0, -1.0 or nothing, as chexpert-labeler writes it and MIMIC-CXR ships it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from negatoscope.errors import BadInput, nearest_names
from negatoscope.metrics.form_readers import ID_FIELDS, csv_rows, delimiter_of
from negatoscope.metrics.forms import Reports, bytes_of, decoded
from negatoscope.studies.study import OBSERVATIONS

_MEANING = {"": None, "1": 1, "1.0": 1, "0": 0, "0.0": 0, "-1": -1, "-1.0": -1}


@dataclass(frozen=True)
class GivenLabels:
    path: Path
    labels: tuple[dict[str, int], ...]
    ids: tuple[str, ...] | None
    """None where the file has no column of ids: then it follows the order of the reports' file."""
    sha256: str

    def of(self, reports: Reports) -> dict[str, dict[str, int]]:
        """By study id. Raises BadInput for a report without labels."""
        if self.ids is None or reports.numbered:
            if len(self.labels) != len(reports):
                raise BadInput(
                    f"labels of {len(self.labels)} reports, and {reports.path} holds {len(reports)}",
                    where=self.path,
                    remedy="one row a report in the same order, or a column study_id in both",
                )
            return dict(zip(reports.ids, self.labels))
        known = dict(zip(self.ids, self.labels))
        without = [i for i in reports.ids if i not in known]
        if without:
            raise BadInput(f"no labels for {len(without)} studies, {without[0]!r} the first", where=self.path)
        return {i: known[i] for i in reports.ids}


def read_labels(path: Path | str) -> GivenLabels:
    """Raises BadInput with file and line for a missing column, another value, an id that stands twice."""
    path = Path(path)
    raw = bytes_of(path)
    text = decoded(raw, path)
    rows = csv_rows(text, path, delimiter_of(text, path, OBSERVATIONS[0]))
    names = [name.strip() for name in next(rows, (1, []))[1]]
    missing = [name for name in OBSERVATIONS if name not in names]
    if missing:
        remedy = f"{nearest_names(missing[0], names)}; a column for each of the 14 is wanted"
        raise BadInput(f"no column {missing[0]!r}", where=f"{path}:1", remedy=remedy)
    id_at = next((names.index(field) for field in ID_FIELDS if field in names), None)
    labels: list[dict[str, int]] = []
    lines: dict[str, int] = {}
    for line, cells in rows:
        if not cells:
            continue
        where = f"{path}:{line}"
        if len(cells) != len(names):
            raise BadInput(f"{len(cells)} columns where the header has {len(names)}", where=where)
        labels.append(_row(dict(zip(names, cells)), where))
        if id_at is not None:
            study = cells[id_at].strip()
            if study in lines:
                remedy = "keep one row a study"
                raise BadInput(f"study {study!r} stands twice, first line {lines[study]}", where=where, remedy=remedy)
            lines[study] = line
    ids = tuple(lines) if id_at is not None else None
    return GivenLabels(path, tuple(labels), ids, hashlib.sha256(raw).hexdigest())


def _row(cells: dict[str, str], where: str) -> dict[str, int]:
    labels = {}
    for name in OBSERVATIONS:
        said = cells[name].strip()
        if said not in _MEANING:
            remedy = "1.0 present, 0.0 absent, -1.0 uncertain, nothing where it is not mentioned"
            raise BadInput(f"{name} is {said!r}", where=where, remedy=remedy)
        if (meant := _MEANING[said]) is not None:
            labels[name] = meant
    return labels

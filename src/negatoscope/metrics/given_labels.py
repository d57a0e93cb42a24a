"""Labels that somebody else made, by the original labeler, by CheXbert or by hand, in place of ours: a CSV with the 14
columns of 1.0, 0.0, -1.0 or nothing, as chexpert-labeler writes it and MIMIC-CXR ships it."""

from __future__ import annotations

import csv
import hashlib
import io
from dataclasses import dataclass
from pathlib import Path

from negatoscope.errors import BadInput, nearest_names
from negatoscope.metrics.form_readers import ID_FIELDS
from negatoscope.metrics.forms import Reports
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
    try:
        raw = path.read_bytes()
        text = raw.decode("utf-8-sig")
    except FileNotFoundError as error:
        raise BadInput("no such file", where=path) from error
    except UnicodeDecodeError as error:
        raise BadInput("not UTF-8", where=path) from error
    limit = csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        names = [name.strip() for name in next(reader, [])]
        missing = [name for name in OBSERVATIONS if name not in names]
        if missing:
            remedy = f"{nearest_names(missing[0], names)}; a column for each of the 14 is wanted"
            raise BadInput(f"no column {missing[0]!r}", where=f"{path}:1", remedy=remedy)
        id_at = next((names.index(field) for field in ID_FIELDS if field in names), None)
        labels, ids, line = [], [], reader.line_num + 1
        for cells in reader:
            if cells:
                where = f"{path}:{line}"
                if len(cells) != len(names):
                    raise BadInput(f"{len(cells)} columns where the header has {len(names)}", where=where)
                labels.append(_row(dict(zip(names, cells)), where))
                if id_at is not None:
                    ids.append(cells[id_at].strip())
            line = reader.line_num + 1
    except csv.Error as error:
        raise BadInput(f"not CSV ({error})", where=path, remedy="is a quotation mark left open?") from error
    finally:
        csv.field_size_limit(limit)
    twice = next((i for i in ids if ids.count(i) > 1), None) if len(set(ids)) < len(ids) else None
    if twice is not None:
        raise BadInput(f"study {twice!r} stands twice", where=path, remedy="keep one row a study")
    return GivenLabels(path, tuple(labels), tuple(ids) if id_at is not None else None, hashlib.sha256(raw).hexdigest())


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

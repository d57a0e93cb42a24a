"""A page to browse groups of findings: one file, no network, no library."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

from negatoscope.text.group import Groups
from negatoscope.whole_files import write_text

SHOWN_MEMBERS = 40
"""Different sentences of a group that the page carries; the files beside it hold them all."""


def write_page(groups: Groups, path: Path | str) -> None:
    rows = [
        {
            "id": group.id,
            "sentence": group.sentence,
            "size": group.size,
            "different": len(group.members),
            "poles": [pole for poles in group.poles.values() for pole in poles],
            "side": group.side,
            "severity": group.severity,
            "labels": group.labels,
            "members": group.members[:SHOWN_MEMBERS],
        }
        for group in groups.groups
    ]
    # "</script>" inside a report must not end the script.
    data = json.dumps(rows, ensure_ascii=False).replace("<", "\\u003c")
    clusters = len({group.cluster for group in groups.groups})
    rule = "then parted by exclusive terms" if groups.settings.exclusive else "exclusive terms left together"
    made = f"{groups.embedder}, {clusters:,} groups by K-Means (seed {groups.settings.seed}), {rule}"
    page = _template().replace("@@MADE@@", made.replace("&", "&amp;").replace("<", "&lt;")).replace("@@DATA@@", data)
    write_text(path, page)


def _template() -> str:
    return (files("negatoscope.text") / "data" / "groups.html").read_text(encoding="utf-8")

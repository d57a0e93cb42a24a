"""Which tags a study has: the heads of its MeSH terms, those of an indexing program, or what the labeler found.

'Opacity/lung/base/left' has the head 'opacity'. Which heads there are is learned from training studies alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from negatoscope.errors import BadInput
from negatoscope.settings import Settings
from negatoscope.studies.study import OBSERVATIONS, Study
from negatoscope.whole_files import write_json

AUTOMATIC = "automatic tags"
"""The section in which the importer of Open-i keeps the indexer's terms, parted by semicolons."""
NOT_INDEXED = "no indexing"
"""What IU X-Ray writes where nobody has chosen terms."""


Source = Literal["mesh", "mti", "labels"]


class TagSettings(Settings):
    source: Source = "labels"
    """mesh: the heads of the MeSH terms that people gave to IU X-Ray. mti: those that the Medical Text Indexer gave.
    labels: the 14 observations of CheXpert, where positive."""
    least: int = Field(default=5, ge=1)
    """mesh and mti: training studies that a head must have."""
    most: int | None = Field(default=None, ge=1)
    """mesh and mti: only the so many most frequent heads."""


def heads(terms: Iterable[str]) -> list[str]:
    """The heads of MeSH terms, lower-case, each once, in their order."""
    found = (term.split("/")[0].strip().lower() for term in terms)
    return list(dict.fromkeys(head for head in found if head and head != NOT_INDEXED))


def tags_of_study(study: Study, source: Source) -> list[str]:
    if source == "labels":
        return [name for name in OBSERVATIONS if study.labels.get(name) == 1]
    if source == "mti":
        return heads(study.sections.get(AUTOMATIC, "").split(";"))
    return heads(study.tags)


@dataclass(frozen=True)
class Tags:
    """The tags that a reporter can predict, in the order of their numbers."""

    names: tuple[str, ...]
    source: Source = "labels"

    @classmethod
    def learned(cls, settings: TagSettings, training: Iterable[Study]) -> Tags:
        """Most frequent heads first, equal ones by name. Raises BadInput where no head is frequent enough."""
        if settings.source == "labels":
            return cls(OBSERVATIONS, "labels")
        seen = Counter(head for study in training for head in tags_of_study(study, settings.source))
        kept = sorted((head for head, count in seen.items() if count >= settings.least), key=lambda h: (-seen[h], h))
        if not kept:
            remedy = "take data.tags.source: labels, or import IU X-Ray from Open-i, which has MeSH terms"
            raise BadInput(f"no tag in {settings.least} training studies", where="data.tags", remedy=remedy)
        return cls(tuple(kept[: settings.most]), settings.source)

    def target(self, study: Study) -> list[float]:
        """1 for each tag that the study has, else 0."""
        has = set(tags_of_study(study, self.source))
        return [float(name in has) for name in self.names]

    def __call__(self, study: Study) -> Mapping[str, list[float]]:
        """What a loader hands on with each study."""
        return {"tags": self.target(study)}

    def save(self, path: Path | str) -> None:
        write_json(path, {"source": self.source, "names": list(self.names)})

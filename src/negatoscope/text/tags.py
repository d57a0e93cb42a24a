"""Which tags a study has: the heads of its MeSH terms, or the observations that the labeler found.

'Opacity/lung/base/left' has the head 'opacity'. Which heads there are is learned from training studies alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from negatoscope.errors import BadInput
from negatoscope.settings import Settings
from negatoscope.studies.study import OBSERVATIONS, Study
from negatoscope.whole_files import write_json

NOT_INDEXED = "no indexing"
"""What IU X-Ray writes where nobody has chosen terms."""


class TagSettings(Settings):
    source: Literal["mesh", "labels"] = "labels"
    """mesh: the heads of MeSH terms, which IU X-Ray has. labels: the 14 observations of CheXpert, where positive."""
    least: int = Field(default=5, ge=1)
    """MeSH: training studies that a head must have."""
    most: int | None = Field(default=None, ge=1)
    """MeSH: only the so many most frequent heads."""


def heads(terms: Iterable[str]) -> list[str]:
    """The heads of MeSH terms, lower-case, each once, in their order."""
    found = (term.split("/")[0].strip().lower() for term in terms)
    return list(dict.fromkeys(head for head in found if head and head != NOT_INDEXED))


@dataclass(frozen=True)
class Tags:
    """The tags that a reporter can predict, in the order of their numbers."""

    names: tuple[str, ...]
    source: Literal["mesh", "labels"] = "labels"

    @classmethod
    def learned(cls, settings: TagSettings, terms_of_training: Iterable[Sequence[str]]) -> Tags:
        """Most frequent heads first, equal ones by name. Raises BadInput where no head is frequent enough."""
        if settings.source == "labels":
            return cls(OBSERVATIONS, "labels")
        seen = Counter(head for terms in terms_of_training for head in heads(terms))
        kept = sorted((head for head, count in seen.items() if count >= settings.least), key=lambda h: (-seen[h], h))
        if not kept:
            remedy = "take data.tags.source: labels, or a source that has MeSH terms (iu-xray)"
            raise BadInput(f"no tag in {settings.least} training studies", where="data.tags", remedy=remedy)
        return cls(tuple(kept[: settings.most]), "mesh")

    def target(self, study: Study) -> list[float]:
        """1 for each tag that the study has, else 0."""
        if self.source == "labels":
            return [float(study.labels.get(name) == 1) for name in self.names]
        has = set(heads(study.tags))
        return [float(name in has) for name in self.names]

    def __call__(self, study: Study) -> Mapping[str, list[float]]:
        """What a loader hands on with each study."""
        return {"tags": self.target(study)}

    def save(self, path: Path | str) -> None:
        write_json(path, {"source": self.source, "names": list(self.names)})

"""Whole reports from found findings: what is abnormal as CVSE tells it, and a normal sentence for every other region.

Normal sentences are those of training reports, the most frequent first; a region is written of where training reports
usually write of it. Sentences stand in the order in which training reports come to their regions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from negatoscope.errors import BadInput
from negatoscope.retrieval.regions import regions_of
from negatoscope.text.abnormal import SentenceClassifier
from negatoscope.text.sentences import split_sentences

USUAL = 0.5
"""A region that this share of training reports speaks of is spoken of in every report."""
SURELY_NORMAL = 0.1
"""Highest probability of being abnormal that a normal sentence may have."""
NOWHERE = frozenset(("lungs",))
"""What a finding that names no region speaks of: most are of the lungs, and nothing is called clear too soon."""


@dataclass(frozen=True)
class Line:
    """A sentence of a hybrid report."""

    sentence: str
    abnormal: bool


@dataclass(frozen=True)
class NormalSentences:
    """What training reports say where nothing is found."""

    sentences: tuple[tuple[str, frozenset[str]], ...]
    """With the regions that each speaks of, most frequent first."""
    usual: frozenset[str]
    place: Mapping[str, float]
    """Region -> where in a report it comes, 0 first, 1 last, on average."""

    @classmethod
    def of(cls, reports: Iterable[str], classifier: SentenceClassifier) -> NormalSentences:
        """Raises BadInput where no report has a normal sentence that names a region."""
        split = [sentences for report in reports if (sentences := split_sentences(report))]
        probability = iter(classifier.probability([said for sentences in split for said in sentences]).tolist())
        often: Counter[str] = Counter()
        spoken: Counter[str] = Counter()
        places: dict[str, list[float]] = defaultdict(list)
        for sentences in split:
            found: set[str] = set()
            for number, said in enumerate(sentences):
                regions = regions_of(said)
                for region in regions:
                    places[region].append(number / max(len(sentences) - 1, 1))
                found |= regions
                if next(probability) <= SURELY_NORMAL and regions:
                    often[said] += 1
            spoken.update(found)
        if not often:
            raise BadInput("no normal sentence in any training report", remedy="a hybrid needs complete reports")
        usual = frozenset(region for region, count in spoken.items() if count >= USUAL * len(split))
        return cls(
            tuple((said, regions_of(said)) for said, _ in sorted(often.items(), key=lambda item: (-item[1], item[0]))),
            usual,
            {region: sum(found) / len(found) for region, found in places.items()},
        )

    def complete(self, findings: Sequence[str]) -> list[Line]:
        """The findings, and for every usual region that none of them speaks of a normal sentence that speaks of no
        region with a finding."""
        with_finding = frozenset().union(*(regions_of(said) or NOWHERE for said in findings))
        left = set(self.usual - with_finding)
        lines = [Line(said, abnormal=True) for said in findings]
        for said, regions in self.sentences:
            if not left:
                break
            if regions & left and not regions & with_finding:
                lines.append(Line(said, abnormal=False))
                left -= regions
        return sorted(lines, key=lambda line: (self._place(line.sentence), not line.abnormal))

    def _place(self, sentence: str) -> float:
        places = [self.place[region] for region in regions_of(sentence) if region in self.place]
        return sum(places) / len(places) if places else 1.0

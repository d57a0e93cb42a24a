"""The labeler itself: reports in, labels of the 14 CheXpert observations out.

from negatoscope.metrics.chexpert.labeler import Labeler

Labeler().label("The heart is normal in size. There may be a small effusion.")
# {"Cardiomegaly": 0, "Pleural Effusion": -1}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import yaml

from negatoscope.errors import BadInput
from negatoscope.metrics.chexpert.aggregate import aggregate
from negatoscope.metrics.chexpert.classify import NEGATIVE, PRESENT, Classifier, Verdict
from negatoscope.metrics.chexpert.grammar import sketch
from negatoscope.metrics.chexpert.mentions import Mention, Vocabulary
from negatoscope.metrics.chexpert.sentences import clean, sentences
from negatoscope.metrics.chexpert.words import Lexicon, tokens
from negatoscope.watch import Watch, quiet

VERSION = "1"
"""Changes when a label could."""

STATUS = {1: "present", 0: "absent", -1: "uncertain"}
# The original's parser gives up on longer sentences, and what is mentioned in them counts as present.
LONGEST_SENTENCE = 399
_SENTENCES_REMEMBERED = 200_000
_REPORTS_A_TASK = 500
_RULE_FILES = ("observations.yaml", "statements.yaml", "words.yaml")
_HEADED_NO = re.compile(r"(?:findings|impression): no ")

Labelled = tuple[tuple[Mention, Verdict], ...]


@dataclass(frozen=True, slots=True)
class Explained:
    """One mention, and why it is labelled as it is."""

    observation: str
    """One of the 14, or 'other findings', which only keep a report from being No Finding."""
    phrase: str
    sentence: str
    status: str
    """present, absent or uncertain."""
    because: str
    """The heading of the rule that decided: 'no X'. 'nothing is said against it' where none did."""
    rule: str
    """The rule itself, as `rules/statements.yaml` has it."""


class Labeler:
    """Rules read once; every sentence worked out once.

    `rules` is a folder whose observations.yaml, statements.yaml or words.yaml replace those that come with the package.
    Raises BadInput for a rule file that cannot be read.
    """

    version = VERSION

    def __init__(self, rules: Path | str | None = None) -> None:
        self.rules = Path(rules) if rules is not None else None
        if self.rules is not None:
            _must_hold_rules(self.rules)
        self._vocabulary = Vocabulary(*_table("observations.yaml", self.rules))
        self._lexicon = Lexicon.of(*_table("words.yaml", self.rules))
        self._classifier = Classifier.of(*_table("statements.yaml", self.rules))
        self._remembered = lru_cache(_SENTENCES_REMEMBERED)(self.read_sentence)

    def label(self, report: str) -> dict[str, int]:
        """Observation -> 1 present, 0 absent, -1 uncertain; what is not mentioned is left out."""
        return aggregate(
            (mention, verdict.label)
            for sentence in sentences(clean(report))
            for mention, verdict in self._remembered(sentence)
        )

    def label_many(self, reports: Iterable[str], processes: int = 1, watch: Watch = quiet) -> list[dict[str, int]]:
        """The labels of each report, in order. More than one process pays from some ten thousand reports on."""
        reports = list(reports)
        if processes <= 1 or len(reports) <= _REPORTS_A_TASK:
            return [self.label(report) for report in watch(reports, "labelling reports")]
        return list(watch(self._by_processes(reports, processes), "labelling reports", len(reports)))

    def _by_processes(self, reports: Sequence[str], processes: int) -> Iterator[dict[str, int]]:
        with ProcessPoolExecutor(processes, get_context("spawn"), _start, (self.rules,)) as pool:
            yield from chain.from_iterable(pool.map(_label_task, _tasks(reports)))

    def explain(self, report: str) -> list[Explained]:
        """Every mention of a report with its sentence, what is said of it, and the rule that decided."""
        return [
            _explained(mention, verdict, sentence)
            for sentence in sentences(clean(report))
            for mention, verdict in sorted(self._remembered(sentence), key=_place)
        ]

    def read_sentence(self, sentence: str) -> Labelled:
        """The mentions in one cleaned sentence, each with what is said of it."""
        mentions = self._vocabulary.find(sentence)
        if not mentions:
            return ()
        if _HEADED_NO.match(sentence):
            return tuple((mention, Verdict(NEGATIVE, None)) for mention in mentions)
        words = tokens(sentence)
        if len(words) > LONGEST_SENTENCE:
            return tuple((mention, PRESENT) for mention in mentions)
        verdicts = self._classifier.verdicts(sketch(words, self._lexicon), mentions)
        return tuple(zip(mentions, verdicts))


def _must_hold_rules(folder: Path) -> None:
    """Labels by the package's own rules are not what somebody asked for who named a folder."""
    if not folder.is_dir():
        raise BadInput("no such folder of rules", where=folder)
    if not any((folder / name).is_file() for name in _RULE_FILES):
        remedy = "copy the one to change from the package's rules"
        raise BadInput(f"none of {', '.join(_RULE_FILES)} is in it", where=folder, remedy=remedy)


def _table(name: str, folder: Path | None) -> tuple[dict[str, Any], str]:
    """A rule file's content and its name, from the user's folder if it has one."""
    own = folder / name if folder is not None else None
    file = own if own is not None and own.is_file() else files("negatoscope.metrics.chexpert").joinpath("rules", name)
    where = str(own) if file is own else name
    try:
        table = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadInput(f"not YAML ({error})", where=where) from error
    if not isinstance(table, dict):
        raise BadInput("not a table of rules", where=where, remedy="start from the file that comes with the package")
    return table, where


def _place(labelled: tuple[Mention, Verdict]) -> tuple[int, int]:
    return labelled[0].start, labelled[0].end


def _explained(mention: Mention, verdict: Verdict, sentence: str) -> Explained:
    because = "nothing is said against it"
    if verdict.rule is not None:
        because = verdict.rule.says
    elif verdict.label == NEGATIVE:
        because = "findings: no ..., impression: no ..."
    path = verdict.rule.path if verdict.rule is not None else ""
    return Explained(mention.observation, mention.text.strip(), sentence, STATUS[verdict.label], because, path)


# One labeler a worker process, made when the process starts.
_worker: list[Labeler] = []


def _start(rules: Path | None) -> None:
    _worker[:] = [Labeler(rules)]


def _label_task(reports: Sequence[str]) -> list[dict[str, int]]:
    return [_worker[0].label(report) for report in reports]


def _tasks(reports: Sequence[str]) -> list[Sequence[str]]:
    return [reports[at : at + _REPORTS_A_TASK] for at in range(0, len(reports), _REPORTS_A_TASK)]

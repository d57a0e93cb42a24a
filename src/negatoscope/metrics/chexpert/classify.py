"""What a sentence says of each finding in it: present (1), absent (0) or uncertain (-1).

`rules/statements.yaml` holds three lists of rules, asked in this order for every word of a mention: uncertain before
absent, absent, uncertain after absent. A rule is a path through the sentence's grammar (`grammar.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from negatoscope.errors import BadInput, nearest_names
from negatoscope.metrics.chexpert.links import Sketch
from negatoscope.metrics.chexpert.mentions import Mention
from negatoscope.metrics.chexpert.words import Word

POSITIVE, NEGATIVE, UNCERTAIN = 1, 0, -1
STAGES = {"uncertain before absent": UNCERTAIN, "absent": NEGATIVE, "uncertain after absent": UNCERTAIN}

_REMEMBERED = 20_000
_PIECE = re.compile(r"\[|\]|\([^)]*\)|[^\s\[\]()]+")
WordTest = Callable[[Word], bool]


@dataclass(frozen=True, slots=True)
class Step:
    """From a word to one of those it is linked with, of which `then` must hold."""

    up: bool
    links: frozenset[str] | None
    word: WordTest
    then: tuple[Step, ...]

    def holds(self, drawn: Sketch, at: int) -> bool:
        linked = drawn.up[at] if self.up else drawn.down[at]
        for other, link in linked.items():
            fits = (self.links is None or link in self.links) and self.word(drawn.words[other])
            if fits and _all_hold(self.then, drawn, other):
                return True
        return False


def _all_hold(steps: tuple[Step, ...], drawn: Sketch, at: int) -> bool:
    for step in steps:  # a loop, not all(...): half of the labeler's time is spent here  # noqa: SIM110
        if not step.holds(drawn, at):
            return False
    return True


@dataclass(frozen=True, slots=True)
class Rule:
    stage: str
    says: str
    """The heading under which the rule stands: 'no X'."""
    path: str
    word: WordTest
    then: tuple[Step, ...]
    cues: tuple[WordTest, ...]

    def fits(self, drawn: Sketch, at: int) -> bool:
        return self.word(drawn.words[at]) and _all_hold(self.then, drawn, at)


@dataclass(frozen=True, slots=True)
class Verdict:
    label: int
    rule: Rule | None
    """None: nothing is said of it, so it is there."""


PRESENT = Verdict(POSITIVE, None)


_Plan = list[tuple[int, list[Rule]]]


class _Path:
    """Reads one rule from left to right."""

    def __init__(self, text: str, where: str, lists: Mapping[str, str]) -> None:
        self.text, self.where, self.lists = text, where, lists
        self.pieces = _PIECE.findall(text)
        self.at = 0
        self.cues: list[WordTest] = []

    def wrong(self, what: str) -> BadInput:
        return BadInput(
            f'rule "{self.text}": {what}', where=self.where, remedy="see the head of the file for how rules are written"
        )

    def next(self) -> str:
        if self.at >= len(self.pieces):
            raise self.wrong("ends too early")
        self.at += 1
        return self.pieces[self.at - 1]

    def finding(self) -> WordTest:
        name = self.next()
        if name == "X":
            return _any
        if name.startswith("X="):
            return self.word(name[2:])
        raise self.wrong("must begin with X")

    def word(self, text: str) -> WordTest:
        if text.startswith("@"):
            if text[1:] not in self.lists:
                raise self.wrong(f"no list of words is called {text[1:]!r}")
            text = self.lists[text[1:]]
        return _word_test(text)

    def steps(self) -> tuple[Step, ...]:
        """All conditions on the present word, up to a closing bracket or the end."""
        found: list[Step] = []
        while self.at < len(self.pieces) and self.pieces[self.at] != "]":
            if self.pieces[self.at] == "[":
                self.at += 1
                found += self.steps()
                if self.at >= len(self.pieces):
                    raise self.wrong("a bracket is not closed")
                self.at += 1
            else:
                found.append(self.step())
        return tuple(found)

    def step(self) -> Step:
        direction = self.next()
        if direction not in ("has", "under"):
            raise self.wrong(f"{direction!r} stands where has or under should")
        links = None
        if self.at < len(self.pieces) and self.pieces[self.at].startswith("("):
            links = frozenset(self.next()[1:-1].split("|"))
        test = self.word(self.next())
        if test is not _any:
            self.cues.append(test)
        return Step(direction == "under", links, test, self.steps())


def _any(word: Word) -> bool:
    return True


@cache
def _word_test(text: str) -> WordTest:
    if text == "any":
        return _any
    if text.startswith("<"):
        kinds = ("noun",) if text == "<noun>" else ("verb", "past", "ing", "be", "have")
        return lambda word: word.kind in kinds
    exact = frozenset(one for one in text.split("|") if not one.endswith("*"))
    begins = tuple(one[:-1] for one in text.split("|") if one.endswith("*"))
    if not begins:
        return lambda word: word.plain in exact
    return lambda word: word.plain in exact or word.plain.startswith(begins)


class Classifier:
    """The rules of `rules/statements.yaml`, or of a file of the same shape."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self._cues = list({id(cue): cue for rule in self.rules for cue in rule.cues}.values())
        self._stages = [
            (label, [(rule, frozenset(map(id, rule.cues))) for rule in self.rules if rule.stage == stage])
            for stage, label in STAGES.items()
        ]
        self._cues_of: dict[tuple[str, str], frozenset[int]] = {}
        self._plans: dict[frozenset[int], _Plan] = {}

    @classmethod
    def of(cls, table: Mapping[str, Any], where: str = "statements.yaml") -> Classifier:
        """From the content of the YAML file. Raises BadInput for a rule that cannot be read."""
        lists = {name: str(words) for name, words in (table.get("words") or {}).items()}
        for key in table:
            if key != "words" and key not in STAGES:
                raise BadInput(
                    f"no list of rules is called {key!r}", where=where, remedy=nearest_names(str(key), STAGES)
                )
        rules: list[Rule] = []
        for stage in STAGES:
            for says, paths in (table.get(stage) or {}).items():
                rules += [_rule(stage, says, str(path), where, lists) for path in paths]
        return cls(rules)

    def verdicts(self, drawn: Sketch, mentions: Sequence[Mention]) -> list[Verdict]:
        """One verdict a mention. What is said of one is said of every mention inside it; absent outdoes uncertain."""
        plan = self._plan(drawn)
        of_word: dict[int, Verdict | None] = {}
        of_place: dict[tuple[int, int], list[Verdict]] = {}
        for mention in mentions:
            place = mention.start, mention.end
            if place not in of_place:
                of_place[place] = self._of(drawn, *place, plan, of_word)
        return [_decide(mention, of_place) for mention in mentions]

    def _plan(self, drawn: Sketch) -> _Plan:
        """Only the rules whose cue words all stand in this sentence: seldom more than twenty."""
        cues = frozenset[int]().union(*(self._cues_in(word) for word in set(drawn.words)))
        plan = self._plans.get(cues)
        if plan is None:
            plan = [(label, [rule for rule, needed in rules if needed <= cues]) for label, rules in self._stages]
            if len(self._plans) < _REMEMBERED:
                self._plans[cues] = plan
        return plan

    def _cues_in(self, word: Word) -> frozenset[int]:
        found = self._cues_of.get((word.kind, word.plain))
        if found is None:
            found = frozenset(id(cue) for cue in self._cues if cue(word))
            if len(self._cues_of) < _REMEMBERED:
                self._cues_of[word.kind, word.plain] = found
        return found

    def _of(
        self, drawn: Sketch, start: int, end: int, plan: _Plan, of_word: dict[int, Verdict | None]
    ) -> list[Verdict]:
        """What is said of each word of a mention, where anything is said."""
        found = []
        for at, token in enumerate(drawn.tokens):
            if token.start < end and start < token.end:
                if at not in of_word:
                    of_word[at] = _of_word(drawn, at, plan)
                verdict = of_word[at]
                if verdict is not None:
                    found.append(verdict)
        return found


def _of_word(drawn: Sketch, at: int, plan: _Plan) -> Verdict | None:
    new = any(drawn.words[other].plain == "new" and link == "quality" for other, link in drawn.down[at].items())
    for label, rules in plan:
        if label == NEGATIVE and new:  # "no new effusion" does not say that there is none
            continue
        for rule in rules:
            if rule.fits(drawn, at):
                return Verdict(label, rule)
    return None


def _decide(mention: Mention, of_place: Mapping[tuple[int, int], list[Verdict]]) -> Verdict:
    said = [
        verdict
        for (start, end), verdicts in of_place.items()
        if start <= mention.start and mention.end <= end
        for verdict in verdicts
    ]
    return next((verdict for verdict in said if verdict.label == NEGATIVE), said[0] if said else PRESENT)


def _rule(stage: str, says: str, path: str, where: str, lists: Mapping[str, str]) -> Rule:
    reading = _Path(path, where, lists)
    word = reading.finding()
    then = reading.steps()
    if reading.at < len(reading.pieces):
        raise reading.wrong("a bracket is closed that was not opened")
    return Rule(stage, says, path, word, then, tuple(reading.cues))

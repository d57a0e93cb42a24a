"""A sketch of a sentence's grammar: which word belongs to which, and as what.

The original labeler asks a statistical parser for a dependency graph and puts its patterns to that. This is the same kind of
graph, drawn from phrases by a few rules of attachment: a word's governors are `up`, the words that belong to it `down`.

Links are named for the reader: `no` (also not), `quality` (an adjective), `noun` (a noun before a noun), `subject`,
`passive` (the subject of what is done to it), `object`, `help` (may, was), `be`, `how` (an adverb), `what` (appears WHAT),
`clause`, `before` (the preposition of a noun), `beside` (put next to it), a preposition (`of`, `within` ...), and the joining
words `and`, `or`, `but`, `versus` ...
"""

from __future__ import annotations

from collections.abc import Iterator

from negatoscope.metrics.chexpert.phrases import INFINITIVE, QUALITY, Phrase, phrases
from negatoscope.metrics.chexpert.words import (
    ADJECTIVE,
    ADVERB,
    BE,
    BREAK,
    CLAUSE,
    COMMA,
    DETERMINER,
    HAVE,
    ING,
    JOINING,
    MODAL,
    NO,
    NOUN,
    NUMBER,
    PAST,
    POSSESSIVE,
    PREPOSITION,
    PRONOUN,
    STOP,
    TO,
    Lexicon,
    Token,
    Word,
)

JOINS = frozenset(("and", "or", "but", "nor", "versus", "vs", "plus"))
_IN_NOUN = {DETERMINER: "determiner", NO: "no", NUMBER: "number", POSSESSIVE: "owner", NOUN: "noun"}
_LINKING = frozenset(("appear", "remain", "seem", "become"))


class Sketch:
    """Words, and the links between them in both directions."""

    __slots__ = ("down", "tokens", "up", "words")

    def __init__(self, tokens: list[Token], words: list[Word]) -> None:
        self.tokens, self.words = tokens, words
        self.up: list[dict[int, str]] = [{} for _ in words]
        self.down: list[dict[int, str]] = [{} for _ in words]

    def link(self, governor: int, name: str, word: int) -> None:
        """One link a pair of words; the first that is drawn stays."""
        if governor != word and word not in self.down[governor]:
            self.down[governor][word] = name
            self.up[word][governor] = name

    def links(self) -> Iterator[tuple[int, str, int]]:
        for governor, below in enumerate(self.down):
            for word, name in below.items():
                yield governor, name, word


def sketch(tokens: list[Token], lexicon: Lexicon) -> Sketch:
    """The grammar of one lower-case sentence."""
    words = lexicon.read(tokens)
    drawn = Sketch(tokens, words)
    parts = phrases(words, lexicon)
    _Attachment(drawn, parts, lexicon).draw()
    spread(drawn)
    return drawn


class _Attachment:
    """Walks over the phrases once and remembers what the next one can belong to."""

    def __init__(self, drawn: Sketch, parts: list[Phrase], lexicon: Lexicon) -> None:
        self.drawn, self.words, self.parts, self.lexicon = drawn, drawn.words, parts, lexicon
        self.groups: dict[int, list[int]] = {}
        self.first_of: dict[int, int] = {}
        self.join_word: dict[int, str] = {}
        self.root: int | None = None
        self.predicate: int | None = None
        self.number = 0
        self.new_clause(None, "")

    def new_clause(self, parent: int | None, name: str) -> None:
        self.end_clause()
        self.parent, self.parent_link, self.parent_has_verb = parent, name, self.predicate is not None
        self.root: int | None = None
        self.subject: int | None = None
        self.there = False
        self.joined_by = ""  # the joining word before a preposition: "stable and within normal limits"
        self.waiting: Phrase | None = None  # a form of be that has no predicate yet
        self.predicate: int | None = None
        self.taker: int | None = None  # a verb or participle that takes the next noun as its object
        self.last: int | None = None
        self.last_kind = ""
        self.preposition: int | None = None
        self.joiner: int | None = None
        self.adverbs: list[int] = []

    def end_clause(self) -> None:
        if self.root is None:
            return
        if self.waiting is not None:
            self._predicate_is(self.waiting.head)
        if self.parent is not None and self.root is not None:
            self.drawn.link(self.parent, self.parent_link, self.root)

    def draw(self) -> None:
        for number, phrase in enumerate(self.parts):
            self.number = number
            if phrase.kind == NOUN:
                self.noun(number, phrase)
            elif phrase.kind == "verb":
                self.verb(phrase)
            elif phrase.kind in (QUALITY, PAST, ING):
                self.quality(number, phrase)
            elif phrase.kind == INFINITIVE:
                self.infinitive(phrase)
            else:
                self.small(number, phrase)
        self.end_clause()
        self.name_groups()

    # Nouns -----------------------------------------------------------------------------------------------------------

    def noun(self, number: int, phrase: Phrase) -> None:
        head = phrase.head
        self.inside(phrase)
        if self.preposition is not None:
            self.after_preposition(head)
        elif self.joiner is not None and self.last is not None:
            if self.begins_clause(number, phrase):
                name = self.words[self.joiner].plain
                self.new_clause(self.root, name if name in JOINS else "beside")
                self.first(head)
            else:
                self.join(head)
        elif self.waiting is not None:
            self._be_noun(head)
        elif self.taker is not None:
            self.object(head)
        elif self.last is None:
            self.first(head)
        else:
            self.drawn.link(self.last, "beside", head)
        self.last, self.last_kind, self.joiner, self.taker = head, NOUN, None, None

    def first(self, head: int) -> None:
        self.root = self.subject = head
        for adverb in self.adverbs:
            self.drawn.link(head, "how", adverb)
        self.adverbs = []

    def object(self, head: int) -> None:
        assert self.taker is not None
        linking = self.words[self.taker].plain in _LINKING
        self.drawn.link(self.taker, "what" if linking else "object", head)

    def _be_noun(self, head: int) -> None:
        assert self.waiting is not None
        if self.there:
            be = self.waiting
            self._predicate_is(be.head)
            self.drawn.link(be.head, "subject", head)
        else:
            self._predicate_is(head)

    def after_preposition(self, head: int) -> None:
        at = self.preposition
        assert at is not None
        self.preposition = None
        self.drawn.link(head, "before", at)
        word = self.words[at].plain
        if self.waiting is not None and not self.there and self.waiting.end >= at - 2:
            self._predicate_is(head)
        elif self.joined_by and self.predicate is not None:
            self.drawn.link(self.predicate, self.joined_by, head)
        elif word == "within" and self.words[head].plain == "limit" and self.predicate is None and self.last == self.site:
            self.within_limits(head)
        elif self.site is not None:
            self.drawn.link(self.site, self.words[at].plain, head)
        elif self.root is None:
            self.intro = (self.words[at].plain, head)
            self.root = self.subject = head
        self.site = None

    def within_limits(self, head: int) -> None:
        """'Heart size and contours within normal limits': the verb is left out. After a comma and a full clause, it is that clause's."""
        assert self.site is not None
        if any(phrase.kind == "verb" for phrase in self.parts[self.number :]):
            self.drawn.link(self.site, "within", head)
        elif self.parent is not None and self.parent_link == "beside" and self.parent_has_verb:
            self.drawn.link(self.parent, "within", head)
        elif self.subject in self.groups and self.bare(self.groups[self.subject]):
            self.drawn.link(self.subject, "within", head)
        else:
            self._predicate_is(head)

    def bare(self, members: list[int]) -> bool:
        return all(not self.drawn.down[member] for member in members)

    def inside(self, phrase: Phrase) -> None:
        """Everything in a noun phrase belongs to its last noun."""
        head, words, drawn = phrase.head, self.words, self.drawn
        described, how = -1, []
        for at in range(phrase.start, phrase.end - 1):
            kind = words[at].kind
            if kind == ADVERB:
                how.append(at)
            elif kind in (ADJECTIVE, PAST, ING):
                drawn.link(head, "quality", at)
                for adverb in how:
                    drawn.link(at, "no" if words[adverb].plain == "not" else "how", adverb)
                how = []
                if at - 1 > phrase.start and words[at - 1].kind == JOINING and described >= 0:
                    drawn.link(described, words[at - 1].plain, at)
                described = at
            elif kind in _IN_NOUN:
                drawn.link(head, _IN_NOUN[kind], at)
        for adverb in how:
            drawn.link(head, "how", adverb)

    # Joined phrases --------------------------------------------------------------------------------------------------

    def begins_clause(self, number: int, phrase: Phrase) -> bool:
        """After a comma or joining word: is this noun the subject of something new?"""
        if self.last_kind in (QUALITY, PAST, ING, "verb"):
            return True
        return self.predicate is not None and self.verb_ahead(number)

    def verb_ahead(self, number: int) -> bool:
        for phrase in self.parts[number + 1 :]:
            if phrase.kind == "verb":
                return True
            if phrase.kind not in (NOUN, PREPOSITION, JOINING, ADVERB):
                return False
        return False

    def join(self, head: int) -> None:
        """A further member of a list: it joins the nearest noun of its own sort."""
        assert self.joiner is not None and self.last is not None
        partner = self.partner(head)
        first = self.first_of.get(partner, partner)
        self.first_of[head] = first
        self.groups.setdefault(first, []).append(head)
        word = self.words[self.joiner]
        if word.kind == JOINING:
            self.join_word[first] = word.plain

    def partner(self, head: int) -> int:
        assert self.last is not None
        nearest = last = self.last
        if self.is_place(head):
            return nearest
        while self.is_place(last):
            above = [up for up in self.drawn.up[last] if self.words[up].kind == NOUN and up < last]
            if not above:
                return nearest
            last = above[0]
        return last

    def is_place(self, at: int) -> bool:
        return self.words[at].plain in self.lexicon.anatomy

    def name_groups(self) -> None:
        """A list is named by its last joining word: in 'A, B or C' both B and C are `or` to A. Members share A's governors."""
        for first, members in self.groups.items():
            name = self.join_word.get(first, "also")
            for member in members:
                self.drawn.link(first, name, member)
                if name != "also":
                    for governor, link in list(self.drawn.up[first].items()):
                        if governor != member and link not in JOINS and link != "also":
                            self.drawn.link(governor, link, member)

    # Verbs and qualities ---------------------------------------------------------------------------------------------

    def verb(self, phrase: Phrase) -> None:
        if self.last_kind == "verb" and self.waiting is not None:
            self._predicate_is(self.waiting.head)
        if self.joiner is not None and self.predicate is not None:
            self.share_subject(phrase.head, self.words[self.joiner].plain)
        self.joiner = None
        if self.words[phrase.head].kind == BE:
            self.waiting = phrase
            self.root = self.root if self.root is not None else phrase.head
        else:
            self._predicate_is(phrase.head, phrase)
            self.taker = phrase.head
        self.last, self.last_kind = phrase.head, "verb"

    def share_subject(self, head: int, name: str) -> None:
        assert self.predicate is not None
        self.drawn.link(self.predicate, name if name in JOINS else "beside", head)
        self.parent, self.parent_link = None, ""

    def _predicate_is(self, head: int, verb: Phrase | None = None) -> None:
        """What the clause says of its subject: a verb, or a quality or noun after a form of be."""
        drawn = self.drawn
        group = verb or self.waiting
        passive = bool(verb and verb.passive)
        if group is not None:
            for helper in group.helpers:
                self.help(head, helper, passive)
            if group.head != head:
                drawn.link(head, "be", group.head)
        self.waiting = None
        if self.subject is not None and self.subject != head:
            self.link_subject(head, "passive" if passive else "subject")
        for adverb in self.adverbs:
            self.help(head, adverb, passive)
        self.adverbs = []
        self.predicate = self.root = head

    def link_subject(self, head: int, name: str) -> None:
        assert self.subject is not None
        self.drawn.link(head, name, self.subject)

    def help(self, head: int, helper: int, passive: bool) -> None:
        word = self.words[helper]
        name = "how"
        if word.plain == "not":
            name = "no"
        elif word.kind in (MODAL, HAVE, BE):
            name = "help"
        self.drawn.link(head, name, helper)

    def quality(self, number: int, phrase: Phrase) -> None:
        head = phrase.head
        for helper in phrase.helpers:
            self.help(head, helper, False)
        if self.preposition is not None:
            self.after_preposition(head)
        elif self.waiting is not None:
            self._predicate_is(head)
        elif self.taker is not None and self.words[self.taker].plain in _LINKING:
            self.drawn.link(self.taker, "what", head)
        elif self.joiner is not None and self.last is not None:
            self.join_quality(head, phrase)
        elif self.last is not None:
            self.after_noun(head, phrase)
        else:
            self.root = head
        for adverb in self.adverbs:
            self.help(head, adverb, False)
        self.adverbs = []
        self.last, self.last_kind, self.joiner = head, phrase.kind, None
        self.taker = head if phrase.kind == ING else None

    def after_noun(self, head: int, phrase: Phrase) -> None:
        """'Heart size normal', 'fracture not well seen': what follows a noun says something about it."""
        assert self.last is not None
        anchor = self.first_of.get(self.last, self.last)
        for helper in phrase.helpers:
            if self.words[helper].plain == "not":
                self.drawn.link(anchor, "no", helper)
        self.drawn.link(anchor, QUALITY if phrase.kind == QUALITY else "clause", head)

    def join_quality(self, head: int, phrase: Phrase) -> None:
        """'... is enlarged but stable': of the same subject. After a mere comma it hangs loosely on what the clause is about."""
        assert self.last is not None and self.joiner is not None
        name = self.words[self.joiner].plain
        if name not in JOINS:
            anchor = self.predicate if self.predicate is not None else self.root
            if self.predicate is None and phrase.kind == PAST and self.subject is not None:
                self.drawn.link(head, "passive", self.subject)
            elif anchor is not None:
                self.drawn.link(anchor, QUALITY if self.predicate is None and phrase.kind == QUALITY else "clause", head)
            return
        anchor = self.last if self.last_kind in (QUALITY, PAST, ING) else self.predicate
        if anchor is None:
            anchor = self.last
        self.drawn.link(anchor, name, head)
        for governor, link in list(self.drawn.up[anchor].items()):
            if link not in JOINS:
                self.drawn.link(governor, link, head)
        if anchor == self.predicate and self.subject is not None and self.words[anchor].kind != "verb":
            self.drawn.link(head, "subject", self.subject)

    def infinitive(self, phrase: Phrase) -> None:
        """'No opacity to suggest pneumonia'; 'appears to be normal'."""
        head = phrase.head
        if self.words[head].kind == BE:
            self.waiting = phrase
            self.subject = self.last if self.last_kind == NOUN else self.subject
        elif self.last is not None:
            self.drawn.link(self.last, "clause", head)
        self.taker = head
        self.last, self.last_kind, self.joiner = head, "verb", None

    # Small words -----------------------------------------------------------------------------------------------------

    def small(self, number: int, phrase: Phrase) -> None:
        at, kind = phrase.head, phrase.kind
        if kind in (PREPOSITION, TO):
            self.preposition = at
            self.site = self.site_for(at)
            self.joined_by = self.words[self.joiner].plain if self.joiner is not None else ""
            self.joined_by = self.joined_by if self.joined_by in JOINS else ""
            self.joiner = None
        elif kind in (JOINING, COMMA):
            self.joiner = at if self.joiner is None or kind == JOINING else self.joiner
            self.preposition = None
        elif kind == CLAUSE:
            self.new_clause(self.last, "clause")
        elif kind == BREAK and self.last is not None:
            self.new_clause(self.root, "beside")
        elif kind == PRONOUN:
            self.pronoun(at)
        elif kind == ADVERB:
            self.adverb(at)

    def site_for(self, at: int) -> int | None:
        return self.last

    def pronoun(self, at: int) -> None:
        if self.predicate is not None or self.last is not None:
            self.new_clause(self.root, "beside")
        self.there = self.words[at].plain == "there"
        if not self.there:
            self.subject = at
        self.root = at

    def adverb(self, at: int) -> None:
        self.adverbs.append(at)


def spread(drawn: Sketch) -> None:
    """What is said of one is said of those joined to it."""
    for _ in range(2):
        new: list[tuple[int, str, int]] = []
        for governor, name, word in drawn.links():
            _spread_link(drawn, governor, name, word, new)
        for link in new:
            drawn.link(*link)


def _spread_link(drawn: Sketch, governor: int, name: str, word: int, new: list[tuple[int, str, int]]) -> None:
    words = drawn.words
    if name == "also":
        new += [(above, link, word) for above, link in drawn.up[governor].items()]
        new += [(word, link, below) for below, link in drawn.down[governor].items() if link == "no"]
    nouns = words[governor].kind == NOUN and words[word].kind == NOUN
    if name == "beside" and nouns:
        new += [(governor, "no", below) for below, link in drawn.down[word].items() if link == "no"]
    if name in JOINS and nouns:
        for below, link in drawn.down[governor].items():
            if link in ("help", "be", "no", "quality"):
                new.append((word, link, below))
            if link in ("beside", "noun") and words[below].plain == "no":
                new.append((word, link, below))
            if link == "before" and words[below].plain == "without":
                new.append((word, link, below))
    if name == "of":
        if words[governor].plain in ("area", "amount", "combination"):
            new += [(above, link, word) for above, link in drawn.up[governor].items()]
        new += [(word, link, below) for below, link in drawn.down[governor].items() if link == "no"]
    if name == "no":
        new += [
            (below, "no", word)
            for below, link in drawn.down[governor].items()
            if link == "noun" and any(words[other].plain in ("or", "and") for other in drawn.down[governor])
        ]

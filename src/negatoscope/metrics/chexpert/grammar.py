"""A sketch of a sentence's grammar, from its phrases and a few rules of attachment.

The original labeler asks a statistical parser for a dependency graph and puts its patterns to that. This draws the same
kind of graph (`links.py`) in one walk from left to right: each phrase belongs to what is open before it.
"""

from __future__ import annotations

from negatoscope.metrics.chexpert.links import JOINS, Sketch, spread
from negatoscope.metrics.chexpert.phrases import INFINITIVE, QUALITY, VERB_GROUP, Phrase, phrases
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
    TO,
    Lexicon,
    Token,
)

_IN_NOUN = {DETERMINER: "determiner", NO: "no", NUMBER: "number", POSSESSIVE: "owner", NOUN: "noun"}
_STATEMENTS = (QUALITY, PAST, ING)
_LINKING = ("appear", "remain", "seem", "become")  # "appears WHAT"


def sketch(tokens: list[Token], lexicon: Lexicon) -> Sketch:
    """The grammar of one lower-case sentence."""
    drawn = Sketch(tokens, lexicon.read(tokens))
    _Walk(drawn, phrases(drawn.words, lexicon), lexicon).draw()
    spread(drawn)
    return drawn


class _Walk:
    """One walk over the phrases of a sentence, and what is open at each."""

    def __init__(self, drawn: Sketch, parts: list[Phrase], lexicon: Lexicon) -> None:
        self.drawn, self.words, self.parts, self.lexicon = drawn, drawn.words, parts, lexicon
        self.number = 0  # of the phrase that is read
        self.members: dict[int, list[int]] = {}  # of each list, by its first noun
        self.first_of: dict[int, int] = {}
        self.joined_with: dict[int, str] = {}
        self.clause_begins(None, "", False)

    def clause_begins(self, parent: int | None, link: str, after_verb: bool) -> None:
        self.parent, self.parent_link, self.after_verb = parent, link, after_verb
        self.root: int | None = None  # the word that the clause hangs on
        self.subject: int | None = None
        self.there = False  # "there is ..."
        self.waiting: Phrase | None = None  # a form of be that has no predicate yet
        self.predicate: int | None = None  # what is said of the subject
        self.taker: int | None = None  # a verb that takes the next noun as its object
        self.last: int | None = None  # the last word something can be attached to, and what it was
        self.last_kind = ""
        self.joiner: int | None = None  # the comma or joining word just read
        self.preposition: int | None = None  # the preposition just read,
        self.site: int | None = None  # what it belongs to,
        self.joined_by = ""  # and the joining word before it: "stable AND WITHIN normal limits"
        self.adverbs: list[int] = []  # that wait for something to belong to

    def clause_ends(self) -> None:
        if self.root is None:
            return
        if self.waiting is not None:
            self.say(self.waiting.head)
        if self.parent is not None:
            self.drawn.link(self.parent, self.parent_link, self.root)

    def clause(self, parent: int | None, link: str) -> None:
        after_verb = self.predicate is not None
        self.clause_ends()
        self.clause_begins(parent, link, after_verb)

    def draw(self) -> None:
        for number, phrase in enumerate(self.parts):
            self.number = number
            if phrase.kind == NOUN:
                self.noun(phrase)
            elif phrase.kind == VERB_GROUP:
                self.verb(phrase)
            elif phrase.kind in _STATEMENTS:
                self.quality(phrase)
            elif phrase.kind == INFINITIVE:
                self.infinitive(phrase)
            else:
                self.small(phrase)
        self.clause_ends()
        self.share_lists()

    def join_name(self) -> str:
        """The joining word just read; '' for a comma or nothing."""
        name = self.words[self.joiner].plain if self.joiner is not None else ""
        return name if name in JOINS else ""

    # Nouns -----------------------------------------------------------------------------------------------------------

    def noun(self, phrase: Phrase) -> None:
        head = phrase.head
        self.inside(phrase)
        if self.preposition is not None:
            self.after_preposition(head)
        elif self.joiner is not None and self.last is not None:
            if self.begins_clause():
                self.clause(self.root, self.join_name() or "beside")
                self.first(head)
            else:
                self.list_goes_on(head)
        elif self.waiting is not None:
            self.after_be(head)
        elif self.taker is not None:
            self.drawn.link(self.taker, "what" if self.words[self.taker].plain in _LINKING else "object", head)
        elif self.last is None:
            self.first(head)
        else:
            self.drawn.link(self.last, "beside", head)
        self.read(head, NOUN)

    def read(self, head: int, kind: str) -> None:
        self.last, self.last_kind, self.joiner, self.taker = head, kind, None, None

    def inside(self, phrase: Phrase) -> None:
        """Everything in a noun phrase belongs to its last noun, adverbs to the adjective after them."""
        head, described = phrase.head, -1
        adverbs: list[int] = []
        for at in range(phrase.start, phrase.end - 1):
            kind = self.words[at].kind
            if kind == ADVERB:
                adverbs.append(at)
            elif kind in (ADJECTIVE, PAST, ING):
                self.drawn.link(head, "quality", at)
                self.help(at, adverbs)
                adverbs = []
                if described >= 0 and self.words[at - 1].kind == JOINING:
                    self.drawn.link(described, self.words[at - 1].plain, at)
                described = at
            elif kind in _IN_NOUN:
                self.drawn.link(head, _IN_NOUN[kind], at)
        for adverb in adverbs:
            self.drawn.link(head, "how", adverb)

    def first(self, head: int) -> None:
        self.root = self.subject = head
        for adverb in self.adverbs:
            self.drawn.link(head, "how", adverb)
        self.adverbs = []

    def after_be(self, head: int) -> None:
        """'There is X' or 'this is X'."""
        assert self.waiting is not None
        be = self.waiting.head
        self.say(be if self.there else head)
        if self.there:
            self.drawn.link(be, "subject", head)

    def after_preposition(self, head: int) -> None:
        at, site = self.preposition, self.site
        assert at is not None
        self.preposition = self.site = None
        name = self.words[at].plain
        self.drawn.link(head, "before", at)
        if self.waiting is not None and not self.there and self.waiting.end >= at - 2:
            self.say(head)  # "is within normal limits"
        elif self.joined_by and self.predicate is not None:
            self.drawn.link(self.predicate, self.joined_by, head)  # "is stable and within normal limits"
        elif site is None:
            if self.root is None:
                self.root = self.subject = head
        elif name == "within" and self.words[head].plain == "limit" and self.predicate is None:
            self.within_limits(site, head)
        else:
            self.drawn.link(site, name, head)

    def within_limits(self, site: int, head: int) -> None:
        """'Heart size and contours within normal limits': a sentence whose verb is left out."""
        bare = all(not self.drawn.down[member] for member in self.members.get(self.subject or 0, ()))
        if any(phrase.kind == VERB_GROUP for phrase in self.parts[self.number :]):
            self.drawn.link(site, "within", head)
        elif self.parent is not None and self.parent_link == "beside" and self.after_verb:
            self.drawn.link(
                self.parent, "within", head
            )  # "heart is large, vessels within normal limits" says it of the heart
        elif self.subject in self.members and bare:
            self.drawn.link(
                self.subject, "within", head
            )  # "heart and mediastinum within normal limits" says it of the heart
        else:
            self.say(head)

    # Lists -----------------------------------------------------------------------------------------------------------

    def begins_clause(self) -> bool:
        """After a comma or joining word: is this noun the subject of something new?"""
        if self.last_kind in (*_STATEMENTS, VERB_GROUP):
            return True
        return self.predicate is not None and self.verb_ahead()

    def verb_ahead(self) -> bool:
        for phrase in self.parts[self.number + 1 :]:
            if phrase.kind not in (NOUN, PREPOSITION, JOINING, ADVERB):
                return phrase.kind == VERB_GROUP
        return False

    def list_goes_on(self, head: int) -> None:
        assert self.joiner is not None
        partner = self.partner(head)
        first = self.first_of.get(partner, partner)
        self.first_of[head] = first
        self.members.setdefault(first, []).append(head)
        if self.words[self.joiner].kind == JOINING:
            self.joined_with[first] = self.words[self.joiner].plain

    def partner(self, head: int) -> int:
        """The noun that a further one is joined to: of its own sort, a place to a place."""
        assert self.last is not None
        at = self.last
        if self.is_place(head):
            return at
        while self.is_place(at):
            above = [up for up in self.drawn.up[at] if self.words[up].kind == NOUN and up < at]
            if not above:
                return self.last
            at = above[0]
        return at

    def is_place(self, at: int) -> bool:
        return self.words[at].plain in self.lexicon.anatomy

    def share_lists(self) -> None:
        """In 'A, B or C' both B and C are `or` to A, and belong to what A belongs to. In 'A, B' B is `also`."""
        for first, members in self.members.items():
            name = self.joined_with.get(first, "also")
            for member in members:
                self.drawn.link(first, name, member)
                if name != "also":
                    self.share(first, member)

    def share(self, first: int, member: int) -> None:
        for governor, link in list(self.drawn.up[first].items()):
            if governor != member and link not in JOINS and link != "also":
                self.drawn.link(governor, link, member)

    # Verbs and what is said ------------------------------------------------------------------------------------------

    def verb(self, phrase: Phrase) -> None:
        head = phrase.head
        if self.last_kind == VERB_GROUP and self.waiting is not None:
            self.say(self.waiting.head)
        if self.joiner is not None and self.predicate is not None:
            self.drawn.link(self.predicate, self.join_name() or "beside", head)
            self.parent = None
        if self.words[head].kind == BE:
            self.waiting = phrase
            self.root = head if self.root is None else self.root
        else:
            self.say(head, phrase)
        self.read(head, VERB_GROUP)
        self.taker = self.predicate if self.waiting is None else None

    def say(self, head: int, verb: Phrase | None = None) -> None:
        """`head` is what the clause says of its subject: a verb, or a quality or noun after a form of be."""
        group = verb or self.waiting
        self.waiting = None
        if group is not None:
            self.help(head, group.helpers)
            if group.head != head:
                self.drawn.link(head, "be", group.head)
        if self.subject is not None:
            self.drawn.link(head, "passive" if verb and verb.passive else "subject", self.subject)
        self.help_with_waiting(head)
        self.predicate = self.root = head

    def help(self, head: int, helpers: list[int]) -> None:
        for helper in helpers:
            word = self.words[helper]
            if word.plain == "not":
                self.drawn.link(head, "no", helper)
            else:
                self.drawn.link(head, "help" if word.kind in (MODAL, HAVE, BE) else "how", helper)

    def help_with_waiting(self, head: int) -> None:
        self.help(head, self.adverbs)
        self.adverbs = []

    def quality(self, phrase: Phrase) -> None:
        head = phrase.head
        self.help(head, phrase.helpers)
        if self.preposition is not None:
            self.after_preposition(head)
        elif self.waiting is not None:
            self.say(head)
        elif self.taker is not None and self.words[self.taker].plain in _LINKING:
            self.drawn.link(self.taker, "what", head)
        elif self.last is None:
            self.root = head
        elif self.joiner is None:
            self.after_noun(self.last, phrase)
        elif self.join_name():
            self.joined_quality(self.last, head)
        else:
            self.loose_quality(phrase)
        self.help_with_waiting(head)
        self.read(head, phrase.kind)
        self.taker = head if phrase.kind == ING else None

    def after_noun(self, noun: int, phrase: Phrase) -> None:
        """'Heart size normal', 'fracture not well seen': what follows a noun says something of it."""
        first = self.first_of.get(noun, noun)
        self.help(first, [helper for helper in phrase.helpers if self.words[helper].plain == "not"])
        self.drawn.link(first, QUALITY if phrase.kind == QUALITY else "clause", phrase.head)

    def joined_quality(self, last: int, head: int) -> None:
        """'Is enlarged but stable': of the same subject."""
        anchor = last if self.last_kind in _STATEMENTS or self.predicate is None else self.predicate
        self.drawn.link(anchor, self.join_name(), head)
        self.share(anchor, head)
        if anchor == self.predicate and self.subject is not None:
            self.drawn.link(head, "subject", self.subject)

    def loose_quality(self, phrase: Phrase) -> None:
        """'Fracture of the humerus, incompletely seen': after a comma, of what the clause is about."""
        about = self.predicate if self.predicate is not None else self.root
        if self.predicate is None and phrase.kind == PAST and self.subject is not None:
            self.drawn.link(phrase.head, "passive", self.subject)
        elif about is not None:
            self.drawn.link(
                about, QUALITY if self.predicate is None and phrase.kind == QUALITY else "clause", phrase.head
            )

    def infinitive(self, phrase: Phrase) -> None:
        """'No opacity to suggest pneumonia'; 'appears to be normal'."""
        if self.words[phrase.head].kind == BE:
            self.waiting = phrase
            self.subject = self.last if self.last_kind == NOUN else self.subject
        elif self.last is not None:
            self.drawn.link(self.last, "clause", phrase.head)
        self.read(phrase.head, VERB_GROUP)
        self.taker = phrase.head

    # Small words -----------------------------------------------------------------------------------------------------

    def small(self, phrase: Phrase) -> None:
        at, kind = phrase.head, phrase.kind
        if kind in (PREPOSITION, TO):
            self.preposition, self.site, self.joined_by = at, self.last, self.join_name()
            self.joiner = None
        elif kind in (JOINING, COMMA):
            self.preposition = None
            if self.joiner is None or kind == JOINING:
                self.joiner = at
        elif kind == CLAUSE:
            self.clause(self.last, "clause")
        elif kind == BREAK and self.last is not None:
            self.clause(self.root, "beside")
        elif kind == PRONOUN:
            self.pronoun(at)
        elif kind == ADVERB:
            self.adverbs.append(at)

    def pronoun(self, at: int) -> None:
        if self.last is not None:
            self.clause(self.root, "beside")
        self.there = self.words[at].plain == "there"
        self.subject = None if self.there else at
        self.root = at

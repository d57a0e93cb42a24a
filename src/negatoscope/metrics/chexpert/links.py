"""Who belongs to whom in a sentence: the graph that rules are asked of.

Links are named for the reader: `no` (also not), `quality` (an adjective), `noun` (a noun before a noun), `subject`,
`passive` (the subject of what is done to it), `object`, `help` (may, was), `be`, `how` (an adverb), `what` (appears
WHAT), `clause`, `before` (the preposition of a noun), `also` and `beside` (named next to it), a preposition (`of`,
`within` ...), and the joining words `and`, `or`, `but`, `versus` ...
"""

from __future__ import annotations

from collections.abc import Iterator

from negatoscope.metrics.chexpert.words import NOUN, Token, Word

JOINS = frozenset(("and", "or", "but", "nor", "versus", "vs", "plus"))

_SPREADING = JOINS | {"also", "beside", "of", "no"}

Link = tuple[int, str, int]
"""Governor, name, the word that belongs to it."""


class Sketch:
    """The words of a sentence and the links between them, from both ends."""

    __slots__ = ("down", "tokens", "up", "words")

    def __init__(self, tokens: list[Token], words: list[Word]) -> None:
        self.tokens, self.words = tokens, words
        self.up: list[dict[int, str]] = [{} for _ in words]
        self.down: list[dict[int, str]] = [{} for _ in words]

    def link(self, governor: int, name: str, word: int) -> None:
        """One link a pair of words: the first that is drawn stays."""
        if governor != word and word not in self.down[governor]:
            self.down[governor][word] = name
            self.up[word][governor] = name

    def links(self) -> Iterator[Link]:
        for governor, below in enumerate(self.down):
            for word, name in below.items():
                yield governor, name, word


def spread(drawn: Sketch) -> None:
    """What is said of one thing is said of those joined to it. Twice, so that it reaches the end of a list."""
    for _ in range(2):
        new = [
            follows
            for governor, name, word in drawn.links()
            if name in _SPREADING
            for follows in _spread(drawn, governor, name, word)
        ]
        if not new:
            return
        for link in new:
            drawn.link(*link)


def _spread(drawn: Sketch, governor: int, name: str, word: int) -> Iterator[Link]:
    """What follows from one link."""
    words, up, down = drawn.words, drawn.up[governor], drawn.down[governor]
    nouns = words[governor].kind == NOUN and words[word].kind == NOUN
    if name == "also":  # clear of A, B: clear of B; no A, B: no B
        yield from ((above, link, word) for above, link in up.items())
        yield from ((word, link, below) for below, link in down.items() if link == "no")
    elif name == "beside" and nouns:
        yield from ((governor, link, below) for below, link in drawn.down[word].items() if link == "no")
    elif name in JOINS and nouns:  # no A or B: no B; without A and B: without B; normal A and B: normal B
        yield from ((word, link, below) for below, link in down.items() if _is_shared(link, words[below]))
    elif name == "of":
        if words[governor].plain in ("area", "amount", "combination"):  # clear of areas of A: clear of A
            yield from ((above, link, word) for above, link in up.items())
        yield from ((word, link, below) for below, link in down.items() if link == "no")
    elif name == "no" and any(words[other].plain in ("or", "and") for other in down):
        yield from ((below, "no", word) for below, link in down.items() if link == "noun")


def _is_shared(link: str, word: Word) -> bool:
    if link in ("help", "be", "no", "quality"):
        return True
    return (link in ("beside", "noun") and word.plain == "no") or (link == "before" and word.plain == "without")

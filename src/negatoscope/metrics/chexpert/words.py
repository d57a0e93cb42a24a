"""The words of a report sentence: what kind each is, and its plain form.

A small closed vocabulary (`rules/words.yaml`) and word endings are enough: report language is narrow, and what is not
known is a noun more often than not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from negatoscope.errors import BadInput

# The kinds of words. What a word is in its sentence may still change when its neighbours are seen (`phrases.py`).
NOUN, ADJECTIVE, ADVERB, VERB, PAST, ING = "noun", "adjective", "adverb", "verb", "past", "ing"
BE, HAVE, MODAL = "be", "have", "modal"
DETERMINER, NO, NUMBER, POSSESSIVE, PRONOUN = "determiner", "no", "number", "possessive", "pronoun"
PREPOSITION, TO, JOINING, CLAUSE = "preposition", "to", "joining", "clause"
COMMA, BREAK, STOP = "comma", "break", "stop"
_MARKS = {",": COMMA, "(": COMMA, ")": COMMA, ":": BREAK, ";": BREAK, "-": BREAK, ".": STOP, "?": STOP, "!": STOP}

_KINDS_OF_LISTS = {
    "nouns": NOUN, "adjectives": ADJECTIVE, "adverbs": ADVERB, "determiners": DETERMINER, "possessives": POSSESSIVE,
    "prepositions": PREPOSITION, "joining": JOINING, "subordinating": CLAUSE, "pronouns": PRONOUN, "modals": MODAL,
    "be": BE, "have": HAVE,
}  # fmt: skip
_LISTS = (*_KINDS_OF_LISTS, "verbs", "irregular", "never verbs", "telling", "anatomy", "endings", "read as verbs")
_REMEMBERED = 50_000
_TOKEN = re.compile(r"\d+(?:[.,:/-]\d+)*(?:st|nd|rd|th)?(?![a-z0-9])|[^\W_]+(?:['\-.][^\W_]+)*|_+|'s\b|\S")
_VOWELS = "aeiou"


class Token(NamedTuple):
    text: str
    start: int
    end: int


class Word(NamedTuple):
    kind: str
    plain: str
    """'limit' for 'limits', 'exclude' for 'excluded'."""
    plural: bool = False


def tokens(sentence: str) -> list[Token]:
    """Words and punctuation marks with their places; 'cannot' is two words, as in every treebank."""
    found: list[Token] = []
    for match in _TOKEN.finditer(sentence):
        text, start, end = match.group(), match.start(), match.end()
        if text == "cannot":
            found += [Token("can", start, start + 3), Token("not", start + 3, end)]
        elif text.endswith(("n't", "'s")) and len(text) > 3:
            cut = end - (3 if text.endswith("n't") else 2)
            found += [Token(text[: cut - start], start, cut), Token(text[cut - start :], cut, end)]
        else:
            found.append(Token(text, start, end))
    return found


def _past(verb: str) -> str:
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2] not in _VOWELS:
        return verb[:-1] + "ied"
    return verb + "ed"


def _doubled(verb: str) -> bool:
    """stop -> stopped: one short vowel before the last consonant."""
    return len(verb) > 2 and verb[-1] in "bdgklmnprt" and verb[-2] in _VOWELS and verb[-3] not in _VOWELS


def _third(verb: str) -> str:
    if verb.endswith("y") and verb[-2] not in _VOWELS:
        return verb[:-1] + "ies"
    return verb + ("es" if verb.endswith(("s", "x", "ch", "sh")) else "s")


def _ing(verb: str) -> str:
    return (verb[:-1] if verb.endswith("e") and not verb.endswith("ee") else verb) + "ing"


def _forms(verb: str) -> list[tuple[str, str]]:
    """Every regular form of a verb with its kind."""
    forms = [(verb, VERB), (_third(verb), VERB), (_past(verb), PAST), (_ing(verb), ING)]
    if _doubled(verb):
        forms += [(verb + verb[-1] + "ed", PAST), (verb + verb[-1] + "ing", ING)]
    return forms


def _irregular_kind(form: str, verb: str) -> str:
    if form.endswith("ing"):
        return ING
    return VERB if form in (_third(verb), "does", "goes", "sees", "lies") else PAST


@dataclass(frozen=True)
class Lexicon:
    """The words somebody wrote down, and what is made of the others."""

    known: Mapping[str, Word]
    telling: frozenset[str]
    endings: tuple[tuple[str, str], ...]
    anatomy: frozenset[str]
    misread: tuple[tuple[str, ...], ...]
    """Runs of words whose last is taken for a verb at the end of a sentence without one."""
    guessed: dict[str, Word] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, table: Mapping[str, Any], where: str = "words.yaml") -> Lexicon:
        """From the content of `rules/words.yaml`. Raises BadInput for a list that is missing."""
        for name in _LISTS:
            if name not in table:
                raise BadInput(
                    f"no list called {name!r}", where=where, remedy="start from the file that comes with the package"
                )

        def listed(name: str) -> list[str]:
            return str(table[name]).split()

        known: dict[str, Word] = {}
        for verb in listed("verbs"):
            known |= {form: Word(kind, verb) for form, kind in _forms(verb)}
        for verb, forms in table["irregular"].items():
            known[verb] = Word(VERB, verb)
            known |= {form: Word(_irregular_kind(form, verb), verb) for form in forms.split()}
        for form in listed("never verbs"):
            known[form] = Word(NOUN, _singular(form), form.endswith("s"))
        for name, kind in _KINDS_OF_LISTS.items():
            known |= {form: Word(kind, _plain(form, kind)) for form in listed(name)}
        known |= {"no": Word(NO, "no"), "to": Word(TO, "to"), "not": Word(ADVERB, "not"), "n't": Word(ADVERB, "not")}
        known |= {mark: Word(kind, mark) for mark, kind in _MARKS.items()}
        return cls(
            known,
            telling=frozenset(known[form].plain for form in listed("telling")),
            endings=tuple((end.lstrip("-"), kind) for kind, ends in table["endings"].items() for end in ends.split()),
            anatomy=frozenset(listed("anatomy")),
            misread=tuple(tuple(str(one).split()) for one in table["read as verbs"]),
        )

    def word(self, text: str) -> Word:
        """What kind of word this is, seen alone."""
        word = self.known.get(text) or self.guessed.get(text)
        if word is None:
            word = _guess(text, self.endings)
            if len(self.guessed) < _REMEMBERED:
                self.guessed[text] = word
        return word

    def read(self, sentence: list[Token]) -> list[Word]:
        """The words of one sentence."""
        words = [self.word(token.text) for token in sentence]
        for at in range(len(words) - 1):
            if words[at].kind == NO and sentence[at + 1].text == "longer":  # "is no longer seen": no word of a noun
                words[at] = Word(ADVERB, "no")
        ends = len(words)
        while ends and words[ends - 1].kind in (STOP, PAST):
            ends -= 1
        if not any(word.kind in (VERB, BE, HAVE, MODAL) for word in words):
            for pair in self.misread:
                if tuple(token.text for token in sentence[max(ends - len(pair), 0) : ends]) == pair:
                    words[ends - 1] = Word(VERB, pair[-1])
        return words


def _plain(form: str, kind: str) -> str:
    return {NOUN: _singular(form), BE: "be", HAVE: "have"}.get(kind, form)


def _guess(text: str, endings: tuple[tuple[str, str], ...]) -> Word:
    if text[0].isdigit():
        return Word(ADJECTIVE if text.endswith(("st", "nd", "rd", "th")) else NUMBER, text)
    if not text[0].isalpha():
        return Word(NOUN if text[0] == "_" else COMMA, text)
    if len(text) > 4 and text.endswith("ed"):
        return Word(PAST, text[:-1] if text[-3] in "tszvcgu" else text[:-2])
    if len(text) > 5 and text.endswith("ing"):
        return Word(ING, text[:-3])
    for ending, kind in endings:
        if text.endswith(ending) and len(text) > len(ending) + 2:
            return Word(kind, text)
    return Word(NOUN, _singular(text), text.endswith("s") and not text.endswith(("ss", "us", "is")))


def _singular(noun: str) -> str:
    if noun.endswith("ies") and len(noun) > 4:
        return noun[:-3] + "y"
    if noun.endswith(("sses", "xes", "ches", "shes")):
        return noun[:-2]
    return noun[:-1] if noun.endswith("s") and not noun.endswith(("ss", "us", "is")) and len(noun) > 3 else noun

"""The phrases of a sentence: nouns with what belongs to them, verb groups, qualities, and the small words between."""

from __future__ import annotations

from dataclasses import dataclass, field

from negatoscope.metrics.chexpert.words import (
    ADJECTIVE,
    ADVERB,
    BE,
    COMMA,
    DETERMINER,
    HAVE,
    ING,
    MODAL,
    NO,
    NOUN,
    NUMBER,
    PAST,
    POSSESSIVE,
    TO,
    VERB,
    Lexicon,
    Word,
)

QUALITY, INFINITIVE, VERB_GROUP = "quality", "infinitive", "verb group"
_BEFORE_NOUN = frozenset((DETERMINER, NO, NUMBER, ADJECTIVE, PAST, ING, POSSESSIVE, ADVERB))
_DESCRIBES = frozenset((ADJECTIVE, PAST, ING))
_VERB_START = frozenset((MODAL, BE, HAVE, VERB))
# Adjectives that follow their noun as a statement about it ("heart size normal"): never inside a longer name.
_STATED = frozenset(
    (
        *("normal", "clear", "stable", "unremarkable", "unchanged", "intact", "free", "negative", "present", "similar"),
        *("consistent", "compatible", "suspicious", "suggestive", "indicative", "worrisome", "secondary", "due"),
        *("adjacent", "upper", "near", "top", "bilateral", "prior", "greater", "more", "less"),
    )
)
# Participles after a comma that say something about what stands before it.
_SAYING = frozenset(
    ("represent", "suggest", "reflect", "indicate", "cause", "obscure", "involve", "measure", "include"),
)


@dataclass(slots=True)
class Phrase:
    kind: str
    """noun, verb group, infinitive, quality, past or ing (participles that say something), or a small word's kind."""
    head: int
    start: int
    end: int
    helpers: list[int] = field(default_factory=list)
    """Of a verb: modals, forms of be and have, 'not', adverbs. Of a quality: its adverbs."""
    passive: bool = False


def phrases(words: list[Word], lexicon: Lexicon) -> list[Phrase]:
    """The sentence cut into phrases from left to right, each as long as it can be."""
    found: list[Phrase] = []
    at = 0
    while at < len(words):
        phrase = _next(words, at, found[-1] if found else None, lexicon)
        found.append(phrase)
        at = phrase.end
    return found


def _next(words: list[Word], at: int, last: Phrase | None, lexicon: Lexicon) -> Phrase:
    kind, before = words[at].kind, last.kind if last else ""
    following = words[at + 1].kind if at + 1 < len(words) else ""
    if kind in _VERB_START or (kind == PAST and before == NOUN and _tells(words[at], following, lexicon)):
        return _verb(words, at, there=last is not None and words[last.head].plain == "there")
    if kind == TO and following in (VERB, BE, HAVE):
        return Phrase(INFINITIVE, at + 1, at, at + 2)
    if kind in (PAST, ING) and _says_something(words, at, before):
        return Phrase(kind, at, at, at + 1)
    end = _noun_end(words, at, joined=before != VERB_GROUP or kind in (NO, DETERMINER))
    if at == 0 and words[at].plain == "probable":  # the original's parser takes it for the sentence's main word
        end = 0
    if end and not (before == NOUN and kind in (ADJECTIVE, ADVERB) and _stated(words, at)):
        return Phrase(NOUN, end - 1, at, end)
    return _quality(words, at) if kind in _BEFORE_NOUN else Phrase(kind, at, at, at + 1)


def _says_something(words: list[Word], at: int, before: str) -> bool:
    """A participle that says something of the noun before it, and does not belong to one after it."""
    if before == NOUN:
        return True
    if before != COMMA or (words[at].kind == ING and words[at].plain not in _SAYING):
        return False
    return not _noun_end(words, at, joined=True)


def _stated(words: list[Word], at: int) -> bool:
    """An adjective that says something of the noun before it."""
    while at < len(words) and words[at].kind == ADVERB:
        at += 1
    return at < len(words) and words[at].plain in _STATED


def _tells(word: Word, following: str, lexicon: Lexicon) -> bool:
    """'The study showed an effusion': a past form that is the sentence's verb."""
    if following not in (DETERMINER, NO, ADJECTIVE, NOUN, NUMBER):
        return False
    return word.plain in lexicon.telling


def _verb(words: list[Word], at: int, there: bool) -> Phrase:
    """Modal, have, be and the verb itself; adverbs only when a further verb follows them."""
    head, end, passive = at, at + 1, False
    helpers: list[int] = []
    while words[head].kind in (MODAL, BE, HAVE):
        ahead = end
        while ahead < len(words) and words[ahead].kind == ADVERB:
            ahead += 1
        if ahead >= len(words) or not _verb_goes_on(words, head, ahead, there):
            break
        helpers += [head, *range(end, ahead)]
        passive = words[ahead].kind == PAST and words[head].kind == BE
        head, end = ahead, ahead + 1
    while end < len(words) and words[end].plain == "not":
        helpers.append(end)
        end += 1
    return Phrase(VERB_GROUP, head, at, end, helpers, passive)


def _verb_goes_on(words: list[Word], head: int, ahead: int, there: bool) -> bool:
    kind = words[ahead].kind
    if kind == VERB:
        return words[head].kind == MODAL
    if kind == ING or (kind == PAST and there):
        return not _noun_end(words, ahead, joined=False)
    return kind in (BE, HAVE, PAST)


def _noun_end(words: list[Word], at: int, joined: bool) -> int:
    """Where the noun phrase that starts here ends; 0 if none does. `joined`: 'cardiac and aortic contours' is one."""
    end = 0
    while at < len(words):
        kind, before = words[at].kind, words[at - 1] if at else None
        if kind == NOUN or (before is not None and _stands_for_noun(kind, before.kind, started=end > 0)):
            end = at + 1
        elif end:
            if kind != ADJECTIVE or words[at].plain in _STATED or not _noun_follows(words, at):
                break
        elif kind not in _BEFORE_NOUN and not (joined and _joins_adjectives(words, at)):
            break
        at += 1
    return end


def _stands_for_noun(kind: str, before: str, started: bool) -> bool:
    """'No change', 'rib 5'."""
    if started:
        return kind == NUMBER and before == NOUN
    return kind == VERB and before in (NO, DETERMINER)


def _joins_adjectives(words: list[Word], at: int) -> bool:
    before, following = words[at - 1], words[at + 1] if at + 1 < len(words) else None
    if (
        words[at].plain not in ("and", "or", ",")
        or following is None
        or before.plain in ("normal", "unremarkable", "clear")
    ):
        return False
    return before.kind in _DESCRIBES and (following.kind in _DESCRIBES or following.kind == ADVERB)


def _noun_follows(words: list[Word], at: int) -> bool:
    while at + 1 < len(words) and words[at + 1].kind == ADJECTIVE:
        at += 1
    return at + 1 < len(words) and words[at + 1].kind == NOUN


def _quality(words: list[Word], at: int) -> Phrase:
    """Adverbs and adjectives of which the last says something, or a lone small word where nothing larger fits."""
    end = at
    while end < len(words) and words[end].kind == ADVERB:
        end += 1
    while at and end + 1 < len(words) and words[end].kind == ADJECTIVE and words[end + 1].kind in (ADJECTIVE, PAST):
        end += 1
    if end < len(words) and words[end].kind in _DESCRIBES:
        kind = QUALITY if words[end].kind == ADJECTIVE else words[end].kind
        return Phrase(kind, end, at, end + 1, helpers=list(range(at, end)))
    return Phrase(ADVERB if words[at].kind == ADVERB else "other", at, at, at + 1)

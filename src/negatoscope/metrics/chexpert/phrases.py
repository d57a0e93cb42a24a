"""The phrases of a report sentence: nouns with what belongs to them, verb groups, qualities, and the small words between."""

from __future__ import annotations

from dataclasses import dataclass, field

from negatoscope.metrics.chexpert.words import (
    ADJECTIVE,
    ADVERB,
    BE,
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
    VERB,
    Lexicon,
    Word,
)

QUALITY, INFINITIVE = "quality", "infinitive"
_BEFORE_NOUN = frozenset((DETERMINER, NO, NUMBER, ADJECTIVE, PAST, ING, POSSESSIVE, ADVERB))
_DESCRIBES = frozenset((ADJECTIVE, PAST, ING))
_VERB_START = frozenset((MODAL, BE, HAVE, VERB))
_SMALL = {PREPOSITION, TO, JOINING, CLAUSE, PRONOUN, COMMA, STOP, ADVERB}
# Qualities that follow their noun as a statement about it ("heart size normal"), and so never stand inside a longer name.
_STATED = frozenset(("normal", "clear", "stable", "unremarkable", "unchanged", "intact", "free", "negative", "present",
                     "consistent", "compatible", "suspicious", "suggestive", "similar", "secondary", "due", "worrisome",
                     "adjacent", "upper", "near", "top", "bilateral", "prior", "greater", "more", "less", "indicative"))  # fmt: skip
_LINKING = frozenset(("appear", "remain", "seem", "become"))


@dataclass(slots=True)
class Phrase:
    kind: str
    """noun, verb, quality, past (a participle after its noun), ing, or the kind of a small word."""
    head: int
    start: int
    end: int
    helpers: list[int] = field(default_factory=list)
    """Verbs: modals, forms of be and have, 'not', adverbs before the head."""
    passive: bool = False


def phrases(words: list[Word], lexicon: Lexicon) -> list[Phrase]:
    """The sentence cut into phrases from left to right, each as long as it can be."""
    found: list[Phrase] = []
    at = 0
    while at < len(words):
        phrase = _next(words, at, found, lexicon)
        found.append(phrase)
        at = phrase.end
    return found


def _next(words: list[Word], at: int, found: list[Phrase], lexicon: Lexicon) -> Phrase:
    kind = words[at].kind
    before = found[-1].kind if found else ""
    if kind == TO and at + 1 < len(words) and words[at + 1].kind in (VERB, BE, HAVE):
        return Phrase(INFINITIVE, at + 1, at, at + 2)
    if at == 0 and words[at].plain == "probable":
        return Phrase(QUALITY, at, at, at + 1)
    if kind in _VERB_START and (before != "" or kind == MODAL or words[at].plain == "be"):
        return _verb(words, at, there=_there(words, found))
    if kind == PAST and before == NOUN and _tells(words, at, lexicon):
        return _verb(words, at, there=False)
    if kind in (PAST, ING) and before in (NOUN, COMMA) and not (kind == ING and before == COMMA and not _says(words, at)):
        if before == NOUN or not _noun_end(words, at, joined=True):
            return Phrase(kind, at, at, at + 1)
    end = _noun_end(words, at, joined=before != "verb" or kind in (NO, DETERMINER))
    if end and not (before == NOUN and kind in (ADJECTIVE, ADVERB) and _stated(words, at)):
        return Phrase(NOUN, end - 1, at, end)
    if kind in (ADJECTIVE, PAST, ADVERB, NUMBER, DETERMINER, NO, POSSESSIVE, ING):
        return _quality(words, at)
    return Phrase(kind, at, at, at + 1)


def _there(words: list[Word], found: list[Phrase]) -> bool:
    return bool(found) and words[found[-1].head].plain == "there"


def _says(words: list[Word], at: int) -> bool:
    return words[at].plain in ("represent", "suggest", "reflect", "indicate", "cause", "obscure", "involve", "measure", "include")


def _stated(words: list[Word], at: int) -> bool:
    """A quality that says something about the noun before it."""
    while at < len(words) and words[at].kind == ADVERB:
        at += 1
    return at < len(words) and words[at].plain in _STATED


def _tells(words: list[Word], at: int, lexicon: Lexicon) -> bool:
    """'The study showed an effusion': a past form that is the sentence's verb."""
    following = words[at + 1].kind if at + 1 < len(words) else ""
    return any(words[at] == lexicon.known.get(form) for form in lexicon.telling) and following in (
        DETERMINER, NO, ADJECTIVE, NOUN, NUMBER, PREPOSITION if words[at].plain == "become" else NO,
    )  # fmt: skip


def _verb(words: list[Word], at: int, there: bool) -> Phrase:
    """Modal, have, be and the verb itself; adverbs only when a further verb follows them."""
    head, start, helpers = at, at, []
    end, passive = at + 1, False
    while True:
        ahead = end
        while ahead < len(words) and words[ahead].kind == ADVERB:
            ahead += 1
        if words[head].kind not in (MODAL, BE, HAVE) or ahead >= len(words) or not _continues(words, head, ahead, there):
            break
        helpers += [head, *range(end, ahead)]
        passive = words[ahead].kind == PAST and words[head].kind == BE
        head, end = ahead, ahead + 1
    while end < len(words) and words[end].plain == "not":
        helpers.append(end)
        end += 1
    return Phrase("verb", head, start, end, helpers, passive)


def _continues(words: list[Word], head: int, ahead: int, there: bool) -> bool:
    kind, next_kind = words[ahead].kind, words[ahead].kind
    if kind in (BE, HAVE):
        return True
    if kind == VERB:
        return words[head].kind == MODAL
    if kind not in (PAST, ING):
        return False
    if there or kind == ING:
        return not _noun_end(words, ahead, joined=False) and next_kind != NOUN
    return True


def _noun_end(words: list[Word], at: int, joined: bool) -> int:
    """Where the noun phrase that starts here ends; 0 if none starts. `joined`: 'cardiac and mediastinal contours' is one."""
    end = 0
    while at < len(words):
        kind = words[at].kind
        if kind == NOUN:
            end = at + 1
        elif kind == VERB and not end and at > 0 and words[at - 1].kind in (NO, DETERMINER):
            end = at + 1
        elif end:
            if kind == NUMBER and words[at - 1].kind == NOUN:
                end = at + 1
            elif kind != ADJECTIVE or words[at].plain in _STATED or not _noun_follows(words, at):
                break
        elif kind not in _BEFORE_NOUN and not (
            joined
            and words[at - 1].kind in _DESCRIBES
            and words[at - 1].plain not in ("normal", "unremarkable", "clear")
            and (words[at].plain in ("and", "or", ","))
            and at + 1 < len(words)
            and words[at + 1].kind in (*_DESCRIBES, ADVERB)
        ):
            break
        at += 1
    return end


def _noun_follows(words: list[Word], at: int) -> bool:
    while at + 1 < len(words) and words[at + 1].kind == ADJECTIVE:
        at += 1
    return at + 1 < len(words) and words[at + 1].kind == NOUN


def _quality(words: list[Word], at: int) -> Phrase:
    """Adverbs and one adjective, or a lone small word where nothing larger fits."""
    end = at
    while end < len(words) and words[end].kind == ADVERB:
        end += 1
    while end + 1 < len(words) and words[end].kind == ADJECTIVE and words[end + 1].kind in (ADJECTIVE, PAST):
        end += 1
    if end < len(words) and words[end].kind in (ADJECTIVE, PAST, ING):
        kind = QUALITY if words[end].kind == ADJECTIVE else words[end].kind
        return Phrase(kind, end, at, end + 1, helpers=list(range(at, end)))
    return Phrase(ADVERB if words[at].kind == ADVERB else "other", at, at, at + 1)

"""Penn Treebank words without Java: what Stanford's PTBTokenizer 3.4.1 makes of a report as pycocoevalcap 1.2 runs it
(-preserveLines -lowerCase, then its list of punctuation taken out).

That program is a scanner: at each place the rule with the longest match wins, what it must see after the word counted
in, and of equally long ones the earliest. `_RULES` says the same in regular expressions, so that "fig. 5", "it's" and
"C5-6," come apart as there. A text is scanned by itself: the original lets "etc." at the end of a line see the first
letter of the next one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

# pycocoevalcap's list. It holds -LRB- in capitals, while the words are lower-case: brackets stay, there as here.
PUNCTUATION = frozenset(
    ("''", "'", "``", "`", "-LRB-", "-RRB-", "-LCB-", "-RCB-", ".", "?", "!", ",", ":", "-", "--", "...", ";")
)


def ptb_words(text: str) -> list[str]:
    """The report's words, lower-case, without punctuation. A word may hold a no-break space: '2 1/2' is one."""
    return [word for word in ptb_tokens(text) if word not in PUNCTUATION]


def ptb_tokens(text: str) -> list[str]:
    """All tokens, lower-case."""
    return [token.lower() for token in _scan(_LINE_BREAKS.sub(" ", text) + "\n\n")]


def _scan(text: str) -> Iterator[str]:
    rules = [(rule, write) for rule, needs, write in _RULES if needs in text]
    place = 0
    while place < len(text):
        plain = _PLAIN.match(text, place)
        if plain and not _needs_rules(plain):
            place = plain.end()
            yield plain["word"]
            continue
        blank = _BLANK.match(text, place)
        if blank:
            place = blank.end()
            continue
        token, write, longest = "", None, 0
        for rule, writes in rules:
            found = rule.match(text, place)
            if found and found.end() - place > longest:
                longest, token, write = found.end() - place, found[1], writes
        # A character that no rule knows is dropped, there as here.
        place += len(token) or 1
        if write is _keep_stop:
            place -= 1
        if token:
            yield write(token) if write else token


def _needs_rules(plain: re.Match[str]) -> bool:
    stopped = plain["stopped"]
    return bool(stopped and _ABBREVIATED.fullmatch(stopped)) or plain["word"].lower() in _SPLIT


# ---- writing a token ----


def _spaces(token: str) -> str:
    return token.replace(" ", "\u00a0")


def _soft_hyphens(token: str) -> str:
    return token.replace("\u00ad", "") or "-"


def _brackets(token: str) -> str:
    return "".join(_BRACKETS.get(mark, mark) for mark in token)


def _round_brackets(token: str) -> str:
    return token.replace("(", "-LRB-").replace(")", "-RRB-").replace(" ", "\u00a0")


def _left_quote(token: str) -> str:
    return _quotes(token.replace("&apos;", "`").replace("&quot;", "``").replace("'", "`").replace('"', "``"))


def _quotes(token: str) -> str:
    return "".join(_QUOTES.get(mark, mark) for mark in token.replace("&apos;", "'").replace("&quot;", "''"))


def _ampersand(token: str) -> str:
    return re.sub("&amp;", "&", token, flags=re.I)


def _always(token: str) -> Callable[[str], str]:
    return lambda _: token


def _dashes(token: str) -> str:
    return "--" if 3 <= len(token) <= 4 else token


def _keep_stop(token: str) -> str:
    """'etc.' at the end of a sentence is 'etc.' and, once more, a full stop."""
    return token


_BRACKETS = {"(": "-LRB-", ")": "-RRB-", "[": "-LSB-", "]": "-RSB-", "{": "-LCB-", "}": "-RCB-"}
_QUOTES = {
    **dict.fromkeys("\u0091\u2018\u201b\u2039", "`"),
    **dict.fromkeys("\u0092\u2019\u203a", "'"),
    **dict.fromkeys("\u0093\u201c\u00ab", "``"),
    **dict.fromkeys('\u0094\u201d\u00bb"', "''"),
}
_MONEY = {"\u00a2": "cents", "\u00a3": "#", **dict.fromkeys("\u0080\u00a4\u20a0\u20ac", "$")}
_FRACTIONS = {"\u00bc": "1/4", "\u00bd": "1/2", "\u00be": "3/4", "\u2153": "1/3", "\u2154": "2/3"}

# ---- the parts that rules are made of; literal words in any case, character classes as they stand ----

_LINE_BREAKS = re.compile("[\n\r\u000b\u000c\u0085\u2028\u2029]")
_BLANK = re.compile("[ \t\n\u00a0\u2000-\u200b\u3000\u200e\u200f\ufeff\x00]+|(?i:&nbsp;)")
_SP, _NL = "[ \t\u00a0\u2000-\u200a\u3000]", "[ \t\u00a0\u2000-\u200a\u3000\n]"
_NOT_LETTERS = (
    "\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2089\u2150-\u2189\u2460-\u24ff\u2776-\u2793\u3007\u3021-\u303a\u3192-\u3195"
    "\u3220-\u32bf\U00010000-\U0010ffff"
)
_LETTER = rf"(?:[^\W\d_{_NOT_LETTERS}])"
_CAPITAL = "[A-Z\u00c0-\u00d6\u00d8-\u00de\u0386-\u03ab\u0400-\u042f]"
_IN_WORD = (
    rf"(?:[^\W\d_{_NOT_LETTERS}]|[\u00ad\u02c2-\u02c5\u02d2-\u02df\u02e5-\u036f\u0384\u0385\u0483-\u0487]"
    r"|&[aeiouAEIOU](?i:acute|grave|uml);)"
)
_WORD = rf"{_IN_WORD}(?:{_IN_WORD}|\d)*(?:[.!?]{_IN_WORD}(?:{_IN_WORD}|\d)*)*"
_APOS = "(?:['\u0092\u2019]|(?i:&apos;))"
_APOS_LIKE = f"(?:{_APOS}|[`\u0091\u2018\u201b])"
_AUX = f"{_APOS}(?:[msdMSD]|(?i:re|ve|ll))"
_NOT = f"(?i:n){_APOS_LIKE}(?i:t)"
_SWORD = "[A-Za-z\u00ad]*[A-MO-Za-mo-z]\u00ad*"
_NUM = r"(?:\d+(?:[.:,\u00ad\u066b\u066c]\d+)*|(?:[.:,\u00ad\u066b\u066c]\d+)+)"
_ALNUM = rf"(?:{_LETTER}|\d)"
_THING = (
    rf"(?:[dDoOlL]{_APOS_LIKE}{_ALNUM})?{_ALNUM}+(?:[-_\u058a\u2010\u2011](?:[dDoOlL]{_APOS_LIKE}{_ALNUM})?{_ALNUM}+)*"
)
_THING_WITH_SLASH = r"[A-Za-z0-9]+(?:-[A-Za-z]+){0,2}(?:\\?/[A-Za-z0-9]+(?:-[A-Za-z]+){0,2}){1,2}"
_CAPITALS = r"[A-Z]+(?:(?:[+&]|(?i:&amp;))[A-Z]+)+"
_INITIALS = r"(?:(?i:(?:Canada|Sino|Korean|EU|Japan|non)-U\.S|U\.S\.-(?:U\.K|U\.S\.S\.R))|[A-Za-z](?:\.[A-Za-z])*)"
_INITIALS_2 = r"(?:(?i:(?:Canada|Sino|Korean|EU|Japan|non)-U\.S|U\.S\.-(?:U\.K|U\.S\.S\.R))|[A-Za-z](?:\.[A-Za-z])+)"
_HYPHENATED = rf"[A-Za-z0-9][A-Za-z0-9.,\u00ad]*(?:-(?:{_INITIALS_2}\.|[A-Za-z0-9\u00ad]+))+"
_TAG = (
    r"<(?:[!?][A-Za-z\-][^>\n]*|[A-Za-z][A-Za-z0-9_:.\-]*(?: +(?:[A-Za-z][A-Za-z0-9_:.\-]* *= *(?:'[^']*'|\"[^\"]*\")"
    r"|[A-Za-z][A-Za-z0-9_:.\-]*))* */?|/[A-Za-z][A-Za-z0-9_:.\-]*) *>"
)
_IN_SENTENCE = "[,;:]"
# Followed by small letters as a rule: before a capital they end a sentence. One capital in brackets: only so spelt.
_BEFORE_SMALL = (
    "(?:(?i:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec|Mon|Tues|Tue|Wed|Thurs|Thu|Fri|Ala|Ariz|Calif|Colo|Conn|Ct|Dak"
    "|Fla|Ga|Ind|Kans?|Ky|Md|Mich|Minn|Mo|Mont|Neb|Nev|Okla|Penn|Tenn|Va|Vt|Wisc?|Wyo|Inc|Cos?|Corp|Ltd|Plc|Rt|Bancorp|Bhd"
    r"|Assn|Univ|Intl|Sys|tel|est|ext|sq|Jr|Sr|Bros|Ed\.D|Ph\.D|Esq|etc|al|seq|Bldg|Blvd|Rd)"
    "|A(?i:z|rk)|D(?i:el)|I(?i:ll)|L(?i:a)|M(?i:ass|iss)|O(?i:re)|P(?i:a)|T(?i:ex)|W(?i:ash)|(?i:Pp?t)[ye](?i:s?))"
)
_BEFORE_CAPITAL = (
    "(?:(?i:Messrs|Mrs|Mr|Ms|Drs?|Profs?|Sens?|Reps?|Attys?|Lt|Col|Gen|Govs?|Adm|Rev|Maj|Sgt|Cpl|Pvt|Capt|Ste?|Ave|Pres|Lieut"
    "|Hon|Brig|Comdr|Cmdr|Pfc|Spc|Supts?|Det|Mt|Ft|Adj|Adv|Asst|Assoc|Ens|Insp|Mlle|Mme|Msgr|Sfc|vs|Alex|Wm|Jos|Cie|a\\.k\\.a|cf"
    "|TREAS|Ph|Invt|Elec|Natl|Dept)|(?i:M)[ft](?i:g)|M(?i:iss))"
)
_BEFORE_NUMBER = "(?i:ca|figs?|prop|nos?|art|bldg|pp|op)"
_OPENS_SENTENCE = (
    "(?:A(?i:bout|ccording|dditionally|fter|n|s|t)?|B(?i:ut)|D(?i:id|uring)|E(?i:arlier)|H(?i:e|er|ere|ow|owever)|I(?i:f|n|t)"
    "|L(?i:ast)|M(?i:any|ore|r\\.|s\\.)|N(?i:ow)|O(?i:nce|ne|ther|ur)|S(?i:he|ince|o|ome|uch)"
    "|T(?i:hat|he|heir|hen|here|hese|hey|his)|W(?i:e|hen|hile|hat|ho|hy)|Y(?i:et|ou))"
)
_URL = r"(?i:ftp|svn\+ssh|svn|https?|mailto)://[^ \t\n\f\r\"<>|()]+[^ \t\n\f\r\"<>|.!?(){},\-]"
_LIKELY_URL = (
    r"(?:(?i:www)\.(?:[^ \t\n\f\r\"<>|.!?(){},]+\.)+[a-zA-Z]{2,4}"
    r"|(?:[^ \t\n\f\r\"`'<>|.!?(){},-_$]+\.)+(?i:com|net|org|edu))"
    r"(?:/[^ \t\n\f\r\"<>|()]+[^ \t\n\f\r\"<>|.!?(){},\-])?"
)
_EMAIL = (
    r"(?:(?i:&lt;)|<)?[a-zA-Z0-9][^ \t\n\f\r\"<>|()\u00a0{}]*@(?:[^ \t\n\f\r\"<>|(){}.\u00a0]+\.)*"
    r"[^ \t\n\f\r\"<>|(){}.\u00a0]+(?:(?i:&gt;)|>)?"
)
_FILE = (
    rf"{_ALNUM}+(?:\.{_ALNUM}+)*\.(?i:bat|bmp|c|class|cgi|cpp|dll|docx?|exe|gif|gz|html?|h|jar|java|jpe?g|mov|mp3|pdf|php"
    r"|pl|png|pptx?|ps|py|sql|tar|txt|wav|xml|x|zip|3gp|wm[va]|avi|flv|mp[34g])"
)
_PHONE = (
    r"(?:(?:\([0-9]{2,3}\)[ \u00a0]?|(?:\+\+?)?(?:[0-9]{2,4}[\- \u00a0])?[0-9]{2,4}[\- \u00a0])"
    r"[0-9]{3,4}[\- \u00a0]?[0-9]{3,5}"
    r"|(?:(?:\+\+?)?[0-9]{2,4}\.)?[0-9]{2,4}\.[0-9]{3,4}\.[0-9]{3,5})"
)
_SYMBOLS = (
    "+%&~^|\\\\\u00a6-\u00a9\u00ac\u00ae-\u00b4\u00b6-\u00b9\u00d7\u00f7\u0387\u05be\u05c0\u05c3\u05c6\u05f3\u05f4"
    "\u0600-\u0603\u0606-\u060a\u060c\u0614\u061b\u061e\u066a\u066d\u0703-\u070d\u07f6-\u07f8\u0964\u0965\u0e4f\u1fbd\u2016"
    "\u2017\u2020-\u2023\u2030-\u2038\u203b\u203e-\u2042\u2044\u207a-\u207e\u208a-\u208e\u2100-\u214f\u2190-\u2bff\u3001"
    "\u3002\u3012\u30fb\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
_SMILEY = r"[<>]?[:;=][\-o*']?[()DPdpO\\{@|\[\]]"
_ASIAN_SMILEY = (
    r"[\^x=~<>]\.\[\^x=~<>\]|[\-\^x=~<>']_[\-\^x=~<>']|\([\-\^x=~<>'][_.]?[\-\^x=~<>']\)|\([\^x=~<>']-[\^x=~<>'`]\)"
)
_APOSTROPHE_WORD = (
    rf"(?i:Dunkin{_APOS}|somethin{_APOS}|ol{_APOS}|{_APOS}em|{_APOS}cause|cont'd\.?|nor'easter|c'mon|e'er|s'mores|ev'ry|li'l"
    rf"|nat'l)|{_APOS}(?i:n){_APOS}|{_APOS}(?i:till?)|{_APOS}[2-9](?i:0s)|[A-HJ-XZn]{_APOS_LIKE}{_LETTER}{{2,}}"
    rf"|{_LETTER}+[aeiouyAEIOUY]{_APOS_LIKE}[aeiouA-Z]{_LETTER}*|{_APOS}(?i:n)|[lLdDjJ]{_APOS}"
)

# ---- the rules: (pattern, what has to follow, how it is written); of equally long ones the earlier wins ----

_TABLE: tuple[tuple[str, str, Callable[[str], str] | None], ...] = (
    (r"[cC]\+\+|[cCfF]#", "", None),
    (r"(?i:can)", r"(?i:not)", None),
    ("'(?i:t)", r"(?i:was)", None),
    ("'(?i:t)", r"(?i:is)", None),
    (r"(?i:gon|wan)", r"(?i:na)", None),
    (r"(?i:got)", r"(?i:ta)", None),
    (r"(?i:lem|gim)", r"(?i:me)", None),
    (_TAG, "", _spaces),
    ("(?i:&(?:MD|mdash|ndash);)|[\u0096\u0097\u2013\u2014\u2015]", "", _always("--")),
    ("(?i:&amp;)", "", _ampersand),
    ("(?i:&(?:HT|TL|UR|LR|QC|QL|QR|odq|cdq|#[0-9]+);)", "", None),
    (_WORD, _AUX, _soft_hyphens),
    (_SWORD, _NOT, _soft_hyphens),
    (_WORD, "", _soft_hyphens),
    (_APOSTROPHE_WORD, "", None),
    (f"[yY]{_APOS}", _LETTER, None),
    (_URL, "", None),
    (_LIKELY_URL, "", None),
    (_EMAIL, "", None),
    (rf"@[a-zA-Z_][a-zA-Z_0-9]*|#{_LETTER}+", "", None),
    (_AUX, r"[^A-Za-z]", _quotes),
    (_NOT, r"[^A-Za-z]", _quotes),
    (r"\d{1,2}[\-/]\d{1,2}[\-/]\d{2,4}", "", None),
    (rf"[\-+]?{_NUM}", "", _soft_hyphens),
    ("[\u207a\u207b\u208a\u208b]?(?:[\u2070\u00b9\u00b2\u00b3\u2074-\u2079]+|[\u2080-\u2089]+)", "", None),
    (r"(?:\d{1,4}[- \u00a0])?\d{1,4}(?:\\?/|\u2044)\d{1,4}", "", _spaces),
    ("[\u00bc-\u00be\u2153-\u215e]", "", lambda mark: _FRACTIONS.get(mark, mark)),
    (
        rf"(?i:-(?:RRB|LRB|RCB|LCB|RSB|LSB)-|C\.D\.s|pro-|anti-|S(?:&|&amp;)P-500|S(?:&|&amp;)Ls|Cap{_APOS}n|c{_APOS}est)",
        "",
        _ampersand,
    ),
    (_THING_WITH_SLASH, "", None),
    (r"[A-Z]*\$|#", "", None),
    (
        "[\u00a2-\u00a5\u0080\u20a0\u20ac\u060b\u0e3f\u20a4\uffe0\uffe1\uffe5\uffe6]",
        "",
        lambda mark: _MONEY.get(mark, mark),
    ),
    (r"[A-Za-z]", rf"\.{_NL}+{_OPENS_SENTENCE}{_NL}", None),
    (rf"{_INITIALS_2}\.", rf"{_NL}+{_OPENS_SENTENCE}{_NL}", _keep_stop),
    (rf"{_BEFORE_NUMBER}\.", rf"{_NL}?\d", None),
    (r"(?i:pt[ey]|co)\.", rf"{_SP}(?i:ltd|lim)", None),
    (rf"{_BEFORE_SMALL}\.", rf"{_NL}(?:{_NL}|{_CAPITAL}|{_TAG})", _keep_stop),
    (rf"{_BEFORE_SMALL}\.", r"[\s\S][\s\S]", None),
    (rf"{_BEFORE_CAPITAL}\.|(?i:[v])\.|{_INITIALS}\.", "", None),
    (rf"{_BEFORE_CAPITAL}|(?i:[v])|{_INITIALS}", _NL, None),
    (f"{_APOS}[0-9][0-9]", _NL, None),
    (_FILE, rf"{_NL}|[.?!,\"'<]", None),
    (rf"{_WORD}\.", _IN_SENTENCE, _soft_hyphens),
    (_PHONE, "", _round_brackets),
    ('"|(?i:&quot;)', r"[A-Za-z0-9$]", _left_quote),
    ('"|(?i:&quot;)', "", _quotes),
    ("<|(?i:&lt;)", "", _always("<")),
    (">|(?i:&gt;)", "", _always(">")),
    (_SMILEY, r"[^A-Za-z0-9]", _round_brackets),
    (_ASIAN_SMILEY, "", _round_brackets),
    (r"[(){}\[\]]", "", _brackets),
    (r"-+", "", _dashes),
    ("\\.{3,5}|(?:\\.[ \u00a0]){2,4}\\.|[\u0085\u2026]", "", _always("...")),
    (r"@+|#+|_+|\*+|(?:\\\*){1,3}", "", None),
    (_IN_SENTENCE, "", None),
    (r"[?!]+", "", None),
    ("[.\u00a1\u00bf\u037e\u0589\u061f\u06d4\u0700-\u0702\u3002=/]", "", None),
    (_HYPHENATED, "", _soft_hyphens),
    (rf"{_HYPHENATED}\.", _IN_SENTENCE, _soft_hyphens),
    (rf"{_THING}\.", _IN_SENTENCE, None),
    (_THING, "", None),
    (rf"{_CAPITALS}\.", _IN_SENTENCE, _ampersand),
    (_CAPITALS, "", _ampersand),
    ("'", r"[A-Za-z][^ \t\n\r\u00a0]", _left_quote),
    (_AUX, "", _quotes),
    (_NOT, "", _quotes),
    (f"''|[`\u2018-\u201f\u0091-\u0094\u2039\u203a\u00ab\u00bb]{{1,2}}|{_APOS}", "", _quotes),
    (r"<<|>>", "", None),
    (f"[{_SYMBOLS}]", "", None),
)
# A rule that runs far ahead for one character is not tried where a text has none: long lists without blanks stay quick.
_NEEDS = {_EMAIL: "@", _URL: "://", _TAG: "<", _THING_WITH_SLASH: "/", _HYPHENATED: "-", rf"{_HYPHENATED}\.": "-"}
_RULES = tuple(
    (re.compile(f"({pattern})(?:{after})" if after else f"({pattern})"), _NEEDS.get(pattern, ""), write)
    for pattern, after, write in _TABLE
)

# What needs no rules: plain words, numbers and stops between plain neighbours. Nine tenths of a report.
_PLAIN = re.compile(
    r" *(?P<word>(?P<stopped>[A-Za-z]{2,})(?=\.[ \n])|[A-Za-z]+(?=[ \n])|[A-Za-z]{2,}(?=[,;:][ \n])"
    r"|[A-Za-z]+-[A-Za-z]+(?=[ \n])|\.(?= [A-Za-z]|\n)|,(?= )|\d+(?= [A-Za-z]))"
)
_SPLIT = frozenset(("cannot", "gonna", "gotta", "lemme", "gimme", "wanna"))
_ABBREVIATED = re.compile(f"{_BEFORE_SMALL}|{_BEFORE_CAPITAL}|{_BEFORE_NUMBER}", re.I)

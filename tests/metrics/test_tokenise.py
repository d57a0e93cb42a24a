"""The Penn Treebank words beside the Java program's: by its rules one by one, and on real and made-up reports through
the jar."""

from __future__ import annotations

import random
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from negatoscope.metrics.forms import read_reports
from negatoscope.metrics.tokenise import PUNCTUATION, ptb_tokens, ptb_words


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The heart is normal in size. No effusion.", "the heart is normal in size . no effusion ."),
        ("Well-defined, 5-year-old; post-op.", "well-defined , 5-year-old ; post-op ."),
        ("It's the patient's, and isn't theirs'.", "it 's the patient 's , and is n't theirs ' ."),
        ("cannot don't can't won't gonna", "can not do n't ca n't wo n't gon na"),
        ("C5-6, T12-L1. T1/T2-weighted 18-20", "c5-6 , t12-l1 . t1/t2-weighted 18-20"),
        ("1.5cm 1.5-cm 3-4 -3 +3 3- 10/12/2010 12:30", "1.5 cm 1.5-cm 3-4 -3 +3 3 - 10/12/2010 12:30"),
        ("1. Heart. 2. Lungs", "1 . heart . 2 . lungs"),
        ("2 1/2 cm and 1-1/2 in.", "2\u00a01/2 cm and 1-1/2 in ."),
        ("(left) [x] {y} <5 >6 5%", "-lrb- left -rrb- -lsb- x -rsb- -lcb- y -rcb- < 5 > 6 5 %"),
        ("\"normal\" and 'clear'", "`` normal '' and ` clear '"),
        ("iv''s", "iv '' s"),
        ("Dr. Smith vs. the U.S. of", "dr. smith vs. the u.s. of"),
        ("fig. 5 fig. a No. 5 no. the", "fig. 5 fig . a no. 5 no . the"),
        ("etc. The rest etc. and", "etc. . the rest etc. and"),
        ("6 p.m. The end, 6 p.m. at a. The", "6 p.m. . the end , 6 p.m. at a . the"),
        ("size.No XXXX.XXXX foo., bar", "size.no xxxx.xxxx foo. , bar"),
        ("word.... . . . end -- --- -----", "word ... ... end -- -- -----"),
        ("AT&T a&b café naïve 5°C ½ ²", "at&t a & b café naïve 5 ° c 1/2 ²"),
        ("&lt;b&gt; &amp; <b> &nbsp; x", "< b > & <b> x"),
        ("a\u200bb \u0007 c", "a b c"),
        ("line\nbreaks\r\nare\u2028blanks", "line breaks are blanks"),
        ("", ""),
        ("   ", ""),
    ],
)
def test_rules(text: str, tokens: str) -> None:
    assert " ".join(ptb_tokens(text)) == tokens


def test_punctuation_goes_but_brackets_stay_as_they_do_there() -> None:
    assert ptb_words('Heart (large), no: effusion... "x"?') == [
        "heart",
        "-lrb-",
        "large",
        "-rrb-",
        "no",
        "effusion",
        "x",
    ]
    assert "-LRB-" in PUNCTUATION


# ---- beside the program itself ----


@pytest.fixture(scope="session")
def java(tmp_path_factory):
    """lines -> tokens of each line, by one call of Stanford's program. An empty line and one that holds only ';' part
    the lines, because it lets an abbreviation at the end of a line see the next one."""
    spec = find_spec("pycocoevalcap")
    if shutil.which("java") is None or spec is None or not spec.submodule_search_locations:
        pytest.skip(
            "needs Java (default-jre-headless) and pycocoevalcap: the tokeniser was NOT compared with Stanford's"
        )
    jar = Path(next(iter(spec.submodule_search_locations))) / "tokenizer" / "stanford-corenlp-3.4.1.jar"

    def tokenise(lines: list[str]) -> list[str]:
        path = tmp_path_factory.mktemp("ptb") / "lines.txt"
        path.write_text("".join(f"{line}\n\n;\n" for line in lines), encoding="utf-8", newline="")
        command = [
            "java",
            "-cp",
            str(jar),
            "edu.stanford.nlp.process.PTBTokenizer",
            "-preserveLines",
            "-lowerCase",
            str(path),
        ]
        out = subprocess.run(command, capture_output=True, check=True, timeout=300).stdout.decode("utf-8")
        return [line.rstrip() for line in out.split("\n")[::3][: len(lines)]]

    return tokenise


def differing(lines: list[str], theirs: list[str]) -> list[tuple[str, str, str]]:
    ours = [" ".join(ptb_tokens(line)) for line in lines]
    assert len(theirs) == len(ours)
    return [(line, b, a) for line, a, b in zip(lines, ours, theirs) if a != b]


def test_every_real_report_comes_apart_as_there(java, shared) -> None:
    path = shared("data/iu-xray/annotation.json")
    lines = [text for split in ("train", "val") for text in read_reports(path, role="reference", split=split).texts]
    lines = [" ".join(line.splitlines()) for line in lines]
    assert differing(lines, java(lines)) == []


WORDS = (
    "the heart Lungs XXXX effusion. T12 size, Dr. etc. fig. No. p.m. A.P. U.S. e.g. ca. a. I. Inc. St. 5cm L1-2 12 2.5 "
    "1/2 345"
)
MARKS = "/ - -- . .. ... , ; : ' \" ( ) [ ] % + = < > & # * _ ? ! 's n't ° × – ’ “ ” ½ ² é ≥ … \\ @ $ ~ ` \t \u00a0"


def made_up(rng: random.Random) -> str:
    pieces = [*WORDS.split(), *WORDS.split(), *MARKS.split(" "), *[" "] * 20, *"abcxyzIATSE"]
    return "".join(rng.choice(pieces) + rng.choice(("", "", " ")) for _ in range(rng.randint(1, 9)))


def test_made_up_lines_come_apart_as_there(java) -> None:
    rng = random.Random(7)
    lines = [made_up(rng) for _ in range(4000)]
    assert differing(lines, java(lines)) == []

"""METEOR against the Java program, and what must hold without it."""

from __future__ import annotations

import csv
import random
import re
import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from negatoscope.errors import Trouble, WrongUse
from negatoscope.metrics.meteor import Meteor, meteor_available
from negatoscope.metrics.meteor.align import align
from negatoscope.metrics.meteor.candidates import Candidates
from negatoscope.metrics.meteor.score import COLUMNS
from negatoscope.metrics.meteor.sources import find_sources
from negatoscope.metrics.meteor.stem import stem
from negatoscope.metrics.meteor.tokenise import tokenise

needs_data = pytest.mark.skipif(not meteor_available(), reason="needs pycocoevalcap: pip install 'negatoscope[meteor]'")
Study = tuple[str, list[str]]


@pytest.fixture(scope="session")
def ours(request: pytest.FixtureRequest) -> Meteor:
    """With an index that stays from run to run, outside the user's own cache."""
    return Meteor(cache=request.config.cache.mkdir("meteor"))


@pytest.fixture(scope="session")
def theirs():
    """The Java program, started once: several in one process have been seen to hang."""
    if not shutil.which("java"):
        pytest.skip("needs java for METEOR's own program: apt-get install default-jre-headless")
    program = pytest.importorskip("pycocoevalcap.meteor.meteor").Meteor()

    def score(studies: list[Study]) -> tuple[float, list[float]]:
        said = {number: [prediction] for number, (prediction, _) in enumerate(studies)}
        asked = dict(enumerate(references for _, references in studies))
        return program.compute_score(asked, said)

    return score


def assert_equal(ours: Meteor, theirs, studies: list[Study]) -> None:
    total, each = theirs(studies)
    rows = ours.rows([said for said, _ in studies], [asked for _, asked in studies])
    np.testing.assert_allclose(ours.figures(rows)["METEOR"], each, rtol=0, atol=1e-9)
    assert ours.figures(rows.sum(axis=0))["METEOR"] == pytest.approx(total, abs=1e-9)
    assert len(set(each)) > 1


# --- against the program -------------------------------------------------------------------------------------------


def cleaned(report: str) -> str:
    """Lower case, sentences parted by " . ", nothing else of punctuation: as the field's generators read and write."""
    sentences = [re.sub(r"[^a-z0-9 ]", "", part) for part in report.lower().split(". ")]
    return " . ".join(" ".join(sentence.split()) for sentence in sentences if sentence.strip()) + " ."


@needs_data
@pytest.mark.parametrize("written", [lambda report: report, cleaned], ids=["raw", "cleaned"])
def test_equals_the_program_on_real_reports(ours, theirs, shared, written):
    with (shared("data/iu-xray") / "studies.csv").open(encoding="utf-8", newline="") as file:
        studies = list(csv.DictReader(file))
    reports = {
        split: [" ".join(s["impression"].split()) for s in studies if s["split"] == split] for split in ("train", "val")
    }
    rng = random.Random(7)
    train = rng.sample(reports["train"], len(reports["train"]))
    assert len(reports["val"]) == 296
    pairs = [(written(train[n]), [written(report)]) for n, report in enumerate(reports["val"])]
    long = [" ".join(train[n : n + 6]) for n in range(300, 900, 6)]
    pairs += [(written(a), [written(b)]) for a, b in zip(train[900:1200], train[1200:1500])]
    pairs += [(written(a), [written(b)]) for a, b in zip(long[::2], long[1::2])]
    assert_equal(ours, theirs, pairs)


@pytest.fixture(scope="module")
def paraphrases() -> list[tuple[str, str]]:
    phrases, others = next(find_sources().paraphrase_blocks(1 << 20))
    return [(a.decode(), b.decode()) for a, b in zip(phrases, others)]


COMMON = re.findall(
    r"\S+",
    """the the the of is are no , , . . in and there lung lungs opacity opacities effusion effusions heart size sized
    normal normally seen see saw look looks looking view viewed men man wolves wolf running ran better good children
    child bases basis large big enlarged small little unchanged stable since previous prior compared comparison""",
)


def word_salad(rng: random.Random, paraphrases: list[tuple[str, str]]) -> Study:
    """Few words many times over, phrases of the table and their paraphrases: many alignments are about equally good."""
    some = rng.sample(paraphrases, rng.randint(0, 5))
    pool = [rng.choice(COMMON) for _ in range(rng.randint(2, 12))]

    def write(phrases: list[str]) -> str:
        return " ".join(rng.choice(pool + phrases) for _ in range(rng.choice([0, 1, 2, 5, 10, 20, 40, 70])))

    said = write([a for a, _ in some])
    if rng.random() < 0.5:
        return said, [" ".join(rng.sample(said.split(), len(said.split())))]
    return said, [write([b for _, b in some])]


@needs_data
def test_equals_the_program_where_alignments_are_ambiguous(ours, theirs, paraphrases):
    rng = random.Random(11)
    assert_equal(ours, theirs, [word_salad(rng, paraphrases) for _ in range(600)])


NOISE = [*"abBZ9 05.,-'`‘’“”–—\"?!()|&é²µЖıİΣσ½😀", " ", " ", " ", "\u00a0", "\u3000", "\u2009", "\t", "\x0b", "\x0c"]
NOISE += [
    "..",
    "...",
    "--",
    "''",
    "U.S.",
    "Dr.",
    "No.",
    "no.",
    "1990's",
    "it's",
    "e.g.",
    "xxxx",
    "4 cm",
    "1.",
    "DOTMULTI",
]


@needs_data
def test_equals_the_program_on_punctuation_numbers_and_letters_of_other_alphabets(ours, theirs):
    rng = random.Random(13)

    def line() -> str:
        return "".join(rng.choice(NOISE) for _ in range(rng.randint(0, 25)))

    studies = [(said := line(), [rng.choice([line(), said + " " + line()]).replace("|||", "")]) for _ in range(500)]
    assert_equal(ours, theirs, [*studies, ("", [""]), ("a ||| b", ["a b"]), ("", ["a"]), ("a", [" "])])


@needs_data
def test_equals_the_program_with_several_references(ours, theirs, paraphrases):
    rng = random.Random(17)
    studies = []
    for _ in range(150):
        said, asked = word_salad(rng, paraphrases)
        asked += [word_salad(rng, paraphrases)[1][0] for _ in range(rng.randint(0, 3))]
        studies.append((said, rng.sample(asked, len(asked))))
    assert_equal(ours, theirs, studies)


# --- what the program gave, so that an error shows without Java ----------------------------------------------------

RECORDED: list[tuple[str, list[str], float]] = [
    ("No acute cardiopulmonary abnormality.", ["No acute cardiopulmonary abnormality."], 1.0),
    (
        "The heart is normal in size. The lungs are clear.",
        ["Heart size is within normal limits. Lungs are clear bilaterally."],
        0.3010640192668,
    ),
    (
        "There is a small left pleural effusion, and the the the lungs are hyperinflated.",
        [
            "The lungs show hyperinflation. There is a tiny effusion on the left.",
            "A small effusion is present at the left base.",
        ],
        0.33133486511606497,
    ),
    (
        "Opacities in both lower lobes have increased since the prior film.",
        ["Increasing bibasilar opacity compared with the previous radiograph."],
        0.07698838829123178,
    ),
    (
        "the children saw wolves and the men ran",
        ["a child sees the wolf while the man is running and the men see wolves"],
        0.23496761716876868,
    ),
    (
        "Dr. Smith's patient (U.S.) weighs 1,000 lb -- or so...",
        ["The patient of Dr. Smith in the US weighs about 1,000 lbs."],
        0.3384394711563685,
    ),
    ("no no no effusion no effusion .", ["no effusion . no pneumothorax . no effusion no no ."], 0.3166990347613245),
    ("Fracture of the clavicle.", ["Lungs clear"], 0.0),
    ("", ["Lungs clear"], 0.0),
]
TOTAL = 0.2688044748704578


@needs_data
@pytest.mark.parametrize(("said", "asked", "score"), RECORDED)
def test_gives_the_program_s_scores(ours, said, asked, score):
    assert ours.figures(ours.rows([said], [asked]))["METEOR"][0] == pytest.approx(score, abs=1e-9)


@needs_data
def test_total_is_the_score_of_the_summed_counts(ours):
    rows = ours.rows([said for said, _, _ in RECORDED], [asked for _, asked, _ in RECORDED])
    assert rows.shape == (len(RECORDED), COLUMNS)
    assert ours.figures(rows.sum(axis=0))["METEOR"] == pytest.approx(TOTAL, abs=1e-9)
    draws = np.random.default_rng(3).multinomial(len(rows), np.full(len(rows), 1 / len(rows)), size=5)
    alone = [ours.figures(draw @ rows)["METEOR"] for draw in draws]
    np.testing.assert_allclose(ours.figures(draws @ rows)["METEOR"], alone)


@needs_data
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.text(max_size=30), st.lists(st.text(max_size=30), min_size=1, max_size=3)), max_size=4))
def test_any_text_has_a_score_between_0_and_1_that_its_neighbours_do_not_change(ours, studies):
    rows = ours.rows([said for said, _ in studies], [asked for _, asked in studies])
    score = ours.figures(rows)["METEOR"]
    assert score.shape == (len(studies),)
    assert ((score >= 0) & (score <= 1)).all()
    for row, (said, asked) in zip(rows, studies):
        np.testing.assert_array_equal(ours.rows([said], [asked])[0], row)


@needs_data
def test_line_breaks_are_spaces(ours):
    rows = ours.rows(["No effusion.\nNo pneumothorax.", "No effusion. No pneumothorax."], [["No\r\neffusion."]] * 2)
    np.testing.assert_array_equal(rows[0], rows[1])


@needs_data
def test_refuses_what_does_not_pair_up(ours):
    with pytest.raises(WrongUse, match="2 predictions for 1 studies"):
        ours.rows(["a", "b"], [["a"]])
    with pytest.raises(WrongUse):
        ours.rows(["a"], [[]])


@needs_data
def test_a_report_of_100_000_words_is_scored_and_two_are_refused(ours):
    endless = "the lung is clear . " * 20_000
    assert 0 < ours.figures(ours.rows([endless], [["the lung is clear ."]]))["METEOR"][0] < 0.1
    with pytest.raises(Trouble, match="too long for METEOR"):
        ours.rows([endless], [[endless + " ."]])


def test_says_what_to_install(monkeypatch):
    monkeypatch.setattr("negatoscope.metrics.meteor.sources.find_spec", lambda name: None)
    assert not meteor_available()
    with pytest.raises(Trouble, match=r"pip install 'negatoscope\[meteor\]'"):
        Meteor()


# --- the parts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("No focal airspace-disease.", "no focal airspace disease ."),
        ("Dr. Who, No. 5, no. 5 of the U.S. team", "dr. who , no. 5 , no . 5 of the us team"),
        ("1,000 mL (approx.) at 3 p.m. Stop.", "1,000 ml ( approx . ) at 3 pm stop ."),
        ("it's the 1990's ''end'' -- so...", "it 's the 1990 's \" end \" - so ..."),
        ("", ""),
    ],
)
def test_tokenises_as_moses_with_meteor_s_changes(text, words):
    assert tokenise(text, {"Dr": False, "No": True}) == words.split()


@pytest.mark.parametrize(
    ("word", "root"),
    [
        *(("opacities", "opac"), ("opacity", "opac"), ("skies", "sky"), ("generally", "general"), ("hoping", "hope")),
        *(
            ("hopping", "hop"),
            ("yes", "yes"),
            ("sayings", "say"),
            ("effusions", "effus"),
            ("ties", "tie"),
            ("'s", "'s"),
        ),
        *(("communism", "communism"), ("inning", "inning"), ("us", "us"), ("controlled", "control"), ("bed", "bed")),
    ],
)
def test_stems(word, root):
    assert stem(word) == root


def test_search_prefers_fewer_chunks_then_the_smaller_distance():
    """Reference "a b", prediction "a x a b": both take the second a, beside b, although the first lies closer."""
    matches = [(0, 0), (0, 2), (1, 3)]  # (place in the reference, place in the prediction)
    one = np.ones(3, np.int64)
    found = Candidates(
        pair=0 * one,
        ref_start=np.array([r for r, _ in matches]),
        ref_length=one,
        hyp_start=np.array([h for _, h in matches]),
        hyp_length=one,
        module=0 * one,
    )
    aligned = align(found, np.array([4]), np.array([2]))
    assert sorted(aligned.match.tolist()) == [1, 2]
    assert aligned.chunks.tolist() == [1]

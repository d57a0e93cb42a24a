"""Calibration, limits, the choice among drafts, doubt, rehearsal: each against a plain reckoning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from negatoscope.decoding import Written
from negatoscope.drafting.author import Author, Authored, AuthorSettings, best_limits
from negatoscope.drafting.calibration import Calibration, fit, held_out_probability, in_words, reliability, sigmoid
from negatoscope.drafting.doubt import WAYS, Doubt, turned
from negatoscope.drafting.library import Library
from negatoscope.drafting.mending import mended, said_once
from negatoscope.drafting.strangers import STRANGERS
from negatoscope.drafting.wording import as_text, sentences_of
from negatoscope.models.dictated import Dictated, DictatedSettings, Guided
from negatoscope.studies.study import OBSERVATIONS
from negatoscope.text.words import Vocabulary
from negatoscope.training.dictate import Dictation, DictationSettings, dictate


def test_a_calibration_finds_what_logits_were_off_by() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 2, (4000, 2))
    truth = rng.random((4000, 2)) < sigmoid(0.5 * logits - 1)
    found = fit(logits, truth, ["a", "b"])
    np.testing.assert_allclose(found.slope, 0.5, atol=0.06)
    np.testing.assert_allclose(found.shift, -1, atol=0.12)
    said, low, high = found.probability(np.array([[0.0, 0.0]]))
    assert (low < said).all()
    assert (said < high).all()
    assert (high - low < 0.06).all(), "four thousand studies leave little doubt"


def test_an_interval_covers_the_probability_that_it_is_of() -> None:
    rng = np.random.default_rng(1)
    covered = []
    for _ in range(60):
        logits = rng.normal(0, 1.5, (300, 3))
        found = fit(logits, rng.random((300, 3)) < sigmoid(logits - 1.5), ["a", "b", "c"])
        _, low, high = found.probability(np.zeros((1, 3)))
        covered.append((low <= sigmoid(np.array(-1.5))) & (sigmoid(np.array(-1.5)) <= high))
    assert np.mean(covered) > 0.85


def test_a_reliable_probability_has_little_error() -> None:
    rng = np.random.default_rng(2)
    p = rng.random((2000, 2))
    truth = rng.random((2000, 2)) < p
    assert reliability(p, truth).error < 0.03
    assert reliability(p**4, truth).error > 0.15
    assert reliability(p, truth).brier < reliability(p, truth).brier_of_rates


def test_held_out_probabilities_never_saw_their_study() -> None:
    rng = np.random.default_rng(3)
    logits, truth = rng.normal(size=(50, 1)), rng.random((50, 1)) < 0.3
    before = held_out_probability(logits, truth, ["a"])
    truth[7] = ~truth[7]
    after = held_out_probability(logits, truth, ["a"])
    assert before[7] == after[7]
    assert (before != after).any()


def test_words_for_probabilities() -> None:
    assert [in_words(p) for p in (0.95, 0.7, 0.5, 0.2, 0.01)] == [
        "very likely", "likely", "possible", "unlikely", "very unlikely",
    ]  # fmt: skip


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.5, 4.0]))
@settings(deadline=None, max_examples=30)
def test_limits_are_the_best_of_all_where_only_one_can_move(seed: int, common: float) -> None:
    p = np.zeros((9, 3))
    p[:, 1] = np.random.default_rng(seed).uniform(0.01, 0.99, 9)

    def expected(limit: float) -> float:
        said = p[:, 1] > limit
        f1 = 2 * p[said, 1].sum() / (said.sum() + p[:, 1].sum())
        return f1 / 3 + common * f1

    best = max(expected(limit) for limit in [0.0, *p[:, 1]])
    assert expected(float(best_limits(p, common)[1])) == pytest.approx(best)


def test_no_single_limit_can_be_moved_to_something_better() -> None:
    p = np.random.default_rng(3).beta(0.4, 3.0, (40, 5))

    def expected(limits: np.ndarray) -> float:
        alone, right, told, there = 0.0, 0.0, 0, 0.0
        for k in range(1, 5):
            said = [value for value in p[:, k] if value > limits[k]]
            alone += 2 * sum(said) / (len(said) + p[:, k].sum()) / 5
            right, told, there = right + sum(said), told + len(said), there + p[:, k].sum()
        return alone + 0.5 * 2 * right / (told + there)

    limits = best_limits(p, 0.5)
    for k in range(1, 5):
        for value in [0.0, *p[:, k]]:
            moved = limits.copy()
            moved[k] = value
            assert expected(moved) <= expected(limits) + 1e-12
    assert expected(best_limits(p, 0.0)) < expected(limits)


def test_what_is_never_likely_is_never_asked_for() -> None:
    limits = best_limits(np.zeros((5, 3)), 0.5)
    assert not (np.full((5, 3), 0.999) > limits).any()


class Space:
    """Places of reports by the count of three words."""

    def meaning(self, reports: Sequence[str]) -> np.ndarray:
        return np.array([[one.split().count(word) for word in ("heart", "lung", "clear")] for one in reports], float)

    def strange(self, text: str) -> int:
        return text.count("clear heart")


class Named:
    def label(self, report: str) -> dict[str, int]:
        if "heart" not in report:
            return {"No Finding": 1}
        return {"Cardiomegaly": 0 if report.startswith("no heart") else 1}


def author(**changes: float) -> Author:
    vocabulary = Vocabulary(("<unk>", "clear", "heart", "lung"))
    none = np.zeros(14)
    calibration = Calibration(OBSERVATIONS, np.ones(14), none, np.zeros((14, 3)), 10)
    writer = Dictated(DictatedSettings(told=17, width=8), vocabulary.logits).eval()
    library = Library.of(["a", "b"], torch.eye(2), torch.eye(2, 3), torch.zeros(2, 14))
    said = AuthorSettings(**changes)  # pyright: ignore[reportArgumentType]
    return Author(writer, vocabulary, Space(), library, calibration, np.full(14, 0.5), Named(), said)


def test_a_draft_is_chosen_by_place_and_findings() -> None:
    reports = ["heart heart", "lung clear", "clear clear", "heart", "heart heart"]
    study = np.array([0, 0, 0, 1, 1])
    asked = np.zeros((2, 14), bool)
    asked[0, OBSERVATIONS.index("Cardiomegaly")] = asked[1, OBSERVATIONS.index("No Finding")] = True
    place = np.array([[1.0, 2.0, 0.5], [3.0, 0.0, 0.0]])
    phi = Space().meaning(reports)
    found = author(obey=0.7).scores(reports, study, asked, place)
    for k, report in enumerate(reports):
        named = [Named().label(report).get(name) == 1 for name in OBSERVATIONS]
        wrong = sum(a != b for a, b in zip(named, asked[study[k]], strict=True))
        assert found[k] == pytest.approx(float(phi[k] @ place[study[k]]) - 0.7 * wrong)


def test_a_draft_that_contradicts_itself_counts_as_wrong() -> None:
    asked = np.zeros((1, 14), bool)
    asked[0, OBSERVATIONS.index("Cardiomegaly")] = True
    reports = ["heart . lung .", "heart . no heart ."]
    scores = author(obey=0.7).scores(reports, np.array([0, 0]), asked, np.zeros((1, 3)))
    assert scores.tolist() == pytest.approx([0.0, -0.7])


def test_a_study_is_expected_to_read_like_its_neighbours() -> None:
    rng = np.random.default_rng(0)
    vectors, places = torch.tensor(rng.normal(size=(9, 4))), torch.tensor(rng.normal(size=(9, 5)))
    library = Library.of([str(k) for k in range(9)], vectors.float(), places.float(), torch.zeros(9, 14))
    query = rng.normal(size=4)
    mean, spread = vectors.numpy().mean(0), vectors.numpy().std(0, ddof=1)

    def unit(x: np.ndarray) -> np.ndarray:
        x = (x - mean) / spread
        return x / np.linalg.norm(x)

    cosines = [float(unit(query) @ unit(one)) for one in vectors.numpy()]
    nearest = sorted(range(9), key=lambda k: -cosines[k])[:3]
    found = library.cosines(torch.tensor(query).unsqueeze(0))
    np.testing.assert_allclose(found[0], cosines, atol=1e-4)
    np.testing.assert_allclose(
        library.expected_places(found, 3)[0], np.mean([places[k].numpy() for k in nearest], 0), atol=1e-5
    )


def test_neighbours_bear_witness() -> None:
    vectors = torch.tensor([[1.0, 0.1], [0.9, -0.1], [-1.0, 0.2], [-0.8, -0.3]])
    findings = torch.zeros(4, 14)
    findings[:2, 4] = 1
    library = Library.of(list("abcd"), vectors, torch.zeros(4, 1), findings)
    cosines = library.cosines(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
    found = library.log_odds(cosines).double().numpy()
    for row in range(2):
        weights = np.exp(8 * cosines[row].numpy().astype(float))
        share = (weights[:2].sum() / weights.sum() * 4 + 0.5 * 10) / 14
        assert found[row, 4] == pytest.approx(np.log(share / (1 - share)), abs=1e-4)
    assert np.isfinite(found).all()
    assert library.nearest_with(cosines[1], 4, 5).sort().values.tolist() == [0, 1]


def test_what_was_asked_and_not_named_is_said_in_a_sentence_more() -> None:
    words = ("<unk>", ".", "clear", "heart", "lung", "no")
    mine = replace(author(), vocabulary=Vocabulary(words))
    mine.library.findings[1, OBSERVATIONS.index("Cardiomegaly")] = True
    asked = np.zeros((3, 14), bool)
    asked[[0, 1], OBSERVATIONS.index("Cardiomegaly")] = True
    asked[2, 0] = True

    def numbers(text: str) -> tuple[int, ...]:
        return tuple(mine.vocabulary.number(word) for word in text.split())

    def draft(text: str) -> Authored:
        return Authored(text, (), numbers(text), tuple(-float(k) for k in range(len(text.split()))))

    told = []

    def write(alone: np.ndarray, places: torch.Tensor) -> list[list[Written]]:
        told.append((alone, places))
        return [[Written(numbers("lung clear . heart . clear ."), -1.0, (-0.5,) * 8)] for _ in alone]

    drafts = [draft("no heart . lung clear ."), draft("heart ."), draft("no heart .")]
    cosines = torch.tensor([[0.1, 0.9]] * 3)
    found = mended(mine, drafts, asked, cosines, np.zeros((3, 3)), write)
    assert [one.report for one in found] == ["heart . lung clear .", "heart .", "no heart ."]
    assert found[0].words == numbers("heart . lung clear .")
    assert found[0].log_probabilities == (-0.5, -0.5, -3.0, -4.0, -5.0)
    ((alone, places),) = told  # of one study alone, in the way of the one study that had it
    assert alone.sum() == 1
    assert alone[0, OBSERVATIONS.index("Cardiomegaly")]
    torch.testing.assert_close(places, mine.library.places[[1]])


def test_a_sentence_that_breaks_is_not_taken_where_there_is_another() -> None:
    mine = replace(author(), vocabulary=Vocabulary(("<unk>", ".", "clear", "heart", "lung", "no")))
    mine.library.findings[:, OBSERVATIONS.index("Cardiomegaly")] = True
    asked = np.zeros((1, 14), bool)
    asked[0, OBSERVATIONS.index("Cardiomegaly")] = True

    def numbers(text: str) -> tuple[int, ...]:
        return tuple(mine.vocabulary.number(word) for word in text.split())

    def write(alone: np.ndarray, _places: torch.Tensor) -> list[list[Written]]:
        said = numbers("clear heart ."), numbers("heart heart .")
        return [[Written(words, -1.0, (-0.5,) * 4) for words in said] for _ in alone]

    lacking = Authored("lung .", (), numbers("lung ."), (-1.0, -1.0))
    for expected in (np.zeros((1, 3)), np.array([[0.0, 0.0, 0.05]])):
        (found,) = mended(mine, [lacking], asked, torch.tensor([[0.1, 0.9]]), expected, write)
        assert found.report == "lung . heart heart ."
    (found,) = mended(mine, [lacking], asked, torch.tensor([[0.1, 0.9]]), np.array([[0.0, 0.0, 9.0]]), write)
    assert found.report == "lung . clear heart ."


def test_what_is_said_twice_is_said_once() -> None:
    mine = replace(author(), vocabulary=Vocabulary(("<unk>", ".", "clear", "heart", "lung", "no")))

    def draft(*sentences: tuple[str, float]) -> Authored:
        words = tuple(mine.vocabulary.number(word) for text, _ in sentences for word in text.split())
        likely = tuple(value for text, value in sentences for _ in text.split())
        return Authored("", ("Cardiomegaly",), words, likely)

    twice = draft(("heart .", -0.9), ("lung clear .", -0.1), ("heart heart .", -0.2), ("lung clear .", -0.3))
    once = said_once(mine, twice)
    assert once.report == "lung clear . heart heart ."  # a normal sentence names nothing: it stays, once
    assert once.log_probabilities == (-0.1, -0.1, -0.1, -0.2, -0.2, -0.2)
    assert once.asked == ("Cardiomegaly",)
    alone = draft(("heart .", -0.9))
    assert said_once(mine, alone).words == alone.words


def test_the_surest_findings_are_asked_for_together() -> None:
    mine = author(at_once=2)
    mine.limits[:] = 0.1
    p = np.zeros((2, 14))
    p[0, [3, 5, 7, 9]] = 0.2, 0.9, 0.3, 0.15
    asked = mine.asked(p)
    assert np.flatnonzero(asked[0]).tolist() == [3, 5, 7, 9]
    first = mine._first(asked, p)
    assert np.flatnonzero(first[0]).tolist() == [5, 7]
    assert np.flatnonzero(first[1]).tolist() == [0]  # No Finding does not count
    p[1, OBSERVATIONS.index("Support Devices")] = 0.5
    asked = mine.asked(p)
    assert mine._first(asked, p)[1].sum() == 2


def test_no_finding_is_asked_for_where_nothing_else_is() -> None:
    p = np.zeros((3, 14))
    p[1, OBSERVATIONS.index("Edema")] = 0.9
    p[2, OBSERVATIONS.index("Support Devices")] = 0.9
    asked = author().asked(p)
    assert asked[:, 0].tolist() == [True, False, True]
    assert asked[2].sum() == 2


def test_doubt_tells_what_is_far_and_what_is_turned() -> None:
    rng = torch.Generator().manual_seed(0)
    usual = [torch.randn(400, 60, generator=rng), torch.randn(400, 90, generator=rng) * 3]
    ways = [[one[:60] + 2.5 * way for one in usual] for way in range(len(WAYS))]
    held = [torch.randn(200, 60, generator=rng), torch.randn(200, 90, generator=rng) * 3]
    doubt = Doubt.of(usual, ways, held, 0.95)
    assert sum(one is not None for one in doubt.warnings(held)) <= 0.12 * 200
    strange = [one[:20] + 40 for one in usual]
    assert all(one is not None for one in doubt.warnings(strange))
    x = torch.cat([one[:3] / one_.std() for one, one_ in zip(held, usual)], 1) - doubt.mean
    along = x @ doubt.directions
    rest = x - along @ doubt.directions.T
    by_hand = (along.square() / doubt.variances).mean(1) + rest.square().sum(1) / doubt.outside
    torch.testing.assert_close(doubt.far([one[:3] for one in held]), by_hand, rtol=1e-3, atol=1e-3)
    assert (doubt.ways(ways[2]).argmax(1) == 2).float().mean() > 0.7


def test_turning() -> None:
    image = torch.tensor([[[[0.0, 1.0], [0.25, 0.5]]]])
    assert turned(image, 0).equal(image)
    assert turned(image, 2).flatten().tolist() == [0.5, 0.25, 1.0, 0.0]
    assert turned(image, 4).equal(1 - image)
    assert turned(turned(image, 1), 3).equal(image)


@pytest.mark.parametrize("kind", list(STRANGERS))
def test_strangers_are_pictures_and_differ(kind: str) -> None:
    one, other = (STRANGERS[kind](np.random.default_rng(seed), 48) for seed in (1, 2))
    assert one.shape == (48, 48)
    assert one.dtype == np.uint8
    assert (one != other).any()
    again = STRANGERS[kind](np.random.default_rng(1), 48)
    assert (one == again).all()


def test_the_library_knows_who_is_near() -> None:
    findings = torch.zeros(4, 14, dtype=torch.bool)
    findings[:3, 0] = True
    findings[3, OBSERVATIONS.index("Edema")] = True
    library = Library.of(["a", "b", "c", "d"], torch.randn(4, 2), torch.zeros(4, 1), findings)
    cosines = torch.tensor([0.9, -0.2, 0.5, 0.8])
    assert [one.id for one in library.normals(cosines)] == ["a", "c", "b"]
    assert [one.id for one in library.with_finding(cosines, "Edema")] == ["d"]
    assert library.with_finding(cosines, "Fracture") == []
    assert sum(one.share for one in library.normals(cosines)) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("report", "text"),
    [
        ("heart is normal . no effusion .", "Heart is normal. No effusion."),
        ("picc tip in the svc . t11 is wedged .", "PICC tip in the SVC. T11 is wedged."),
        ("lungs are clear", "Lungs are clear."),
        ("", ""),
        (" . .", ""),
    ],
)
def test_words_become_text(report: str, text: str) -> None:
    assert as_text(report) == text
    assert len(sentences_of(report)) == text.count(".")


def test_near_reports_are_others_and_nearest() -> None:
    places = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 2.0]])
    dictation = Dictation.of([[0, 1, 0]] * 4, torch.zeros(4, 14), places)
    assert dictation.near(1).flatten().tolist() == [1, 0, 3, 2]
    assert dictation.near(9).shape == (4, 3)


def test_a_writer_learns_to_obey_whatever_place_it_is_shown() -> None:
    vocabulary = Vocabulary.build(["heart is large .", "lungs are clear ."] * 3, cleaning="none", cutoff=1)
    reports = ["heart is large ." if k % 2 else "lungs are clear ." for k in range(32)]
    findings = torch.zeros(32, 14)
    findings[1::2, OBSERVATIONS.index("Cardiomegaly")] = 1
    places = torch.randn(32, 3, generator=torch.Generator().manual_seed(0))
    dictation = Dictation.of([vocabulary.encode(one) for one in reports], findings, places)
    torch.manual_seed(0)
    writer = Dictated(DictatedSettings(told=17, width=24, dropout=0.1), vocabulary.logits)
    settings_ = DictationSettings(epochs=25, batch=8, lr=1e-2, memory=0.9, own=0.3, near=5, smoothing=0.0)
    learned = dictate(writer, dictation, settings_)
    logits = learned(torch.cat([findings[:2], places[[7, 9]]], 1), dictation.words[:2, :-1])
    assert [vocabulary.decode(row.tolist()) for row in logits.argmax(-1)] == reports[:2]


def test_guidance_is_what_findings_change() -> None:
    torch.manual_seed(0)
    writer = Dictated(DictatedSettings(told=17, width=8), 9).eval()
    plain = torch.zeros(14)
    plain[0] = 1
    told = torch.randn(2, 17)
    normal = torch.cat([plain.expand(2, -1), told[:, 14:]], 1)
    words = torch.tensor([3, 5])
    asked, _ = writer.step(words, writer.start(told))
    without, _ = writer.step(words, writer.start(normal))
    for g in (0.0, 0.7):
        guided = Guided(writer, plain, g)
        said, _ = guided.step(words, guided.start(told))
        torch.testing.assert_close(said, torch.log_softmax(asked + g * (asked - without), -1))
    same = Guided(writer, plain, 3.0)
    torch.testing.assert_close(same.step(words, same.start(normal))[0], without)


def test_the_writers_steps_are_its_reading() -> None:
    torch.manual_seed(0)
    writer = Dictated(DictatedSettings(told=5, width=8), 9).eval()
    told, words = torch.randn(3, 5), torch.randint(1, 9, (3, 6))
    state = writer.start(told)
    read = torch.log_softmax(writer(told, words), -1)
    for t in range(6):
        step, state = writer.step(words[:, t], state)
        torch.testing.assert_close(step, read[:, t])

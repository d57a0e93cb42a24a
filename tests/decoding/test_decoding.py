"""The searches against a plain search that keeps no state and re-reads the whole prefix at each word."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal

import pytest
import torch
from torch import Tensor, nn

from negatoscope.decoding import DecodeSettings, beam_search, sample
from negatoscope.models.base import State, choose_rows, per_study

W = 7


@dataclass(frozen=True)
class _Tape(State):
    written: Tensor  # (R, t)
    study: Tensor = per_study()  # (B,)


class _Scribe(nn.Module):
    """Writes by a table that depends on the study and on the last two words: small enough to search exhaustively."""

    def __init__(self, seed: int, sharpness: float = 1.5) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.table = nn.Parameter(torch.randn(5, W, W, W) * sharpness)
        self.rows_seen = 0

    def next_words(self, study: int, prefix: list[int]) -> Tensor:
        a, b = ([0, 0, *prefix])[-2:]
        return self.table[study, a, b].log_softmax(-1)

    def start(self, studies: int) -> _Tape:
        return _Tape(torch.zeros(studies, 0, dtype=torch.long), torch.arange(studies))

    def step(self, words: Tensor, state: _Tape) -> tuple[Tensor, _Tape]:
        self.rows_seen += len(words)
        written = torch.cat([state.written, words.unsqueeze(1)], 1)
        k = len(words) // len(state.study)
        study = state.study.repeat_interleave(k)
        log_p = torch.stack([self.next_words(int(s), row.tolist()[1:]) for s, row in zip(study, written)])
        return log_p.detach(), _Tape(written, state.study)


def _plain_beam(scribe: _Scribe, study: int, k: int, limit: int, penalty: float) -> list[tuple[float, list[int]]]:
    """Textbook beam search: runs to the end, copies every prefix."""
    beams, done = [(0.0, [])], []
    for t in range(1, limit + 1):
        grown = [
            (total + p, [*prefix, word])
            for total, prefix in beams
            for word, p in enumerate(scribe.next_words(study, prefix).tolist())
        ]
        grown.sort(key=lambda one: -one[0])
        beams = []
        for total, prefix in grown[:k]:
            if prefix[-1] == 0 or t == limit:
                done.append((total / t**penalty, prefix))
            else:
                beams.append((total, prefix))
    return sorted(done, key=lambda one: -one[0])


def _words(prefix: list[int]) -> tuple[int, ...]:
    return tuple(prefix[:-1] if prefix[-1] == 0 else prefix)


@pytest.mark.parametrize("k", [1, 2, 3, 5, 7, 10])
@pytest.mark.parametrize("penalty", [0.0, 0.7, 1.0])
def test_beam_search_is_the_textbooks(k: int, penalty: float) -> None:
    for seed in range(6):
        scribe = _Scribe(seed)
        settings = DecodeSettings(beam=k, best=min(k, 3), max_words=9, length_penalty=penalty)
        ours = beam_search(scribe, scribe.start(5), list("abcde"), settings)  # pyright: ignore[reportArgumentType]
        for study in range(5):
            plain = _plain_beam(scribe, study, k, 9, penalty)[: settings.best]
            assert [one.words for one in ours[study]] == [_words(prefix) for _, prefix in plain]
            assert [one.score for one in ours[study]] == pytest.approx([score for score, _ in plain], abs=1e-5)


def test_finished_studies_stop_costing() -> None:
    scribe = _Scribe(0)
    with torch.no_grad():
        scribe.table[1:, :, :, 0] += 50  # studies 1 to 4 end at once, study 0 never does
        scribe.table[0, :, :, 0] -= 50
    beam_search(scribe, scribe.start(5), list("abcde"), DecodeSettings(beam=3, max_words=20))  # pyright: ignore[reportArgumentType]
    assert scribe.rows_seen == 5 + 19 * 3


def test_blocked_trigrams_never_come_twice_and_lengths_are_kept() -> None:
    for seed in range(5):
        scribe = _Scribe(seed, sharpness=4)
        settings = DecodeSettings(
            beam=4, best=4, max_words=30, min_words=12, block_trigrams=True, suppress_unknown=True
        )
        for reports in beam_search(scribe, scribe.start(5), list("abcde"), settings, unknown=3):  # pyright: ignore[reportArgumentType]
            for one in reports:
                triples = list(zip(one.words, one.words[1:], one.words[2:]))
                assert len(triples) == len(set(triples))
                assert 12 <= len(one.words) <= 30
                assert 3 not in one.words


@pytest.mark.parametrize("method", ["beam", "sample"])
def test_a_report_that_may_not_go_on_ends(method: Literal["beam", "sample"]) -> None:
    """One word, no trigram twice, and twenty words at least: nothing is left to say after the third."""
    scribe = _Scribe(0)

    def step(words: Tensor, state: _Tape) -> tuple[Tensor, _Tape]:
        log_p, state = scribe.step(words, state)
        return log_p[:, :2].log_softmax(-1), state

    reporter = SimpleNamespace(step=step, parameters=scribe.parameters)
    settings = DecodeSettings(method=method, beam=2, max_words=30, min_words=20, block_trigrams=True)
    search = beam_search if method == "beam" else sample
    for [one] in search(reporter, scribe.start(2), ["a", "b"], settings):  # pyright: ignore[reportArgumentType]
        assert one.words == (1, 1, 1)
        assert math.isfinite(one.score)


def test_without_the_rule_trigrams_do_repeat() -> None:
    scribe = _Scribe(0, sharpness=4)
    [[one]] = beam_search(scribe, scribe.start(1), ["a"], DecodeSettings(beam=1, max_words=60, min_words=59))  # pyright: ignore[reportArgumentType]
    triples = list(zip(one.words, one.words[1:], one.words[2:]))
    assert len(triples) > len(set(triples))


def _draws(scribe: _Scribe, ids: list[str], **settings: Any) -> list[list[tuple[int, ...]]]:
    written = sample(scribe, scribe.start(len(ids)), ids, DecodeSettings(method="sample", **settings))  # pyright: ignore[reportArgumentType]
    return [[one.words for one in reports] for reports in written]


def test_sampling_follows_the_probabilities() -> None:
    scribe = _Scribe(1, sharpness=1)
    firsts = torch.zeros(W)
    for seed in range(200):
        for words in _draws(scribe, ["a"], best=10, max_words=1, seed=seed)[0]:
            firsts[words[0] if words else 0] += 1
    expected = scribe.next_words(0, []).exp().detach() * 2000
    chi_squared = ((firsts - expected) ** 2 / expected).sum().item()
    assert chi_squared < 22.5  # 6 degrees of freedom: exceeded once in a thousand


def test_a_draw_that_has_ended_stops_costing() -> None:
    """Each word that has a next one is read once and nothing besides, though a study's draws end at different times."""
    scribe = _Scribe(1, sharpness=1)
    settings = DecodeSettings(method="sample", best=6, max_words=10)
    written = sample(scribe, scribe.start(3), list("abc"), settings)  # pyright: ignore[reportArgumentType]
    assert len({len(one.words) for one in written[0]}) > 2
    read = [len(one.words) - (len(one.log_probabilities) == len(one.words)) for each in written for one in each]
    assert scribe.rows_seen == 3 + sum(read)


def test_sampling_is_seeded_by_study_not_by_neighbours() -> None:
    scribe = _Scribe(2)
    with torch.no_grad():
        scribe.table[1:] = scribe.table[0]  # so that a study's row in the batch does not matter
    alone = _draws(scribe, ["c"], best=2, max_words=12, seed=5)
    among = _draws(scribe, ["a", "b", "c"], best=2, max_words=12, seed=5)
    assert alone[0] == among[2]
    assert among != _draws(scribe, ["a", "b", "c"], best=2, max_words=12, seed=6)


def test_top_k_one_and_tiny_top_p_are_greedy() -> None:
    scribe = _Scribe(3)
    greedy = [
        [one.words for one in reports]
        for reports in beam_search(scribe, scribe.start(3), list("abc"), DecodeSettings(beam=1, max_words=15))
    ]  # pyright: ignore[reportArgumentType]
    assert _draws(scribe, list("abc"), top_k=1, max_words=15) == greedy
    assert _draws(scribe, list("abc"), top_p=1e-6, max_words=15) == greedy


def test_top_p_keeps_the_smallest_set() -> None:
    scribe = _Scribe(4, sharpness=1)
    p = scribe.next_words(0, []).exp()
    ordered = p.sort(descending=True)
    kept = int((ordered.values.cumsum(0) < 0.6).sum()) + 1
    allowed = set(ordered.indices[:kept].tolist())
    drawn = {(_draws(scribe, ["a"], top_p=0.6, max_words=1, seed=seed)[0][0] or (0,))[0] for seed in range(120)}
    assert drawn == allowed


def test_rows_of_nested_states() -> None:
    @dataclass(frozen=True)
    class Inner(State):
        a: Tensor

    @dataclass(frozen=True)
    class Outer(State):
        layers: tuple[Inner, ...]
        nothing: Tensor | None
        image: Tensor = per_study()

    state = Outer((Inner(torch.arange(4)), Inner(torch.arange(4) * 10)), None, torch.arange(2))
    chosen = choose_rows(state, torch.tensor([3, 3, 0]))
    assert chosen.layers[1].a.tolist() == [30, 30, 0]
    assert chosen.image.tolist() == [0, 1]
    assert choose_rows(state, torch.tensor([0, 1]), torch.tensor([1])).image.tolist() == [1]


def test_settings_that_do_not_fit_are_refused() -> None:
    for wrong in ({"beam": 2, "best": 3}, {"beam": 11}, {"min_words": 60}, {"temperature": 0}):
        with pytest.raises(ValueError):
            DecodeSettings(**wrong)  # pyright: ignore[reportArgumentType]


def test_a_beam_wider_than_the_vocabulary() -> None:
    scribe = _Scribe(0)
    reporter = SimpleNamespace(
        step=lambda w, s: (scribe.step(w, s)[0][:, :4], scribe.step(w, s)[1]), parameters=scribe.parameters
    )
    reports = beam_search(reporter, scribe.start(2), ["a", "b"], DecodeSettings(beam=10, best=10, max_words=5))  # pyright: ignore[reportArgumentType]
    assert all(1 <= len(one) <= 10 for one in reports)

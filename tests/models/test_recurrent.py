"""Attention maps of the recurrent reporters: where they look, and that they never look where there is no picture."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from negatoscope.models.base import choose_rows
from negatoscope.models.recurrent import LSTM, AdditiveAttention, Attended
from tests.models.every import batch_of, tiny

LOOKING = ["visual-attention", "st", "spatial-attention", "adaptive-attention", "att2in", "up-down", "topdown"]


@pytest.mark.parametrize("name", LOOKING)
def test_attention_maps_of_reports_and_of_steps_are_the_same(name: str) -> None:
    reporter, batch = tiny(name).eval(), batch_of()
    assert batch.words is not None
    with torch.inference_mode():
        reading = reporter(batch)
        alpha = reading.extra["attention"]  # (B, T, N)
        state: Any = reporter.start(reporter.see(batch))
        assert state.looked is None, "nothing has been looked at before the first word"
        for t in range(alpha.shape[1]):
            _, state = reporter.step(batch.words[:, t], state)
            torch.testing.assert_close(state.looked, alpha[:, t], atol=1e-5, rtol=0)
    assert (alpha >= 0).all()
    assert (alpha[1, :, 9:] == 0).all(), "the second study has no lateral view"
    assert (alpha[0, :, 9:] > 0).all()
    total = alpha.sum(-1) + reading.extra.get("sentinel", torch.zeros(alpha.shape[:2]))
    torch.testing.assert_close(total, torch.ones_like(total))


@pytest.mark.parametrize("name", LOOKING)
def test_beams_share_patches_and_their_projections(name: str) -> None:
    reporter, batch = tiny(name).eval(), batch_of()
    with torch.inference_mode():
        state: Any = reporter.start(reporter.see(batch))
        many = choose_rows(state, torch.arange(len(batch)).repeat_interleave(3))
        assert many.seen is state.seen, "features must not be copied for each beam"
        _, many = reporter.step(torch.arange(3 * len(batch)) % 5, many)
    assert many.looked.shape == (3 * len(batch), 18)
    fewer = choose_rows(many, torch.arange(3, 9), torch.tensor([1, 2]))
    torch.testing.assert_close(fewer.seen.patches, state.seen.patches[1:3])
    torch.testing.assert_close(fewer.looked, many.looked[3:9])


def test_the_sentinel_can_take_over() -> None:
    """With a sentinel that scores far above the patches, words are written without looking."""
    reporter, batch = tiny("adaptive-attention").eval(), batch_of()
    with torch.no_grad():
        reporter.get_parameter("attention.w.weight").fill_(5)
        reporter.get_parameter("attention.U.weight").zero_()
        reporter.get_parameter("attention.U.bias").fill_(-3)
        reporter.get_parameter("attention.W.weight").zero_()
        reporter.get_parameter("attention.W_s.weight").zero_()
        half = reporter(batch).extra["sentinel"]
        shown, hidden = half[0], half[1]  # 18 patches and 9
        torch.testing.assert_close(shown, torch.full_like(shown, 1 / 19))
        torch.testing.assert_close(hidden, torch.full_like(hidden, 1 / 10))


def test_additive_attention_by_hand() -> None:
    torch.manual_seed(0)
    attention = AdditiveAttention(3, 4, 5)
    patches, h = torch.randn(2, 6, 3), torch.randn(4, 4)  # two beams a study
    mask = torch.ones(2, 6, dtype=torch.bool)
    mask[1, 4:] = False
    found, alpha = attention(h, Attended(patches, attention.W(patches), mask))
    for row in range(4):
        study = row // 2
        there = patches[study][mask[study]]
        scores = attention.w(torch.tanh(attention.W(there) + attention.U(h[row]))).squeeze(-1)
        torch.testing.assert_close(alpha[row][mask[study]], scores.softmax(0))
        torch.testing.assert_close(found[row], scores.softmax(0) @ there)


def test_the_lstm_is_an_lstm() -> None:
    torch.manual_seed(0)
    ours, theirs = LSTM(3, 2, d=4), torch.nn.LSTMCell(5, 4)
    with torch.no_grad():
        theirs.weight_ih.copy_(torch.cat([ours.get_parameter(f"of.{part}.weight") for part in (0, 1)], 1))
        theirs.weight_hh.copy_(ours.of_hidden.weight)
        theirs.bias_ih.copy_(ours.get_parameter("of.0.bias"))
        theirs.bias_hh.zero_()
    x, y, h, c = torch.randn(2, 3), torch.randn(2, 2), torch.randn(2, 4), torch.randn(2, 4)
    said = ours(ours.of[0](x) + ours.of[1](y), h, c)
    for one, other in zip(said, theirs(torch.cat([x, y], 1), (h, c))):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(("name", "settings"), [
    ("visual-attention", {"features": "raw"}), ("visual-attention", {"features": "relu"}), ("st", {"features": "raw"}),
    ("att2in", {"features": "raw"}), ("att2in", {"features": "relu"}), ("up-down", {"features": "raw"}),
    ("adaptive-attention", {"released": True}),
])  # fmt: skip
def test_settings_that_are_not_the_default(name: str, settings: dict[str, Any]) -> None:
    """Every parameter learns, and word by word is all at once."""
    reporter, batch = _with(name, settings), batch_of()
    assert batch.words is not None
    reading = reporter(batch)
    assert reading.sight.patches.shape[-1] == reporter.width
    wanted = (reading.logits[:, :-1].log_softmax(-1), batch.words[:, 1:-1])
    F.nll_loss(wanted[0].flatten(0, 1), wanted[1].flatten()).backward()
    assert not [part for part, p in reporter.named_parameters() if p.grad is None]
    with torch.inference_mode():
        state = reporter.start(reporter.see(batch))
        for t in range(reading.logits.shape[1]):
            log_p, state = reporter.step(batch.words[:, t], state)
            torch.testing.assert_close(log_p, reading.logits[:, t].log_softmax(-1), atol=1e-4, rtol=0)


def test_one_view_alone_is_the_study_without_a_second() -> None:
    batch = batch_of()
    assert batch.features is not None
    reporter = tiny("up-down").eval()
    single = replace(batch, features=batch.features[:, :1], present=batch.present[:, :1])
    without = replace(batch, present=torch.tensor([[True, False]] * len(batch)))
    with torch.inference_mode():
        torch.testing.assert_close(reporter(single).logits, reporter(without).logits, atol=1e-5, rtol=0)


def _with(name: str, settings: dict[str, Any]) -> Any:
    from negatoscope.models import reporter_class
    from tests.models.every import WORDS, CachedFeatures

    kind = reporter_class(name)
    torch.manual_seed(0)
    return kind(kind.Settings(**{**kind.tiny, **settings}), CachedFeatures(), WORDS).eval()  # pyright: ignore[reportCallIssue]

"""One suite for all report generators: a new one is covered by being registered."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from negatoscope.decoding import DecodeSettings, write
from negatoscope.models.base import Reporter, choose_rows, log_probabilities
from negatoscope.models.listing import list_reporters
from negatoscope.training.objectives import CrossEntropy, CrossEntropySettings
from tests.models.every import CachedFeatures, batch_of, differences, tiny
from tests.models.golden import GOLDEN, NAMES, said_now

pytestmark = pytest.mark.parametrize("name", NAMES)


@pytest.fixture
def reporter(name: str) -> Reporter:
    return tiny(name).eval()


def test_forward_and_backward(name: str) -> None:
    reporter, batch = tiny(name).train(), batch_of()
    reading = reporter(batch)
    assert batch.words is not None
    assert reading.logits.shape == (*batch.words[:, 1:].shape, reporter.words)
    assert reading.hidden.shape[:2] == reading.mask.shape == batch.words[:, 1:].shape
    loss = CrossEntropy(CrossEntropySettings())(reading, batch)["cross-entropy"]
    for output in reading.extra.values():  # what this model's other losses ask for
        if output.is_floating_point() and output.requires_grad:
            loss = loss + output.float().mean()
    loss.backward()
    without = [part for part, p in reporter.named_parameters() if p.requires_grad and p.grad is None]
    assert not without, "parameters that nothing reads"
    assert all(torch.isfinite(p.grad).all() for p in reporter.parameters() if p.grad is not None)


def test_it_can_learn_by_heart(name: str) -> None:
    reporter, batch = tiny(name).train(), batch_of()
    objective = CrossEntropy(CrossEntropySettings())
    optimiser = torch.optim.Adam(reporter.parameters(), lr=1e-2)
    losses = []
    for step in range(150):
        torch.manual_seed(step)
        loss = objective(reporter(batch), batch)["cross-entropy"]
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.6 * losses[0]


def test_word_by_word_is_all_at_once(reporter: Reporter) -> None:
    """Padded reports and a missing view included; `step` must not re-read, so a wrong state shows."""
    batch = batch_of()
    assert batch.words is not None
    with torch.inference_mode():
        reading = reporter(batch)
        wanted = log_probabilities(reading.logits)
        state = reporter.start(reporter.see(batch))
        for t in range(batch.words.shape[1] - 1):
            log_p, state = reporter.step(batch.words[:, t], state)
            torch.testing.assert_close(log_p.exp().sum(-1), torch.ones(len(batch)))
            assert differences(log_p, wanted[:, t], reading.mask[:, t]) < 1e-4, f"word {t}"


def test_beams_share_their_study(reporter: Reporter) -> None:
    """Two beams a study, in swapped order, say what each would alone."""
    batch = batch_of()
    with torch.inference_mode():
        state = reporter.start(reporter.see(batch))
        rows = torch.arange(len(batch)).repeat_interleave(2)
        many = choose_rows(state, rows)
        first, second = torch.tensor([4, 5]).repeat(len(batch)), torch.tensor([6, 7]).repeat(len(batch))
        _, many = reporter.step(first, many)
        many = choose_rows(many, torch.arange(2 * len(batch)).view(-1, 2).flip(1).flatten())
        both, _ = reporter.step(second, many)
        for beam in range(2):
            _, alone = reporter.step(first.view(-1, 2)[:, 1 - beam], state)
            expected, _ = reporter.step(second.view(-1, 2)[:, beam], alone)
            torch.testing.assert_close(both.view(len(batch), 2, -1)[:, beam], expected, atol=1e-4, rtol=0)


def test_a_study_is_read_the_same_alone_and_in_a_batch(reporter: Reporter) -> None:
    batch = batch_of()
    with torch.inference_mode():
        together = reporter(batch)
        for row in range(len(batch)):
            alone = reporter(batch.rows([row]))
            assert differences(alone.logits[0], together.logits[row], together.mask[row]) < 1e-4, batch.ids[row]


def test_padding_changes_nothing(reporter: Reporter) -> None:
    batch = batch_of()
    assert batch.words is not None
    assert batch.word_mask is not None
    zeros = torch.zeros(len(batch), 5)
    longer = replace(
        batch, words=torch.cat([batch.words, zeros.long()], 1), word_mask=torch.cat([batch.word_mask, zeros.bool()], 1)
    )
    with torch.inference_mode():
        one, other = reporter(batch), reporter(longer)
    assert differences(one.logits, other.logits[:, : one.logits.shape[1]], one.mask) < 1e-4


def test_a_missing_view_is_not_looked_at(reporter: Reporter) -> None:
    batch = batch_of()
    assert batch.features is not None
    scribbled = batch.features.clone()
    scribbled[~batch.present] = 1e3
    with torch.inference_mode():
        one, other = reporter(batch), reporter(replace(batch, features=scribbled))
    assert differences(one.logits, other.logits, one.mask) < 1e-4


def test_beam_one_is_greedy(reporter: Reporter) -> None:
    batch = batch_of()
    written = write(reporter, batch, DecodeSettings(beam=1, max_words=15))
    with torch.inference_mode():
        for row in range(len(batch)):
            state, word, words = reporter.start(reporter.see(batch.rows([row]))), torch.zeros(1, dtype=torch.long), []
            for _ in range(15):
                log_p, state = reporter.step(word, state)
                word = log_p.argmax(-1)
                if not word.item():
                    break
                words.append(int(word.item()))
            assert written[row][0].words == tuple(words)


def test_a_batch_writes_what_its_studies_write_alone(reporter: Reporter) -> None:
    batch, settings = batch_of(), DecodeSettings(beam=3, best=2, max_words=12)
    together = write(reporter, batch, settings)
    for row in range(len(batch)):
        alone = write(reporter, batch.rows([row]), settings)[0]
        assert [one.words for one in alone] == [one.words for one in together[row]]


def test_it_says_what_it_said(name: str) -> None:
    """Golden tensors: logits, and how steep the loss is along each parameter."""
    with safe_open(GOLDEN, framework="pt") as opened:
        assert f"{name}/logits" in opened.keys(), f"run `python -m scripts.record_golden {name}`"  # noqa: SIM118
        before = {part: opened.get_tensor(f"{name}/{part}") for part in ("logits", "slopes")}
    now, parameters = said_now(name)
    off = (now["logits"] - before["logits"]).abs().max().item()
    print(f"{name}: largest difference of a logit {off:.1e}")
    assert before["logits"].std() > 0.1, "a comparison of near-zeros would say nothing"
    assert len(parameters) == len(before["slopes"])
    apart = (now["slopes"] - before["slopes"]).abs() / before["slopes"].clamp_min(1e-2)
    for parameter, difference in zip(parameters, apart.tolist()):
        print(f"  slope along {parameter}: {difference:.1e}")
    assert off < 1e-4
    assert apart.max() < 1e-3, parameters[int(apart.argmax())]


def test_saved_and_loaded_it_says_the_same(name: str, reporter: Reporter, tmp_path: Path) -> None:
    save_file(
        {key: tensor.contiguous() for key, tensor in reporter.state_dict().items()}, tmp_path / "weights.safetensors"
    )
    other = tiny(name, seed=7).eval()
    batch = batch_of()
    with torch.inference_mode():
        assert not torch.equal(other(batch).logits, reporter(batch).logits)
        other.load_state_dict(load_file(tmp_path / "weights.safetensors"))
        assert torch.equal(other(batch).logits, reporter(batch).logits)


def test_bf16_is_near(reporter: Reporter) -> None:
    batch = batch_of()
    with torch.inference_mode():
        exact = log_probabilities(reporter(batch).logits)
        with torch.autocast("cpu", torch.bfloat16):
            reading = reporter(batch)
    assert differences(exact, log_probabilities(reading.logits), reading.mask) < 0.15


def test_it_is_listed(name: str) -> None:
    [row] = list_reporters(name.removesuffix("+ca"))
    assert row.name == name.removesuffix("+ca")
    assert 2014 < row.year < 2030
    assert row.parameters > 1e6
    assert ":" in row.paper


def test_the_sight_is_as_wide_as_it_says(reporter: Reporter) -> None:
    sight = reporter.look(batch_of())
    assert sight.patches.shape[-1] == sight.overall.shape[-1] == reporter.width
    assert isinstance(reporter.encoder, CachedFeatures)

"""What the suite of all models cannot see: that flat words are told as sentences, by the papers' equations."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from negatoscope.errors import WrongUse
from negatoscope.models.base import Reading, Reporter, targets
from negatoscope.models.co_attention import CoAttentionPlanner
from negatoscope.models.hierarchical import Hierarchical, Sentences, WordLSTM
from negatoscope.models.hlstm import OverallPlanner
from negatoscope.models.hlstm_dual import DualWriter, HLSTMDual
from negatoscope.models.multi_attention import MultiAttentionPlanner
from negatoscope.studies.batch import Batch
from negatoscope.training.objectives import CrossEntropy, CrossEntropySettings
from negatoscope.training.side_losses import NoSettings, StopLoss, SwitchLoss, TagLoss
from tests.models.every import FULL_STOP, batch_of, tiny

HIERARCHICAL = ["hlstm", "hlstm-dual", "co-attention", "multi-attention", "hcr"]


@pytest.fixture(params=HIERARCHICAL)
def reporter(request: pytest.FixtureRequest) -> Reporter:
    return tiny(request.param).eval()


def told(*reports: list[int]) -> Batch:
    """A batch of these reports, given without start and end."""
    longest = max(map(len, reports)) + 2
    words = torch.zeros(len(reports), longest, dtype=torch.long)
    mask = torch.zeros(len(reports), longest, dtype=torch.bool)
    for row, report in enumerate(reports):
        words[row, 1 : len(report) + 1] = torch.tensor(report)
        mask[row, : len(report) + 2] = True
    return replace(batch_of().rows(list(range(len(reports)))), words=words, word_mask=mask)


def log_p_of_words(reading: Reading, batch: Batch) -> Tensor:
    """(B,) log-probability of each whole report."""
    each = reading.logits.log_softmax(-1).gather(-1, targets(batch).unsqueeze(-1)).squeeze(-1)
    return (each * reading.mask).sum(1)


def test_sentences_of_flat_reports() -> None:
    words = torch.tensor([[0, 5, 6, FULL_STOP, 7, FULL_STOP, 0], [0, FULL_STOP, 8, 9, 0, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 0, 0, 0]]).bool()
    opens = ((words == 0) | (words == FULL_STOP)) & mask
    found = Sentences.found(opens, mask)
    assert found.study.tolist() == [0, 0, 0, 1, 1]
    assert found.order.tolist() == [0, 1, 2, 0, 1]
    assert found.number[0, :6].tolist() == [0, 0, 0, 1, 1, 2]
    assert found.place[1, :4].tolist() == [0, 0, 1, 2]
    assert found.apart(words)[:, :3].tolist() == [[0, 5, 6], [3, 7, 0], [3, 0, 0], [0, 0, 0], [3, 8, 9]]
    numbered = torch.arange(14.0).view(2, 7)
    assert found.since_open(numbered)[0, :6].tolist() == [0, 0, 1, 0, 3, 0]


def test_the_end_after_a_full_stop_is_the_stop_controls(reporter: Reporter) -> None:
    batch = told([4, 5, FULL_STOP, 6, FULL_STOP], [7, 8])
    with torch.inference_mode():
        reading = reporter(batch)
    p, opens = reading.logits.exp(), reading.extra["opens"]
    assert opens[0].tolist() == [True, False, False, True, False, True]
    torch.testing.assert_close(p[opens][:, 0], reading.extra["stop"][opens].sigmoid())
    torch.testing.assert_close(p.sum(-1)[reading.mask], torch.ones(int(reading.mask.sum())))
    inside = ~opens & reading.mask
    assert (p[inside][:, 0] > 1e-6).all(), "a report that was cut ends within a sentence"


def test_all_reports_together_have_probability_one() -> None:
    """Every report of up to three words, and every beginning of three words that went on."""
    reporter = tiny("hlstm-dual").eval()
    reporter.full_stop = 1
    first = batch_of().rows([0])
    total = torch.zeros(())
    with torch.inference_mode():
        sight = reporter.see(first)
        level = [(torch.zeros(()), torch.tensor([0]), reporter.start(sight))]
        for depth in range(3):
            following = []
            for log_p, word, state in level:
                said, after = reporter.step(word, state)
                total += (log_p + said[0, 0]).exp()
                likeliest = [1, *said[0, 2:].topk(2).indices.add(2).tolist()]
                for number in range(1, reporter.words):
                    if number in likeliest and depth < 2:
                        following.append((log_p + said[0, number], torch.tensor([number]), after))
                    else:
                        total += (log_p + said[0, number]).exp()
            level = following
    assert total.item() == pytest.approx(1.0, abs=1e-4)


def test_hlstm_reads_sentence_by_sentence() -> None:
    """The paper's way, a sentence at a time, gives the flat way's probability."""
    reporter = tiny("hlstm").eval()
    report = [[4, 5, 6], [7], [8, 9]]
    batch = told([word for sentence in report for word in (*sentence, FULL_STOP)])
    with torch.inference_mode():
        found = log_p_of_words(reporter(batch), batch)[0]
        v = reporter.look(batch).overall  # (1, d)
        planner, writer = reporter.planner, reporter.writer
        assert isinstance(planner, OverallPlanner)
        assert isinstance(writer, WordLSTM)
        h, _ = planner.lstm(v.expand(len(report) + 1, -1).unsqueeze(0))  # all sentences, and the one that is not
        stop = planner.stop(h[0]).squeeze(-1).sigmoid()
        expected = stop[-1].log()
        for number, sentence in enumerate(report):
            x = torch.cat([planner.topic(h[:, number]), writer.embed(torch.tensor([0, *sentence]))]).unsqueeze(0)
            logits = writer.out(writer.lstm(x)[0][0, 1:])  # after start, word 1, word 2 ...
            logits[0, 0] = -torch.inf
            wanted = torch.tensor([*sentence, FULL_STOP])
            said = logits.log_softmax(-1).gather(1, wanted.unsqueeze(1))
            expected = expected + (1 - stop[number]).log() + said.sum()
    assert found.item() == pytest.approx(expected.item(), abs=1e-4)


def test_without_a_full_stop_a_report_is_one_sentence(reporter: Reporter) -> None:
    reporter.full_stop = 0
    batch = batch_of()
    with torch.inference_mode():
        reading = reporter(batch)
    assert reading.extra["opens"].sum().item() == len(batch)


def test_attention_is_over_pictures_and_one_a_sentence() -> None:
    batch = told([4, 5, FULL_STOP, 6, 7, FULL_STOP], [4, 5, 6, FULL_STOP, 7, FULL_STOP])
    assert batch.words is not None
    for name in ("hlstm-dual", "co-attention", "multi-attention", "hcr"):
        with torch.inference_mode():
            reporter = tiny(name).eval()
            alpha = reporter(batch).extra["attention"]  # (B, T, N)
            state = reporter.start(reporter.see(batch))
            for t in range(6):
                _, state = reporter.step(batch.words[:, t], state)
                torch.testing.assert_close(state.looked, alpha[:, t])
        torch.testing.assert_close(alpha.sum(-1), torch.ones(alpha.shape[:2]))
        assert torch.equal(alpha[0, 0], alpha[0, 2])
        assert not torch.equal(alpha[0, 2], alpha[0, 3]), "a new sentence looks anew"
        assert alpha[1, :, 9:].abs().max() == 0, "the second study has no lateral"


def of_dual() -> tuple[HLSTMDual, DualWriter]:
    reporter = tiny("hlstm-dual").eval()
    assert isinstance(reporter, HLSTMDual)
    assert isinstance(reporter.writer, DualWriter)
    return reporter, reporter.writer


def sentence_probabilities(reporter: HLSTMDual, writer: DualWriter, batch: Batch) -> tuple[Tensor, Tensor]:
    """Of a one-sentence report: (B, 2) log of the switch, (B, 2) log p of the sentence by each decoder."""
    words = targets(batch)[:, :-1]
    seen, memory = reporter.planner.start(reporter.look(batch))
    plan, _ = reporter.planner(seen, memory)
    each = []
    for one in (writer.normal, writer.abnormal):
        x = torch.cat(
            [plan.topic.unsqueeze(1), one.embed(torch.cat([torch.zeros_like(words[:, :1]), words[:, :-1]], 1))], 1
        )
        logits = one.out(one.lstm(x)[0][:, 1:])
        logits[:, 0, 0] = -torch.inf
        each.append(logits.log_softmax(-1).gather(-1, words.unsqueeze(-1)).sum((1, 2)))
    return writer.q(plan.topic), torch.stack(each, 1)


def test_two_decoders_are_a_mixture_of_sentences() -> None:
    (reporter, writer), batch = of_dual(), told([4, 5, 6, FULL_STOP], [7, 8, 9, FULL_STOP])
    with torch.inference_mode():
        reading = reporter(batch)
        prior, each = sentence_probabilities(reporter, writer, batch)
        stop = reading.extra["stop"]
        going = torch.nn.functional.logsigmoid(-stop[:, 0]) + torch.nn.functional.logsigmoid(stop[:, 4])
        expected = (prior + each).logsumexp(1) + going
    torch.testing.assert_close(log_p_of_words(reading, batch), expected)


def test_cross_entropy_and_switch_are_the_likelihood_of_both() -> None:
    """Where it is known who wrote, its own decoder alone learns the sentence."""
    (reporter, writer), batch = of_dual(), told([4, 5, 6, FULL_STOP], [7, 8, 9, FULL_STOP])
    labels = torch.tensor([[1.0, torch.nan], [0.0, torch.nan]])
    batch = replace(batch, extra={"abnormal": labels})
    reading = reporter(batch)
    loss = CrossEntropy(CrossEntropySettings())(reading, batch)["cross-entropy"]
    loss = loss + SwitchLoss(NoSettings())(reading, batch)["switch"]
    prior, each = sentence_probabilities(reporter, writer, batch)
    joint = (prior + each)[torch.arange(2), torch.tensor([1, 0])]
    stop = reading.extra["stop"]
    going = torch.nn.functional.logsigmoid(-stop[:, 0]) + torch.nn.functional.logsigmoid(stop[:, 4])
    torch.testing.assert_close(loss, -(joint + going).sum() / 10)
    only_abnormal = replace(batch.rows([0]), extra={"abnormal": labels[:1]})
    reading = reporter(only_abnormal)
    loss = CrossEntropy(CrossEntropySettings())(reading, only_abnormal)["cross-entropy"]
    (loss + SwitchLoss(NoSettings())(reading, only_abnormal)["switch"]).backward()
    assert writer.normal.out.weight.grad is not None
    assert writer.abnormal.out.weight.grad is not None
    assert writer.normal.out.weight.grad.abs().max() < 1e-6 < writer.abnormal.out.weight.grad.abs().max()


def test_sentences_of_unknown_kind_are_left_to_the_mixture() -> None:
    (reporter, _), batch = of_dual(), told([4, FULL_STOP, 5, FULL_STOP])
    reading = reporter(batch)
    unknown = replace(batch, extra={"abnormal": torch.full((1, 6), torch.nan)})
    assert SwitchLoss(NoSettings())(reading, unknown)["switch"].item() == 0
    second = torch.full((1, 6), torch.nan)
    second[0, 1] = 1
    assert SwitchLoss(NoSettings())(reading, replace(batch, extra={"abnormal": second}))["switch"].item() > 0


def test_stop_is_learned_where_sentences_open(reporter: Reporter) -> None:
    batch = told([4, 5, FULL_STOP, 6, FULL_STOP], [7, 8])
    reading = reporter(batch)
    stop = reading.extra["stop"]
    p = torch.stack(
        [1 - stop[0, 0].sigmoid(), 1 - stop[0, 3].sigmoid(), stop[0, 5].sigmoid(), 1 - stop[1, 0].sigmoid()]
    )
    torch.testing.assert_close(StopLoss(NoSettings())(reading, batch)["stop"], -p.log().mean())


def test_tags_are_learned_as_a_distribution() -> None:
    reporter, batch = tiny("co-attention"), batch_of().rows([0, 1, 2])
    wanted = torch.tensor([[1, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0]]).float()
    batch = replace(batch, extra={"tags": wanted})
    reading = reporter(batch)
    log_p = reading.extra["tags"].log_softmax(-1)
    expected = -((log_p[0, 0] + log_p[0, 2]) / 2 + log_p[2, 1]) / 2
    torch.testing.assert_close(TagLoss(NoSettings())(reading, batch)["tags"], expected)


def test_co_attention_looks_at_the_likeliest_tags() -> None:
    reporter = tiny("co-attention").eval()
    assert isinstance(reporter, Hierarchical)
    planner = reporter.planner
    assert isinstance(planner, CoAttentionPlanner)
    with torch.no_grad():
        planner.mlc.weight.zero_()
        planner.mlc.bias.copy_(torch.tensor([0.0, 5.0, 1.0, 4.0, 3.0, 2.0]))
    seen = planner.see(reporter.look(batch_of()))
    torch.testing.assert_close(seen.tags.patches[0], planner.tag.weight[[1, 3, 4, 5]])


def test_channels_are_weighed_around_one() -> None:
    reporter = tiny("multi-attention").eval()
    assert isinstance(reporter, Hierarchical)
    planner = reporter.planner
    assert isinstance(planner, MultiAttentionPlanner)
    beta = planner.channels(torch.randn(2, 16), torch.randn(2, 3, 16))
    assert beta.shape == (2, 3, 16)
    torch.testing.assert_close(beta.mean(-1), torch.ones(2, 3))


@pytest.mark.parametrize(("loss", "model"), [(TagLoss, "hlstm"), (SwitchLoss, "hcr"), (StopLoss, "nic")])
def test_a_loss_names_the_models_that_it_fits(loss: type, model: str) -> None:
    batch = batch_of()
    with pytest.raises(WrongUse, match="needs a"):
        loss(NoSettings())(tiny(model)(batch), batch)


def test_tags_of_another_number_are_refused() -> None:
    batch = replace(batch_of(), extra={"tags": torch.zeros(4, 9)})
    with pytest.raises(WrongUse, match=r"6 tags, the data 9.*model\.tags: 9"):
        TagLoss(NoSettings())(tiny("co-attention")(batch), batch)

"""Every contrastive loss on every encoder-decoder: a model that is registered is covered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from negatoscope.contrast.negatives import HardNegatives, NegativesSettings
from negatoscope.contrast.objective import NEIGHBOURS, Contrastive
from negatoscope.contrast.weak import WeakContrast, WeakSettings
from negatoscope.errors import WrongUse
from negatoscope.models import reporter_names
from negatoscope.models.linear import ONEDNN
from negatoscope.studies.batch import Batch
from negatoscope.training.learner import Learner, reporters_own, rows_of, widths_of
from negatoscope.training.objectives import CrossEntropy, CrossEntropySettings
from tests.models.every import LENGTHS, batch_of, tiny

HOSTS = [*reporter_names(), "nic+ca"]
MIXED = "hlstm-dual"
"""Two decoders write its words, and its hidden states are the mean of theirs: nothing to perturb."""
LOSSES: dict[str, Any] = {
    "wcl": WeakSettings(width=8),
    "adversarial": WeakSettings(width=8, alpha=1.0, adversarial=0.1),
    "prior": NegativesSettings(width=8, way="prior"),
    "mochi": NegativesSettings(width=8, way="mochi"),
    "ithn": NegativesSettings(width=8),
    "none": NegativesSettings(width=8, way="none"),
}


def product(x: Sequence[int], weight: Sequence[int], *_: Any, out_shape: Sequence[int], **__: Any) -> int:
    """What PyTorch's counter does not count by itself: oneDNN's x (..., in) times weight (out, in)."""
    return 2 * prod(x) * weight[0]


PRODUCTS = {torch.ops.mkldnn._linear_pointwise: product} if ONEDNN else {}


def learner_of(host: str, loss: str) -> Learner:
    reporter, settings = tiny(host), LOSSES[loss]
    torch.manual_seed(2)
    contrast = WeakContrast(settings) if isinstance(settings, WeakSettings) else HardNegatives(settings)
    contrast.meet(widths_of(reporter))
    objectives: dict[str, Any] = {"cross-entropy": CrossEntropy(CrossEntropySettings()), "contrast": contrast}
    learner = Learner(reporter, objectives, dict.fromkeys(objectives, 1.0)).train()
    learner.begin_epoch(30)
    return learner


def batch() -> Batch:
    """Neighbours with other, longer reports."""
    ids = tuple(f"other-{row}" for row in range(len(LENGTHS)))
    beside = replace(batch_of((14, 5, 9, 3), seed=7), ids=ids)
    return replace(batch_of(), extra={"clusters": torch.tensor([0, 1, 0, 1]), NEIGHBOURS: beside})


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("host", HOSTS)
def test_every_loss_teaches_every_host(host: str, loss: str) -> None:
    """Finite terms, and slopes that reach the host's own parameters and the loss's heads."""
    learner = learner_of(host, loss)
    if (host, loss) == (MIXED, "adversarial"):
        with pytest.raises(WrongUse, match="do not follow from its hidden states"):
            learner(batch())
        return
    terms = learner(batch())
    assert len(terms) == (4 if learner.needs_neighbours else 3)
    assert all(torch.isfinite(value) for value in terms.values())
    contrast = terms["loss"] - terms["cross-entropy"]
    contrast.backward()
    heads = learner.objectives["contrast"]
    assert isinstance(heads, Contrastive)
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in heads.parameters())
    reached = {name for name, p in learner.reporter.named_parameters() if p.grad is not None and p.grad.any()}
    assert len(reached) >= 2
    assert all(torch.isfinite(p.grad).all() for p in learner.reporter.parameters() if p.grad is not None)


@pytest.mark.parametrize("host", HOSTS)
def test_beside_a_neighbour_a_study_is_read_as_alone(host: str) -> None:
    """In one pass with longer reports: the same words, the same hidden states, and cross-entropy of its own alone."""
    learner, given = learner_of(host, "ithn"), batch()
    learner.reporter.eval()  # no dropout; the learner itself still learns
    together, words = learner._read(given)
    alone = learner.reporter(batch_of())
    longest = alone.mask.shape[1]
    assert torch.equal(together.mask[:, :longest], alone.mask)
    assert not together.mask[:, longest:].any()
    for one, other in ((together.hidden, alone.hidden), (together.logits, alone.logits)):
        torch.testing.assert_close(one[:, :longest][alone.mask], other[alone.mask], rtol=1e-4, atol=1e-5)
    ours = CrossEntropy(CrossEntropySettings())
    torch.testing.assert_close(
        ours(together, words)["cross-entropy"], ours(alone, batch_of())["cross-entropy"], rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("host", ["r2gen", "r2gencmn", "xpronet", "visualgpt", "transformer"])
def test_nothing_of_it_is_left_at_inference(host: str, loss: str) -> None:
    """What is saved has the host's own tensors, no more, and it takes as many products to read a study."""
    learner = learner_of(host, loss)
    alone = tiny(host)
    own = reporters_own(learner.state_dict())
    assert {name: tensor.shape for name, tensor in own.items()} == {
        name: tensor.shape for name, tensor in alone.state_dict().items()
    }
    alone.load_state_dict(own)
    counted = []
    for reporter in (alone.eval(), learner.eval().reporter):
        with FlopCounterMode(display=False, custom_mapping=PRODUCTS) as counter, torch.no_grad():
            sight = reporter.see(batch_of())
            state = reporter.start(sight)
            reporter.step(torch.zeros(len(LENGTHS), dtype=torch.long), state)
        counted.append(counter.get_total_flops())
    assert counted[0] == counted[1] > 0
    given = batch()
    assert learner(given).keys() == {"loss", "cross-entropy"}, "a learner that does not learn compares nothing"


def test_rows_of_a_reading() -> None:
    reading = tiny("r2gen").eval()(batch_of())
    some = rows_of(reading, slice(1, 3))
    assert len(some.logits) == len(some.sight.patches) == 2
    torch.testing.assert_close(some.hidden, reading.hidden[1:3])
    assert some.sight.grid == reading.sight.grid

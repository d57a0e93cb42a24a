"""XProNet's prototypes come from the training studies and their labels; the report to be written is never read."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from negatoscope.errors import BadInput
from negatoscope.models.prototypes import initial_prototypes, latent_semantics
from negatoscope.models.xpronet import XProNet, shown
from negatoscope.studies.study import OBSERVATIONS
from tests.models.every import batch_of, tiny


def xpronet() -> XProNet:
    reporter = tiny("xpronet")
    assert isinstance(reporter, XProNet)
    return reporter


def test_prototypes_are_the_centres_of_those_that_show_it() -> None:
    draw = torch.Generator().manual_seed(0)
    centres = torch.tensor([[10.0, 0.0, 0.0], [-10.0, 0.0, 5.0]])
    crowd = centres.repeat_interleave(20, 0) + 0.1 * torch.randn(40, 3, generator=draw)
    few = torch.tensor([[0.0, 50.0, 0.0]])
    features = torch.cat([crowd, few])
    shows = torch.zeros(41, 3, dtype=torch.bool)
    shows[:40, 0] = True  # the first observation: two crowds
    shows[40, 1] = True  # the second: one study; the third: none
    prototypes = initial_prototypes(features, shows, 2, seed=3).view(3, 2, 3)
    found = prototypes[0][prototypes[0][:, 0].argsort(descending=True)]
    means = torch.stack([crowd[:20].mean(0), crowd[20:].mean(0)])
    torch.testing.assert_close(found, means, atol=1e-4, rtol=0)
    assert (prototypes[1] - few).abs().max() < 2
    assert not torch.equal(*prototypes[1]), "copies that cannot part"
    assert not torch.equal(*prototypes[2])
    assert torch.equal(prototypes, initial_prototypes(features, shows, 2, seed=3).view(3, 2, 3))


def test_reports_of_the_same_words_lie_together() -> None:
    counts = torch.zeros(6, 9)
    counts[:3, 1:4], counts[3:, 5:8] = 1, 1
    counts[:, 8] = torch.arange(6) % 2
    told = torch.nn.functional.normalize(latent_semantics(counts, 4, seed=0), dim=1)
    likeness = told @ told.T
    assert likeness[:3, :3].min() > likeness[:3, 3:].max() + 0.3
    assert latent_semantics(counts, 30, seed=0).shape == (6, 30)


def test_a_training_begins_with_the_training_studies() -> None:
    reporter, batches = xpronet(), [batch_of(seed=seed) for seed in range(3)]
    before = reporter.prototypes.detach().clone()
    reporter.begin(lambda: batches, seed=1)
    after = reporter.prototypes.detach().clone()
    assert after.shape == before.shape
    assert not torch.equal(after, before)
    reporter.begin(lambda: batches, seed=1)
    assert torch.equal(reporter.prototypes, after)
    assert batches[0].labels is not None
    everything = [replace(batch, labels=torch.ones_like(batch.labels)) for batch in batches if batch.labels is not None]
    reporter.begin(lambda: everything, seed=1)
    assert not torch.equal(reporter.prototypes, after), "labels decide whose centres they are"
    with pytest.raises(BadInput, match="prototypes need reports and labels"):
        reporter.begin(lambda: [replace(batches[0], labels=None)], seed=1)


def test_what_the_reference_says_is_not_read_while_writing() -> None:
    reporter, batch = xpronet().eval(), batch_of()
    assert batch.labels is not None
    others = [replace(batch, labels=None), replace(batch, labels=1 - batch.labels)]
    with torch.inference_mode():
        said = reporter(batch).logits
        assert all(torch.equal(reporter(other).logits, said) for other in others)
        reporter.train()
        assert not torch.equal(reporter.look(batch).observations, reporter.look(others[1]).observations)
    with pytest.raises(BadInput, match="XProNet learns from labels"):
        reporter(others[0])


def test_who_shows_nothing_shows_no_finding() -> None:
    labels = torch.zeros(3, len(OBSERVATIONS))
    labels[0], labels[1, 4] = torch.nan, -1
    assert shown(labels).sum(1).tolist() == [1, 1, 1]
    assert shown(labels)[[0, 2], 0].all()
    assert shown(labels)[1, 4]

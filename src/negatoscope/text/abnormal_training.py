"""How the classifier of abnormal sentences is trained: one seeded run from labelled reports to a calibrated file.

The labels of Open-I's sentences are noisy: in some reports they have slid by a sentence, and identical sentences carry both labels.
So: (1) a first round scores every training report by networks that never saw it; (2) labels that those networks contradict with
great confidence are replaced by what the networks say; (3) a second round does the same with the repaired labels, and its scores
give the calibration and the threshold; (4) an ensemble is trained on all reports, and (5) the network that ships learns from the
ensemble's probabilities, which are smoother than the labels. Nothing of the development set is used but to print its figures.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from negatoscope.errors import BadInput
from negatoscope.settings import Settings
from negatoscope.text.abnormal import Lexicon, Reading, Shape, Weights, denied, order_features, words


class Recipe(Settings):
    """How to train."""

    shape: Shape = Shape()
    seed: int = 1
    folds: int = 5
    """Reports are parted into so many; those of one part are scored by networks that saw the others."""
    ensemble: int = 5
    """Networks that teach the one that ships."""
    epochs: int = 14
    batch: int = 64
    lr: float = 3e-3
    decay: float = 0.02
    own_word_dropout: float = 0.15
    """How often a word has to do without its own vector: the pieces must be able to speak for it."""
    input_dropout: float = 0.25
    answer_dropout: float = 0.5
    order_dropout: float = 0.3
    doubt: float = 0.85
    """A label is replaced where the held-out probability is further than this from it."""
    rare: int = 2
    """Words that occur less often have no vector of their own."""


@dataclass(frozen=True)
class Sample:
    """Distinct sentences with what a network should say of each."""

    sentences: list[str]
    targets: NDArray[np.float32]  # (n,) in [0, 1]
    weights: NDArray[np.float32]  # (n,)


class Prepared:
    """Sentences read once: rows, scopes and order features of each, ready to be put together into batches."""

    def __init__(self, sentences: Sequence[str], lexicon: Lexicon) -> None:
        self.reading = reading = lexicon.read(sentences)
        hashes, cues = np.array(lexicon.hashes, np.uint64), np.array(lexicon.cues, np.int64)
        self.under = denied(cues[reading.rows])
        buckets, owners = order_features(hashes[reading.rows], self.under, reading.owner, lexicon.shape.order_bits)
        order = np.argsort(owners, kind="stable")
        self.buckets = buckets[order]
        self.bucket_starts = np.searchsorted(owners[order], np.arange(len(sentences) + 1))

    def batch(self, chosen: NDArray[np.int64]) -> Chosen:
        reading = self.reading
        ends = reading.starts + reading.lengths
        spans = [np.arange(reading.starts[i], ends[i]) for i in chosen]
        at = np.concatenate(spans)
        lengths = reading.lengths[chosen]
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        places = np.arange(lengths.max())[None] + starts[:, None]
        places = np.where(np.arange(lengths.max())[None] < lengths[:, None], places, len(at))  # (B, L), W where nothing stands
        buckets = [self.buckets[self.bucket_starts[i] : self.bucket_starts[i + 1]] for i in chosen]
        offsets = np.concatenate([[0], np.cumsum([len(b) for b in buckets])[:-1]])
        return Chosen(
            rows=torch.from_numpy(reading.rows[at]),
            under=torch.from_numpy(self.under[at]),
            owner=torch.from_numpy(np.repeat(np.arange(len(chosen)), lengths)),
            places=torch.from_numpy(places),
            buckets=torch.from_numpy(np.concatenate(buckets)),
            offsets=torch.from_numpy(offsets),
        )


@dataclass(frozen=True)
class Chosen:
    """One batch of B sentences with W words and F order features in all."""

    rows: Tensor  # (W,)
    under: Tensor  # (W,)
    owner: Tensor  # (W,)
    places: Tensor  # (B, L)
    buckets: Tensor  # (F,)
    offsets: Tensor  # (B,)


class Network(nn.Module):
    """The network of `abnormal.py` with gradients and dropout."""

    def __init__(self, recipe: Recipe, lexicon: Lexicon, vocabulary: Sequence[str]) -> None:
        super().__init__()
        shape = recipe.shape
        self.recipe, self.vocabulary = recipe, tuple(vocabulary)
        self.vectors = nn.Embedding(len(vocabulary) + 1, shape.width, padding_idx=len(vocabulary))
        self.pieces = nn.EmbeddingBag(1 << shape.piece_bits, shape.width, mode="mean")
        self.scope = nn.Parameter(torch.zeros(2, shape.width))
        self.filters = nn.Parameter(torch.empty(shape.width, shape.filters * sum(shape.spans)))
        self.filter_bias = nn.Parameter(torch.zeros(shape.filters * len(shape.spans)))
        self.out = nn.Linear(shape.filters * len(shape.spans), 1)
        self.order = nn.EmbeddingBag(1 << shape.order_bits, 1, mode="sum")
        for table in (self.vectors.weight, self.pieces.weight, self.scope):
            nn.init.normal_(table, 0.0, 0.1)
        nn.init.normal_(self.filters, 0.0, 1.2 / (shape.width * 2.5) ** 0.5)
        nn.init.zeros_(self.order.weight)
        own = {word: number for number, word in enumerate(vocabulary)}
        self.own = torch.tensor([own.get(word, len(vocabulary)) for word in lexicon.words])
        grams = lexicon.grams
        self.grams = torch.from_numpy(np.concatenate(grams))
        self.gram_offsets = torch.from_numpy(np.concatenate([[0], np.cumsum([len(g) for g in grams])[:-1]]))

    def forward(self, batch: Chosen) -> Tensor:
        """(B,) logits."""
        recipe, shape = self.recipe, self.recipe.shape
        own = self.own[batch.rows]
        if self.training:
            own = own.masked_fill(torch.rand(own.shape) < recipe.own_word_dropout, len(self.vocabulary))
        x = self.vectors(own) + self.pieces(self.grams, self.gram_offsets)[batch.rows] + self.scope[batch.under]  # (W, d)
        answers = F.dropout(x, recipe.input_dropout, self.training) @ self.filters  # (W, f * P)
        strongest, at = [], 0
        for span in shape.spans:
            heard = answers[:, at : at + shape.filters]
            for place in range(1, span):
                at += shape.filters
                inside = (batch.owner[place:] == batch.owner[:-place])[:, None]
                heard = heard + F.pad(answers[place:, at : at + shape.filters] * inside, (0, 0, 0, place))
            at += shape.filters
            heard = torch.cat([heard, heard.new_full((1, shape.filters), -1e4)])
            strongest.append(heard[batch.places].amax(1))  # (B, f)
        z = F.relu(torch.cat(strongest, 1) + self.filter_bias)
        meaning = self.out(F.dropout(z, recipe.answer_dropout, self.training))[:, 0]
        counts = torch.diff(batch.offsets, append=torch.tensor([len(batch.buckets)]))
        kept = F.dropout(torch.ones(len(batch.buckets)), recipe.order_dropout, self.training)
        order = self.order(batch.buckets, batch.offsets, per_sample_weights=kept)[:, 0] / counts.sqrt()
        return meaning + order

    @torch.no_grad()
    def export(self) -> Weights:
        def array(tensor: Tensor) -> NDArray[np.float32]:
            return tensor.detach().numpy().astype(np.float16).astype(np.float32)

        return Weights(
            vocabulary=self.vocabulary,
            vectors=array(self.vectors.weight[:-1]),
            pieces=array(self.pieces.weight),
            scope=array(self.scope),
            filters=array(self.filters),
            filter_bias=array(self.filter_bias),
            out=array(self.out.weight[0]),
            order=array(self.order.weight[:, 0]),
            bias=float(self.out.bias),
        )


def fit(sample: Sample, recipe: Recipe, seed: int) -> Network:
    """One network from soft targets. Seeded; the same on every run of one machine."""
    generator = np.random.default_rng(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        lexicon = Lexicon(recipe.shape)
        prepared = Prepared(sample.sentences, lexicon)
        seen = np.bincount(prepared.reading.rows, minlength=len(lexicon))
        vocabulary = [word for word, times in zip(lexicon.words, seen, strict=True) if times >= recipe.rare]
        network = Network(recipe, lexicon, vocabulary)
        targets, weights = torch.from_numpy(sample.targets), torch.from_numpy(sample.weights)
        n = len(sample.sentences)
        steps = recipe.epochs * -(-n // recipe.batch)
        optimiser = torch.optim.AdamW(network.parameters(), lr=recipe.lr, weight_decay=recipe.decay)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, recipe.lr, total_steps=steps, pct_start=0.1)
        network.train()
        for _ in range(recipe.epochs):
            shuffled = generator.permutation(n)
            for at in range(0, n, recipe.batch):
                chosen = shuffled[at : at + recipe.batch]
                logits = network(prepared.batch(chosen))
                loss = F.binary_cross_entropy_with_logits(logits, targets[chosen], reduction="none")
                loss = (loss * weights[chosen]).mean()
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                schedule.step()
    return network.eval()

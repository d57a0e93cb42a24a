"""XProNet's prototypes before the first step: cluster centres of what the training studies look and read like.

The paper joins an image feature (its backbone, pooled) and a report feature (BERT's), and groups the studies that show
an observation by K-Means. In place of BERT, which would have to be fetched, reports are told by latent semantic
analysis: words weighed by how rare they are (tf-idf), the matrix reduced by a singular value decomposition.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from negatoscope.errors import BadInput
from negatoscope.models.base import Encoder as ImageEncoder
from negatoscope.studies.batch import Batch
from negatoscope.text.words import END


@torch.no_grad()
def joint_features(
    encoder: ImageEncoder, batches: Iterable[Batch], words: int, text_width: int, seed: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Of n studies their image features (n, D), report features (n, text_width) and labels (n, 14)."""
    images, counts, labels = [], [], []
    for batch in batches:
        if batch.words is None or batch.labels is None:
            raise BadInput("prototypes need reports and labels", where=f"batch of {batch.ids[0]}")
        images.append(encoder(batch).overall.float().cpu())
        labels.append(batch.labels.cpu())
        seen = torch.zeros(len(batch), words)
        counts.append(seen.scatter_add_(1, batch.words.cpu(), torch.ones(batch.words.shape)))
    if not images:
        raise BadInput("prototypes need training studies, and there are none")
    return torch.cat(images), latent_semantics(torch.cat(counts), text_width, seed), torch.cat(labels)


def latent_semantics(counts: Tensor, width: int, seed: int) -> Tensor:
    """Word counts (n, W) -> (n, width); columns beyond the counts' rank are zero."""
    counts = counts.clone()
    counts[:, END] = 0
    rarity = (len(counts) / (1 + (counts > 0).sum(0))).log().clamp_min(0)
    weighed = torch.nn.functional.normalize(counts.log1p() * rarity, dim=1)
    kept = min(width, *weighed.shape)
    found = weighed.new_zeros(len(counts), width)
    if kept:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            left, strength, _ = torch.svd_lowrank(weighed, q=kept)
        found[:, :kept] = left * strength
    return found


def initial_prototypes(features: Tensor, shown: Tensor, per_observation: int, seed: int) -> Tensor:
    """Features (n, D) of studies and what they show (n, 14) -> (14 P, D): the P cluster centres of each observation, in
    order.

    An observation that fewer than P studies show repeats them, a little shaken so that the copies can part; one that no
    study shows starts from chance around the mean of all.
    """
    from sklearn.cluster import KMeans

    draw = torch.Generator().manual_seed(seed)
    mean, spread = features.mean(0), features.std(0, unbiased=False)
    once: Any = 1  # scikit-learn's annotations know only 'auto'
    prototypes = []
    for observation in range(shown.shape[1]):
        members = features[shown[:, observation]]
        noise = torch.randn(per_observation, features.shape[1], generator=draw) * spread
        if len(members) >= per_observation:
            centres = KMeans(per_observation, n_init=once, random_state=seed).fit(members.numpy()).cluster_centers_
            prototypes.append(torch.from_numpy(centres).to(features.dtype))
        elif len(members):
            prototypes.append(members[torch.arange(per_observation) % len(members)] + 0.01 * noise)
        else:
            prototypes.append(mean + noise)
    return torch.cat(prototypes)

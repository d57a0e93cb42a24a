"""Cached features of studies, a few at a time, by view: 0 frontal, 1 lateral."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from negatoscope.errors import BadInput
from negatoscope.studies.study import Study
from negatoscope.studies.views import ARRANGE, Arranging
from negatoscope.vision.features import FeatureCache

VIEWS = 2


def features_of(studies: Sequence[Study], cache: FeatureCache, arrange: Arranging = "by-view") -> tuple[Tensor, Tensor]:
    """(B, V, N, D) float32, zeros where a view is missing, and which are present (B, V).

    Raises BadInput for a study without pictures, or with one that the cache does not hold.
    """
    key = cache.key
    features = torch.zeros(len(studies), VIEWS, key.patches, key.width)
    present = torch.zeros(len(studies), VIEWS, dtype=torch.bool)
    for row, study in enumerate(studies):
        pictures = ARRANGE[arrange](study, VIEWS)
        if not any(pictures):
            raise BadInput("none of its pictures can be shown", where=f"study {study.id}", remedy="leave it out")
        for view, picture in enumerate(pictures):
            if picture is not None:
                features[row, view] = torch.from_numpy(np.array(cache.get(picture.sha256)))
                present[row, view] = True
    return features, present


def in_batches(
    studies: Sequence[Study], cache: FeatureCache, batch: int, arrange: Arranging = "by-view"
) -> Iterator[tuple[Tensor, Tensor]]:
    for at in range(0, len(studies), batch):
        yield features_of(studies[at : at + batch], cache, arrange)

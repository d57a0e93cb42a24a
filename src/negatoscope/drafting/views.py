"""Which images of a study are frontal and which lateral, whatever the order of the files and their names."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from negatoscope.models.recogniser import Recogniser

FRONTAL, LATERAL = "frontal", "lateral"


@dataclass(frozen=True)
class Sides:
    lateral: Tensor  # (n,) bool
    certainty: Tensor  # (n,) 0.5 to 1

    def name(self, image: int) -> str:
        return LATERAL if bool(self.lateral[image]) else FRONTAL


@torch.no_grad()
def told_apart(recogniser: Recogniser, pooled: Tensor) -> Sides:
    """Pooled features (n, D). Two images of one kind are possible, as is one image alone: the recogniser averages
    images of one kind, and knows which kind is missing."""
    probability = torch.sigmoid(recogniser.from_the_side(pooled.float()))
    lateral = probability > 0.5
    return Sides(lateral, torch.where(lateral, probability, 1 - probability))

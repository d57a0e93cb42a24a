"""Does this image look like a chest radiograph, the right way up, like those that were learned from?

x is an image's features: the mean of each stage's map, side by side, each stage divided by its own spread. Two
questions:

    far      (1/K) sum_k (u_k . (x - m))^2 / l_k  +  |x - m - its part in u|^2 / (that of training images)
             K main directions u_k of the training images with variances l_k: their Mahalanobis distance, and how much
             of the image lies outside of what they span (Ren et al. 2021; Lee et al. 2018, for deep features)
    turned   softmax over u(x): upright, turned by 90, 180 or 270 degrees, or dark and bright exchanged. Learned from
             training images that were turned on purpose.

The limits are quantiles over images that were held out. What is no radiograph at all is never learned from, only
measured on (`strangers.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

DIRECTIONS = 128
WAYS = ("upright", "turned by 90 degrees", "upside down", "turned by 270 degrees", "dark and bright exchanged")
SURE_TO_BE_TURNED = 0.5


def turned(images: Tensor, way: int) -> Tensor:
    """Images (n, 1, S, S) from 0 to 1, as `WAYS[way]` has them."""
    return 1 - images if way == len(WAYS) - 1 else torch.rot90(images, way, (2, 3))


@dataclass(frozen=True)
class Doubt:
    spread: Tensor  # (F,)
    mean: Tensor  # (F,)
    directions: Tensor  # (F, K)
    variances: Tensor  # (K,)
    outside: Tensor  # () mean squared length outside of the directions
    weight: Tensor  # (5, K)
    bias: Tensor  # (5,)
    limit: Tensor  # () of `far`

    @classmethod
    def of(
        cls, stages: Sequence[Tensor], ways: Sequence[Sequence[Tensor]], held_out: Sequence[Tensor], share: float
    ) -> Doubt:
        """From the stages' means of training images, of some of them in each of the five ways, and of held-out images,
        of which `share` are not to be doubted."""
        spread = torch.cat([one.std().expand(one.shape[1]) for one in stages])
        x = torch.cat(list(stages), 1) / spread
        mean = x.mean(0)
        torch.manual_seed(0)  # of the randomised decomposition
        most = min(DIRECTIONS, *x.shape)
        _, singular, directions = torch.svd_lowrank(x - mean, q=most, niter=4)
        variances = singular.square() / (len(x) - 1)
        outside = ((x - mean).square().sum(1) - ((x - mean) @ directions).square().sum(1)).mean().clamp_min(1e-6)
        nothing = torch.zeros(len(WAYS), most)
        doubt = cls(spread, mean, directions, variances, outside, nothing, nothing[:, 0], torch.tensor(torch.inf))
        weight, bias = _told_apart([doubt._along(one) for one in ways])
        doubt = replace(doubt, weight=weight, bias=bias)
        return replace(doubt, limit=torch.quantile(doubt.far(held_out), share))

    def far(self, stages: Sequence[Tensor]) -> Tensor:
        """(n,) about 2 for an image like those of training."""
        x = torch.cat([one.float() for one in stages], 1) / self.spread - self.mean
        along = x @ self.directions
        rest = x.square().sum(1) - along.square().sum(1)
        return (along.square() / self.variances).mean(1) + rest.clamp_min(0) / self.outside

    def ways(self, stages: Sequence[Tensor]) -> Tensor:
        """(n, 5) probabilities of `WAYS`."""
        return (self._along(stages) @ self.weight.T + self.bias).softmax(1)

    def warnings(self, stages: Sequence[Tensor]) -> list[str | None]:
        """For each image what is wrong with it, or None."""
        far, ways = self.far(stages), self.ways(stages)
        told: list[str | None] = []
        for distance, way in zip(far.tolist(), ways, strict=True):
            best = int(way.argmax())
            if best and float(way[best]) > SURE_TO_BE_TURNED and distance < 4 * float(self.limit):
                told.append(f"looks {WAYS[best]}")
            elif distance > float(self.limit):
                told.append("does not look like the chest radiographs that were learned from")
            else:
                told.append(None)
        return told

    def _along(self, stages: Sequence[Tensor]) -> Tensor:
        x = torch.cat([one.float() for one in stages], 1) / self.spread - self.mean
        return (x @ self.directions) / self.variances.sqrt()


def _told_apart(ways: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Logistic regression over what lies in each way (n, K), with a ridge."""
    x = torch.cat(list(ways))
    y = torch.cat([torch.full((len(one),), way) for way, one in enumerate(ways)])
    weight = torch.zeros(len(ways), x.shape[1], requires_grad=True)
    bias = torch.zeros(len(ways), requires_grad=True)
    optimiser = torch.optim.LBFGS([weight, bias], max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> float:
        optimiser.zero_grad()
        loss = F.cross_entropy(x @ weight.T + bias, y) + 1e-3 * weight.square().sum()
        loss.backward()
        return loss.item()

    optimiser.step(closure)
    return weight.detach(), bias.detach()

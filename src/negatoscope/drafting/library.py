"""The training studies as the reporter that ships knows them: where they lie by their images, where by their reports,
and what was found. No image, no report: whoever has the data looks them up by their ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from negatoscope.studies.study import OBSERVATIONS

NEAREST = 3
_WITNESSES, _NEARER, _DOUBT = 50, 8.0, 10.0
"""So many studies tell what is found in studies like this one; e to the `_NEARER` times its cosine is the weight of
each; as many as `_DOUBT` more say what the whole library says."""
_SHARPNESS = 30.0
"""Of the softmax over cosines that shares nearness out."""


@dataclass(frozen=True)
class Near:
    """A training study beside the one that is read."""

    id: str
    closeness: float
    """The cosine of the two."""
    share: float
    """Of all nearness among those it was chosen from."""


@dataclass(frozen=True)
class Library:
    ids: tuple[str, ...]
    mean: Tensor  # (r,) of the training studies' vectors
    spread: Tensor  # (r,)
    vectors: Tensor  # (N, r) what was seen, standardised, of unit length
    places: Tensor  # (N, E) phi of each report
    findings: Tensor  # (N, 14) bool: which observations its report names

    @classmethod
    def of(cls, ids: Sequence[str], vectors: Tensor, places: Tensor, findings: Tensor) -> Library:
        mean, spread = vectors.mean(0), vectors.std(0) + 1e-6
        unit = F.normalize((vectors - mean) / spread)
        return cls(tuple(ids), mean, spread, unit, places, findings.bool())

    def cosines(self, queries: Tensor) -> Tensor:
        """Vectors (n, r) -> (n, N)."""
        return F.normalize((queries.float() - self.mean) / self.spread) @ self.vectors.T

    def expected_places(self, cosines: Tensor, among: int) -> Tensor:
        """(n, N) -> (n, E): the mean place of the reports of the nearest studies, E[phi | images] by its neighbours."""
        nearest = cosines.topk(min(among, len(self.ids)), 1).indices  # (n, among)
        return self.places[nearest].mean(1)

    def log_odds(self, cosines: Tensor) -> Tensor:
        """(n, N) -> (n, 14): how often the nearest studies have each observation."""
        nearest = cosines.topk(min(_WITNESSES, len(self.ids)), 1)
        weights = (nearest.values * _NEARER).softmax(1)  # (n, k)
        found = self.findings.float()
        share = torch.einsum("nk,nko->no", weights, found[nearest.indices])
        many = nearest.values.shape[1]
        pulled = (share * many + found.mean(0) * _DOUBT) / (many + _DOUBT)
        return pulled.logit(eps=1e-3)

    def normals(self, cosines: Tensor) -> list[Near]:
        """The nearest studies without a finding; cosines (N,) of one study."""
        return self._near(cosines, self.findings[:, OBSERVATIONS.index("No Finding")])

    def with_finding(self, cosines: Tensor, observation: str) -> list[Near]:
        """The nearest studies whose report names this observation."""
        return self._near(cosines, self.findings[:, OBSERVATIONS.index(observation)])

    def nearest_with(self, cosines: Tensor, observation: int, many: int) -> Tensor:
        """The rows of the nearest studies whose report names this observation."""
        rows = self.findings[:, observation].nonzero().squeeze(1)
        return rows[cosines[rows].topk(min(many, len(rows))).indices]

    def _near(self, cosines: Tensor, allowed: Tensor) -> list[Near]:
        rows = allowed.nonzero().squeeze(1)
        if not len(rows):
            return []
        shares = (cosines[rows] * _SHARPNESS).softmax(0)
        best = cosines[rows].topk(min(NEAREST, len(rows)))
        return [
            Near(self.ids[int(rows[place])], round(float(close), 4), round(float(shares[place]), 4))
            for close, place in zip(best.values, best.indices, strict=True)
        ]

"""Show, Attend and Tell's second wish (Xu et al. 2015, eq. 14): over a report, each patch is looked at about once."""

from __future__ import annotations

from torch import Tensor, nn

from negatoscope.errors import WrongUse
from negatoscope.models.base import Reading
from negatoscope.settings import Settings
from negatoscope.studies.batch import Batch


class DoublyStochasticSettings(Settings):
    looks: float = 1.0
    """How often each patch should be looked at in all: the paper's tau, 1."""


class DoublyStochastic(nn.Module):
    """sum_i (tau - sum_t alpha_ti)^2 over a study's patches, the mean over studies; lambda is the loss's weight."""

    Settings = DoublyStochasticSettings

    def __init__(self, settings: DoublyStochasticSettings) -> None:
        super().__init__()
        self.looks = settings.looks

    def forward(self, reading: Reading, batch: Batch) -> dict[str, Tensor]:
        """Needs a model that looks at patches: `reading.extra["attention"]` (B, T, N)."""
        if "attention" not in reading.extra:
            raise WrongUse(
                "this model does not look at patches", where="doubly-stochastic", remedy="leave that loss out"
            )
        alpha = reading.extra["attention"] * reading.mask.unsqueeze(-1)  # padding looks at nothing
        missed = (self.looks - alpha.sum(1)).pow(2)  # (B, N)
        return {"doubly-stochastic": (missed * reading.sight.mask).sum(1).mean()}

"""What XProNet learns from besides the words: its cross-modal contrastive loss, and the observations of our head.

For studies i and j with label vectors y, and their responses r (the mean over patches, or over words):

    L = 1 / B^2 sum_ij [ share a label ]  max(0, s_ij - cos(r_i, r_j))
                    +  [ share none ]     max(0, cos(r_i, r_j) - margin)
    s_ij = alpha^-(|y_i - y_j| / |y_i + y_j|)            (alike labels ask for alike responses; s_ii = 1)
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from negatoscope.errors import BadInput, WrongUse
from negatoscope.models.base import Reading
from negatoscope.models.xpronet import shown
from negatoscope.settings import Settings
from negatoscope.studies.batch import Batch


class XProNetContrastSettings(Settings):
    margin: float = 0.4
    alpha: float = 1.5
    image: float = 1.0
    """Weight of the loss over patches' responses."""
    words: float = 0.1
    """Weight of the loss over words' responses."""


class XProNetContrast(nn.Module):
    Settings = XProNetContrastSettings

    def __init__(self, settings: XProNetContrastSettings) -> None:
        super().__init__()
        self.settings = settings

    def forward(self, reading: Reading, batch: Batch) -> dict[str, Tensor]:
        said, labels = self.settings, observed(batch)
        parts = {"image": said.image, "word": said.words}
        return {
            f"contrast-{part}": weight
            * prototype_contrast(_extra(reading, f"{part}_response"), labels, said.margin, said.alpha)
            for part, weight in parts.items()
        }


def prototype_contrast(responses: Tensor, labels: Tensor, margin: float = 0.4, alpha: float = 1.5) -> Tensor:
    """Responses (B, d) of studies that show labels (B, C), 0 or 1 -> L."""
    r = F.normalize(responses.float())
    cosine = r @ r.T  # (B, B)
    share = labels @ labels.T > 0
    apart = torch.cdist(labels, labels, p=1)  # |y_i - y_j|
    together = labels.sum(1).unsqueeze(0) + labels.sum(1).unsqueeze(1)  # |y_i + y_j|
    wanted = alpha ** -(apart / together.clamp_min(1))
    loss = torch.where(share, (wanted - cosine).relu(), (cosine - margin).relu())
    return loss.sum() / len(labels) ** 2


class XProNetObservationsSettings(Settings):
    pass


class XProNetObservations(nn.Module):
    """Binary cross-entropy of the observations that the head predicts from the image."""

    Settings = XProNetObservationsSettings

    def __init__(self, settings: XProNetObservationsSettings) -> None:
        super().__init__()

    def forward(self, reading: Reading, batch: Batch) -> dict[str, Tensor]:
        predicted = _extra(reading, "observations").float()
        return {"observations": F.binary_cross_entropy_with_logits(predicted, observed(batch))}


def observed(batch: Batch) -> Tensor:
    """(B, 14) of 0 and 1."""
    if batch.labels is None:
        raise BadInput(
            "XProNet's losses need labels", where=f"batch of {batch.ids[0]}", remedy="see `negatoscope label`"
        )
    return shown(batch.labels).float()


def _extra(reading: Reading, name: str) -> Tensor:
    if name not in reading.extra:
        raise WrongUse(
            f"this model gives no {name!r}", where="losses", remedy="XProNet's losses go with the model xpronet"
        )
    return reading.extra[name]

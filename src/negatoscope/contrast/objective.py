"""What the contrastive losses share: heads that are drawn once the host's widths are known, means over real positions.

A host is any encoder-decoder. From one teacher-forced Reading of it come

    image   (B, d)   the mean over patches that are there of the encoder's output, or of the backbone's features
    report  (B, d)   the mean over real positions of the decoder's last hidden states
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from negatoscope.errors import WrongUse
from negatoscope.models.base import Reading
from negatoscope.studies.batch import Batch
from negatoscope.vision.sight import masked_mean

NEIGHBOURS = "neighbours"
"""Where a Batch holds the Batch of its studies' neighbours, row by row."""
BESIDE = "beside"
"""Where `Batch.extra` holds the Reading of the neighbours, once they were read."""
BACKBONE = "backbone"
"""Where `Reading.extra` holds the backbone's features (B, D), the mean over patches, before any projection."""
CLUSTERS = "clusters"
"""Where `Batch.extra` holds the number of each study's cluster (B,)."""

Image = Literal["backbone", "encoder"]


@dataclass(frozen=True)
class Widths:
    """Of what a host has to give to heads."""

    backbone: int
    """D of the raw features."""
    encoder: int
    """d of the encoder's output."""
    decoder: int
    """d of the decoder's hidden states."""
    learns: bool = True
    """Whether the backbone learns: heads over features that never change would be all that a loss could move."""


class Contrastive(nn.Module):
    """A loss of training alone: it compares studies of a batch, and leaves the reporter as it writes."""

    needs_neighbours: bool = False
    """Whether each batch must bring its studies' neighbours, which are read in the same pass."""
    epoch: int = 0

    def meet(self, widths: Widths) -> None:
        """Draws heads for a host of these widths; once, before the first step."""

    def begin_epoch(self, epoch: int) -> None:
        """Epochs count from 0."""
        self.epoch = epoch

    def forward(self, reading: Reading, batch: Batch) -> dict[str, Tensor]:
        raise NotImplementedError


def image_vectors(reading: Reading, source: Image = "encoder") -> Tensor:
    """(B, d) float32."""
    if source == "backbone":
        if BACKBONE not in reading.extra:
            raise WrongUse("the backbone's features were not kept", where="losses", remedy="set image: encoder")
        return reading.extra[BACKBONE].float()
    encoded = reading.extra.get("encoded", reading.sight.patches)  # (B, N, d)
    return masked_mean(encoded.float(), reading.sight.mask)


def report_vectors(reading: Reading) -> Tensor:
    """(B, d) float32."""
    return masked_mean(reading.hidden.float(), reading.mask)


def exact(like: Tensor) -> torch.autocast:
    """Similarities over a small temperature need float32, whatever the host is run in."""
    return torch.autocast(like.device.type, enabled=False)

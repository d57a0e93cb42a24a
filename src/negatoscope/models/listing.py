"""What there is to choose from."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from negatoscope.errors import WrongUse, nearest_names
from negatoscope.models import REPORTERS, reporter_class, reporter_names
from negatoscope.studies.batch import Batch
from negatoscope.vision.sight import Sight


@dataclass(frozen=True)
class Listed:
    name: str
    paper: str
    year: int
    parameters: int
    """At the default size, with 761 words and features 2,048 wide, without the image encoder."""


class _NoEncoder(nn.Module):
    width = 2048

    def forward(self, batch: Batch) -> Sight:
        raise WrongUse("this encoder only tells its width")


def list_reporters(pattern: str = "*") -> list[Listed]:
    """The registered reporters whose name fits; raises WrongUse where none does."""
    names = reporter_names(pattern)
    if not names:
        raise WrongUse(f"no model is called {pattern!r}", remedy=nearest_names(pattern, REPORTERS))
    return [_listed(name) for name in names]


def _listed(name: str) -> Listed:
    kind = reporter_class(name)
    with torch.device("meta"):  # sizes alone: nothing is drawn, nothing takes memory
        reporter = kind(kind.Settings(), _NoEncoder(), 761)  # pyright: ignore[reportCallIssue]
    return Listed(name, kind.paper, kind.year, sum(p.numel() for p in reporter.parameters()))

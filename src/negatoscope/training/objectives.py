"""What a reporter is trained to make small. A new objective is one file and one line here."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, ClassVar, Protocol

from torch import Tensor, nn
from torch.nn import functional as F

from negatoscope.errors import WrongUse, nearest_names
from negatoscope.models.base import Reading, targets
from negatoscope.settings import Settings, read_settings
from negatoscope.studies.batch import Batch

OBJECTIVES = {
    "cross-entropy": "negatoscope.training.objectives:CrossEntropy",
    "doubly-stochastic": "negatoscope.training.doubly_stochastic:DoublyStochastic",
    "tags": "negatoscope.training.side_losses:TagLoss",
    "stop": "negatoscope.training.side_losses:StopLoss",
    "switch": "negatoscope.training.side_losses:SwitchLoss",
    "wcl": "negatoscope.contrast.weak:WeakContrast",
    "hard-negatives": "negatoscope.contrast.negatives:HardNegatives",
    "xpronet-contrast": "negatoscope.training.xpronet:XProNetContrast",
    "xpronet-observations": "negatoscope.training.xpronet:XProNetObservations",
}


class Objective(Protocol):
    """A loss: named terms, which the loop logs one by one, weighs and adds up.

    An objective with parameters of its own (projection heads, a temperature) is an nn.Module: they are trained and
    saved with the run, but never with the reporter, which writes without them.
    """

    Settings: ClassVar[type[Settings]]

    def __call__(self, reading: Reading, batch: Batch) -> dict[str, Tensor]: ...


class CrossEntropySettings(Settings):
    label_smoothing: float = 0.0


class CrossEntropy(nn.Module):
    """- log p(next word), the mean over all real words and ends of the batch."""

    Settings = CrossEntropySettings

    def __init__(self, settings: CrossEntropySettings) -> None:
        super().__init__()
        self.smoothing = settings.label_smoothing

    def forward(self, reading: Reading, batch: Batch) -> dict[str, Tensor]:
        wanted = targets(batch)[reading.mask]  # (words,)
        return {
            "cross-entropy": F.cross_entropy(
                reading.logits[reading.mask].float(), wanted, label_smoothing=self.smoothing
            )
        }


def build_objective(name: str, settings: dict[str, Any], *, where: object = None) -> Objective:
    if name not in OBJECTIVES:
        raise WrongUse(f"unknown loss {name!r}", where=where, remedy=nearest_names(name, OBJECTIVES))
    module, _, kind = OBJECTIVES[name].partition(":")
    make: Callable[[Settings], Objective] = getattr(import_module(module), kind)
    return make(read_settings(make.Settings, settings, where=where))  # pyright: ignore[reportFunctionMemberAccess]

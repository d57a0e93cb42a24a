"""The metrics by name. A new metric is one file and one line here."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from negatoscope.errors import WrongUse, nearest_names
from negatoscope.watch import Watch, quiet

if TYPE_CHECKING:
    from negatoscope.metrics.metric import Metric

METRICS: Mapping[str, str] = {
    "bleu": "negatoscope.metrics.bleu:Bleu",
    "rouge": "negatoscope.metrics.rouge:Rouge",
    "cider": "negatoscope.metrics.cider:Cider",
    "meteor": "negatoscope.metrics.meteor:Meteor",
    "diversity": "negatoscope.metrics.diversity:Diversity",
    "lengths": "negatoscope.metrics.lengths:Lengths",
    "copied": "negatoscope.metrics.diversity:Copied",
    "clinical": "negatoscope.metrics.clinical:Clinical",
    "chexbert": "negatoscope.metrics.learned:CheXbert",
    "radgraph": "negatoscope.metrics.learned:RadGraph",
    "bertscore": "negatoscope.metrics.learned:BertScore",
}
"""Name -> where its class is. A class is given what its constructor asks for by name: `training` (the training reports
as the metric reads them) and `watch`."""

USUAL = ("bleu", "meteor", "rouge", "cider", "diversity", "lengths", "copied", "clinical")
"""What is computed where nobody says otherwise; what cannot be is left out with its reason."""


def metric_named(name: str, training: Sequence[str] | None = None, watch: Watch = quiet) -> Metric:
    """Raises WrongUse for a name that does not exist or a metric that needs training reports and got none, Trouble
    where what the metric needs is not installed."""
    module, _, cls = METRICS[known_metric(name)].partition(":")
    kind = getattr(import_module(module), cls)
    asked = inspect.signature(kind).parameters
    given = {"training": training, "watch": watch}
    if "training" in asked and training is None:
        raise WrongUse(f"{name} needs the training reports", remedy="--train FILE")
    return kind(**{what: value for what, value in given.items() if what in asked})


def known_metric(name: str) -> str:
    if name not in METRICS:
        raise WrongUse(f"no metric {name!r}", remedy=nearest_names(name, METRICS))
    return name

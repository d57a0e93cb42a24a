"""Every report generator by name. A new one is one file and one line here."""

from __future__ import annotations

from fnmatch import fnmatch
from importlib import import_module
from typing import TYPE_CHECKING

from negatoscope.errors import WrongUse, nearest_names

if TYPE_CHECKING:
    from negatoscope.models.base import Reporter

REPORTERS = {
    "nic": "negatoscope.models.nic:NIC",
    "visual-attention": "negatoscope.models.visual_attention:VisualAttention",
    "st": "negatoscope.models.visual_attention:ST",
    "spatial-attention": "negatoscope.models.spatial_attention:SpatialAttention",
    "adaptive-attention": "negatoscope.models.adaptive_attention:AdaptiveAttention",
    "att2in": "negatoscope.models.att2in:Att2in",
    "up-down": "negatoscope.models.up_down:UpDown",
    "topdown": "negatoscope.models.up_down:TopDown",
    "hlstm": "negatoscope.models.hlstm:HLSTM",
    "hlstm-dual": "negatoscope.models.hlstm_dual:HLSTMDual",
    "co-attention": "negatoscope.models.co_attention:CoAttention",
    "multi-attention": "negatoscope.models.multi_attention:MultiAttention",
    "hcr": "negatoscope.models.hier_cnn_rnn:HierCNNRNN",
    "transformer": "negatoscope.models.transformer:Transformer",
    "r2gen": "negatoscope.models.r2gen:R2Gen",
    "r2gencmn": "negatoscope.models.r2gencmn:R2GenCMN",
    "xpronet": "negatoscope.models.xpronet:XProNet",
    "visualgpt": "negatoscope.models.visualgpt:VisualGPT",
}


def reporter_class(name: str, *, where: object = None) -> type[Reporter]:
    """The class of a model's name; raises WrongUse with the nearest names."""
    try:
        module, kind = REPORTERS[name].split(":")
    except KeyError:
        raise WrongUse(f"unknown model {name!r}", where=where, remedy=nearest_names(name, REPORTERS)) from None
    return getattr(import_module(module), kind)


def reporter_names(pattern: str = "*") -> list[str]:
    """Names with wildcards: `reporter_names("r2gen*")`."""
    return [name for name in REPORTERS if fnmatch(name, pattern)]

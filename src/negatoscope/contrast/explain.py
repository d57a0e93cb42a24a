"""Why a report came out as it did: with which normal studies a study was compared, and what set it apart, where.

The paper's Figure 3 shows both for one study, and defines neither in an equation. Ours:

    nearest  of head h: the normal studies with the largest shares softmax(M_h)                          (4), (6)
    heat_i   = (v_i - v^c) . v^d / |v^d|        how far patch i goes along the contrastive information   (7), (8)

Where the overall vector is the mean of the patches, the mean of heat over the patches is |v^d| itself: the map shares
the contrastive information out over the image. At `level: patch` each patch has a contrast of its own, and heat_i =
|v_i^d|.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from negatoscope.contrast.attention import Contrasted, ContrastiveAttention
from negatoscope.errors import WrongUse
from negatoscope.models.base import Reporter
from negatoscope.studies.batch import Batch
from negatoscope.vision.sight import Sight


@dataclass(frozen=True)
class Nearest:
    """A normal study of the pool, and its share of one head's attention."""

    id: str
    share: float


@dataclass(frozen=True)
class Explanation:
    id: str
    heads: tuple[tuple[Nearest, ...], ...]
    """Of each head of Aggregate Attention the normal studies nearest to this one, nearest first."""
    heat: tuple[Tensor | None, ...]
    """Of each view slot (h, w): the contrastive information; None where the study lacks the view."""
    strength: float
    """|v^d|, the length of the contrastive information."""
    common: float
    """|v^c|, the length of what the study has in common with normal ones."""


@torch.inference_mode()
def explain(reporter: Reporter, batch: Batch, *, nearest: int = 5) -> list[Explanation]:
    """One Explanation a study; raises WrongUse for a reporter without Contrastive Attention."""
    contrast = reporter.contrast
    if not isinstance(contrast, ContrastiveAttention):
        raise WrongUse(
            "this reporter was trained without contrastive attention",
            remedy="train with `contrast: {attention: {}}` in the recipe",
        )
    was_training = reporter.training
    reporter.eval()
    try:
        sight = reporter.look(batch)
        found = contrast.compare(sight, batch.ids)
    finally:
        reporter.train(was_training)
    heat = heat_of(sight, found)  # (B, N)
    names = list(contrast.rows)
    shares, rows = found.shares[:, 0].topk(min(nearest, len(names)), dim=-1)  # (B, n, nearest)
    return [
        Explanation(
            id,
            tuple(
                tuple(Nearest(names[row], share) for row, share in zip(of_rows, of_shares) if share > 0)
                for of_rows, of_shares in zip(rows[b].tolist(), shares[b].tolist())
            ),
            _by_view(sight, heat[b], sight.mask[b]),
            found.apart[b, 0].norm().item(),
            found.common[b, 0].norm().item(),
        )
        for b, id in enumerate(batch.ids)
    ]


def heat_of(sight: Sight, found: Contrasted) -> Tensor:
    """(B, N)."""
    if found.apart.shape[1] > 1:
        return found.apart[:, 1:].norm(dim=-1)
    apart = found.apart[:, 0]  # (B, d)
    along = apart / apart.norm(dim=-1, keepdim=True).clamp_min(1e-12)
    return ((sight.patches - found.common) @ along.unsqueeze(-1)).squeeze(-1)


def _by_view(sight: Sight, heat: Tensor, mask: Tensor) -> tuple[Tensor | None, ...]:
    views, h, w = sight.grid
    slices = [sight.of_view(number) for number in range(views)]
    return tuple(heat[of].view(h, w).float().cpu() if mask[of].any() else None for of in slices)

"""Tensors of a few studies, padded and masked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import Tensor


@dataclass  # not frozen: Fabric's mixed precision copies it field by field
class Batch:
    """B studies of V view slots (0 frontal, 1 lateral). Either `images` or `features` is there, `words` where reports
    are known."""

    ids: tuple[str, ...]
    present: Tensor  # (B, V) bool: which view slots hold a picture
    images: Tensor | None = None  # (B, V, C, H, W) float, grey values 0 to 1 (C = 1) or already normalised (C = 3)
    features: Tensor | None = None  # (B, V, N, D) cached, in place of images
    words: Tensor | None = None  # (B, T) long: start mark 0, words, end mark 0, padding 0
    word_mask: Tensor | None = None  # (B, T) bool: True for start mark, words and end mark
    labels: Tensor | None = None  # (B, 14) float: 1, 0, -1, NaN where not mentioned
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What one model or loss alone needs, by name: tag targets (B, tags), group numbers (B,), a Batch of neighbours."""

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, chosen: list[int]) -> Batch:
        """Some of its studies."""
        picked = {f.name: _rows(getattr(self, f.name), chosen) for f in fields(self) if f.name != "ids"}
        return replace(self, ids=tuple(self.ids[row] for row in chosen), **picked)

    def to(self, device: torch.device | str) -> Batch:
        """The same batch with each tensor on a device."""
        moved = {f.name: _to(getattr(self, f.name), device) for f in fields(self) if f.name != "ids"}
        return replace(self, **moved)


def _to(value: Any, device: Any) -> Any:
    if hasattr(value, "to"):
        return value.to(device, non_blocking=True) if not isinstance(value, Batch) else value.to(device)
    if isinstance(value, Mapping):
        return {name: _to(inner, device) for name, inner in value.items()}
    return value


def _rows(value: Any, chosen: list[int]) -> Any:
    if isinstance(value, Batch):
        return value.rows(chosen)
    if isinstance(value, Mapping):
        return {name: _rows(inner, chosen) for name, inner in value.items()}
    return None if value is None else value[chosen]

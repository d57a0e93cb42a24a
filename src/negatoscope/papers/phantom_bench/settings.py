"""What the bench is made of: two sets of phantoms, an encoder, and a few reporters for each seed."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from negatoscope.papers.paper import Row
from negatoscope.settings import Settings
from negatoscope.studies.phantom.settings import FINDINGS, PhantomSettings

PLAIN, CA, CA_PATCH = "visual-attention", "visual-attention+ca", "visual-attention+ca-patch"
_WCL: tuple[dict[str, Any], ...] = ({"name": "cross-entropy", "weight": 0.8}, {"name": "wcl", "weight": 0.2})
ROWS = (
    Row(name=PLAIN, label="Visual-Attention", recipe="visual-attention"),
    Row(
        name=CA,
        label="Visual-Attention + CA",
        recipe="visual-attention",
        changes={"contrast": {"attention": {"heads": 6, "pool": 1000}}},
        against=PLAIN,
    ),
    Row(
        name=CA_PATCH,
        label="Visual-Attention + CA, each patch with its like",
        recipe="visual-attention",
        changes={"contrast": {"attention": {"heads": 6, "pool": 1000, "level": "patch"}}},
        against=PLAIN,
    ),
    Row(name="r2gen", label="R2Gen", recipe="r2gen"),
    Row(name="r2gen+wcl", label="R2Gen + WCL", recipe="r2gen", losses=_WCL, against="r2gen"),
    Row(name="r2gencmn", label="R2GenCMN", recipe="r2gencmn"),
    Row(
        name="r2gencmn+ithn",
        label="R2GenCMN + ITHN",
        recipe="r2gencmn",
        losses=({"name": "hard-negatives", "way": "ithn"},),
        against="r2gencmn",
    ),
)
"""Each method on a host of its own paper, and that host alone."""


class BenchSettings(Settings):
    studies: int = Field(default=2400, ge=20)
    """Drawn to learn from; eight in ten are training studies."""
    held_out: int = Field(default=600, ge=2)
    """Drawn besides, of other patients, to measure on. All findings are equally frequent there, so that there are
    enough of the rare ones."""
    size: int = Field(default=128, ge=64)
    """Side of the pictures as they are drawn."""
    image_size: int = Field(default=192, ge=64)
    """Side at which the encoder sees them: a patch is 32 of its pixels wide."""
    normal_share: float = Field(default=0.3, ge=0, lt=1)
    """Of the studies to learn from."""
    held_out_normal: float = Field(default=0.25, ge=0, lt=1)
    teach_epochs: int = Field(default=12, ge=1)
    """Of the encoder, which learns to name findings before any reporter is trained; one for all seeds."""
    low_precision: bool = True
    """bf16 while the encoder learns."""
    epochs: int = Field(default=10, ge=1)
    """Of each reporter; the last one is measured, none is chosen."""
    rare: float = Field(default=0.05, gt=0, le=1)
    """A finding is rare that fewer than this share of the training studies have."""
    draws: int = Field(default=1000, ge=10)
    """Of the bootstrap."""

    def to_learn(self) -> PhantomSettings:
        return PhantomSettings(studies=self.studies, size=self.size, seed=1, normal_share=self.normal_share)

    def to_measure(self) -> PhantomSettings:
        alike = dict.fromkeys(FINDINGS, 1.0)
        return PhantomSettings(
            studies=self.held_out, size=self.size, seed=2, normal_share=self.held_out_normal, frequencies=alike
        )

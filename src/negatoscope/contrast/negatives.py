"""ITHN (Voutharoja, Wang, Zhou: Automatic Radiology Report Generation by Learning with Increasingly Hard Negatives,
ECAI 2023), and its MoCHi rival, on any encoder-decoder.

Each study i comes with a neighbour, whose report says nearly the same (`neighbours.py`). Both are read. With z, z- of
the two images and u, u- of the two reports, each through a linear layer and of unit length, a report is made up that is
ever harder to tell from the true one, and pushed away from the image:

    L_CS = cos(z_i, z-_i)                                                                  eq. 1
    h_i = (1 - lam) u-_i + lam u_i                        MoCHi                            eq. 2
    p_i = u-_i + ((z_i - u-_i) . (u_i - u-_i)) / |u_i - u-_i|^2 (u_i - u-_i)               eq. 6
    h_i = (1 - lam) u-_i + lam p_i                        ITHN                             eq. 7
    lam = 1 - exp(-a epoch)
    S1 = cos(z_i, u_j),  S2 = cos(z-_i, u-_j),  S3' = cos(z_i, h_j) with its diagonal negated    eq. 9, 10
    S = (S1 + S2 + S3') / 3                                                                eq. 11
    L_CP = (CLIP(S / tau) + CLIP(S^T / tau)) / 2                                           eq. 12
    L = L_CE + beta L_CP + gamma L_CS                                                      eq. 13

The neighbour u- is used each time, not the last h. CLIP is softmax cross-entropy with the diagonal as its target, as in
CLIP itself and in the authors' code; eq. 8 as printed leaves the true pair out of the denominator.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from negatoscope.contrast.gathering import gather
from negatoscope.contrast.objective import BESIDE, Contrastive, Image, Widths, exact, image_vectors, report_vectors
from negatoscope.errors import WrongUse
from negatoscope.models.base import Reading
from negatoscope.settings import Settings
from negatoscope.studies.batch import Batch

Form = Literal["paper", "released"]
_MOCHI_K = 5


class NegativesSettings(Settings):
    way: Literal["ithn", "mochi", "prior", "none"] = "ithn"
    """ithn: eq. 7. mochi: eq. 2, with one of `among` neighbours each epoch. prior: h is the neighbour itself, nothing
    is made up. none: image and own report alone, L_CP on S1 and nothing else (no neighbours are read)."""
    alpha: float = Field(default=0.01, ge=0)
    """How fast lam rises with the epochs: 0.01 for reports, 0.1 for COCO."""
    beta: float = Field(default=0.1, ge=0)
    """Weight of L_CP."""
    gamma: float = Field(default=0.2, ge=0)
    """Weight of L_CS."""
    tau: float = Field(default=0.07, gt=0)
    """Where the learned temperature starts."""
    width: int = Field(default=512, ge=1)
    """Of the common space."""
    image: Literal["auto", "backbone", "encoder"] = "auto"
    """What z is made of: the backbone's pooled features, as the paper has it, or the mean of the encoder's output.
    auto: the backbone where it learns, else the encoder, as frozen features leave a loss nothing to change."""
    among: int = Field(default=0, ge=0)
    """k, the neighbours of which one is drawn each epoch. 0: 5 for mochi, the paper names none, and else the nearest
    alone."""
    embedder: str = "tfidf"
    """By what two reports are near: tfidf, labels (the 14 observations), or an encoder's folder or hub id."""
    projection: Form = "paper"
    """released: the dot products of all pairs of the batch are summed up, and the line's length enters once, not
    twice."""
    third: Form = "paper"
    """released: of S3' the diagonal alone is kept, and h is not brought to unit length."""
    apart: Form = "paper"
    """released: L_CS is the absolute value."""
    temperatures: Form = "paper"
    """released: S3' has a learned temperature of its own."""
    schedule: Form | Literal["falling"] = "paper"
    """released: epochs count from 1, so that lam is never 0 (lam and 1 - lam are exchanged there in the schedule and in
    eq. 7 alike, which comes to the same). falling: exchanged in the schedule alone, so that negatives grow easier."""

    @property
    def neighbours(self) -> int:
        return self.among or (_MOCHI_K if self.way == "mochi" else 1)


class HardNegatives(Contrastive):
    Settings = NegativesSettings

    def __init__(self, settings: NegativesSettings) -> None:
        super().__init__()
        self.settings = settings
        self.needs_neighbours = settings.way != "none"
        self.image: Image = "encoder"
        self.of_image: nn.Module = nn.Identity()
        self.of_report: nn.Module = nn.Identity()
        scale = torch.full((2 if settings.temperatures == "released" else 1,), math.log(1 / settings.tau))
        self.scale = nn.Parameter(scale)  # log 1 / tau

    def meet(self, widths: Widths) -> None:
        wanted = self.settings.image
        self.image = ("backbone" if widths.learns else "encoder") if wanted == "auto" else wanted
        wide = widths.backbone if self.image == "backbone" else widths.encoder
        self.of_image = nn.Linear(wide, self.settings.width, bias=False)
        self.of_report = nn.Linear(widths.decoder, self.settings.width, bias=False)

    @property
    def lam(self) -> float:
        said = self.settings
        left = math.exp(-said.alpha * (self.epoch + (said.schedule == "released")))
        return left if said.schedule == "falling" else 1 - left

    def forward(self, reading: Reading, batch: Batch) -> dict[str, Tensor]:
        """Needs `batch.extra["beside"]`, the Reading of the neighbours, unless the way is none."""
        said = self.settings
        with exact(reading.logits):
            z, u = gather(torch.stack(self._seen(reading), 1)).unbind(1)  # (B, d) each
            if said.way == "none":
                return {"contrast": said.beta * clip_loss(z @ u.T * self.scale.exp()[0])}
            beside = batch.extra.get(BESIDE)
            if not isinstance(beside, Reading):
                raise WrongUse("the loss 'hard-negatives' needs neighbours in the batch", where="losses")
            z_, u_ = gather(torch.stack(self._seen(beside), 1)).unbind(1)
            h = self._harder(z, u, u_)
            return {
                "contrast": said.beta * clip_loss(self._similar(z, u, z_, u_, h)),
                "apart": said.gamma * image_distance(z, z_, said.apart),
            }

    def _seen(self, reading: Reading) -> list[Tensor]:
        return [
            F.normalize(self.of_image(image_vectors(reading, self.image))),
            F.normalize(self.of_report(report_vectors(reading))),
        ]

    def _harder(self, z: Tensor, u: Tensor, u_: Tensor) -> Tensor:
        if self.settings.way == "prior":
            return u_
        if self.settings.way == "mochi":
            return mix(u_, u, self.lam)
        on_line = project if self.settings.projection == "paper" else project_as_released
        return mix(u_, on_line(z, u, u_), self.lam)

    def _similar(self, z: Tensor, u: Tensor, z_: Tensor, u_: Tensor, h: Tensor) -> Tensor:
        """S / tau (B, B)."""
        scale = self.scale.exp()
        return (scale[0] * (z @ u.T + z_ @ u_.T) + scale[-1] * third_matrix(z, h, self.settings.third)) / 3


def project(z: Tensor, u: Tensor, u_: Tensor) -> Tensor:
    """p (B, d): z on the line through u- and u, each row for itself; where u = u-, that point."""
    line = u - u_
    along = ((z - u_) * line).sum(1, keepdim=True) / line.square().sum(1, keepdim=True).clamp_min(1e-12)
    return u_ + along * line


def project_as_released(z: Tensor, u: Tensor, u_: Tensor) -> Tensor:
    """As the authors' code does: every line of the batch takes part in each sample's p."""
    line = u - u_
    return u_ + ((z - u_) @ line.T) @ F.normalize(line)


def mix(u_: Tensor, towards: Tensor, lam: float) -> Tensor:
    return (1 - lam) * u_ + lam * towards


def third_matrix(z: Tensor, h: Tensor, form: Form = "paper") -> Tensor:
    """S3' (B, B)."""
    if form == "released":
        return -torch.diag((z * h).sum(1))
    similar = F.normalize(z) @ F.normalize(h).T
    return similar - 2 * torch.diag(similar.diagonal())


def clip_loss(similar: Tensor) -> Tensor:
    """Over images and over reports; the true pairs stand on the diagonal."""
    right = torch.arange(len(similar), device=similar.device)
    return (F.cross_entropy(similar, right) + F.cross_entropy(similar.T, right)) / 2


def image_distance(z: Tensor, z_: Tensor, form: Form = "paper") -> Tensor:
    """L_CS."""
    cosine = F.cosine_similarity(z, z_)
    return (cosine.abs() if form == "released" else cosine).mean()

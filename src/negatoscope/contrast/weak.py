"""WCL (Yan, He, Lu, Du, Chang, Gentili, McAuley, Hsu: Weakly Supervised Contrastive Learning for Chest X-Ray Report
Generation, Findings of EMNLP 2021), on any encoder-decoder.

An image and its own report are pulled together in a latent space, other reports of the batch pushed away, hardest
those of the same cluster, which mean nearly the same (`clusters.py`):

    z_x = phi_x(mean of the encoder's output),  z_y = phi_y(mean of the decoder's hidden states)     eq. 3
    s_ij = cos(z_x(i), z_y(j)) / tau
    L_WCL = - mean_i log exp(s_ii) / (sum_{l_i != l_j} exp(s_ij) + alpha sum_{l_i = l_j} exp(s_ij))  eq. 4
    L = (1 - lambda) L_CE + lambda L_WCL                                                             eq. 5

lambda stands in a recipe as the two losses' weights. As printed, j = i falls into the second sum and weighs alpha; in
the authors' code it weighs 1 and only the others of its cluster alpha: `reading`.

The ablation called adversarial adds one more negative an image, an imposter of its own report (Lee et al., Contrastive
Learning with Adversarial Perturbations for Conditional Text Generation, ICLR 2021): hidden states a short way against
the likelihood's slope,

    H' = H - epsilon g / |g|,   g = d log p(report | image) / d H
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from negatoscope.contrast.gathering import gather
from negatoscope.contrast.objective import CLUSTERS, Contrastive, Widths, exact, image_vectors, report_vectors
from negatoscope.errors import WrongUse
from negatoscope.models.base import Reading, targets
from negatoscope.settings import Settings
from negatoscope.studies.batch import Batch
from negatoscope.vision.sight import masked_mean


class WeakSettings(Settings):
    alpha: float = Field(default=2.0, ge=0)
    """How much harder same-cluster reports push: 1 is plain InfoNCE, 0 leaves them out, 2 is the paper's."""
    tau: float = Field(default=1.0, gt=0)
    """Temperature: 1 for MIMIC-ABN, 0.1 for MIMIC-CXR in the released scripts."""
    reading: Literal["released", "printed"] = "released"
    """released: j = i weighs 1. printed: it weighs alpha, as it falls into eq. 4's second sum."""
    width: int = Field(default=256, ge=1)
    """Of the latent space."""
    start: int = Field(default=0, ge=0)
    """The first epoch, from 0, that is learned with this loss; before it, the loss is 0."""
    adversarial: float = Field(default=0.0, ge=0)
    """epsilon of the imposters; 0 makes none. The released code's default is 0.02."""
    clusters: int = Field(default=14, ge=1)
    """K of K-Means over the training reports: 13 for MIMIC-ABN, 14 for MIMIC-CXR."""
    embedder: str = "tfidf"
    """What K-Means sees of a report: tfidf, labels (the 14 observations), or an encoder's folder or hub id."""
    seed: int = 0
    """Of K-Means."""


class WeakContrast(Contrastive):
    Settings = WeakSettings

    def __init__(self, settings: WeakSettings) -> None:
        super().__init__()
        self.settings = settings
        self.phi_x: nn.Module = nn.Identity()
        self.phi_y: nn.Module = nn.Identity()

    def meet(self, widths: Widths) -> None:
        self.phi_x = head(widths.encoder, self.settings.width)
        self.phi_y = head(widths.decoder, self.settings.width)

    def forward(self, reading: Reading, batch: Batch) -> dict[str, Tensor]:
        """Needs `batch.extra["clusters"]` (B,)."""
        said = self.settings
        if self.epoch < said.start:  # each parameter takes part in each step, as DDP expects
            return {"wcl": sum((p.sum() for p in self.parameters()), reading.logits.new_zeros(())) * 0.0}
        if CLUSTERS not in batch.extra:
            raise WrongUse("the loss 'wcl' needs clusters of reports in the batch", where="losses")
        with exact(reading.logits):
            z_x = F.normalize(self.phi_x(image_vectors(reading)))  # (b, w)
            z_y = F.normalize(self.phi_y(report_vectors(reading)))  # (b, w)
            held = [z_x, z_y]
            if said.adversarial:
                states = imposters(reading, batch, said.adversarial)
                held.append(F.normalize(self.phi_y(masked_mean(states, reading.mask))))
            z_x, z_y, *rest = gather(torch.stack(held, 1)).unbind(1)  # (B, w) each
            clusters = gather(batch.extra[CLUSTERS])
            imposter = rest[0] if rest else None
            return {"wcl": weak_contrast(z_x, z_y, clusters, said.tau, said.alpha, said.reading, imposter)}


def head(wide: int, width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(wide, width), nn.ReLU(), nn.Linear(width, width))


def weak_contrast(
    z_x: Tensor,
    z_y: Tensor,
    clusters: Tensor,
    tau: float,
    alpha: float,
    reading: Literal["released", "printed"] = "released",
    imposter: Tensor | None = None,
) -> Tensor:
    """Unit vectors of images and of reports (B, d), clusters (B,), imposters (B, d) -> L_WCL.

    An image with nothing to be pushed from (printed, alpha = 0, a batch of one cluster) counts 0.
    """
    s = z_x @ z_y.T / tau  # (B, B)
    own = torch.eye(len(s), dtype=torch.bool, device=s.device)
    same = clusters.unsqueeze(1) == clusters.unsqueeze(0)
    weight = torch.where(same & ~own if reading == "released" else same, alpha, 1.0).to(s)
    if imposter is not None:
        s = torch.cat([s, (z_x * imposter).sum(1, keepdim=True) / tau], 1)  # (B, B + 1)
        weight = F.pad(weight, (0, 1), value=1.0)
    pushed = (weight > 0).any(1)  # (B,)
    # A row without negatives would be log 0: its slopes are cut before they become NaN.
    weight = torch.where(pushed.unsqueeze(1), weight, 1.0)
    each = torch.logsumexp(s + weight.log(), 1) - s.diagonal()
    return torch.where(pushed, each, 0.0).mean()


def imposters(reading: Reading, batch: Batch, epsilon: float) -> Tensor:
    """H' (B, T, d): what the decoder nearly said, and is less likely. No gradient goes through the slope itself."""
    wanted = targets(batch)
    log_p = reading.logits.float().log_softmax(-1).gather(-1, wanted.unsqueeze(-1)).squeeze(-1)  # (B, T)
    told = (log_p * reading.mask).sum()
    slope = torch.autograd.grad(told, reading.hidden, retain_graph=True, allow_unused=True)[0]
    if slope is None:
        raise WrongUse("this model's words do not follow from its hidden states", where="wcl.adversarial")
    slope = slope.float() * reading.mask.unsqueeze(-1)
    length = slope.flatten(1).norm(dim=1).clamp_min(1e-12).view(-1, 1, 1)
    return reading.hidden.float() - epsilon * slope / length

"""Parameter groups and learning rates. Rates are a function of the settings and of the scores so far: there is no
schedule to save."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import nn

from negatoscope.training.recipe import ScheduleSettings, TrainSettings

BACKBONE = "reporter.encoder.backbone."


def parameter_groups(learner: nn.Module, settings: TrainSettings) -> list[dict[str, object]]:
    """Two groups: the image encoder's backbone at its own rate, and everything else. Frozen parameters are in none."""
    learning = [(name, p) for name, p in learner.named_parameters() if p.requires_grad]
    backbone = [p for name, p in learning if BACKBONE in name]
    rest = [p for name, p in learning if BACKBONE not in name]
    groups: list[dict[str, object]] = [{"params": rest, "lr": settings.lr, "base_lr": settings.lr}]
    if backbone:
        groups.append({"params": backbone, "lr": settings.encoder_lr, "base_lr": settings.encoder_lr})
    return groups


def make_optimiser(learner: nn.Module, settings: TrainSettings) -> torch.optim.Optimizer:
    groups, decay = parameter_groups(learner, settings), settings.weight_decay
    if settings.optimiser == "adamw":
        return torch.optim.AdamW(groups, weight_decay=decay, fused=True)  # pyright: ignore[reportArgumentType]
    if settings.optimiser == "sgd":
        return torch.optim.SGD(groups, momentum=0.9, weight_decay=decay)  # pyright: ignore[reportArgumentType]
    amsgrad = settings.optimiser == "adam-amsgrad"
    return torch.optim.Adam(groups, weight_decay=decay, amsgrad=amsgrad, fused=True)  # pyright: ignore[reportArgumentType]


def set_rates(groups: Iterable[dict[str, float]], factor: float) -> None:
    for group in groups:
        group["lr"] = group["base_lr"] * factor


def rate_factor(settings: ScheduleSettings, epoch: int, scores: Sequence[float]) -> float:
    """What epoch `epoch` (from 0) multiplies each rate by; `scores` of the validations before it, higher is better."""
    if settings.kind == "constant":
        return 1.0
    if settings.kind == "step":
        return settings.factor ** (epoch // settings.every)
    drops, best, waited = 0, float("-inf"), 0
    for score in scores:
        waited = 0 if score > best else waited + 1
        best = max(best, score)
        if waited >= settings.every:
            drops, waited = drops + 1, 0
    return settings.factor**drops


def out_of_patience(patience: int, scores: Sequence[float]) -> bool:
    """Whether the best of the scores lies more than `patience` validations back."""
    return bool(patience and scores) and len(scores) - 1 - max(range(len(scores)), key=lambda i: scores[i]) >= patience

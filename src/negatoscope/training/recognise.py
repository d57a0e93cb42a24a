"""Teaching a Recogniser what the training studies show: an explicit loop over images that all fit in memory.

    L = w_f BCE(findings) + w_t BCE(tags) + w_p BCE(phrases) + w_m |phi - phi^|^2 + w_c L_NCE + w_s BCE(side)

phi^ is the answer `meaning`, phi the report's own vector; its square loss makes phi^ the mean of phi given the images.
L_NCE asks besides that phi^ lie nearer to its own report than to the others of the batch; those that say nearly the
same are left out of its denominator, as WCL's ablation alpha = 0 does.

Each epoch is a function of (seed, epoch): a run that was killed goes on from its last whole epoch, and ends with the
same weights as one that was not.

The weights that are kept are a running mean over the last steps (Polyak and Juditsky, 1992): on two thousand studies it
is worth more than any single epoch that validation could choose, and needs no validation at all.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from pydantic import Field
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F

from negatoscope.errors import BadInput, Trouble, WrongUse
from negatoscope.models.recogniser import Answers, Recogniser
from negatoscope.settings import Settings
from negatoscope.training.checkpoint import fill, flatten, under, unflatten
from negatoscope.watch import Watch, quiet
from negatoscope.whole_files import whole_file


class ChangeSettings(Settings):
    """How far an image may be changed. Nothing is mirrored: reports say left and right."""

    rotate: float = Field(default=8.0, ge=0, le=45)
    """Degrees either way."""
    zoom: float = Field(default=0.12, ge=0, lt=1)
    """Larger or smaller by up to this share, each side for itself by a third of it."""
    shift: float = Field(default=0.05, ge=0, lt=1)
    """Moved by up to this share of a side."""
    contrast: float = Field(default=0.25, ge=0, lt=1)
    brightness: float = Field(default=0.1, ge=0, lt=1)
    erase: float = Field(default=0.3, ge=0, le=1)
    """The chance that a rectangle of up to a tenth of the image turns grey."""


class LessonSettings(Settings):
    epochs: int = Field(default=16, ge=1)
    batch: int = Field(default=24, ge=1)
    """Studies."""
    lr: float = Field(default=2e-4, gt=0)
    """Of the backbone, at its height; it rises over the first twentieth of the steps and falls as a cosine."""
    answers_lr: float = Field(default=1e-3, gt=0)
    weight_decay: float = Field(default=0.05, ge=0)
    keep_stages: int = Field(default=1, ge=0)
    """So many first stages of the backbone keep the weights they came with."""
    memory: float = Field(default=0.995, ge=0, lt=1)
    """Of the running mean of the weights, a step."""
    hide_view: float = Field(default=0.1, ge=0, le=1)
    """The chance that a study with two views shows only one of them."""
    findings: float = Field(default=1.0, ge=0)
    tags: float = Field(default=3.0, ge=0)
    phrases: float = Field(default=3.0, ge=0)
    meaning: float = Field(default=1.0, ge=0)
    contrast: float = Field(default=0.1, ge=0)
    side: float = Field(default=0.1, ge=0)
    tau: float = Field(default=0.1, gt=0)
    same: float = Field(default=0.8, gt=0)
    """Reports whose vectors' cosine is above this are no negatives of each other."""
    mix: float = Field(default=0.0, ge=0)
    """alpha of mixup: each study is blended with another of its batch, images and lessons alike; 0 blends none."""
    change: ChangeSettings = ChangeSettings()
    seed: int = 1


@dataclass(frozen=True)
class Gallery:
    """n images of N studies, in memory."""

    images: Tensor  # (n, S, S) uint8
    study: Tensor  # (n,) row of its study
    lateral: Tensor  # (n,) bool
    studies: int

    def of(self, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """Rows of studies (b,) -> rows of their images (m,), and for each its place among the chosen (m,)."""
        place = torch.full((self.studies,), -1, dtype=torch.long, device=chosen.device)
        place[chosen] = torch.arange(len(chosen), device=chosen.device)
        images = torch.nonzero(place[self.study] >= 0).squeeze(1)
        return images, place[self.study[images]]

    def to(self, device: torch.device | str) -> Gallery:
        return Gallery(self.images.to(device), self.study.to(device), self.lateral.to(device), self.studies)


@dataclass(frozen=True)
class Lessons:
    """What the N studies are to be recognised as."""

    findings: Tensor  # (N, 14) 0 to 1
    tags: Tensor  # (N, K)
    phrases: Tensor  # (N, P)
    meaning: Tensor  # (N, E)

    def to(self, device: torch.device | str) -> Lessons:
        return Lessons(*(tensor.to(device) for tensor in vars(self).values()))

    def of(self, chosen: Tensor) -> Lessons:
        return Lessons(*(tensor[chosen] for tensor in vars(self).values()))


def teach(
    recogniser: Recogniser,
    gallery: Gallery,
    lessons: Lessons,
    chosen: Tensor,
    settings: LessonSettings,
    *,
    low_precision: bool = False,
    watch: Watch = quiet,
    after_epoch: Callable[[int, Recogniser, dict[str, float]], None] | None = None,
    lesson_file: Path | None = None,
) -> Recogniser:
    """The running mean of the weights, learned from the `chosen` rows of studies; everything lies on one device.

    `after_epoch(epoch, mean so far, mean of each loss)`. `lesson_file` keeps what was learned after each epoch, and is
    gone on from where it is there. Raises Trouble when a loss is not finite.
    """
    device = gallery.images.device
    recogniser = recogniser.to(device).train()
    if recogniser.encoder.backbone is not None:
        recogniser.encoder.backbone.freeze_stages(settings.keep_stages)
    mean = copy.deepcopy(recogniser).eval().requires_grad_(False)
    optimiser = torch.optim.AdamW(_groups(recogniser, settings), weight_decay=settings.weight_decay)
    size = recogniser.settings.encoder.image_size
    learning = Learning(recogniser, mean, optimiser, settings)
    begun = learning.load(lesson_file) if lesson_file is not None and lesson_file.exists() else 0
    per_epoch = math.ceil(len(chosen) / settings.batch)
    step, steps = begun * per_epoch, per_epoch * settings.epochs
    for epoch in range(begun, settings.epochs):
        rng = np.random.default_rng([settings.seed, epoch])
        draw = torch.Generator(device).manual_seed(int(rng.integers(2**62)))
        torch.manual_seed(int(rng.integers(2**62)))
        order = chosen[torch.from_numpy(rng.permutation(len(chosen))).to(chosen.device)]
        sums: dict[str, float] = {}
        for rows in watch(order.split(settings.batch), f"epoch {epoch + 1} of {settings.epochs}", per_epoch):
            for group in optimiser.param_groups:
                group["lr"] = group["peak"] * height(step, steps)
            images, study = _seen(gallery, rows, settings.hide_view, draw)
            pixels = change(gallery.images[images], size, settings.change, draw)
            lateral, asked = gallery.lateral[images], lessons.of(rows)
            if settings.mix:
                share = float(rng.beta(settings.mix, settings.mix))
                pixels, asked = mixed(pixels, study, lateral, asked, max(share, 1 - share))
            with torch.autocast(device.type, torch.bfloat16, enabled=low_precision):
                pooled = recogniser.look(pixels).float().mean((2, 3))
            answers = recogniser(recogniser.together(pooled, study, lateral, len(rows)))
            terms = losses(answers, asked, settings)
            side = F.binary_cross_entropy_with_logits(recogniser.from_the_side(pooled), lateral.float())
            terms["side"] = settings.side * side
            loss = torch.stack(list(terms.values())).sum()
            said = torch.stack([*terms.values(), loss]).tolist()  # one wait for the device a step
            if not math.isfinite(said[-1]):
                raise Trouble(f"the loss is not finite at epoch {epoch + 1}", remedy="lower the rate")
            loss.backward()
            nn.utils.clip_grad_norm_(recogniser.parameters(), 5.0)
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            step += 1
            remember(mean, recogniser, min(settings.memory, step / (step + 10)))
            for name, term in zip(terms, said):
                sums[name] = sums.get(name, 0.0) + term / per_epoch
        if lesson_file is not None:
            learning.save(lesson_file, epoch + 1)
        if after_epoch:
            after_epoch(epoch, mean, sums)
    return mean


@dataclass(frozen=True)
class Learning:
    """All that changes while a Recogniser learns."""

    recogniser: Recogniser
    mean: Recogniser
    optimiser: torch.optim.Optimizer
    settings: LessonSettings

    def save(self, path: Path, epochs: int) -> None:
        state = {"now": self.recogniser.state_dict(), "mean": self.mean.state_dict()}
        moments = {str(number): values for number, values in self.optimiser.state_dict()["state"].items()}
        tensors = {f"{part}/{name}": tensor for part, held in state.items() for name, tensor in held.items()}
        tensors |= flatten(moments, "optimiser")
        with whole_file(path) as part:
            kept = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
            save_file(kept, part, metadata={"epochs": str(epochs), "settings": self.settings.model_dump_json()})

    def load(self, path: Path) -> int:
        """How many epochs it has behind it. Raises WrongUse where the file has other settings, BadInput where it is
        damaged."""
        try:
            with safe_open(path, framework="pt") as opened:
                header = opened.metadata() or {}
                tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - no mapping
            said, epochs = header["settings"], int(header["epochs"])
        except (SafetensorError, KeyError, ValueError) as error:
            raise BadInput(f"damaged ({error})", where=path, remedy="delete it to begin again") from error
        if said != self.settings.model_dump_json():
            raise WrongUse("was begun with other settings", where=path, remedy="delete it, or take another folder")
        fill(self.recogniser, under(tensors, "now"), where=path)
        fill(self.mean, under(tensors, "mean"), where=path)
        state = self.optimiser.state_dict()
        state["state"] = {int(number): values for number, values in unflatten(tensors, "optimiser").items()}
        self.optimiser.load_state_dict(state)
        return epochs


def losses(answers: Answers, lessons: Lessons, settings: LessonSettings) -> dict[str, Tensor]:
    """Each already weighted."""
    binary = F.binary_cross_entropy_with_logits
    terms = {"findings": settings.findings * binary(answers.findings, lessons.findings)}
    if answers.tags.shape[1]:
        terms["tags"] = settings.tags * binary(answers.tags, lessons.tags)
    if answers.phrases.shape[1]:
        terms["phrases"] = settings.phrases * binary(answers.phrases, lessons.phrases)
    if answers.meaning.shape[1]:
        apart = (answers.meaning - lessons.meaning).square().sum(1)  # (B,)
        terms["meaning"] = settings.meaning * apart.mean()
        terms["contrast"] = settings.contrast * nearest_report(
            answers.meaning, lessons.meaning, settings.tau, settings.same
        )
    return terms


def nearest_report(predicted: Tensor, meant: Tensor, tau: float, same: float) -> Tensor:
    """L_NCE of predicted and true vectors (B, E)."""
    own = F.normalize(meant)
    alike = own @ own.T > same
    alike.fill_diagonal_(False)
    s = (F.normalize(predicted) @ own.T / tau).masked_fill(alike, float("-inf"))  # (B, B)
    return F.cross_entropy(s, torch.arange(len(s), device=s.device))


def height(step: int, steps: int, warm: float = 0.05) -> float:
    """Of the learning rate, 0 to 1."""
    gone = step / max(steps, 1)
    return (
        (gone + 1 / max(steps, 1)) / warm if gone < warm else 0.5 * (1 + math.cos(math.pi * (gone - warm) / (1 - warm)))
    )


@torch.no_grad()
def remember(mean: nn.Module, now: nn.Module, memory: float) -> None:
    pairs = list(zip(mean.state_dict().values(), now.state_dict().values(), strict=True))
    for kept, new in pairs:
        if not kept.dtype.is_floating_point:
            kept.copy_(new)
    kept, new = zip(*(pair for pair in pairs if pair[0].dtype.is_floating_point), strict=True)
    torch._foreach_lerp_(list(kept), list(new), 1 - memory)


def mixed(pixels: Tensor, study: Tensor, lateral: Tensor, lessons: Lessons, share: float) -> tuple[Tensor, Lessons]:
    """mixup (Zhang, Cisse, Dauphin, Lopez-Paz, ICLR 2018), of studies: the i-th with the i-th from the end, frontal
    images with frontal, lateral with lateral. A study whose other has no such image keeps its own as it is.
    """
    b = len(lessons.findings)
    slot = study * 2 + lateral.long()  # (m,)
    holder = torch.full((2 * b,), -1, dtype=torch.long, device=pixels.device)
    holder[slot] = torch.arange(len(slot), device=pixels.device)
    other = holder[(b - 1 - study) * 2 + lateral.long()]
    other = torch.where(other < 0, torch.arange(len(slot), device=pixels.device), other)
    blended = share * pixels + (1 - share) * pixels[other]
    return blended, Lessons(*(share * rows + (1 - share) * rows.flip(0) for rows in vars(lessons).values()))


@torch.no_grad()
def change(images: Tensor, size: int, settings: ChangeSettings, draw: torch.Generator) -> Tensor:
    """uint8 (m, S, S) -> (m, 1, size, size) from 0 to 1, each turned, zoomed, moved and lit for itself."""
    m, device = len(images), images.device

    def about(width: float, *shape: int) -> Tensor:
        return (2 * torch.rand(m, *shape, generator=draw, device=device) - 1) * width

    angle = about(math.radians(settings.rotate))
    zoom = (1 + about(settings.zoom, 1)) * (1 + about(settings.zoom / 3, 2))  # (m, 2)
    cos, sin = angle.cos(), angle.sin()
    turn = torch.stack([cos * zoom[:, 0], -sin * zoom[:, 1], sin * zoom[:, 0], cos * zoom[:, 1]], 1).view(m, 2, 2)
    theta = torch.cat([turn, about(2 * settings.shift, 2).unsqueeze(2)], 2)  # (m, 2, 3)
    grid = F.affine_grid(theta, [m, 1, size, size], align_corners=False)
    values = images.unsqueeze(1).float().div_(255)
    values = F.grid_sample(values, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
    steeper, lighter = 1 + about(settings.contrast, 1, 1, 1), about(settings.brightness, 1, 1, 1)
    mean = values.mean((1, 2, 3), keepdim=True)
    values = (mean + (values - mean) * steeper + lighter).clamp_(0, 1)
    return _erase(values, settings.erase, draw)


def _erase(values: Tensor, chance: float, draw: torch.Generator) -> Tensor:
    m, _, high, wide = values.shape
    place = torch.rand(m, 5, generator=draw, device=values.device)
    rows = torch.arange(high, device=values.device).view(1, high, 1) / high
    columns = torch.arange(wide, device=values.device).view(1, 1, wide) / wide
    top, left = place[:, 0].view(m, 1, 1), place[:, 1].view(m, 1, 1)
    tall, broad = 0.1 + 0.22 * place[:, 2].view(m, 1, 1), 0.1 + 0.22 * place[:, 3].view(m, 1, 1)
    inside = (rows >= top) & (rows < top + tall) & (columns >= left) & (columns < left + broad)
    inside &= (place[:, 4] < chance).view(m, 1, 1)
    return values.masked_fill(inside.unsqueeze(1), 0.5)


@torch.no_grad()
def _seen(gallery: Gallery, rows: Tensor, hide: float, draw: torch.Generator) -> tuple[Tensor, Tensor]:
    """The images of these studies, one of two hidden now and then, and each image's place among the rows."""
    images, study = gallery.of(rows)
    several = torch.bincount(study, minlength=len(rows)) == 2
    hidden = several & (torch.rand(len(rows), generator=draw, device=rows.device) < hide)
    second = torch.rand(len(rows), generator=draw, device=rows.device) < 0.5
    # Of a study's two images, which come one after the other, the first or the second goes.
    is_second = torch.zeros_like(study, dtype=torch.bool)
    is_second[1:] = study[1:] == study[:-1]
    kept = ~(hidden[study] & (is_second == second[study]))
    return images[kept], study[kept]


def _groups(recogniser: Recogniser, settings: LessonSettings) -> list[dict[str, object]]:
    backbone = [p for p in recogniser.encoder.parameters() if p.requires_grad]
    rest = [p for part in (recogniser.narrow, recogniser.answers, recogniser.side) for p in part.parameters()]
    return [{"params": backbone, "peak": settings.lr}, {"params": rest, "peak": settings.answers_lr}]


@dataclass(frozen=True)
class Seen:
    """What a Recogniser says of studies, on the CPU."""

    pooled: Tensor  # (N, 2 D + 2)
    findings: Tensor
    """Logits, (N, 14)."""
    tags: Tensor
    phrases: Tensor
    meaning: Tensor
    side: Tensor  # (n,) logits of each image


@torch.no_grad()
def recognise(
    recogniser: Recogniser,
    gallery: Gallery,
    chosen: Tensor,
    *,
    batch: int = 64,
    low_precision: bool = False,
    watch: Watch = quiet,
) -> Seen:
    """Of the chosen rows, images squeezed to the recogniser's size as they are."""
    size = recogniser.settings.encoder.image_size
    recogniser.eval()
    kept: list[tuple[Tensor, Answers]] = []
    sides: list[Tensor] = []
    for rows in watch(chosen.split(batch), "looking", math.ceil(len(chosen) / batch)):
        images, study = gallery.of(rows)
        pixels = gallery.images[images].unsqueeze(1).float().div_(255)
        if pixels.shape[-1] != size:
            pixels = F.interpolate(pixels, (size, size), mode="bilinear", antialias=True, align_corners=False)
        with torch.autocast(pixels.device.type, torch.bfloat16, enabled=low_precision):
            pooled = recogniser.look(pixels).float().mean((2, 3))
        sides.append(recogniser.from_the_side(pooled).cpu())
        beside = recogniser.together(pooled, study, gallery.lateral[images], len(rows))
        said = recogniser(beside)
        kept.append((beside.cpu(), Answers(*(one.float().cpu() for one in vars(said).values()))))
    together, answers = zip(*kept, strict=True)
    return Seen(
        torch.cat(together),
        torch.cat([one.findings for one in answers]),
        torch.cat([one.tags for one in answers]),
        torch.cat([one.phrases for one in answers]),
        torch.cat([one.meaning for one in answers]),
        torch.cat(sides),
    )

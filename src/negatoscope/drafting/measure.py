"""What a drafter is worth: its reports of a split, its probabilities, its warnings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from negatoscope.drafting.calibration import Reliability, held_out_probability, reliability
from negatoscope.drafting.doubt import WAYS, turned
from negatoscope.drafting.drafter import Drafter
from negatoscope.drafting.look import look
from negatoscope.drafting.strangers import STRANGERS
from negatoscope.errors import BadInput
from negatoscope.studies.store import Store
from negatoscope.studies.study import OBSERVATIONS, Split, Study
from negatoscope.vision.prepare import prepare, read_grey
from negatoscope.watch import Watch, quiet
from negatoscope.whole_files import whole_file, write_text

_PHANTOM_SIDE = 320


@dataclass(frozen=True)
class Measured:
    warned: dict[str, tuple[int, float]]
    """What was looked at -> how many images, share with a warning."""
    reliability: Reliability
    """Of probabilities from calibrations that did not see the study (five folds of the split)."""
    auc: dict[str, float]
    """Of each observation with both kinds of studies."""
    frontal_or_lateral: float
    """Share of images whose kind is told as the store has it."""

    @property
    def summary(self) -> str:
        said = self.reliability
        return (
            f"probabilities: Brier score {said.brier:.4f} (rates alone {said.brier_of_rates:.4f}), calibration error "
            f"{said.error:.4f}; AUC, mean of {len(self.auc)} observations: {np.mean(list(self.auc.values())):.3f}; "
            f"frontal or lateral told right: {self.frontal_or_lateral:.4f}"
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "warned": {name: {"images": many, "share": share} for name, (many, share) in self.warned.items()},
            "brier": self.reliability.brier,
            "brier of rates": self.reliability.brier_of_rates,
            "calibration error": self.reliability.error,
            "bins": self.reliability.bins,
            "auc": self.auc,
            "frontal or lateral": self.frontal_or_lateral,
        }


def write_split(
    drafter: Drafter,
    store: Store,
    split: str,
    out: Path | str,
    *,
    references: Path | str | None = None,
    watch: Watch = quiet,
) -> int:
    """JSONL of the drafts of a split, in the store's order, from the image files alone. Raises BadInput where the split
    has no study with images."""
    studies = _with_pictures(store, split)
    named = ((study.id, [store.picture_path(one) for one in study.pictures]) for study in studies)
    with whole_file(out) as part, part.open("w", encoding="utf-8") as file:
        for draft in watch(drafter.draft_many(named), "drafting reports", len(studies)):
            file.write(json.dumps(draft.as_row(), ensure_ascii=False) + "\n")
    if references is not None:
        rows = ({"id": study.id, "report": study.report} for study in studies)
        write_text(references, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return len(studies)


def measure(
    drafter: Drafter, store: Store, *, split: str = "val", strangers: int = 50, seed: int = 1, watch: Watch = quiet
) -> Measured:
    studies = _with_pictures(store, split)
    size = drafter.recogniser.settings.encoder.image_size
    looked = _Looking(drafter, watch)
    images = [prepare(read_grey(store.picture_path(one)), size) for study in studies for one in study.pictures]
    own = torch.stack(images)
    warned = {"of the split": looked(own, "images of the split")}
    for way, name in enumerate(WAYS[1:], start=1):
        warned[f"the same, {name}"] = looked(turned(own, way), name)
    warned["phantoms"] = looked(_phantoms(size, strangers), "phantoms")
    for name, draw in STRANGERS.items():
        rng = np.random.default_rng([seed, len(name)])
        drawn = torch.stack([prepare(draw(rng, size), size) for _ in range(strangers)])
        warned[name] = looked(drawn, name)
    evidence, lateral = _answers(drafter, studies, own, watch)
    truth = np.array([[study.labels.get(name) == 1 for name in OBSERVATIONS] for study in studies])
    known = torch.tensor([one.view == "lateral" for study in studies for one in study.pictures])
    told = torch.tensor([one.view in ("frontal", "lateral") for study in studies for one in study.pictures])
    return Measured(
        warned,
        reliability(held_out_probability(evidence, truth, OBSERVATIONS), truth),
        _auc(evidence, truth),
        float((lateral == known)[told].float().mean()),
    )


class _Looking:
    """How many of some images, and what share of them gets a warning."""

    def __init__(self, drafter: Drafter, watch: Watch) -> None:
        self.drafter, self.watch = drafter, watch

    def __call__(self, images: Tensor, what: str) -> tuple[int, float]:
        warned = 0
        for part in self.watch(images.split(32), what, -(-len(images) // 32)):
            stages = look(self.drafter.recogniser, part).stages
            warned += sum(one is not None for one in self.drafter.doubt.warnings(stages))
        return len(images), warned / len(images)


def _with_pictures(store: Store, split: str) -> list[Study]:
    found = [study for study in store.studies(cast(Split, split)) if study.pictures]
    if not found:
        raise BadInput(f"no study with images in the split {split!r}", where=store.path)
    return found


def _phantoms(size: int, many: int) -> Tensor:
    """Frontal views of drawn chests."""
    from negatoscope.studies.phantom.planning import plan_study
    from negatoscope.studies.phantom.settings import PhantomSettings
    from negatoscope.studies.phantom.source import drawing_of

    settings = PhantomSettings(studies=many, size=_PHANTOM_SIDE)
    drawn = (drawing_of(plan_study(settings.seed, index, settings), settings).pictures[0] for index in range(many))
    return torch.stack([prepare(one, size) for one in drawn])


@torch.inference_mode()
def _answers(drafter: Drafter, studies: Sequence[Study], images: Tensor, watch: Watch) -> tuple[np.ndarray, Tensor]:
    """Evidence of the findings (n, 14), and which images are told to be lateral."""
    from negatoscope.drafting.views import told_apart

    row = torch.tensor([number for number, study in enumerate(studies) for _ in study.pictures])
    pooled = torch.cat([look(drafter.recogniser, part).pooled for part in _watched(images, watch)])
    lateral = told_apart(drafter.recogniser, pooled).lateral
    beside = drafter.recogniser.together(pooled, row, lateral, len(studies))
    cosines = drafter.author.library.cosines(drafter.recogniser.narrow(beside))
    return drafter.author.evidence(drafter.recogniser(beside).findings, cosines), lateral


def _watched(images: Tensor, watch: Watch) -> Iterator[Tensor]:
    yield from watch(images.split(32), "answers", -(-len(images) // 32))


def _auc(logits: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    from sklearn.metrics import roc_auc_score

    return {
        name: float(roc_auc_score(truth[:, k], logits[:, k]))
        for k, name in enumerate(OBSERVATIONS)
        if 0 < truth[:, k].sum() < len(truth)
    }

"""A trained CVSE with the groups it chooses among: one file that tells the findings of any study with cached features.

The file is safetensors: the model's weights, a vector for each group's most central sentence, the calibration; and in
its header the recipe, the groups, which training studies have each, and what the features must be.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from negatoscope.errors import BadInput, WrongUse
from negatoscope.models.cvse import CVSE, Regions
from negatoscope.retrieval.calibration import Calibration
from negatoscope.retrieval.corpus import Corpus
from negatoscope.retrieval.recipe import CVSERecipe
from negatoscope.retrieval.seen import VIEWS, in_batches
from negatoscope.settings import read_settings
from negatoscope.studies.study import Study
from negatoscope.vision.features import FeatureCache, FeatureKey, must_agree
from negatoscope.watch import Watch, quiet
from negatoscope.whole_files import whole_file

FORMAT = 1
STUDIES_AT_ONCE = 32
_REMEDY = "train it anew: negatoscope retrieve train RECIPE --run FOLDER"
_MUST_FIT = ("backbone", "stages", "weights", "image_size", "fit", "pooled", "patches", "width")


@dataclass(frozen=True)
class Kind:
    """A group of sentences that say the same, as it is told."""

    sentence: str
    """The most central one."""
    size: int
    side: str
    severity: str
    labels: tuple[str, ...]
    studies: tuple[str, ...]
    """The training studies that said the same."""


@dataclass(frozen=True)
class Retriever:
    recipe: CVSERecipe
    model: CVSE
    kinds: tuple[Kind, ...]
    """G."""
    vectors: Tensor
    """(G, e) of their sentences."""
    key: FeatureKey
    calibration: Calibration | None = None

    def must_fit(self, cache: FeatureCache) -> None:
        """Raises WrongUse, naming the difference, for a cache of other features than the model learned from."""
        must_agree(cache.path, cache.key, {name: getattr(self.key, name) for name in _MUST_FIT})

    @torch.inference_mode()
    def sentences(self) -> Tensor:
        """v of every group, (G, d)."""
        return self.model.sentences(self.vectors)

    def save(self, path: Path | str) -> None:
        tensors = {f"model/{name}": tensor.detach().contiguous() for name, tensor in self.model.state_dict().items()}
        tensors["groups/vectors"] = self.vectors.contiguous()
        header: dict[str, Any] = {
            "format": FORMAT,
            "recipe": self.recipe.model_dump(mode="json"),
            "features": self.key.model_dump(mode="json"),
            "groups": [asdict(kind) for kind in self.kinds],
        }
        if self.calibration is not None:
            said = asdict(self.calibration)
            tensors |= {f"calibration/{name}": torch.from_numpy(said.pop(name)) for name in ("mean", "spread", "prior")}
            header["calibration"] = said
        with whole_file(path) as part:
            save_file(tensors, part, metadata={"cvse": json.dumps(header, ensure_ascii=False)})

    @classmethod
    def load(cls, path: Path | str) -> Retriever:
        """From a file, or a run's folder. Raises BadInput where it is damaged or something else."""
        path = Path(path)
        path = path / "cvse.safetensors" if path.is_dir() else path
        try:
            with safe_open(path, framework="pt") as opened:
                said = json.loads((opened.metadata() or {}).get("cvse", "null"))
                tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - no mapping
        except FileNotFoundError as error:
            raise BadInput("no such file", where=path, remedy=_REMEDY) from error
        except (SafetensorError, OSError, ValueError) as error:
            raise BadInput(f"cannot be read ({error})", where=path, remedy=_REMEDY) from error
        if not isinstance(said, dict) or said.get("format") != FORMAT:
            raise BadInput("holds no CVSE of this version", where=path, remedy=_REMEDY)
        try:
            return cls._of(said, tensors)
        except (KeyError, TypeError, ValueError, RuntimeError, WrongUse) as error:
            raise BadInput(f"damaged ({error})", where=path, remedy=_REMEDY) from error

    @classmethod
    def _of(cls, said: dict[str, Any], tensors: dict[str, Tensor]) -> Retriever:
        recipe = read_settings(CVSERecipe, said["recipe"])
        key = FeatureKey.model_validate(said["features"])
        vectors = tensors["groups/vectors"]
        model = CVSE(recipe.model, key.width, vectors.shape[1], VIEWS)
        weights = {name: tensor for name, tensor in tensors.items() if name.startswith("model/")}
        model.load_state_dict({name.removeprefix("model/"): tensor for name, tensor in weights.items()})
        kinds = tuple(
            Kind(**{**kind, "labels": tuple(kind["labels"]), "studies": tuple(kind["studies"])})
            for kind in said["groups"]
        )
        calibration = None
        if "calibration" in said:
            arrays = {name: tensors[f"calibration/{name}"].numpy() for name in ("mean", "spread", "prior")}
            calibration = Calibration(**arrays, **said["calibration"])
        return cls(recipe, model.eval(), kinds, vectors, key, calibration)


def kinds_of(corpus: Corpus) -> tuple[Kind, ...]:
    return tuple(
        Kind(group.sentence, group.size, group.side, group.severity, group.labels, tuple(studies))
        for group, studies in zip(corpus.groups.groups, corpus.studies_of_groups(), strict=True)
    )


def seen_by(
    retriever: Retriever, studies: Sequence[Study], cache: FeatureCache, watch: Watch = quiet
) -> Iterator[Regions]:
    """What the model sees of some studies at a time, in their order."""
    starts = range(0, len(studies), STUDIES_AT_ONCE)
    parts = in_batches(studies, cache, STUDIES_AT_ONCE, retriever.recipe.arrange)
    for _, (features, present) in zip(watch(starts, "looking at studies", len(starts)), parts, strict=True):
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=retriever.recipe.bf16):
            seen = retriever.model.regions(features, present)
        yield seen


def score_studies(
    retriever: Retriever, studies: Sequence[Study], cache: FeatureCache, watch: Watch = quiet
) -> Iterator[Tensor]:
    """(B, G) at a time: how well each group fits each study."""
    v = retriever.sentences()
    for regions in seen_by(retriever, studies, cache, watch):
        with torch.inference_mode():
            yield retriever.model.scores(regions, v)


def cvse_vectors(
    retriever: Retriever, studies: Sequence[Study], cache: FeatureCache, watch: Watch = quiet
) -> np.ndarray:
    """(n, d): each study as CVSE sees it, for `nearest.Library`."""
    parts = []
    for regions in seen_by(retriever, studies, cache, watch):
        with torch.inference_mode():
            parts.append(retriever.model.attended(regions).numpy())
    return np.concatenate(parts) if parts else np.zeros((0, retriever.recipe.model.width), np.float32)

"""Stores and features that a table needs and that can be made on the spot: phantoms, their encoder, cached features."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from negatoscope.errors import BadInput
from negatoscope.papers.rows import Tier
from negatoscope.studies.store import Store
from negatoscope.vision.encoder import EncoderSettings
from negatoscope.watch import Watch, quiet
from negatoscope.whole_files import whole_file

PHANTOMS: dict[Tier, dict[str, Any]] = {
    "quick": {"studies": 900, "size": 128, "normal_share": 0.5},
    "full": {"studies": 4000, "size": 160, "normal_share": 0.5},
}
"""Half of the studies are normal, where a department's are 70 %: enough findings to learn from in minutes."""
PHANTOM_BACKBONE, PHANTOM_SIZE = "resnet10-narrow", 128
IU_BACKBONE, IU_SIZE = "resnet50-v1", 224


def phantom_store(
    store: Path, tier: Tier, say: Callable[[str], None], watch: Watch = quiet, changes: dict[str, Any] | None = None
) -> None:
    """Draws the studies; one that is whole already stays, whatever it was drawn with."""
    from negatoscope.studies.importing import import_studies
    from negatoscope.studies.sources import open_source
    from negatoscope.studies.store import read_about

    about = read_about(store)
    if about is not None and about.complete:
        return
    settings = PHANTOMS[tier] | (changes or {})
    done = import_studies(open_source("phantom", None, settings), store, watch=watch)
    say(f"{store}: {done.studies:,} phantom studies drawn")


def features_of(
    data: str,
    store: Path,
    features: Path | None,
    weights: Path | None,
    device: str,
    say: Callable[[str], None],
    watch: Watch = quiet,
) -> Path:
    """The cache, made where there is none yet: of phantoms by an encoder that learns to name their findings first, of
    radiographs by the weights that are given."""
    phantom = data == "phantom"
    backbone = PHANTOM_BACKBONE if phantom else IU_BACKBONE
    out = features or store.with_name(f"{store.name}.{backbone}")
    if (out / "cache.json").exists() and _holds_all(store, out):
        return out
    if phantom:
        weights = store.with_name(f"{store.name}.{backbone}.safetensors")
        if not weights.exists():
            teach_encoder(Store.open(store), weights, device, say, watch)
    elif weights is None:
        raise BadInput(
            "no features of this store",
            where=out,
            remedy=f"--features CACHE, or --weights FILE of {IU_BACKBONE} to make them here",
        )
    from negatoscope.vision.extract import extract_features

    settings = EncoderSettings(
        backbone=backbone, weights=weights, image_size=PHANTOM_SIZE if phantom else IU_SIZE, fit="squash"
    )
    done = extract_features(Store.open(store), settings, out, device=device, batch=32, watch=watch)
    say(f"{out}: features of {done.pictures:,} pictures, {done.seconds:.0f} s")
    return out


def _holds_all(store: Path, features: Path) -> bool:
    from negatoscope.vision.features import FeatureCache

    cache = FeatureCache.open(features)
    return all(
        picture["sha256"] in cache
        for row in Store.open(store).table(["split", "pictures"]).to_pylist()
        for picture in row["pictures"] or ()
    )


def teach_encoder(
    store: Store,
    out: Path,
    device: str,
    say: Callable[[str], None],
    watch: Watch = quiet,
    *,
    size: int = PHANTOM_SIZE,
    epochs: int = 10,
    seed: int = 1,
    threads: int | None = None,
    low_precision: bool = False,
) -> None:
    """A small backbone learns to name the findings of the training studies, as Contrastive Attention's encoder learned
    CheXpert's labels; its weights alone are kept, as safetensors."""
    import torch
    from safetensors.torch import save_file

    from negatoscope.models.recogniser import Recogniser, RecogniserSettings
    from negatoscope.studies.study import OBSERVATIONS
    from negatoscope.training.recognise import ChangeSettings, Lessons, LessonSettings, teach
    from negatoscope.training.recognise_lessons import gallery_of

    torch.set_num_threads(threads or os.cpu_count() or 1)
    studies = [study for study in store.studies("train") if study.pictures]
    gallery = gallery_of(store, studies, size, watch=watch).to(device)
    findings = torch.tensor([[float(study.labels.get(name) == 1) for name in OBSERVATIONS] for study in studies])
    none = torch.zeros(len(studies), 0)
    torch.manual_seed(seed)
    encoder = EncoderSettings(backbone=PHANTOM_BACKBONE, image_size=size)
    recogniser = Recogniser(RecogniserSettings(encoder=encoder, dropout=0.1))
    settings = LessonSettings(
        epochs=epochs,
        batch=16,
        lr=2e-3,
        answers_lr=2e-3,
        keep_stages=0,
        memory=0.98,
        change=ChangeSettings(rotate=3.0, zoom=0.06, shift=0.03, erase=0.0),
        seed=seed,
    )
    last: dict[str, float] = {}
    learned = teach(
        recogniser,
        gallery,
        Lessons(findings, none, none, none).to(device),
        torch.arange(len(studies), device=device),
        settings,
        low_precision=low_precision,
        watch=watch,
        after_epoch=lambda _epoch, _mean, terms: last.update(terms),
    )
    assert learned.encoder.backbone is not None
    tensors = {
        name: tensor.detach().cpu().contiguous() for name, tensor in learned.encoder.backbone.state_dict().items()
    }
    with whole_file(out) as part:
        save_file(tensors, part, metadata={"architecture": PHANTOM_BACKBONE})
    say(f"{out}: encoder of phantoms, {epochs} epochs, loss of findings {last.get('findings', float('nan')):.3f}")

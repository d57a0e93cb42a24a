"""A drafter from a store, in one go: teach the recogniser, measure it on held-out studies, teach the writer, keep all.

The recogniser takes nine tenths of the time and is kept after each epoch; the same command goes on from there. Held-out
studies (the validation split) decide nothing but how far probabilities are to be believed, and where doubt begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from negatoscope.drafting.author import Author, AuthorSettings, best_limits
from negatoscope.drafting.calibration import fit
from negatoscope.drafting.doubt import WAYS, Doubt, turned
from negatoscope.drafting.drafter import Drafter
from negatoscope.drafting.kept import save_drafter
from negatoscope.drafting.library import Library
from negatoscope.drafting.look import look
from negatoscope.errors import BadInput
from negatoscope.metrics.chexpert.labeler import Labeler
from negatoscope.models.dictated import Dictated, DictatedSettings
from negatoscope.models.recogniser import Recogniser, RecogniserSettings
from negatoscope.settings import Settings, put, read_settings
from negatoscope.studies.store import Store
from negatoscope.studies.study import OBSERVATIONS, Study
from negatoscope.text.words import Vocabulary
from negatoscope.training.dictate import Dictation, DictationSettings, dictate
from negatoscope.training.recognise import Gallery, LessonSettings, Seen, recognise, teach
from negatoscope.training.recognise_lessons import Subjects, SubjectSettings, gallery_of
from negatoscope.vision.encoder import EncoderSettings
from negatoscope.vision.precision import fast_precision
from negatoscope.watch import Watch, quiet

LESSON, DRAFTER = "lesson.safetensors", "drafter.safetensors"


class DrafterSettings(Settings):
    encoder: EncoderSettings = EncoderSettings(backbone="resnet50-v1", image_size=256)
    """`weights`: ImageNet's, or any that fit the backbone."""
    margin: int = Field(default=32, ge=0)
    """Images are kept this much larger than the encoder takes while it learns, so that zooming finds something."""
    subjects: SubjectSettings = SubjectSettings()
    lessons: LessonSettings = LessonSettings(epochs=12)
    dictation: DictationSettings = DictationSettings()
    author: AuthorSettings = AuthorSettings()
    max_words: int = Field(default=60, ge=2)
    cutoff: int = Field(default=3, ge=1)
    doubt_share: float = Field(default=0.99, gt=0, lt=1)
    """Of held-out images that are not doubted."""
    doubt_images: int = Field(default=600, ge=1)
    """Training images that are turned to learn what turned images look like."""
    seed: int = 1


def drafter_settings(changes: Mapping[str, Any]) -> DrafterSettings:
    """The defaults, and `changes` such as {'lessons.epochs': 3} on top."""
    value = DrafterSettings().model_dump(mode="json")
    for key, new in changes.items():
        put(value, key, new)
    return read_settings(DrafterSettings, value, where="drafter")


@dataclass(frozen=True)
class Trained:
    drafter: Path
    training: int
    held_out: int


def train_drafter(
    store: Store,
    into: Path | str,
    settings: DrafterSettings,
    *,
    about: dict[str, Any] | None = None,
    watch: Watch = quiet,
    say: Callable[[str], None] = print,
) -> Trained:
    """`drafter.safetensors` in the folder `into`. Raises BadInput where there is no training or validation study."""
    into = Path(into)
    into.mkdir(parents=True, exist_ok=True)
    learned, held = (
        [study for study in store.studies(split) if study.pictures and study.report.strip()]
        for split in ("train", "val")
    )
    if not learned or not held:
        raise BadInput("needs training and validation studies with images and reports", where=store.path)
    subjects = Subjects.learned(learned, settings.subjects)
    recogniser = _recogniser(store, learned, held, subjects, settings, into, watch, say)
    size = settings.encoder.image_size
    low = fast_precision(torch.device("cpu")) == "bf16"
    galleries = [gallery_of(store, studies, size, watch=watch) for studies in (learned, held)]
    seen = [
        recognise(recogniser, gallery, torch.arange(gallery.studies), low_precision=low, watch=watch)
        for gallery in galleries
    ]
    with torch.no_grad():
        vectors = recogniser.narrow(seen[0].pooled)
    author = teach_author(learned, held, subjects, vectors, seen[1], settings, watch=watch, say=say)
    doubt = _doubt(recogniser, galleries[0], galleries[1], settings, watch)
    told = {"seed": settings.seed, "training": len(learned), "held_out": len(held), **(about or {})}
    drafter = Drafter(recogniser, author, doubt, subjects.phrases, told)
    save_drafter(into / DRAFTER, drafter)
    return Trained(into / DRAFTER, len(learned), len(held))


def _recogniser(
    store: Store,
    learned: Sequence[Study],
    held: Sequence[Study],
    subjects: Subjects,
    settings: DrafterSettings,
    into: Path,
    watch: Watch,
    say: Callable[[str], None],
) -> Recogniser:
    low = fast_precision(torch.device("cpu")) == "bf16"
    gallery = gallery_of(store, [*learned, *held], settings.encoder.image_size + settings.margin, watch=watch)
    lessons = subjects.lessons([*learned, *held])
    new = torch.arange(len(learned), len(learned) + len(held))
    torch.manual_seed(settings.seed)
    recogniser = Recogniser(
        RecogniserSettings(
            encoder=settings.encoder,
            tags=len(subjects.tags),
            phrases=len(subjects.phrases),
            meaning=subjects.directions.shape[1],
        )
    )

    def tell(epoch: int, mean: Recogniser, losses: dict[str, float]) -> None:
        seen = recognise(mean, gallery, new, low_precision=low)
        said = ", ".join(f"{name} {value:.3f}" for name, value in losses.items())
        say(f"epoch {epoch + 1}: {said}; held out: {_in_figures(seen, lessons.findings[new], lessons.meaning[new])}")

    return teach(
        recogniser,
        gallery,
        lessons,
        torch.arange(len(learned)),
        settings.lessons,
        low_precision=low,
        watch=watch,
        after_epoch=tell,
        lesson_file=into / LESSON,
    )


def teach_author(
    learned: Sequence[Study],
    held: Sequence[Study],
    subjects: Subjects,
    vectors: Tensor,
    seen: Seen,
    settings: DrafterSettings,
    *,
    watch: Watch = quiet,
    say: Callable[[str], None] = print,
) -> Author:
    """From the training studies' vectors (N, r), and what the recogniser said of the held-out ones."""
    vocabulary = Vocabulary.build(
        [study.report for study in learned],
        cleaning=settings.subjects.cleaning,
        cutoff=settings.cutoff,
        max_words=settings.max_words,
    )
    reader = Labeler()
    logits = seen.findings.numpy()
    calibration = fit(logits, _labels(held).numpy(), OBSERVATIONS)
    limits = best_limits(calibration.probability(logits)[0])
    scored = [vocabulary.as_scored(study.report) for study in learned]
    named = torch.tensor([[float(one.get(name) == 1) for name in OBSERVATIONS] for one in reader.label_many(scored)])
    places = subjects.lessons(learned).meaning
    reports = Dictation.of([vocabulary.encode(study.report) for study in learned], named, places)
    torch.manual_seed(settings.dictation.seed)
    writer = Dictated(DictatedSettings(told=len(OBSERVATIONS) + places.shape[1]), vocabulary.logits)

    def tell(epoch: int, _mean: Dictated, loss: float) -> None:
        if (epoch + 1) % 5 == 0:
            say(f"writer, epoch {epoch + 1}: loss {loss:.3f}")

    writer = dictate(writer, reports, settings.dictation, watch=watch, after_epoch=tell)
    library = Library.of([study.id for study in learned], vectors, places, _labels(learned))
    return Author(writer, vocabulary, subjects, library, calibration, limits, reader, settings.author)


def _labels(studies: Sequence[Study]) -> Tensor:
    """(n, 14) bool: present, as the store has it; uncertain counts as absent."""
    return torch.tensor([[study.labels.get(name) == 1 for name in OBSERVATIONS] for study in studies])


@torch.no_grad()
def _doubt(recogniser: Recogniser, learned: Gallery, held: Gallery, settings: DrafterSettings, watch: Watch) -> Doubt:
    def stages(images: Tensor, what: str) -> list[Tensor]:
        parts = list(watch(images.split(32), what, -(-len(images) // 32)))
        looked = [look(recogniser, part.unsqueeze(1).float() / 255).stages for part in parts]
        return [torch.cat([one[k] for one in looked]) for k in range(len(looked[0]))]

    rng = np.random.default_rng(settings.seed)
    some = torch.from_numpy(rng.permutation(len(learned.images))[: settings.doubt_images])
    chosen = learned.images[some].unsqueeze(1)
    ways = [stages(_turned(chosen, way), f"images {name}") for way, name in enumerate(WAYS)]
    usual = stages(learned.images, "usual images")
    return Doubt.of(usual, ways, stages(held.images, "held-out images"), settings.doubt_share)


def _turned(images: Tensor, way: int) -> Tensor:
    """uint8 (n, 1, S, S) -> uint8 (n, S, S)."""
    return (turned(images.float() / 255, way) * 255).round().to(torch.uint8).squeeze(1)


def _in_figures(seen: Seen, findings: Tensor, meaning: Tensor) -> str:
    from sklearn.metrics import roc_auc_score

    truth, said = findings.numpy(), seen.findings.numpy()
    enough = [k for k in range(truth.shape[1]) if 3 <= truth[:, k].sum() <= len(truth) - 3]
    auc = float(np.mean([roc_auc_score(truth[:, k], said[:, k]) for k in enough])) if enough else float("nan")
    apart = (meaning - meaning.mean(0)).square().sum()
    explained = 1 - float((seen.meaning - meaning).square().sum() / apart)
    return f"AUC {auc:.3f} over {len(enough)} observations, {explained:.1%} of the reports' spread explained"

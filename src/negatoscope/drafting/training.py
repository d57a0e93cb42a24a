"""A drafter from a store, in one go: teach the recogniser, measure it on held-out studies, teach the writer, keep all.

The recogniser takes nine tenths of the time and is kept after each epoch; the same command goes on from there. Held-out
studies decide nothing but how far probabilities are to be believed, which findings are asked for, and where doubt
begins. They are the validation split; or, with `folds`, the studies that it learns from, a part at a time, each part
answered by a recogniser that learned from the others: seven times as many, and validation studies stay unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from negatoscope.drafting.author import Author, AuthorSettings, best_limits, evidence_of
from negatoscope.drafting.calibration import fit
from negatoscope.drafting.doubt import WAYS, Doubt, turned
from negatoscope.drafting.drafter import Drafter
from negatoscope.drafting.kept import save_drafter
from negatoscope.drafting.library import Library
from negatoscope.drafting.look import look
from negatoscope.errors import BadInput, WrongUse
from negatoscope.metrics.chexpert.labeler import Labeler
from negatoscope.models.dictated import Dictated, DictatedSettings
from negatoscope.models.recogniser import Recogniser, RecogniserSettings
from negatoscope.settings import Settings, put, read_settings
from negatoscope.studies.store import Store
from negatoscope.studies.study import OBSERVATIONS, Study
from negatoscope.text.words import Vocabulary
from negatoscope.training.dictate import Dictation, DictationSettings, dictate
from negatoscope.training.recognise import Gallery, Lessons, LessonSettings, Seen, recognise, teach
from negatoscope.training.recognise_lessons import Subjects, SubjectSettings, gallery_of
from negatoscope.vision.encoder import EncoderSettings
from negatoscope.vision.precision import checked_device, fast_precision
from negatoscope.watch import Watch, quiet
from negatoscope.whole_files import whole_file

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
    folds: int = Field(default=0, ge=0)
    """Recognisers that are taught, each on all parts but one, to answer for that one. 0: the validation split tells."""
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
    device: str = "cpu",
    about: dict[str, Any] | None = None,
    watch: Watch = quiet,
    say: Callable[[str], None] = print,
) -> Trained:
    """`drafter.safetensors` in the folder `into`. Raises BadInput where there is no training or validation study."""
    if settings.folds == 1:
        raise WrongUse("one part leaves nothing to learn from", where="folds", remedy="0, or 2 and more")
    into = Path(into)
    into.mkdir(parents=True, exist_ok=True)
    train, held = (
        [study for study in store.studies(split) if study.pictures and study.report.strip()]
        for split in ("train", "val")
    )
    if not train or not held:
        raise BadInput("needs training and validation studies with images and reports", where=store.path)
    subjects = Subjects.learned(train, settings.subjects)
    school = School.of(store, [*train, *held], subjects, settings, checked_device(device), watch)
    rows, new = torch.arange(len(train) + len(held)).split([len(train), len(held)])
    answered = _cross_fitted(school, rows, into, say) if settings.folds else None

    def tell(epoch: int, mean: Recogniser, losses: dict[str, float]) -> None:
        said = ", ".join(f"{name} {value:.3f}" for name, value in losses.items())
        say(f"epoch {epoch + 1}: {said}; held out: {school.in_figures(mean, new)}")

    recogniser = school.teach(rows, into / LESSON, tell)
    library = school.library(recogniser, rows)
    evidence = school.evidence(recogniser, library, new) if answered is None else answered
    truth = school.labels[new if answered is None else rows]
    author = teach_author(train, subjects, library, evidence, truth.numpy(), settings, watch=watch, say=say)
    recogniser = recogniser.cpu()
    doubt = _doubt(recogniser, school.images(rows), school.images(new), settings, watch)
    told = {"seed": settings.seed, "training": len(train), "held_out": len(evidence), **(about or {})}
    save_drafter(into / DRAFTER, Drafter(recogniser, author, doubt, subjects.phrases, told))
    return Trained(into / DRAFTER, len(train), len(evidence))


@dataclass(frozen=True)
class School:
    """All studies by number, and how a recogniser is taught some of them."""

    studies: Sequence[Study]
    subjects: Subjects
    settings: DrafterSettings
    loose: Gallery
    """A little larger than the encoder takes, to be zoomed and moved."""
    exact: Gallery
    lessons: Lessons
    labels: Tensor  # (N, 14) bool
    low_precision: bool
    watch: Watch

    @classmethod
    def of(
        cls,
        store: Store,
        studies: Sequence[Study],
        subjects: Subjects,
        settings: DrafterSettings,
        device: torch.device,
        watch: Watch,
    ) -> School:
        size = settings.encoder.image_size
        loose, exact = (
            gallery_of(store, studies, side, watch=watch).to(device) for side in (size + settings.margin, size)
        )
        lessons, low = subjects.lessons(studies).to(device), fast_precision(device) == "bf16"
        return cls(studies, subjects, settings, loose, exact, lessons, _labels(studies), low, watch)

    def teach(
        self, rows: Tensor, lesson_file: Path, after_epoch: Callable[[int, Recogniser, dict[str, float]], None]
    ) -> Recogniser:
        torch.manual_seed(self.settings.seed)
        recogniser = Recogniser(
            RecogniserSettings(
                encoder=self.settings.encoder,
                tags=len(self.subjects.tags),
                phrases=len(self.subjects.phrases),
                meaning=self.subjects.directions.shape[1],
            )
        )
        return teach(
            recogniser,
            self.loose,
            self.lessons,
            rows.to(self.loose.images.device),
            self.settings.lessons,
            low_precision=self.low_precision,
            watch=self.watch,
            after_epoch=after_epoch,
            lesson_file=lesson_file,
        )

    def seen(self, recogniser: Recogniser, rows: Tensor) -> tuple[Seen, Tensor]:
        """And the vectors (n, r) that studies are compared by."""
        device = self.exact.images.device
        seen = recognise(recogniser, self.exact, rows.to(device), low_precision=self.low_precision, watch=self.watch)
        with torch.no_grad():
            return seen, recogniser.narrow(seen.pooled.to(device)).float().cpu()

    def library(self, recogniser: Recogniser, rows: Tensor) -> Library:
        ids = [self.studies[row].id for row in rows.tolist()]
        return Library.of(ids, self.seen(recogniser, rows)[1], self.lessons.meaning.cpu()[rows], self.labels[rows])

    def evidence(self, recogniser: Recogniser, library: Library, rows: Tensor) -> np.ndarray:
        """(n, 14) of studies that neither has learned from."""
        seen, vectors = self.seen(recogniser, rows)
        return evidence_of(library, seen.findings, library.cosines(vectors))

    def images(self, rows: Tensor) -> Tensor:
        """uint8 (m, S, S)."""
        device = self.exact.images.device
        return self.exact.images[self.exact.of(rows.to(device))[0]].cpu()

    def in_figures(self, recogniser: Recogniser, rows: Tensor) -> str:
        seen = self.seen(recogniser, rows)[0]
        return _in_figures(seen, self.labels[rows], self.lessons.meaning.cpu()[rows])


# Which study falls in which part does not hang on the seed: drafters of several seeds are there to be compared.
_PARTS_SEED = 7


def _cross_fitted(school: School, rows: Tensor, into: Path, say: Callable[[str], None]) -> np.ndarray:
    """(n, 14) evidence of each study by a recogniser that did not learn from it. Parts that are answered stay so.

    Raises WrongUse where the folder has answers of other settings.
    """
    folds = school.settings.folds
    part = torch.from_numpy(np.random.default_rng(_PARTS_SEED).permutation(len(rows)) % folds)
    same = {"settings": school.settings.lessons.model_dump_json(), "folds": str(folds), "studies": str(len(rows))}
    evidence = torch.full((len(rows), len(OBSERVATIONS)), torch.nan, dtype=torch.float64)
    for one in range(folds):
        path = into / f"part-{one + 1}.safetensors"
        if not path.exists():
            lesson, others, mine = into / f"part-{one + 1}-{LESSON}", rows[part != one], rows[part == one]
            recogniser = school.teach(others, lesson, lambda epoch, _mean, losses, one=one: None)
            found = school.evidence(recogniser, school.library(recogniser, others), mine)
            with whole_file(path) as file:
                save_file(
                    {"place": (part == one).nonzero().squeeze(1), "evidence": torch.from_numpy(found)}, file, same
                )
            lesson.unlink(missing_ok=True)
            say(f"part {one + 1} of {folds}: answered for {len(mine):,} studies by {len(others):,} others")
        with safe_open(path, framework="pt") as opened:
            if opened.metadata() != same:
                raise WrongUse(
                    "was answered with other settings", where=path, remedy="delete it, or take another folder"
                )
            evidence[opened.get_tensor("place")] = opened.get_tensor("evidence")
    return evidence.numpy()


def teach_author(
    learned: Sequence[Study],
    subjects: Subjects,
    library: Library,
    evidence: np.ndarray,
    truth: np.ndarray,
    settings: DrafterSettings,
    *,
    watch: Watch = quiet,
    say: Callable[[str], None] = print,
) -> Author:
    """From the library of the studies that were learned from, and the evidence (n, 14) and labels (n, 14) of studies
    that were not seen."""
    vocabulary = Vocabulary.build(
        [study.report for study in learned],
        cleaning=settings.subjects.cleaning,
        cutoff=settings.cutoff,
        max_words=settings.max_words,
    )
    reader = Labeler()
    calibration = fit(evidence, truth, OBSERVATIONS)
    limits = best_limits(calibration.probability(evidence)[0], settings.author.common)
    scored = [vocabulary.as_scored(study.report) for study in learned]
    named = torch.tensor([[float(one.get(name) == 1) for name in OBSERVATIONS] for one in reader.label_many(scored)])
    reports = Dictation.of([vocabulary.encode(study.report) for study in learned], named, library.places)
    torch.manual_seed(settings.dictation.seed)
    writer = Dictated(DictatedSettings(told=len(OBSERVATIONS) + library.places.shape[1]), vocabulary.logits)

    def tell(epoch: int, _mean: Dictated, loss: float) -> None:
        if (epoch + 1) % 5 == 0:
            say(f"writer, epoch {epoch + 1}: loss {loss:.3f}")

    writer = dictate(writer, reports, settings.dictation, watch=watch, after_epoch=tell)
    return Author(writer, vocabulary, subjects, library, calibration, limits, reader, settings.author)


def _labels(studies: Sequence[Study]) -> Tensor:
    """(n, 14) bool: present, as the store has it; uncertain counts as absent."""
    return torch.tensor([[study.labels.get(name) == 1 for name in OBSERVATIONS] for study in studies])


@torch.no_grad()
def _doubt(recogniser: Recogniser, learned: Tensor, held: Tensor, settings: DrafterSettings, watch: Watch) -> Doubt:
    """From uint8 images (m, S, S)."""

    def stages(images: Tensor, what: str) -> list[Tensor]:
        parts = list(watch(images.split(32), what, -(-len(images) // 32)))
        looked = [look(recogniser, part.unsqueeze(1).float() / 255).stages for part in parts]
        return [torch.cat([one[k] for one in looked]) for k in range(len(looked[0]))]

    rng = np.random.default_rng(settings.seed)
    some = torch.from_numpy(rng.permutation(len(learned))[: settings.doubt_images])
    chosen = learned[some].unsqueeze(1)
    ways = [stages(_turned(chosen, way), f"images {name}") for way, name in enumerate(WAYS)]
    usual = stages(learned, "usual images")
    return Doubt.of(usual, ways, stages(held, "held-out images"), settings.doubt_share)


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

"""The option where a quick model is not enough: a `transformers` encoder, fine-tuned to tell abnormal sentences."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from negatoscope.errors import BadInput, Trouble
from negatoscope.settings import Settings
from negatoscope.text.abnormal import words
from negatoscope.text.abnormal_training import (
    Trained,
    as_rows,
    best_threshold,
    calibrate,
    figures,
    label_noise,
    read_reports,
)
from negatoscope.watch import Watch, quiet
from negatoscope.whole_files import write_json

HEAD = "abnormal-sentences.json"


class EncoderRecipe(Settings):
    """How to fine-tune."""

    seed: int = 1
    epochs: int = 3
    batch: int = 32
    lr: float = 5e-5
    longest: int = 96
    """Word pieces of a sentence that are read."""
    held_out: float = 0.15
    """Share of the training reports kept back for calibration and threshold."""


class EncoderSentences:
    """An encoder with one logit on top. Same questions, same answers as `AbnormalSentences`."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        slope: float = 1.0,
        shift: float = 0.0,
        threshold: float = 0.5,
        longest: int = 96,
    ) -> None:
        self.model, self.tokenizer = model.eval(), tokenizer
        self.slope, self.shift, self.threshold, self.longest = slope, shift, threshold, longest

    def probability(self, sentences: Sequence[str]) -> NDArray[np.float64]:
        """(S,) calibrated probability that each sentence is abnormal; 0 where a sentence has no word at all."""
        z = self.slope * self.logits(sentences) + self.shift
        spoken = np.array([bool(words(sentence)) for sentence in sentences], np.bool_)
        return np.where(spoken, 1.0 / (1.0 + np.exp(-np.clip(z, -50, 50))), 0.0)

    def abnormal(self, sentences: Sequence[str]) -> NDArray[np.bool_]:
        return self.probability(sentences) >= self.threshold

    def logits(self, sentences: Sequence[str]) -> NDArray[np.float64]:
        order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
        said = np.zeros(len(sentences))
        for at in range(0, len(order), 64):
            chosen = order[at : at + 64]
            with torch.inference_mode():
                said[chosen] = _forward(self, [sentences[i] for i in chosen]).double().numpy()
        return said

    def save(self, folder: Path | str) -> None:
        """A folder that `transformers` reads too, with our calibration beside."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        write_json(
            Path(folder) / HEAD,
            {"slope": self.slope, "shift": self.shift, "threshold": self.threshold, "longest": self.longest},
        )

    @classmethod
    def load(cls, folder: Path | str) -> EncoderSentences:
        """Raises BadInput where the folder does not hold one of ours."""
        try:
            head = json.loads((Path(folder) / HEAD).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise BadInput(
                f"holds no {HEAD}", where=folder, remedy="train one: negatoscope findings train --encoder ..."
            ) from error
        return cls(*_pretrained(folder), **head)


def fine_tune(
    source: Path | str,
    train_path: Path | str,
    dev_path: Path | str | None,
    recipe: EncoderRecipe | None = None,
    *,
    watch: Watch = quiet,
) -> tuple[EncoderSentences, Trained]:
    """From an encoder's folder or hub id to a classifier. Calibration and threshold from held-out training reports."""
    recipe = recipe or EncoderRecipe()
    rows = as_rows(read_reports(train_path))
    reports = int(rows.report.max()) + 1
    order = np.random.default_rng(recipe.seed).permutation(reports)
    aside = np.isin(rows.report, order[: max(1, round(reports * recipe.held_out))])
    torch.manual_seed(recipe.seed)
    classifier = EncoderSentences(*_pretrained(source), longest=recipe.longest)
    inside = np.flatnonzero(~aside)
    _fit(classifier, *_targets([rows.sentences[i] for i in inside], rows.labels[inside]), recipe, watch)
    held = [rows.sentences[i] for i in np.flatnonzero(aside)]
    classifier.slope, classifier.shift = calibrate(classifier.logits(held), rows.labels[aside])
    probability = classifier.probability(held)
    classifier.threshold = best_threshold(rows.labels[aside], probability)
    met = {rows.sentences[i] for i in inside}
    unseen = np.array([sentence not in met for sentence in held], np.bool_)
    said, labels, report = probability >= classifier.threshold, rows.labels[aside], rows.report[aside]
    dev = as_rows(read_reports(dev_path)) if dev_path else None
    trained = Trained(
        classifier.threshold,
        figures(labels, said, report, recipe.seed),
        figures(labels[unseen], said[unseen], report[unseen], recipe.seed),
        figures(dev.labels, classifier.abnormal(dev.sentences), dev.report, recipe.seed) if dev else None,
        label_noise(rows.sentences, rows.labels),
    )
    return classifier, trained


def _pretrained(source: Path | str) -> tuple[Any, Any]:
    try:
        from transformers import AutoModelForSequenceClassification, AutoTokenizer
    except ImportError as error:
        raise Trouble("encoders need transformers", remedy="pip install 'negatoscope[hub]'") from error
    try:
        model = AutoModelForSequenceClassification.from_pretrained(str(source), num_labels=1, dtype=torch.float32)
        return model, AutoTokenizer.from_pretrained(str(source))
    except (OSError, ValueError) as error:
        raise BadInput(
            "no encoder that can be read", where=source, remedy="name a folder that transformers can load, or a hub id"
        ) from error


def _forward(classifier: EncoderSentences, sentences: list[str]) -> torch.Tensor:
    batch = classifier.tokenizer(
        sentences, padding=True, truncation=True, max_length=classifier.longest, return_tensors="pt"
    )
    return classifier.model(**batch).logits[:, 0]  # (B,)


def _targets(sentences: list[str], labels: NDArray[np.bool_]) -> tuple[list[str], torch.Tensor, torch.Tensor]:
    """Distinct sentences, the share of their rows called abnormal, weights by the square root of their number."""
    said: dict[str, list[bool]] = defaultdict(list)
    for sentence, label in zip(sentences, labels.tolist(), strict=True):
        said[sentence].append(label)
    shares = [sum(marks) / len(marks) for marks in said.values()]
    return list(said), torch.tensor(shares), torch.tensor([min(len(marks), 4) ** 0.5 for marks in said.values()])


def _fit(
    classifier: EncoderSentences,
    sentences: list[str],
    targets: torch.Tensor,
    weights: torch.Tensor,
    recipe: EncoderRecipe,
    watch: Watch,
) -> None:
    generator = np.random.default_rng(recipe.seed)
    batches = -(-len(sentences) // recipe.batch)
    steps = recipe.epochs * batches
    optimiser = torch.optim.AdamW(classifier.model.parameters(), lr=recipe.lr, weight_decay=0.01)
    warm = max(1, steps // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: min((step + 1) / warm, 1 - step / (steps + 1)))
    classifier.model.train()
    shuffled = generator.permutation(len(sentences))
    for step in watch(range(steps), "fine-tuning", steps):
        if step and step % batches == 0:
            shuffled = generator.permutation(len(sentences))
        chosen = shuffled[(step % batches) * recipe.batch :][: recipe.batch]
        logits = _forward(classifier, [sentences[i] for i in chosen])
        loss = (F.binary_cross_entropy_with_logits(logits, targets[chosen], reduction="none") * weights[chosen]).mean()
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(classifier.model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    classifier.model.eval()

"""Metrics that a trained model computes: CheXbert F1, RadGraph F1, BERTScore.

The models are their authors' packages, which users install themselves and which fetch weights from a hub or a local
cache: `f1chexbert` or `RadEval` for CheXbert, `radgraph`, `bert-score`. Nothing of them is imported before a metric is
built, and a metric that cannot be built says what to install."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from negatoscope.errors import Trouble
from negatoscope.metrics.ngrams import flatten
from negatoscope.watch import Watch, quiet

# In the order of CheXbert's heads, which is not that of the original labeler's columns.
HEADS = (
    "Enlarged Cardiomediastinum",
    "Cardiomegaly",
    "Lung Opacity",
    "Lung Lesion",
    "Edema",
    "Consolidation",
    "Pneumonia",
    "Atelectasis",
    "Pneumothorax",
    "Pleural Effusion",
    "Pleural Other",
    "Fracture",
    "Support Devices",
    "No Finding",
)
FIVE = ("Cardiomegaly", "Edema", "Consolidation", "Atelectasis", "Pleural Effusion")


class CheXbert:
    """F1 of CheXbert's labels (Smit et al., 2020), micro and macro over 14 and over 5 observations.

    A row: true positives, false positives and false negatives of each of the 14. Uncertain counts as positive, as the
    packages do. With several references the first counts."""

    name = "chexbert"
    labels = "chexbert-uncertain-positive"
    reads_sentences = True

    def __init__(self, watch: Watch = quiet) -> None:
        """Raises Trouble where no package with CheXbert is installed, or its weights cannot be had."""
        module, self.version = _first_installed(
            "CheXbert",
            (("f1chexbert", "f1chexbert"), ("RadEval.metrics.f1chexbert", "RadEval")),
            "pip install f1chexbert",
        )
        self._labeler = _built("CheXbert", module.F1CheXbert)
        self._watch = watch

    def rows(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
        """(n, 42)"""
        said, asked = self._labels(predictions), self._labels([wordings[0] for wordings in references])
        return np.hstack([said & asked, said & ~asked, ~said & asked]).astype(float)

    def _labels(self, texts: Sequence[str]) -> np.ndarray:
        labels = [
            self._labeler.get_label(text.strip(), mode="rrg") for text in self._watch(texts, "CheXbert", len(texts))
        ]
        return np.array(labels, dtype=bool).reshape(len(texts), len(HEADS))

    def figures(self, totals: np.ndarray) -> dict[str, np.ndarray]:
        hits, invented, missed = np.split(totals, 3, axis=-1)
        five = [HEADS.index(name) for name in FIVE]
        figures = {}
        for size, part in ((14, slice(None)), (5, five)):
            counts = [count[..., part] for count in (hits, invented, missed)]
            figures[f"CheXbert F1, micro {size}"] = _f1(*(count.sum(axis=-1) for count in counts))
            figures[f"CheXbert F1, macro {size}"] = _f1(*counts).mean(axis=-1)
        return figures


class RadGraph:
    """RadGraph F1 (Jain et al., 2021; Delbrouck et al., 2022): simple, partial and complete, each a mean over studies.

    A row: the three scores of the study against its best reference, and 1.
    """

    name = "radgraph"
    reads_sentences = True

    def __init__(self, model: str = "radgraph-xl") -> None:
        module, package = _first_installed("RadGraph", (("radgraph", "radgraph"),), "pip install radgraph")
        self.version = f"{package}.{model}"
        self._scorer = _built("RadGraph", module.F1RadGraph, reward_level="all", model_type=model)

    def rows(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
        """(n, 4)"""
        return _against_best(predictions, references, lambda said, asked: self._scorer(refs=asked, hyps=said)[1])

    def figures(self, totals: np.ndarray) -> dict[str, np.ndarray]:
        names = ("RadGraph F1, simple", "RadGraph F1, partial", "RadGraph F1, complete")
        return {name: totals[..., k] / totals[..., 3] for k, name in enumerate(names)}


class BertScore:
    """BERTScore's F (Zhang et al., 2020), rescaled with its baseline, with the model that RadEval takes.

    A row: the score of the study against its best reference, and 1.
    """

    name = "bertscore"
    reads_sentences = True

    def __init__(self, model: str = "distilbert-base-uncased", layers: int = 5) -> None:
        module, package = _first_installed("BERTScore", (("bert_score", "bert-score"),), "pip install bert-score")
        self.version = f"{package}.{model}-L{layers}"
        self._scorer = _built(
            "BERTScore", module.BERTScorer, model_type=model, num_layers=layers, lang="en", rescale_with_baseline=True
        )

    def rows(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
        """(n, 2)"""
        return _against_best(predictions, references, self._f)

    def _f(self, said: list[str], asked: list[str]) -> list[Any]:
        return [self._scorer.score(cands=said, refs=asked)[2]]

    def figures(self, totals: np.ndarray) -> dict[str, np.ndarray]:
        return {"BERTScore": totals[..., 0] / totals[..., 1]}


def _against_best(
    predictions: Sequence[str],
    references: Sequence[Sequence[str]],
    score: Callable[[list[str], list[str]], Any],
) -> np.ndarray:
    """(n, k + 1): each of k scores of the best reference, and 1."""
    flat, study = flatten(references)
    scores = np.stack(
        [np.asarray(of_one, float) for of_one in score([predictions[int(s)] for s in study], flat)], axis=1
    )
    best = np.full((len(predictions), scores.shape[1]), -np.inf)
    np.maximum.at(best, study, scores)
    return np.column_stack([best, np.ones(len(predictions))])


def _f1(hits: np.ndarray, invented: np.ndarray, missed: np.ndarray) -> np.ndarray:
    """0 where there is nothing to find and nothing was said, as scikit-learn has it."""
    both = 2 * hits + invented + missed
    return np.divide(2 * hits, both, out=np.zeros_like(both), where=both > 0)


def _first_installed(what: str, where: Sequence[tuple[str, str]], remedy: str) -> tuple[Any, str]:
    """The first of these modules that is there, with 'package-version' for the signature."""
    for module, package in where:
        try:
            found = import_module(module)
        except ImportError:
            continue
        try:
            return found, f"{package}-{version(package)}"
        except PackageNotFoundError:
            return found, package
    packages = " or ".join(package for _, package in where)
    raise Trouble(f"{what} needs the package {packages}", remedy=remedy)


def _built(what: str, cls: Callable[..., Any], **settings: Any) -> Any:
    """Weights may be missing in as many ways as there are packages: all of them are one trouble here."""
    try:
        return cls(**settings)
    except Exception as error:
        raise Trouble(
            f"{what}'s model cannot be loaded ({type(error).__name__}: {error})",
            remedy="fetch its weights into the hub's cache once, where there is a network",
        ) from error

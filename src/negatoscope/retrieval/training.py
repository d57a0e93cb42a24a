"""Training of CVSE: out comes one file that finds the sentences of any study whose features are cached.

A step reads some studies; every abnormal sentence that they have is a matched pair. Unmatched sentences come from all
of the corpus, unmatched studies from the same step. The epoch with the best recall of groups is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from negatoscope.errors import BadInput, WrongUse
from negatoscope.models.cvse import CVSE, triplet_loss
from negatoscope.retrieval.calibration import Calibration, calibrate
from negatoscope.retrieval.corpus import Corpus, Told, assign, build_corpus, findings_told
from negatoscope.retrieval.negatives import Negatives
from negatoscope.retrieval.recipe import CVSERecipe
from negatoscope.retrieval.retriever import Retriever, kinds_of, score_studies
from negatoscope.retrieval.seen import VIEWS, features_of
from negatoscope.settings import read_yaml
from negatoscope.studies.store import Store
from negatoscope.studies.study import Study
from negatoscope.text.abnormal import AbnormalSentences, SentenceClassifier
from negatoscope.text.embed import Embedder, embedder_named
from negatoscope.text.group import Labeller
from negatoscope.text.group_page import write_page
from negatoscope.text.sentence_files import save_groups
from negatoscope.vision.features import FeatureCache
from negatoscope.watch import Watch, quiet
from negatoscope.whole_files import write_text

FILE = "cvse.safetensors"


@dataclass(frozen=True)
class TrainedCVSE:
    """What `train_cvse` did."""

    folder: Path
    history: list[dict[str, float]]
    best: dict[str, float]
    groups: int
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Judged:
    """Studies on which epochs are compared, and the groups that each of them has."""

    studies: tuple[Study, ...]
    has: tuple[frozenset[int], ...]
    """Empty for a study without an abnormal sentence of a known group."""


def train_cvse(
    recipe: CVSERecipe,
    folder: Path | str,
    *,
    classifier: SentenceClassifier | None = None,
    labeller: Labeller | None = None,
    watch: Watch = quiet,
) -> TrainedCVSE:
    """Writes `cvse.safetensors`, `recipe.yaml`, `log.csv` and the groups with their page into `folder`.

    Raises BadInput where no training study has an abnormal sentence, or a picture is not in the cache; WrongUse where
    the folder holds a run of another recipe.
    """
    folder, start = Path(folder), perf_counter()
    _must_be_of(recipe, folder)
    store, cache = Store.open(recipe.store), FeatureCache.open(recipe.features)
    classifier = classifier or AbnormalSentences.default()
    learned, held = _parted(
        [study for study in store.studies("train") if study.pictures], recipe.train.held_out, recipe.train.seed
    )
    embedder = embedder_named(recipe.embedder, seed=recipe.groups.seed, watch=watch)
    corpus = build_corpus(findings_told(learned, classifier), embedder, recipe.groups, labeller=labeller, watch=watch)
    if len(corpus.groups.groups) < 2:
        raise BadInput("all abnormal sentences are of one group: nothing to tell them from", where=recipe.store)
    to_calibrate = _judged(findings_told(held, classifier), corpus, embedder)
    to_choose = to_calibrate
    if recipe.train.select == "val":
        shown = [study for study in store.studies("val") if study.pictures]
        to_choose = _judged(findings_told(shown, classifier), corpus, embedder)
    if not any(to_choose.has):
        raise BadInput(
            "no study to choose an epoch by has a finding that training studies have",
            where=recipe.store,
            remedy="train.select: held-out and a larger train.held_out, or more studies",
        )
    torch.manual_seed(recipe.train.seed)
    model = CVSE(recipe.model, cache.key.width, corpus.vectors.shape[1], VIEWS)
    central = torch.from_numpy(corpus.vectors[corpus.central])  # (G, e)
    retriever = Retriever(recipe, model, kinds_of(corpus), central, cache.key)
    history: list[dict[str, float]] = []
    best, kept = -1.0, {}
    for epoch, loss in enumerate(_epochs(model, corpus, cache, recipe, watch)):
        recall = recall_of_groups(retriever, to_choose, cache, recipe.top)
        history.append({"epoch": epoch, "loss": loss, f"recall@{recipe.top}": recall})
        if recall > best:
            best, kept = recall, {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.load_state_dict(kept)
    model.eval()
    calibration, notes = _calibrated(retriever, to_calibrate, cache)
    Retriever(recipe, model, retriever.kinds, central, cache.key, calibration).save(folder / FILE)
    save_groups(corpus.groups, folder / "groups")
    write_page(corpus.groups, folder / "groups" / "groups.html")
    write_text(folder / "recipe.yaml", recipe_text(recipe))
    columns = list(history[0])
    rows = [",".join(columns), *(",".join(f"{row[name]:.6g}" for name in columns) for row in history)]
    write_text(folder / "log.csv", "\n".join(rows) + "\n")
    notes.append(
        f"{len(corpus.studies)} studies with {len(corpus.sentences)} different abnormal sentences; "
        f"{len(to_choose.studies)} to choose an epoch by; {perf_counter() - start:.0f} s"
    )
    chosen = max(history, key=lambda row: row[f"recall@{recipe.top}"])
    return TrainedCVSE(folder, history, chosen, len(retriever.kinds), notes)


def _epochs(model: CVSE, corpus: Corpus, cache: FeatureCache, recipe: CVSERecipe, watch: Watch) -> Iterator[float]:
    """The mean loss of each epoch, after it."""
    said = recipe.train
    optimiser = torch.optim.Adam(model.parameters(), lr=said.lr)
    negatives = Negatives(corpus.group)
    vectors = torch.from_numpy(corpus.vectors)  # (S, e)
    for epoch in watch(range(said.epochs), "epochs", said.epochs):
        order = np.random.default_rng([said.seed, epoch]).permutation(len(corpus.studies))
        losses = []
        model.train()
        for step, at in enumerate(range(0, len(order), said.batch)):
            chosen = order[at : at + said.batch].tolist()
            if len(chosen) < 2:
                continue  # a single study has no other to be told from
            rng = np.random.default_rng([said.seed, epoch, step])
            torch.manual_seed(int(rng.integers(2**62)))
            triplets = triplets_of(corpus, chosen, negatives, said.negatives, rng)
            features, present = features_of([corpus.studies[k] for k in chosen], cache, recipe.arrange)
            with torch.autocast("cpu", torch.bfloat16, enabled=recipe.bf16):
                regions = model.regions(features, present)
            scores = model.scores(regions, model.sentences(vectors[triplets.sentences]))
            loss = triplet_loss(scores, triplets.positive, triplets.unmatched, triplets.others, said.margin)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            losses.append(float(loss.detach()))
        model.eval()
        yield float(np.mean(losses)) if losses else 0.0


@dataclass(frozen=True)
class Triplets:
    """One step: B studies, the U different sentences that it needs, P matched pairs with k negatives of either kind."""

    sentences: Tensor  # (U,) places in the corpus
    positive: Tensor  # (P, 2) study, and place among the U
    unmatched: Tensor  # (P, k) places among the U
    others: Tensor  # (P, k) studies


def triplets_of(
    corpus: Corpus, chosen: Sequence[int], negatives: Negatives, count: int, rng: np.random.Generator
) -> Triplets:
    """Every (study, sentence) of the chosen studies, with `count` unmatched sentences and studies each; -1 for none."""
    pairs = np.array([(row, said) for row, study in enumerate(chosen) for said in corpus.said[study]])  # (P, 2)
    has = [corpus.groups_of(study) for study in chosen]
    unmatched = negatives.sentences([has[row] for row in pairs[:, 0]], count, rng)  # (P, k)
    others = negatives.studies(corpus.group[pairs[:, 1]], has, count, rng)  # (P, k)
    used, place = np.unique(np.concatenate([pairs[:, 1], unmatched[unmatched >= 0]]), return_inverse=True)
    local = np.full(unmatched.shape, -1)
    local[unmatched >= 0] = place[len(pairs) :]
    positive = np.stack([pairs[:, 0], place[: len(pairs)]], 1)
    return Triplets(*(torch.from_numpy(np.asarray(one, np.int64)) for one in (used, positive, local, others)))


def recall_of_groups(retriever: Retriever, judged: Judged, cache: FeatureCache, top: int) -> float:
    """The mean share of a study's groups among its `top`; studies without a known group are passed over."""
    kept = [row for row, groups in enumerate(judged.has) if groups]
    shares = []
    scored = score_studies(retriever, [judged.studies[row] for row in kept], cache)
    for row, scores in zip(kept, (line for part in scored for line in part), strict=True):
        told = set(scores.topk(min(top, len(scores))).indices.tolist())
        shares.append(len(told & judged.has[row]) / len(judged.has[row]))
    return float(np.mean(shares))


def recipe_text(recipe: CVSERecipe) -> str:
    import yaml

    return yaml.safe_dump(json.loads(recipe.model_dump_json()), sort_keys=False)


def _calibrated(retriever: Retriever, judged: Judged, cache: FeatureCache) -> tuple[Calibration | None, list[str]]:
    """Thresholds from studies that were not learned from; none, and a note, where these have no known finding."""
    if not any(judged.has):
        return None, ["no threshold was calibrated: no held-out study has a known finding (train.held_out)"]
    scores = torch.cat(list(score_studies(retriever, judged.studies, cache))).numpy()  # (n, G)
    truth = np.zeros(scores.shape, np.bool_)
    for row, groups in enumerate(judged.has):
        truth[row, list(groups)] = True
    sizes = np.array([len(kind.studies) for kind in retriever.kinds], np.float64)
    return calibrate(scores, truth, sizes), []


def _judged(told: Sequence[Told], corpus: Corpus, embedder: Embedder) -> Judged:
    groups: NDArray[np.int64] = assign(corpus, embedder, [said for one in told for said in one.sentences])
    numbers = iter(groups.tolist())
    has = tuple(frozenset(found for _ in one.sentences if (found := next(numbers)) >= 0) for one in told)
    return Judged(tuple(one.study for one in told), has)


def _parted(studies: list[Study], held_out: float, seed: int) -> tuple[list[Study], list[Study]]:
    """By patient, so that nobody stands on both sides: those to learn from, those held out."""
    patients = sorted({study.patient or study.id for study in studies})
    drawn = np.random.default_rng(seed).permutation(len(patients))[: round(held_out * len(patients))]
    held = {patients[k] for k in drawn}
    apart = [(study.patient or study.id) in held for study in studies]
    return (
        [study for study, is_held in zip(studies, apart, strict=True) if not is_held],
        [study for study, is_held in zip(studies, apart, strict=True) if is_held],
    )


def _must_be_of(recipe: CVSERecipe, folder: Path) -> None:
    path = folder / "recipe.yaml"
    if path.exists() and read_yaml(path) != json.loads(recipe.model_dump_json()):
        raise WrongUse("holds a run of another recipe", where=folder, remedy="name another folder")

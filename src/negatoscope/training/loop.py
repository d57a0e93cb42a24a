"""The training loop: explicit, resumable to the bit, on Lightning Fabric for devices, precision and processes.

Whatever is random in step k of epoch e depends on (seed, e, k) alone: dropout is reseeded before each step, the
loader orders and augments by (seed, epoch). So a checkpoint holds no random state, and a run that was killed and
resumed ends with the same weights as one that was not.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning_fabric import Fabric
from lightning_fabric.wrappers import _FabricOptimizer
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)

from negatoscope.contrast.attention import ContrastiveAttention
from negatoscope.errors import Trouble, WrongUse
from negatoscope.models.base import Reporter
from negatoscope.studies.batch import Batch
from negatoscope.studies.store import Store
from negatoscope.text.words import Vocabulary
from negatoscope.training.build import build_reporter
from negatoscope.training.checkpoint import Checkpoint, flatten, load_checkpoint, save_checkpoint, under, unflatten
from negatoscope.training.contrasting import with_contrasts
from negatoscope.training.data import all_wordings, loader_for, reports_of, tags_of
from negatoscope.training.learner import build_learner, reporters_own
from negatoscope.training.logs import Logs
from negatoscope.training.normality import normality_of
from negatoscope.training.optimise import make_optimiser, out_of_patience, rate_factor, set_rates
from negatoscope.training.precision import precision_for
from negatoscope.training.processes import Tally, in_step, one_voice, strategy_of
from negatoscope.training.recipe import Recipe
from negatoscope.training.run_folder import must_be_of
from negatoscope.training.validation import metrics_for, sign_of, validate
from negatoscope.training.writing import save_jsonl
from negatoscope.watch import Watch, quiet
from negatoscope.whole_files import make_folder, write_json, write_text

FULL = StateDictOptions(full_state_dict=True, cpu_offload=True)


@dataclass
class Progress:
    """Where a run stands: all of it is in the checkpoint, and all of it is JSON."""

    epoch: int = 0
    step: int = 0
    """Steps done in this epoch."""
    sums: dict[str, float] = field(default_factory=dict)
    """Of each term over the steps of this epoch."""
    history: list[dict[str, float]] = field(default_factory=list)
    """One entry an epoch: terms, validation scores where it was validated, rate, seconds."""
    notes: list[str] = field(default_factory=list)
    """What a reader of the run should know of its data: a pool with fewer normal studies than asked for."""

    def scores(self, select: str) -> list[float]:
        """Of each validation so far, higher is better."""
        name = f"val.{select}"
        return [sign_of(select) * entry[name] for entry in self.history if name in entry]


@dataclass(frozen=True)
class Run:
    """What a finished (or already finished) training leaves behind."""

    folder: Path
    recipe: Recipe
    history: list[dict[str, float]]
    best: dict[str, float]
    """The history's entry of the epoch that was kept."""
    notes: tuple[str, ...] = ()


def train(
    recipe: Recipe,
    folder: Path | str,
    *,
    watch: Watch = quiet,
    clock: Callable[[], float] = time.monotonic,
    after_step: Callable[[int, int], None] | None = None,
) -> Run:
    """Trains, or goes on training, in a run's folder; a run that is finished is left as it is, unless the recipe
    now asks for more epochs.

    `after_step(epoch, step)` is called after each step (tests interrupt there). Raises Trouble when a loss is not
    finite, WrongUse when the folder holds a run of another recipe.
    """
    training = _Training(recipe, Path(folder), watch, clock, after_step)
    with one_voice(training.fabric):
        return training.run()


class _Training:
    def __init__(
        self,
        recipe: Recipe,
        folder: Path,
        watch: Watch,
        clock: Callable[[], float],
        after_step: Callable[[int, int], None] | None,
    ) -> None:
        self.recipe, self.folder, self.settings = recipe, folder, recipe.train
        self.watch, self.clock, self.after_step = watch, clock, after_step
        self.fabric = Fabric(
            accelerator={"gpu": "cuda"}.get(self.settings.accelerator, self.settings.accelerator),
            devices=self.settings.devices,
            strategy=strategy_of(self.settings),
            precision=precision_for(recipe),
        )
        self.progress = Progress()
        self.further = metrics_for(self.settings.select)

    def run(self) -> Run:
        fabric = self.fabric
        fabric.launch()
        if not fabric.is_global_zero:
            self.watch = quiet
        self._claim_folder()
        earlier = load_checkpoint(self.last) if self.last.exists() else None
        if earlier is not None:
            self.progress = Progress(**earlier.about["progress"])
        if self._is_over():
            return self._result()

        store = Store.open(self.recipe.data.store)
        self.vocabulary = earlier.vocabulary if earlier is not None else self._learn_words(store)
        torch.manual_seed(self.settings.seed)
        learner = build_learner(self.recipe, build_reporter(self.recipe, self.vocabulary))
        loader = loader_for(
            self.recipe, self.vocabulary, store, "train", rank=fabric.global_rank, world=fabric.world_size
        )
        with fabric.rank_zero_first():  # the others read what the first process wrote
            self.loader, notes = with_contrasts(
                loader, learner.objectives.values(), self.recipe.data.reports, watch=self.watch
            )
        self.validation = loader_for(self.recipe, self.vocabulary, store, "val", limit=self.settings.validate_studies)
        self.wordings = all_wordings(self.recipe, self.vocabulary, store, "val")
        self.bare = learner.to(fabric.device)
        self.normality = normality_of(self.recipe, store)
        if earlier is None:
            self._begin(learner.eval().reporter, store)
        self.learner = fabric.setup_module(learner)
        # As DDP or FSDP wrapped it: what the state-dict functions know.
        self.wrapped: nn.Module = self.learner._forward_module
        optimiser: Any = fabric.setup_optimizers(make_optimiser(self.learner, self.settings))
        self.optimiser: _FabricOptimizer = optimiser
        if earlier is not None:
            self._restore(earlier)
        else:
            for note in (*([self.normality.normals.note] if self.normality else ()), *notes):
                self._note(note)
        self.logs = Logs(self.folder, self._steps_done()) if fabric.is_global_zero else None
        self._epochs()
        return self._result()

    # The run's folder

    @property
    def last(self) -> Path:
        return self.folder / "last.safetensors"

    @property
    def best(self) -> Path:
        return self.folder / "best.safetensors"

    def _claim_folder(self) -> None:
        must_be_of(self.recipe, self.folder)
        self.fabric.barrier()
        if self.fabric.is_global_zero:
            make_folder(self.folder)
            self.recipe.save(self.folder / "recipe.yaml")

    def _learn_words(self, store: Store) -> Vocabulary:
        said = self.recipe.data.vocabulary
        reports = reports_of(self.recipe, store, "train")
        vocabulary = Vocabulary.build(reports, cleaning=said.cleaning, cutoff=said.cutoff, max_words=said.max_words)
        if self.fabric.is_global_zero:
            vocabulary.save(self.folder / "vocabulary.json")
            tags = tags_of(self.recipe, store)
            if tags is not None:
                tags.save(self.folder / "tags.json")
        return vocabulary

    def _begin(self, reporter: Reporter, store: Store) -> None:
        """On each process the same, so that all start from the same weights."""
        loader = loader_for(self.recipe, self.vocabulary, store, "train")

        def batches() -> Any:
            for batch in self.watch(loader.epoch(), "before the first step", len(loader)):
                yield batch.to(self.fabric.device)

        reporter.begin(batches, self.settings.seed)

    # Epochs and steps

    def _epochs(self) -> None:
        settings, progress = self.settings, self.progress
        while not self._is_over():
            began = self.clock()
            self._refresh_pool(progress.epoch)
            terms = self._one_epoch()
            self._refresh_pool(progress.epoch + 1)
            entry = {"epoch": float(progress.epoch + 1), **terms, "lr": self.optimiser.param_groups[0]["lr"]}
            last = progress.epoch + 1 == settings.epochs
            if last or (progress.epoch + 1) % settings.validate_every == 0:
                entry |= self._validate()
            entry["seconds"] = self.clock() - began
            before = progress.scores(settings.select)
            progress.history.append(entry)
            progress.epoch, progress.step, progress.sums = progress.epoch + 1, 0, {}
            scores = progress.scores(settings.select)
            is_best = len(scores) > len(before) and (not before or scores[-1] > max(before))
            self._save(is_best)
            if self.logs:
                self.logs.epoch(progress.history, self._steps_done())

    def _is_over(self) -> bool:
        progress, settings = self.progress, self.settings
        stopped = progress.step == 0 and out_of_patience(settings.patience, progress.scores(settings.select))
        return progress.epoch >= settings.epochs or stopped

    def _refresh_pool(self, epochs: int) -> None:
        contrast = self.bare.reporter.contrast
        if self.normality is None or not isinstance(contrast, ContrastiveAttention):
            return
        if self.normality.due(contrast, epochs):
            self.normality.refresh(contrast, self._whole_reporter(), epochs, self.fabric, self.watch)

    def _note(self, line: str) -> None:
        self.progress.notes.append(line)
        if self.fabric.is_global_zero:
            write_text(self.folder / "notes.txt", "".join(f"{note}\n" for note in self.progress.notes))

    def _one_epoch(self) -> dict[str, float]:
        """The mean of each term over the epoch's steps."""
        progress, epoch = self.progress, self.progress.epoch
        set_rates(
            self.optimiser.param_groups,
            rate_factor(self.settings.schedule, epoch, progress.scores(self.settings.select)),
        )
        self.learner.train()
        self.bare.begin_epoch(epoch)
        batches = in_step(self.fabric, self.loader.epoch(epoch, skip=progress.step))
        saved = self.clock()
        steps = len(self.loader)
        for batch in self.watch(batches, f"epoch {epoch + 1} of {self.settings.epochs}", steps - progress.step):
            terms = self._one_step(batch)
            progress.step += 1
            for name, value in terms.items():
                progress.sums[name] = progress.sums.get(name, 0.0) + value
            if self.logs:
                self.logs.step(terms, self._steps_done())
            if self.after_step:
                self.after_step(epoch, progress.step)
            is_time = self.fabric.broadcast(self.clock() - saved > 60 * self.settings.save_minutes)
            if is_time and progress.step < steps:
                self._save(is_best=False)
                saved = self.clock()
        return {name: total / progress.step for name, total in progress.sums.items()}

    def _one_step(self, batch: Batch) -> dict[str, float]:
        settings, fabric = self.settings, self.fabric
        place = (settings.seed, self.progress.epoch, self.progress.step, fabric.global_rank)
        torch.manual_seed(int(np.random.SeedSequence(place).generate_state(1)[0]))
        parts = list(split_batch(batch, settings.accumulate))
        tally = Tally()
        for number, part in enumerate(parts):
            more = number + 1 < len(parts)
            with fabric.no_backward_sync(self.learner, enabled=more) if fabric.world_size > 1 else nullcontext():
                terms = self.learner(part.to(fabric.device))
                share = len(part) / len(batch)
                tally.note(terms, part.ids, share)
                fabric.backward(terms["loss"] * share)
        sums, lost = tally.told(fabric)
        if lost:
            raise Trouble(
                f"the loss is not finite at epoch {self.progress.epoch + 1}, step {self.progress.step + 1} "
                f"(studies {', '.join(lost)})",
                where=self.folder,
                remedy="look at these studies, lower train.lr or set train.clip",
            )
        if settings.clip:
            fabric.clip_gradients(self.learner, self.optimiser, max_norm=settings.clip)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return sums

    def _validate(self) -> dict[str, float]:
        """Scores of the validation split, 'val.' before their names, the same on every process."""
        scores: dict[str, float] = {}
        reporter = self._whole_reporter()
        if self.fabric.is_global_zero and reporter is not None:
            found, self._reports = validate(
                self.bare.around(reporter),
                self.validation,
                self.vocabulary,
                self.recipe.decode,
                autocast=self.fabric.autocast(),
                watch=self.watch,
                wordings=self.wordings,
                more=self.further,
            )
            scores = {f"val.{name}": value for name, value in found.items()}
        return self.fabric.broadcast(scores)

    def _whole_reporter(self) -> Reporter | None:
        """The reporter in one piece on the first process, where the loop's own may be in shards."""
        if self.settings.strategy != "fsdp":
            return self.bare.reporter
        tensors = get_model_state_dict(self.wrapped, options=FULL)
        if not self.fabric.is_global_zero:
            return None
        reporter = build_reporter(self.recipe, self.vocabulary, pretrained=False)
        reporter.load_state_dict(reporters_own(tensors))
        return reporter.to(self.fabric.device)

    # Saving

    def _save(self, is_best: bool) -> None:
        model: dict[str, Any] = get_model_state_dict(self.wrapped, options=FULL)
        state: Any = get_optimizer_state_dict(self.wrapped, self.optimiser.optimizer, options=FULL).get("state", {})
        if self.fabric.is_global_zero:
            if is_best:
                about = {"epoch": self.progress.epoch, "scores": self.progress.history[-1]}
                save_checkpoint(self.best, Checkpoint(self.recipe, self.vocabulary, reporters_own(model), about))
                save_jsonl(self.folder / "reports-val.jsonl", self._reports)
                write_json(self.folder / "scores.json", about)
            tensors = {f"learner/{name}": tensor for name, tensor in model.items()}
            tensors |= flatten(state, "optimiser")
            save_checkpoint(
                self.last, Checkpoint(self.recipe, self.vocabulary, tensors, {"progress": vars(self.progress)})
            )
        self.fabric.barrier()

    def _restore(self, checkpoint: Checkpoint) -> None:
        weights: dict[str, Any] = dict(under(checkpoint.tensors, "learner"))
        set_model_state_dict(self.wrapped, weights, options=FULL)
        state: Any = unflatten(checkpoint.tensors, "optimiser")
        groups = get_optimizer_state_dict(self.wrapped, self.optimiser.optimizer)["param_groups"]
        set_optimizer_state_dict(
            self.wrapped, self.optimiser.optimizer, {"state": state, "param_groups": groups}, options=FULL
        )
        for parameter, held in self.optimiser.optimizer.state.items():
            for key, value in held.items():  # a fused step goes through memory: both must lie in the same order
                if torch.is_tensor(value) and value.shape == parameter.shape and value.stride() != parameter.stride():
                    held[key] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)

    def _steps_done(self) -> int:
        return self.progress.epoch * len(self.loader) + self.progress.step

    def _result(self) -> Run:
        history, select = self.progress.history, f"val.{self.settings.select}"
        validated = [entry for entry in history if select in entry]
        if not validated:
            remedy = f"ask for more than {len(history)} epochs"
            raise WrongUse("this run was not validated yet", where=self.folder, remedy=remedy)
        chosen = max(validated, key=lambda entry: sign_of(self.settings.select) * entry[select])
        return Run(self.folder, self.recipe, history, chosen, tuple(self.progress.notes))


def split_batch(batch: Batch, parts: int) -> list[Batch]:
    """A batch in so many parts of nearly equal size, none empty."""
    if parts == 1:
        return [batch]
    pieces = [piece for piece in torch.arange(len(batch)).chunk(parts) if len(piece)]
    return [batch.rows(piece.tolist()) for piece in pieces]

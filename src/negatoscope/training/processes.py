"""Several processes that learn as one: how the learner is shared out among them, and what they tell each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from negatoscope.errors import Trouble
from negatoscope.studies.batch import Batch
from negatoscope.training.recipe import TrainSettings

T = TypeVar("T")
_LOST = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "Connection refused")


def strategy_of(settings: TrainSettings) -> Any:
    """What Fabric is told. For `fsdp` it is PyTorch's second FSDP, which runs over gloo on processors as well."""
    if settings.strategy != "fsdp":
        return settings.strategy
    from lightning_fabric.strategies import ModelParallelStrategy

    return ModelParallelStrategy(_in_shards, data_parallel_size=settings.devices, tensor_parallel_size=1)


def _in_shards(learner: nn.Module, mesh: Any) -> nn.Module:
    """Weights, gradients and the optimiser's state in as many shards as there are processes.

    The learner is one unit, gathered for each step: only of the whole is it certain that it is entered by `forward`.
    """
    from torch.distributed.fsdp import fully_shard

    for parameter in learner.parameters():  # shards are cut from rows: convolutions' channels-last memory has none
        parameter.data = parameter.data.contiguous()
    fully_shard(learner, mesh=mesh["data_parallel"])
    return learner


def is_first() -> bool:
    """Whether this is the process that speaks for the run: the only one, or the first of several."""
    several = torch.distributed.is_available() and torch.distributed.is_initialized()
    return not several or torch.distributed.get_rank() == 0


@contextmanager
def one_voice(fabric: Fabric) -> Iterator[None]:
    """Only the first process tells of trouble; the others end quietly with the same exit code."""
    try:
        yield
    except (Trouble, KeyboardInterrupt) as error:
        if fabric.is_global_zero:
            raise
        raise SystemExit(getattr(error, "exit_code", 1)) from None
    except RuntimeError as error:
        if fabric.world_size == 1 or not any(said in str(error) for said in _LOST):
            raise
        if fabric.is_global_zero:
            what = "another process of this run has ended"
            raise Trouble(what, remedy="the same command goes on from what was saved last") from error
        raise SystemExit(1) from None


def together(fabric: Fabric, mine: T) -> list[T]:
    """What each process says, in their order."""
    if fabric.world_size == 1:
        return [mine]
    said: list[Any] = [None] * fabric.world_size
    torch.distributed.all_gather_object(said, mine)
    return said


def in_step(fabric: Fabric, batches: Iterator[Batch]) -> Iterator[Batch]:
    """The batches. Where one process meets a damaged study all of them raise that trouble: none is left waiting."""
    if fabric.world_size == 1:
        yield from batches
        return
    while True:
        batch, trouble = None, None
        try:
            batch = next(batches, None)
        except Trouble as error:
            trouble = error
        for one in together(fabric, trouble):
            if one is not None:
                raise one
        if batch is None:
            return
        yield batch


class Tally:
    """The terms of one step, over its parts and over all processes. Read once, at its end: a GPU waits for nobody."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._values: list[Tensor] = []
        self._of: list[tuple[tuple[str, ...], float]] = []
        """Of each value: its part's studies, and the part's share of the batch."""

    def note(self, terms: dict[str, Tensor], studies: tuple[str, ...], share: float) -> None:
        for name, value in terms.items():
            self._names.append(name)
            self._values.append(value.detach().float())
            self._of.append((studies, share))

    def told(self, fabric: Fabric) -> tuple[dict[str, float], list[str]]:
        """Each term's mean, and the studies of the parts whose loss is not finite; on every process the same."""
        terms: dict[str, float] = {}
        lost: list[str] = []
        for name, value, (studies, share) in zip(self._names, torch.stack(self._values).tolist(), self._of):
            terms[name] = terms.get(name, 0.0) + share * value
            if name == "loss" and not math.isfinite(value):
                lost += studies
        everybodys = together(fabric, (terms, lost))
        return _means([one for one, _ in everybodys]), [study for _, studies in everybodys for study in studies]


def _means(terms: Sequence[dict[str, float]]) -> dict[str, float]:
    """A term that a process did not have, for want of anything to compare, counts for nothing."""
    names: Iterable[str] = dict.fromkeys(name for one in terms for name in one)
    found = {name: [one[name] for one in terms if name in one] for name in names}
    return {name: sum(values) / len(values) for name, values in found.items()}

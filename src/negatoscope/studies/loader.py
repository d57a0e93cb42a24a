"""Batches from a store: which study when, its pictures and words as padded tensors.

What comes when depends on (seed, epoch) alone, and how a study is augmented on (seed, epoch, study): not on the
number of worker processes, nor on whether the run was interrupted in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from negatoscope.errors import BadInput, Trouble, WrongUse
from negatoscope.studies.batch import Batch
from negatoscope.studies.store import Store
from negatoscope.studies.study import OBSERVATIONS, Picture, Split, Study
from negatoscope.studies.views import ARRANGE, Arranging


@dataclass(frozen=True)
class Seen:
    """What was made of a study's pictures, and the report that goes with it: a mirrored image has its sides swapped."""

    report: str
    images: Tensor | None = None  # (V, C, H, W)
    features: Tensor | None = None  # (V, N, D)


class Look(Protocol):
    """Pictures to tensors: `vision/augment.py` from files, `vision/features.py` from a cache."""

    def __call__(self, store: Store, study: Study, pictures: Sequence[Picture | None], epoch: int) -> Seen: ...


Extra = Callable[[Study], Mapping[str, Any]]
"""What one loss or model needs besides, by name, a study at a time; tensors of a batch are stacked."""


def nothing_extra(study: Study) -> Mapping[str, Any]:
    return {}


@dataclass
class StudyLoader:
    store: Store
    split: Split
    look: Look
    encode: Callable[[str], list[int]] | None = None
    """Report to word numbers, where reports are wanted."""
    batch: int = 16
    slots: int = 2
    arrange: Arranging = "by-view"
    shuffle: bool = False
    seed: int = 0
    workers: int = 0
    extra: Extra = nothing_extra
    limit: int | None = None
    """The first so many studies alone."""
    chosen: Sequence[int] | None = None
    """Of the split's studies only those at these places of the store."""
    rank: int = 0
    world: int = 1
    """Of `world` processes each takes its share of every batch, so that a step sees the same studies however many
    there are."""
    _numbers: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        splits = self.store.table(["split"])["split"].to_numpy(zero_copy_only=False)
        self._numbers = np.flatnonzero(splits == self.split)[: self.limit]
        if self.chosen is not None:
            self._numbers = np.intersect1d(self._numbers, self.chosen)
        if not len(self._numbers):
            raise BadInput(
                f"no studies in split {self.split!r}", where=self.store.path, remedy="see `negatoscope data show`"
            )
        if self.batch % self.world:
            said = f"a batch of {self.batch} cannot be shared evenly by {self.world} processes"
            raise WrongUse(said, where="train.batch", remedy=f"give a multiple of {self.world}")

    @property
    def studies(self) -> int:
        return len(self._numbers)

    def __len__(self) -> int:
        """Batches an epoch."""
        return math.ceil(len(self._numbers) / self.batch)

    def batches(self, epoch: int) -> list[list[int]]:
        """Places in the store of each batch of an epoch, this process's share."""
        order = self._numbers
        if self.shuffle:
            order = np.random.default_rng((self.seed, epoch)).permutation(order)
        whole = [order[i : i + self.batch].tolist() for i in range(0, len(order), self.batch)]
        if self.world == 1:
            return whole
        if self.shuffle and len(whole[-1]) % self.world:  # each process must take part in each step
            whole[-1] += order[: self.world - len(whole[-1]) % self.world].tolist()
        return [one[self.rank :: self.world] for one in whole]

    def epoch(self, number: int = 0, *, skip: int = 0) -> Iterator[Batch]:
        """The batches of an epoch, but for the first `skip`, which an interrupted run has already learned from."""
        batches = self.batches(number)[skip:]
        loader: DataLoader[Any] = DataLoader(
            _Items(self, number),
            batch_sampler=batches,  # pyright: ignore[reportArgumentType]
            collate_fn=_collate_unless_trouble,
            num_workers=self.workers if len(batches) > 1 else 0,
        )
        for batch in loader:
            if isinstance(batch, Trouble):
                raise batch
            yield batch


class _Items(Dataset["dict[str, Any] | Trouble"]):
    def __init__(self, loader: StudyLoader, epoch: int) -> None:
        self.loader, self.epoch = loader, epoch

    def __getitem__(self, number: int) -> dict[str, Any] | Trouble:
        """Trouble is handed over, not raised: a worker process would wrap it in a page of traceback."""
        try:
            return self._item(number)
        except Trouble as trouble:
            return trouble

    def _item(self, number: int) -> dict[str, Any]:
        ours = self.loader
        study = ours.store.at(number)
        pictures = ARRANGE[ours.arrange](study, ours.slots)
        seen = ours.look(ours.store, study, pictures, self.epoch)
        item: dict[str, Any] = {
            "id": study.id,
            "present": torch.tensor([picture is not None for picture in pictures]),
            "images": seen.images,
            "features": seen.features,
            "labels": labels_row(study.labels),
            "extra": ours.extra(replace(study, report=seen.report)),
        }
        if ours.encode is not None:
            item["words"] = ours.encode(seen.report)
            if len(item["words"]) < 2:
                raise BadInput("no words are left of the report after cleaning", where=study.id)
        return item


def _collate_unless_trouble(items: Sequence[dict[str, Any] | Trouble]) -> Batch | Trouble:
    for item in items:
        if isinstance(item, Trouble):
            return item
    return collate([item for item in items if not isinstance(item, Trouble)])


def labels_row(labels: Mapping[str, int]) -> Tensor:
    """(14,) float: 1, 0, -1, NaN for what was not mentioned."""
    return torch.tensor([float(labels.get(name, np.nan)) for name in OBSERVATIONS])


def collate(items: Sequence[Mapping[str, Any]]) -> Batch:
    """Stacks tensors; pads words with 0, which is also start and end, so the mask says which are real."""
    words = mask = None
    if "words" in items[0]:
        longest = max(len(item["words"]) for item in items)
        words = torch.zeros(len(items), longest, dtype=torch.long)
        mask = torch.zeros(len(items), longest, dtype=torch.bool)
        for row, item in enumerate(items):
            words[row, : len(item["words"])] = torch.tensor(item["words"])
            mask[row, : len(item["words"])] = True
    return Batch(
        ids=tuple(item["id"] for item in items),
        present=torch.stack([item["present"] for item in items]),
        images=_stack(items, "images"),
        features=_stack(items, "features"),
        words=words,
        word_mask=mask,
        labels=torch.stack([item["labels"] for item in items]),
        extra={name: _stack_any([item["extra"][name] for item in items]) for name in items[0]["extra"]},
    )


def _stack(items: Sequence[Mapping[str, Any]], name: str) -> Tensor | None:
    if items[0][name] is None:
        return None
    with torch.autocast("cpu", enabled=False):  # around a validation; it cannot stack cached features' float16
        return torch.stack([item[name] for item in items])


def _stack_any(values: Sequence[Any]) -> Any:
    return torch.stack(list(values)) if isinstance(values[0], Tensor) else torch.as_tensor(values)

"""Two processes with half the batch each learn what one learns from the whole: the same loss, the same slopes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch import multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

from negatoscope.contrast.gathering import gather, processes
from negatoscope.contrast.negatives import HardNegatives, NegativesSettings
from negatoscope.contrast.objective import NEIGHBOURS
from negatoscope.contrast.weak import WeakContrast, WeakSettings
from negatoscope.studies.batch import Batch
from negatoscope.training.learner import Learner, widths_of
from negatoscope.training.objectives import CrossEntropy, CrossEntropySettings
from tests.models.every import batch_of, tiny

LENGTHS = (6, 6, 6, 6)  # alike, as cross-entropy is the mean over the words of each process

LOSSES: dict[str, dict[str, Any]] = {
    "wcl": {"wcl": WeakSettings(width=8, tau=0.2)},
    "wcl, adversarial": {"wcl": WeakSettings(width=8, tau=0.2, alpha=1.0, adversarial=0.2)},
    "ithn": {"hard-negatives": NegativesSettings(width=8, beta=1.0)},
    "mochi": {"hard-negatives": NegativesSettings(width=8, beta=1.0, way="mochi", temperatures="released")},
    "released": {"hard-negatives": NegativesSettings(width=8, beta=1.0, projection="released", apart="released")},
    "both": {"wcl": WeakSettings(width=8), "hard-negatives": NegativesSettings(width=8)},
}


def learner_of(losses: dict[str, Any]) -> Learner:
    """Without dropout: who drops what depends on the process."""
    reporter = tiny("r2gencmn").eval()
    torch.manual_seed(2)
    objectives: dict[str, Any] = {"cross-entropy": CrossEntropy(CrossEntropySettings())}
    for name, settings in losses.items():
        objectives[name] = WeakContrast(settings) if name == "wcl" else HardNegatives(settings)
        objectives[name].meet(widths_of(reporter))
    learner = Learner(reporter, objectives, dict.fromkeys(objectives, 1.0))
    learner.training = True  # alone: its reporter stays without dropout
    learner.begin_epoch(40)
    return learner


def batch() -> Batch:
    beside = replace(batch_of(LENGTHS, seed=7), ids=("p", "q", "r", "s"))
    return replace(batch_of(LENGTHS), extra={"clusters": torch.tensor([0, 1, 0, 1]), NEIGHBOURS: beside})


def learned(learner: nn.Module, given: Batch) -> tuple[dict[str, float], dict[str, Tensor]]:
    terms = learner(given)
    terms["loss"].backward()
    slopes = {
        name.removeprefix("module."): p.grad.clone() for name, p in learner.named_parameters() if p.grad is not None
    }
    return {name: value.item() for name, value in terms.items()}, slopes


def one_of_two(rank: int, folder: str, losses: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    found = {}
    for name, settings in losses.items():
        learner = learner_of(settings)
        wrapped = DistributedDataParallel(learner)
        wrapped.training = True
        found[name] = learned(wrapped, batch().rows([rank, rank + 2]))
    numbers = gather(torch.tensor([rank]))
    torch.save({"found": found, "numbers": numbers, "processes": processes()}, f"{folder}/{rank}.pt")
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("two")
    mp.spawn(one_of_two, (str(folder), LOSSES), nprocs=2)  # pyright: ignore[reportPrivateImportUsage]
    return [torch.load(Path(folder) / f"{rank}.pt", weights_only=True) for rank in range(2)]


@pytest.mark.parametrize("name", LOSSES)
def test_two_halves_are_one_whole(halves: list[dict[str, Any]], name: str) -> None:
    terms, slopes = learned(learner_of(LOSSES[name]), batch())
    assert len(terms) > 2
    for half in halves:
        theirs, their_slopes = half["found"][name]
        for term, value in terms.items():
            if term not in ("loss", "cross-entropy"):  # cross-entropy is each process's own
                assert theirs[term] == pytest.approx(value, abs=1e-5)
        assert their_slopes.keys() == slopes.keys()
        for parameter, slope in slopes.items():
            torch.testing.assert_close(their_slopes[parameter], slope, rtol=1e-5, atol=1e-5)
    assert any(slope.abs().max() > 0.01 for slope in slopes.values())
    mean = sum(half["found"][name][0]["loss"] for half in halves) / 2
    assert mean == pytest.approx(terms["loss"], abs=1e-5)


def test_halves_alone_are_not_the_whole(halves: list[dict[str, Any]]) -> None:
    """That the test above can fail: negatives of one shard alone give another loss."""
    terms, _ = learned(learner_of(LOSSES["ithn"]), batch().rows([0, 2]))
    assert abs(terms["contrast"] - halves[0]["found"]["ithn"][0]["contrast"]) > 1e-2


def test_gathering(halves: list[dict[str, Any]]) -> None:
    assert [half["numbers"].tolist() for half in halves] == [[0, 1], [0, 1]]
    assert halves[0]["processes"] == 2
    assert processes() == 1
    rows = torch.arange(3.0)
    assert gather(rows) is rows

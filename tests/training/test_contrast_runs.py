"""Contrastive losses in the training loop: every loss on every host, resumed to the bit, gone at inference."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml

from negatoscope.contrast.objective import NEIGHBOURS
from negatoscope.errors import BadInput
from negatoscope.studies.loader import Seen, StudyLoader
from negatoscope.studies.store import Store
from negatoscope.studies.study import Picture, Study
from negatoscope.training import loop
from negatoscope.training.checkpoint import load_checkpoint, load_reporter
from negatoscope.training.companions import with_neighbours
from negatoscope.training.contrasts import corpus_of, neighbours_for
from negatoscope.training.recipe import recipe_of
from tests.training.contrast_runs import HOSTS, LOSSES, Make, cached, contrast_recipe

__all__ = ["cached", "contrast_recipe"]
TERMS = {"none": set(), "wcl": {"wcl"}, "mochi": {"contrast", "apart"}, "ithn": {"contrast", "apart"}}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("host", HOSTS)
def test_every_cell_of_the_grid_trains(contrast_recipe: Make, tmp_path: Path, host: str, loss: str) -> None:
    run = loop.train(contrast_recipe(host, loss, epochs=3, lr=1e-2), tmp_path / "run")
    assert TERMS[loss] <= run.history[0].keys()
    assert run.history[-1]["cross-entropy"] < run.history[0]["cross-entropy"]
    reporter, checkpoint = load_reporter(run.folder / "best.safetensors")
    assert checkpoint.tensors.keys() == reporter.state_dict().keys()
    assert not [name for name in checkpoint.tensors if "objective" in name]


class _Stop(Exception):
    pass


def _same(one: Path, other: Path, name: str = "last") -> None:
    tensors = [load_checkpoint(folder / f"{name}.safetensors").tensors for folder in (one, other)]
    assert tensors[0].keys() == tensors[1].keys()
    for key, tensor in tensors[0].items():
        assert torch.equal(tensor, tensors[1][key]), key


BOTH = [{"name": "wcl", "weight": 0.2, "clusters": 2, "start": 1}, {"name": "hard-negatives", "way": "mochi"}]


@pytest.mark.parametrize("where", [(0, 1), (1, 2), (2, 4)])
def test_a_resumed_run_ends_with_the_same_weights_to_the_bit(
    contrast_recipe: Make, tmp_path: Path, where: tuple[int, int]
) -> None:
    """Heads, temperature and the epoch of lambda, the neighbours drawn by then: all of it goes on where it was."""

    def stop(epoch: int, step: int) -> None:
        if (epoch, step) == where:
            raise _Stop

    recipe = contrast_recipe("r2gencmn", losses=BOTH, epochs=3, save_minutes=1e-9)
    whole = loop.train(recipe, tmp_path / "whole")
    with pytest.raises(_Stop):
        loop.train(recipe, tmp_path / "cut", after_step=stop)
    cut = loop.train(recipe, tmp_path / "cut")
    _same(whole.folder, cut.folder)
    _same(whole.folder, cut.folder, "best")
    plain = [[{k: v for k, v in entry.items() if k != "seconds"} for entry in run.history] for run in (whole, cut)]
    assert plain[0] == plain[1]
    assert cut.notes == whole.notes


def test_a_run_killed_outright_resumes(contrast_recipe: Make, tmp_path: Path) -> None:
    recipe = contrast_recipe("r2gen", "ithn", epochs=3, save_minutes=1e-9)
    recipe.save(tmp_path / "recipe.yaml")
    loop.train(recipe, tmp_path / "whole")
    script = (
        "import sys; from negatoscope.training.loop import train; from negatoscope.training.recipe import load_recipe;"
        "train(load_recipe(sys.argv[1]), sys.argv[2], after_step=lambda e, s: print(e, s, flush=True))"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())}
    command = [sys.executable, "-c", script, str(tmp_path / "recipe.yaml"), str(tmp_path / "killed")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.split() == ["1", "2"]:
                time.sleep(0.01)
                process.send_signal(signal.SIGKILL)
                break
    loop.train(recipe, tmp_path / "killed")
    _same(tmp_path / "whole", tmp_path / "killed")


def test_two_processes_learn_what_one_learns(contrast_recipe: Make, tmp_path: Path) -> None:
    """Through the whole loop, over gloo: tables made once, negatives from the step's whole batch."""
    said = contrast_recipe("nic", losses=BOTH[1:] + LOSSES["wcl"], optimiser="sgd", lr=0.05).as_dict()
    said["model"]["dropout"] = 0.0
    said["train"]["accelerator"] = "cpu"
    one = loop.train(recipe_of(said), tmp_path / "one")
    said["train"] |= {"devices": 2, "strategy": "ddp"}
    (tmp_path / "two.yaml").write_text(yaml.safe_dump(said))
    program = tmp_path / "go.py"
    program.write_text(
        "import sys\nfrom negatoscope.training.loop import train\nfrom negatoscope.training.recipe import load_recipe\n"
        "train(load_recipe(sys.argv[1]), sys.argv[2])\n"
    )
    command = [sys.executable, str(program), str(tmp_path / "two.yaml"), str(tmp_path / "two")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    tensors = [load_checkpoint(folder / "best.safetensors").tensors for folder in (one.folder, tmp_path / "two")]
    moved = 0.0
    for name, tensor in tensors[0].items():
        torch.testing.assert_close(tensor, tensors[1][name], atol=2e-5, rtol=0)
        moved = max(moved, tensor.abs().max().item())
    assert moved > 0


def test_the_run_says_what_its_losses_read(contrast_recipe: Make, tmp_path: Path) -> None:
    run = loop.train(contrast_recipe("r2gen", losses=BOTH, epochs=2), tmp_path / "run")
    clusters, neighbours = run.notes
    assert clusters.startswith("clusters: K = 2 by tfidf-svd-128, seed 0, silhouette 1.000")
    assert clusters.endswith("sizes 16, 8")
    assert neighbours.startswith("hard negatives: one of the 5 nearest by tfidf-svd-128, of 3 different reports of 24")
    assert (run.folder / "notes.txt").read_text().splitlines() == list(run.notes)
    columns = next(csv.reader((run.folder / "log.csv").open()))
    assert {"wcl", "contrast", "apart"} <= set(columns)
    assert run.history[0]["wcl"] == 0 < run.history[1]["wcl"], "it starts in the second epoch"


def test_in_bf16(contrast_recipe: Make, tmp_path: Path) -> None:
    run = loop.train(contrast_recipe("r2gencmn", "ithn", precision="bf16"), tmp_path / "run")
    exact = loop.train(contrast_recipe("r2gencmn", "ithn"), tmp_path / "exact")
    assert run.history[0]["contrast"] == pytest.approx(exact.history[0]["contrast"], rel=0.1)


def test_accumulated_parts_bring_their_own_neighbours(contrast_recipe: Make, tmp_path: Path) -> None:
    run = loop.train(contrast_recipe("r2gencmn", "ithn", accumulate=2), tmp_path / "run")
    assert run.history[0]["contrast"] > 0


def test_who_comes_with_whom(small_store: Path) -> None:
    """Not the same words, another draw each epoch, the same draw each time; what the loader had besides stays."""
    store = loop.Store.open(small_store)
    loader = StudyLoader(store, "train", look_at_nothing, encode=len_encoded, batch=5, shuffle=True, seed=4)
    found = neighbours_for(store, corpus_of(store), "tfidf", 10)
    both = with_neighbours(loader, found, 2)
    epochs = [list(both.epoch(number)) for number in (0, 0, 1)]
    said = {study.id: study.report for study in store.studies()}
    drawn: list[dict[str, str]] = []
    for batches, plainly in zip(epochs, (0, 0, 1)):
        pairs: dict[str, str] = {}
        for batch, alone in zip(batches, loader.epoch(plainly), strict=True):
            beside = batch.extra[NEIGHBOURS]
            assert batch.ids == alone.ids
            pairs |= dict(zip(batch.ids, beside.ids, strict=True))
        assert pairs.keys() == {study.id for study in store.studies("train")}
        assert all(said[one] != said[other] for one, other in pairs.items())
        drawn.append(pairs)
    assert drawn[0] == drawn[1] != drawn[2]
    assert next(iter(both.epoch(0, skip=2))).extra[NEIGHBOURS].ids == epochs[0][2].extra[NEIGHBOURS].ids
    shares = [replace(both, rank=rank, world=2, batch=6) for rank in range(2)]
    assert all(len(share.companions.batches(0)[0]) for share in shares)


def test_a_study_that_no_other_is_unlike(small_store: Path) -> None:
    store = loop.Store.open(small_store)
    found = neighbours_for(store, corpus_of(store), "tfidf", 10)
    alone = StudyLoader(store, "train", look_at_nothing, encode=len_encoded, chosen=[0, 3, 6])
    with pytest.raises(BadInput, match="no neighbour of study s000 is learned from"):
        with_neighbours(alone, found, 1)


def look_at_nothing(store: Store, study: Study, pictures: Sequence[Picture | None], epoch: int) -> Seen:
    return Seen(study.report, features=torch.zeros(len(pictures), 1, 2))


def len_encoded(report: str) -> list[int]:
    return [0, *(len(word) for word in report.split()), 0]

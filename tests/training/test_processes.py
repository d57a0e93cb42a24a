"""Two processes over gloo, as DDP and in shards: they learn what one learns, resume as exactly, and speak as one."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from negatoscope.errors import WrongUse
from negatoscope.studies.store import Store
from negatoscope.training import loop
from negatoscope.training.checkpoint import load_checkpoint
from negatoscope.training.recipe import Recipe, recipe_of

MakeRecipe = Callable[..., Recipe]
STRATEGIES = ("ddp", "fsdp")


def _weights(folder: Path, name: str = "last") -> dict[str, torch.Tensor]:
    return dict(load_checkpoint(folder / f"{name}.safetensors").tensors)


def _start(said: dict[str, Any], folder: Path, strategy: str) -> subprocess.Popen[str]:
    """The command itself: it starts the second process."""
    said["train"] |= {"devices": 2, "strategy": strategy, "accelerator": "cpu"}
    path = folder.with_suffix(".yaml")
    path.write_text(yaml.safe_dump(said))
    words = [sys.executable, "-m", "negatoscope", "train", str(path), "--run", str(folder), "--json"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )


def _done(said: dict[str, Any], folder: Path, strategy: str) -> dict[str, Any]:
    process = _start(said, folder, strategy)
    out, error = process.communicate(timeout=300)
    assert process.returncode == 0, error[-2000:]
    return json.loads(out)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_two_processes_learn_what_one_learns(small_recipe: MakeRecipe, tmp_path: Path, strategy: str) -> None:
    """The same studies a step, so the same weights to rounding; batch norm, which sees the parts apart, is frozen."""
    said = small_recipe(epochs=2, lr=0.05, batch=6, accumulate=3, clip=0.5, optimiser="sgd").as_dict()
    said["encoder"]["frozen"] = True
    said["model"]["dropout"] = 0.0
    said["data"]["augment"] = {"margin": 1.0}
    one = loop.train(recipe_of(said), tmp_path / "one")
    told = _done(said, tmp_path / "two", strategy)
    for name, tensor in _weights(tmp_path / "one").items():
        torch.testing.assert_close(tensor, _weights(tmp_path / "two")[name], atol=1e-5, rtol=0)
    assert told["epochs"] == 2
    for name in ("loss", "val.loss", "val.BLEU-4"):
        assert told["best"][name] == pytest.approx(one.best[name], rel=1e-4)


@pytest.mark.full
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_two_processes_that_were_killed_end_with_the_same_weights(
    small_recipe: MakeRecipe, tmp_path: Path, strategy: str
) -> None:
    """Everything that learns is at work: dropout, batch norm, Adam, saves within the epoch."""
    said = small_recipe(epochs=4, batch=12, save_minutes=1e-9, clip=1.0, accumulate=2).as_dict()
    _done(said, tmp_path / "whole", strategy)
    process = _start(said, tmp_path / "killed", strategy)
    for _ in range(6000):
        if (tmp_path / "killed" / "log.csv").exists():
            break
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert load_checkpoint(tmp_path / "killed" / "last.safetensors").about["progress"]["epoch"] < 4
    _done(said, tmp_path / "killed", strategy)
    whole, resumed = _weights(tmp_path / "whole"), _weights(tmp_path / "killed")
    assert whole.keys() == resumed.keys()
    for name, tensor in whole.items():
        assert torch.equal(tensor, resumed[name]), name


def test_trouble_of_the_second_process_is_one_line_of_the_first(
    small_recipe: MakeRecipe, small_store: Path, tmp_path: Path
) -> None:
    shutil.copytree(small_store, tmp_path / "store")
    store = Store.open(tmp_path / "store")
    said = small_recipe(epochs=1, batch=24).as_dict()  # one step, so a study is with the process that has its place
    said["data"]["store"] = str(tmp_path / "store")
    second = loop.loader_for(recipe_of(said), None, store, "train", rank=1, world=2)
    study = store.at(second.batches(0)[0][0])
    path = store.picture_path(study.pictures[0])
    path.write_bytes(path.read_bytes()[:100])
    process = _start(said, tmp_path / "run", "ddp")
    out, error = process.communicate(timeout=300)
    assert (process.returncode, out) == (1, "")
    lines = [line for line in error.splitlines() if line.startswith("negatoscope:")]
    assert len(lines) == 1
    assert study.id in lines[0]
    assert str(path) in lines[0]
    assert "Traceback" not in error


def test_a_batch_that_cannot_be_shared_is_wrong_use(small_recipe: MakeRecipe, small_store: Path) -> None:
    with pytest.raises(WrongUse, match=r"a batch of 5 cannot be shared evenly by 2 processes; give a multiple of 2"):
        loop.loader_for(small_recipe(batch=5), None, Store.open(small_store), "train", rank=0, world=2)

"""What stops a run: a damaged picture, Ctrl-C, a full disk. One line each, and nothing half-written stays."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from negatoscope.errors import BadInput
from negatoscope.studies.store import Store
from negatoscope.training import loop
from negatoscope.training.checkpoint import load_checkpoint
from negatoscope.training.recipe import Recipe, recipe_of

MakeRecipe = Callable[..., Recipe]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_truncated_picture_names_file_and_study(
    small_recipe: MakeRecipe, small_store: Path, tmp_path: Path, workers: int
) -> None:
    shutil.copytree(small_store, tmp_path / "store")
    store = Store.open(tmp_path / "store")
    study = next(store.studies("train"))
    path = store.picture_path(study.pictures[0])
    path.write_bytes(path.read_bytes()[:200])
    said = small_recipe().as_dict()
    said["data"] |= {"store": str(tmp_path / "store"), "workers": workers}
    with pytest.raises(BadInput) as caught:
        loop.train(recipe_of(said), tmp_path / "run")
    assert str(path) in str(caught.value)
    assert study.id in str(caught.value)
    assert "Traceback" not in str(caught.value)


def _command(recipe: Recipe, tmp_path: Path, folder: Path) -> list[str]:
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe.as_dict()))
    return [sys.executable, "-m", "negatoscope", "train", str(tmp_path / "recipe.yaml"), "--run", str(folder)]


def test_ctrl_c_is_one_line_and_the_run_goes_on(small_recipe: MakeRecipe, tmp_path: Path) -> None:
    recipe = small_recipe(epochs=400)
    command = _command(recipe, tmp_path, tmp_path / "run")
    # Whoever starts the tests in the background has them ignore Ctrl-C, and what they start as well.
    listening = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=listening) as process:  # noqa: PLW1509
        for _ in range(3000):
            if (tmp_path / "run" / "last.safetensors").exists():
                break
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 1
    assert error.strip().splitlines()[-1].startswith("negatoscope: interrupted")
    assert "Traceback" not in error
    done = load_checkpoint(tmp_path / "run" / "last.safetensors").about["progress"]["epoch"]
    assert loop.train(small_recipe(epochs=done + 1), tmp_path / "run").history[-1]["epoch"] == done + 1


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=700k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if os.geteuid() != 0 or mounted.returncode != 0:
        pytest.skip("needs the right to mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_one_line_and_leaves_nothing_half_written(
    small_recipe: MakeRecipe, tmp_path: Path, tiny_disk: Path
) -> None:
    done = subprocess.run(
        _command(small_recipe(), tmp_path, tiny_disk / "run"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "the disk is full" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tiny_disk.rglob("*.part"))
    assert not list(tiny_disk.rglob("last.safetensors"))

"""Contrastive losses in the training loop: every loss on every host, resumed to the bit, gone at inference."""

from __future__ import annotations

from pathlib import Path

import pytest

from negatoscope.training import loop
from negatoscope.training.checkpoint import load_reporter
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

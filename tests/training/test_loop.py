"""The loop: it learns, it resumes to the bit, it stops where it should, it writes what it says."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from negatoscope.errors import BadInput, Trouble, WrongUse
from negatoscope.training import loop
from negatoscope.training.checkpoint import load_checkpoint, load_reporter
from negatoscope.training.generate import generate
from negatoscope.training.recipe import Recipe, recipe_of
from negatoscope.training.validation import metrics_for
from negatoscope.training.writing import write_reports
from negatoscope.vision.backbones import build
from negatoscope.vision.extract import extract_features

MakeRecipe = Callable[..., Recipe]


def _weights(folder: Path, name: str = "last") -> dict[str, torch.Tensor]:
    return dict(load_checkpoint(folder / f"{name}.safetensors").tensors)


def _assert_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name


def test_it_learns_and_a_checkpoint_alone_writes(small_recipe: MakeRecipe, tmp_path: Path) -> None:
    run = loop.train(small_recipe(epochs=25, lr=1e-2, batch=4, validate_every=5), tmp_path / "run")
    assert run.history[-1]["loss"] < 0.5 * run.history[0]["loss"]
    assert run.best["val.BLEU-4"] > 0.9
    alone = tmp_path / "elsewhere.safetensors"
    alone.write_bytes((tmp_path / "run" / "best.safetensors").read_bytes())
    reporter, checkpoint = load_reporter(alone)
    loader = loop.loader_for(checkpoint.recipe, None, loop.Store.open(checkpoint.recipe.data.store), "val")
    rows = list(write_reports(reporter, loader.epoch(), checkpoint.vocabulary, checkpoint.recipe.decode))
    assert rows == [json.loads(line) for line in (tmp_path / "run" / "reports-val.jsonl").read_text().splitlines()]


class _Stop(Exception):
    pass


def _stop_at(epoch: int, step: int) -> Callable[[int, int], None]:
    def stop(at_epoch: int, at_step: int) -> None:
        if (at_epoch, at_step) == (epoch, step):
            raise _Stop

    return stop


@pytest.mark.parametrize("where", [(0, 1), (0, 3), (1, 2), (2, 4)])
def test_a_resumed_run_ends_with_the_same_weights_to_the_bit(
    small_recipe: MakeRecipe, tmp_path: Path, where: tuple[int, int]
) -> None:
    recipe = small_recipe(
        epochs=3, save_minutes=1e-9, schedule={"kind": "plateau", "every": 1}
    )  # saves after every step
    whole = loop.train(recipe, tmp_path / "whole")
    with pytest.raises(_Stop):
        loop.train(recipe, tmp_path / "cut", after_step=_stop_at(*where))
    cut = loop.train(recipe, tmp_path / "cut")
    _assert_same(_weights(tmp_path / "whole"), _weights(tmp_path / "cut"))
    _assert_same(_weights(tmp_path / "whole", "best"), _weights(tmp_path / "cut", "best"))
    plain = [[{k: v for k, v in entry.items() if k != "seconds"} for entry in run.history] for run in (whole, cut)]
    assert plain[0] == plain[1]
    rows = list(csv.DictReader((tmp_path / "cut" / "log.csv").open()))
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]


def test_a_run_killed_outright_resumes(small_recipe: MakeRecipe, tmp_path: Path) -> None:
    recipe = small_recipe(epochs=4, save_minutes=1e-9)
    recipe.save(tmp_path / "recipe.yaml")
    whole = loop.train(recipe, tmp_path / "whole")
    script = (
        "import sys; from negatoscope.training.loop import train; from negatoscope.training.recipe import load_recipe;"
        "train(load_recipe(sys.argv[1]), sys.argv[2], after_step=lambda e, s: print(e, s, flush=True))"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())}
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "recipe.yaml"), str(tmp_path / "killed")],
        stdout=subprocess.PIPE, text=True, env=environment,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            if line.split() == ["1", "2"]:
                time.sleep(0.01)  # somewhere inside step 3
                process.send_signal(signal.SIGKILL)
                break
    assert not (tmp_path / "killed" / "scores.json").exists() or load_checkpoint(
        tmp_path / "killed" / "best.safetensors"
    )
    resumed = loop.train(recipe, tmp_path / "killed")
    _assert_same(_weights(tmp_path / "whole"), _weights(tmp_path / "killed"))
    assert resumed.best["val.loss"] == whole.best["val.loss"]


def test_accumulated_parts_are_one_batch(small_recipe: MakeRecipe, tmp_path: Path) -> None:
    """To rounding: batch norm, which sees the parts apart, is frozen, and dropout off."""
    recipes = []
    for parts in (1, 2):
        said = small_recipe(epochs=1, accumulate=parts, optimiser="sgd", lr=0.1).as_dict()
        said["encoder"]["frozen"] = True
        said["model"]["dropout"] = 0.0
        recipes.append(recipe_of(said))
    for number, recipe in enumerate(recipes):
        loop.train(recipe, tmp_path / str(number))
    one, two = _weights(tmp_path / "0", "best"), _weights(tmp_path / "1", "best")
    # The reports are equally long here: the mean over words is taken within each part.
    for name, tensor in one.items():
        torch.testing.assert_close(tensor, two[name], atol=1e-6, rtol=0)


def test_bf16_learns_what_float32_learns(small_recipe: MakeRecipe, tmp_path: Path) -> None:
    """Not to the bit: eight bits of mantissa. But the loss goes the same way, and the run resumes as exactly."""
    exact = loop.train(small_recipe(epochs=4, precision="float32"), tmp_path / "float32")
    rough = loop.train(small_recipe(epochs=4, precision="bf16"), tmp_path / "bf16")
    for one, other in zip(exact.history, rough.history):
        assert other["loss"] == pytest.approx(one["loss"], rel=0.05)
    assert exact.history[-1]["loss"] != rough.history[-1]["loss"]
    with pytest.raises(_Stop):
        loop.train(small_recipe(epochs=4, precision="bf16"), tmp_path / "cut", after_step=_stop_at(2, 1))
    loop.train(small_recipe(epochs=4, precision="bf16"), tmp_path / "cut")
    _assert_same(_weights(tmp_path / "bf16"), _weights(tmp_path / "cut"))


def test_from_cached_features_and_then_from_images(small_recipe: MakeRecipe, tmp_path: Path) -> None:
    """A run that learned from a cache writes from image files: the checkpoint holds the backbone."""
    said = small_recipe(epochs=12, batch=4, lr=1e-2, validate_every=6).as_dict()
    torch.manual_seed(3)
    save_file(build("resnet10-narrow").state_dict(), tmp_path / "backbone.safetensors")
    said["encoder"] |= {"weights": str(tmp_path / "backbone.safetensors"), "precision": "float32"}
    store = loop.Store.open(said["data"]["store"])
    extract_features(store, recipe_of(said).encoder, tmp_path / "features")
    said["data"]["features"] = str(tmp_path / "features")
    run = loop.train(recipe_of(said), tmp_path / "run")
    assert run.history[-1]["loss"] < 0.7 * run.history[0]["loss"]
    generate(run.folder, tmp_path / "reports.jsonl", split="val")
    cached = (run.folder / "reports-val.jsonl").read_text().splitlines()
    fresh = (tmp_path / "reports.jsonl").read_text().splitlines()
    assert [json.loads(line)["report"] for line in fresh] == [json.loads(line)["report"] for line in cached]
    said["encoder"]["image_size"] = 64
    with pytest.raises(WrongUse, match="features of image_size"):
        loop.train(recipe_of(said), tmp_path / "other")


def test_a_finished_run_is_left_alone_and_more_epochs_go_on(small_recipe: MakeRecipe, tmp_path: Path) -> None:
    loop.train(small_recipe(epochs=1), tmp_path / "run")
    before = (tmp_path / "run" / "last.safetensors").read_bytes()
    loop.train(small_recipe(epochs=1), tmp_path / "run")
    assert (tmp_path / "run" / "last.safetensors").read_bytes() == before
    longer = loop.train(small_recipe(epochs=3), tmp_path / "run")
    assert [entry["epoch"] for entry in longer.history] == [1, 2, 3]
    loop.train(small_recipe(epochs=3), tmp_path / "at once")
    _assert_same(_weights(tmp_path / "run"), _weights(tmp_path / "at once"))


def test_another_recipe_in_the_folder_is_refused(small_recipe: MakeRecipe, tmp_path: Path) -> None:
    loop.train(small_recipe(epochs=1), tmp_path / "run")
    with pytest.raises(WrongUse, match=r"train\.lr is 0\.003 there, 0\.01 here"):
        loop.train(small_recipe(epochs=1, lr=1e-2), tmp_path / "run")
    (tmp_path / "run" / "last.safetensors").unlink()  # as a run made of somebody's checkpoint has none
    with pytest.raises(WrongUse, match=r"train\.lr"):
        loop.train(small_recipe(epochs=1, lr=1e-2), tmp_path / "run")


def test_a_misspelt_store_does_not_tie_the_folder_to_it(small_recipe: MakeRecipe, tmp_path: Path) -> None:
    said = small_recipe(epochs=1).as_dict()
    said["data"]["store"] = str(tmp_path / "misspelt")
    with pytest.raises(BadInput, match="misspelt"):
        loop.train(recipe_of(said), tmp_path / "run")
    assert loop.train(small_recipe(epochs=1), tmp_path / "run").history


def test_a_run_is_no_file(small_recipe: MakeRecipe, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(WrongUse, match="is a file, not a folder"):
        loop.train(small_recipe(epochs=1), tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_loss_that_is_not_finite_names_the_studies(small_recipe: MakeRecipe, tmp_path: Path) -> None:
    with pytest.raises(Trouble, match=r"not finite at epoch 1, step \d+ \(studies s0") as caught:
        loop.train(small_recipe(epochs=3, lr=1e30, optimiser="sgd", batch=3), tmp_path / "run")
    assert caught.value.exit_code == 1


def test_early_stopping(small_recipe: MakeRecipe, tmp_path: Path) -> None:
    said = small_recipe(epochs=30, lr=1e-12, patience=2, select="distinct").as_dict()
    said["encoder"]["frozen"] = True
    run = loop.train(recipe_of(said), tmp_path / "run")
    assert len(run.history) == 3


def test_the_test_split_is_never_read_while_training(
    small_recipe: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    at = loop.Store.at

    def spy(store: loop.Store, number: int) -> object:
        study = at(store, number)
        read.append(study.split)
        return study

    monkeypatch.setattr(loop.Store, "at", spy)
    loop.train(small_recipe(epochs=1), tmp_path / "run")
    assert set(read) == {"train", "val"}


def test_an_unknown_score_to_select_by(small_recipe: MakeRecipe, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"train\.select: no validation score 'BLEU4'; did you mean 'BLEU-4'"):
        loop.train(small_recipe(epochs=1, select="BLEU4"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_epoch_is_chosen_by_clinical_efficacy_or_by_what_should_be_small(
    small_recipe: MakeRecipe, tmp_path: Path
) -> None:
    for select, best in (("CE F1, micro 14 (chexbert)", max), ("invented abnormality", min), ("loss", min)):
        run = loop.train(small_recipe(epochs=3, lr=1e-2, batch=4, select=select), tmp_path / select)
        scores = [entry[f"val.{select}"] for entry in run.history]
        assert run.best[f"val.{select}"] == best(scores)
        assert load_checkpoint(run.folder / "best.safetensors").about["epoch"] == scores.index(best(scores)) + 1


@pytest.mark.parametrize(
    ("select", "metrics"),
    [("BLEU-4", ()), ("distinct", ()), ("METEOR", ("meteor",)), ("diversity", ("diversity",)), ("words", ("lengths",))],
)
def test_what_a_choice_needs(select: str, metrics: tuple[str, ...]) -> None:
    assert metrics_for(select) == metrics


def test_of_some_scores_less_is_better() -> None:
    history = [{"epoch": 1.0, "val.invented abnormality": 0.4, "val.BLEU-4": 0.1}]
    progress = loop.Progress(history=history)
    assert progress.scores("invented abnormality") == [-0.4]
    assert progress.scores("BLEU-4") == [0.1]


def test_a_checkpoint_with_other_tensors_is_refused(small_recipe: MakeRecipe, tmp_path: Path) -> None:
    loop.train(small_recipe(epochs=1), tmp_path / "run")
    path = tmp_path / "run" / "best.safetensors"
    whole = load_checkpoint(path)
    for change, said in (
        ({"out.weight": None}, r"1 missing \(out.weight\)"),
        ({"out.weird": torch.zeros(1)}, r"1 unknown \(out.weird\)"),
        ({"out.bias": torch.zeros(3)}, r"1 of another shape \(out.bias: \(3,\) for \(\d+,\)\)"),
    ):
        tensors = {name: tensor for name, tensor in {**whole.tensors, **change}.items() if tensor is not None}
        loop.save_checkpoint(path, loop.Checkpoint(whole.recipe, whole.vocabulary, tensors, whole.about))
        with pytest.raises(BadInput, match=said):
            load_reporter(path)


def test_a_device_that_is_not_there_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="no device is called 'cudda'"):
        load_reporter(tmp_path, "cudda")


def test_a_checkpoint_with_another_vocabulary_is_refused(small_recipe: MakeRecipe, tmp_path: Path) -> None:
    loop.train(small_recipe(epochs=1), tmp_path / "run")
    path = tmp_path / "run" / "best.safetensors"
    whole = load_checkpoint(path)
    fewer = loop.Vocabulary(whole.vocabulary.words[:-2])
    loop.save_checkpoint(path, loop.Checkpoint(whole.recipe, fewer, whole.tensors, whole.about))
    n = whole.vocabulary.logits
    with pytest.raises(BadInput, match=rf"out\.weight: \({n}, \d+\) for \({n - 2}, \d+\).*the vocabulary changed"):
        load_reporter(path)


@pytest.mark.parametrize("damage", [b"", b"not a checkpoint", "half"])
def test_a_damaged_checkpoint_is_one_line(small_recipe: MakeRecipe, tmp_path: Path, damage: bytes | str) -> None:
    loop.train(small_recipe(epochs=1), tmp_path / "run")
    path = tmp_path / "run" / "best.safetensors"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2] if damage == "half" else damage)  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadInput, match="damaged checkpoint"):
        load_reporter(path)

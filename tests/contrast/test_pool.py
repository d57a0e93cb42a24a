"""Which studies the normality pool is made of, and what training does with it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from negatoscope.contrast.attention import AttentionSettings, ContrastiveAttention
from negatoscope.contrast.pool import choose_normals
from negatoscope.errors import BadInput
from negatoscope.studies.store import About, Store, write_about, write_part
from negatoscope.studies.study import Picture, Split, Study
from negatoscope.training import loop
from negatoscope.training.checkpoint import load_checkpoint, load_reporter, save_checkpoint
from negatoscope.training.recipe import Recipe, recipe_of
from negatoscope.training.writing import write_reports

NORMAL: Mapping[str, int] = {"No Finding": 1}


def store_at(root: Path, studies: Sequence[Study]) -> Store:
    counts = {"studies": len(studies), "pictures": sum(len(study.pictures) for study in studies)}
    write_part(root, 0, studies)
    write_about(root, About(complete=True, source="drawn", parts=1, counts=counts))
    return Store.open(root)


def study(number: int, split: Split = "train", labels: Mapping[str, int] = NORMAL, tags: tuple[str, ...] = ()) -> Study:
    return Study(f"s{number:03}", (), "the lungs are clear .", split, labels=labels, tags=tags)


def test_only_normal_studies_of_the_training_split(tmp_path: Path) -> None:
    studies = [study(i, ("train", "val", "test", "none")[i % 4], NORMAL if i % 3 else {"Edema": 1}) for i in range(60)]
    normals = choose_normals(store_at(tmp_path, studies), AttentionSettings(pool=100))
    assert normals.ids == tuple(s.id for s in studies if s.split == "train" and s.labels == NORMAL)
    assert [studies[place].id for place in normals.places] == list(normals.ids)
    assert normals.rule == "label"
    assert normals.note == (
        "normality pool: 10 of 10 normal training studies, fewer than the 100 asked for, so all of them "
        "(normal: its label 'No Finding' is 1; seed 1)"
    )


def test_drawn_by_seed(tmp_path: Path) -> None:
    store = store_at(tmp_path, [study(i) for i in range(50)])
    one, again, other = (choose_normals(store, AttentionSettings(pool=20, seed=seed)) for seed in (1, 1, 2))
    assert one == again
    assert len(set(one.ids)) == 20
    assert one.ids != other.ids
    assert "20 of 50 normal training studies, drawn" in one.note
    assert one.as_json()["ids"] == list(one.ids)


def test_tags_before_labels(tmp_path: Path) -> None:
    """'normal' beside another term is not normal; labels are asked where there are no tags, or where told so."""
    tags = [("normal",), ("Normal",), ("normal", "Spine/degenerative"), ("Opacity/lung",), ()]
    studies = [study(i, tags=tags[i % 5], labels=NORMAL if i % 5 > 1 else {}) for i in range(20)]
    store = store_at(tmp_path, studies)
    assert [int(id[1:]) % 5 for id in choose_normals(store, AttentionSettings()).ids] == [0, 1] * 4
    assert [int(id[1:]) % 5 for id in choose_normals(store, AttentionSettings(normal="label")).ids] == [2, 3, 4] * 4


def test_no_normals_says_how_normal_was_decided(tmp_path: Path) -> None:
    store = store_at(tmp_path / "a", [study(0, "val"), study(1, labels={"Edema": 1}), study(2, labels={})])
    with pytest.raises(BadInput, match=r"no normal studies in the training split .*where its label 'No Finding' is 1"):
        choose_normals(store, AttentionSettings())
    with pytest.raises(BadInput, match=r"where its only tag is 'normal'.*set contrast.attention.normal to label"):
        choose_normals(store, AttentionSettings(normal="tag"))
    store = store_at(tmp_path / "b", [study(0), study(1, labels={})])
    with pytest.raises(BadInput, match="only one normal study"):  # it could be compared with itself alone
        choose_normals(store, AttentionSettings())


# Training


REPORTS = (
    "the left lung is white today .",
    "both of the lungs are clear .",
)  # equally long: parts of a batch weigh the same


def drawn(root: Path, number: int) -> Study:
    grey = np.random.default_rng(number).integers(0, 40, (32, 32), dtype=np.uint8)
    if number % 2 == 0:
        grey[:, 16:] += np.uint8(200)
    views = ("frontal", "lateral")[: 1 + number // 2 % 2]
    pictures = []
    for view in views:
        Image.fromarray(grey).save(root / f"{number}-{view}.png")
        pictures.append(Picture(f"{number}-{view}.png", view, width=32, height=32, sha256=f"{number}-{view}"))
    labels = NORMAL if number % 2 else {"Lung Opacity": 1}
    split: Split = "train" if number < 24 else "val"
    return Study(f"s{number:03}", tuple(pictures), REPORTS[number % 2], split, labels=labels)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("store")
    return store_at(root, [drawn(root, number) for number in range(32)]).path


@pytest.fixture
def recipe(store: Path) -> Callable[..., Recipe]:
    def make(attention: Mapping[str, Any] | None = None, **train: Any) -> Recipe:
        return recipe_of(
            {
                "data": {"store": str(store), "vocabulary": {"cutoff": 1, "max_words": 12}},
                "encoder": {"backbone": "resnet10-narrow", "image_size": 32},
                "model": {"name": "nic", "width": 16, "dropout": 0.2},
                "contrast": {"attention": {"heads": 2, "pool": 8, **(attention or {})}},
                "train": {"epochs": 3, "batch": 6, "lr": 3e-3, "encoder_lr": 1e-3, "precision": "float32", **train},
                "decode": {"beam": 1, "max_words": 12},
            }
        )

    return make


def weights(folder: Path, name: str = "last") -> dict[str, torch.Tensor]:
    return dict(load_checkpoint(folder / f"{name}.safetensors").tensors)


def contrast_in(folder: Path) -> ContrastiveAttention:
    contrast = load_reporter(folder)[0].contrast
    assert isinstance(contrast, ContrastiveAttention)
    return contrast


def test_a_checkpoint_alone_writes_with_its_pool(recipe: Callable[..., Recipe], tmp_path: Path) -> None:
    run = loop.train(recipe(epochs=2), tmp_path / "run")
    alone = tmp_path / "elsewhere.safetensors"
    alone.write_bytes((tmp_path / "run" / "best.safetensors").read_bytes())
    reporter, checkpoint = load_reporter(alone)
    contrast = reporter.contrast
    assert isinstance(contrast, ContrastiveAttention)
    assert contrast.pool.shape == (8, 1, 16)
    assert contrast.about_pool["available"] == 12
    assert contrast.about_pool["normal"] == "label"
    assert int(contrast.made_after) == run.best["epoch"]
    studies = Store.open(checkpoint.recipe.data.store)
    assert all(studies.study(id).split == "train" and studies.study(id).labels == NORMAL for id in contrast.rows)
    loader = loop.loader_for(checkpoint.recipe, None, studies, "val")
    rows = list(write_reports(reporter, loader.epoch(), checkpoint.vocabulary, checkpoint.recipe.decode))
    assert len(rows) == 8
    assert run.notes == ((tmp_path / "run" / "notes.txt").read_text().strip(),)
    assert run.notes[0].startswith("normality pool: 8 of 12 normal training studies, drawn")


def test_the_pool_is_what_the_reporter_sees_now(recipe: Callable[..., Recipe], tmp_path: Path) -> None:
    """At the epoch that was saved, of the pictures as they are: neither augmented nor through dropout."""
    loop.train(recipe(epochs=2), tmp_path / "run")
    reporter, checkpoint = load_reporter(tmp_path / "run")
    contrast = contrast_in(tmp_path / "run")
    studies = Store.open(checkpoint.recipe.data.store)
    places = [studies.ids().index(id) for id in contrast.rows]
    loader = loop.loader_for(checkpoint.recipe, None, studies, "train", chosen=places)
    with torch.no_grad():
        seen = torch.cat([reporter.look(batch).overall for batch in loader.epoch()])
    torch.testing.assert_close(contrast.pool[:, 0], seen)


@pytest.mark.parametrize(("refresh", "made_after"), [(0, 0), (1, 3), (2, 2), (5, 0)])
def test_refreshed_on_schedule(recipe: Callable[..., Recipe], tmp_path: Path, refresh: int, made_after: int) -> None:
    loop.train(recipe({"refresh": refresh}), tmp_path / "run")
    assert int(weights(tmp_path / "run")["learner/reporter.contrast.made_after"]) == made_after


class _Stop(Exception):
    pass


@pytest.mark.parametrize(
    ("where", "attention"), [((0, 2), {}), ((1, 3), {}), ((1, 4), {"refresh": 2}), ((2, 1), {"level": "patch"})]
)
def test_resumed_to_the_bit(
    recipe: Callable[..., Recipe], tmp_path: Path, where: tuple[int, int], attention: Mapping[str, Any]
) -> None:
    """The pool lies in last.safetensors: in mid-epoch it cannot be made anew from weights that have moved on."""

    def stop(epoch: int, step: int) -> None:
        if (epoch, step) == where:
            raise _Stop

    ours = recipe(attention, save_minutes=1e-9)
    loop.train(ours, tmp_path / "whole")
    with pytest.raises(_Stop):
        loop.train(ours, tmp_path / "cut", after_step=stop)
    cut = loop.train(ours, tmp_path / "cut")
    one, other = weights(tmp_path / "whole"), weights(tmp_path / "cut")
    assert one.keys() == other.keys()
    assert [name for name, tensor in one.items() if not torch.equal(tensor, other[name])] == []
    assert len(cut.notes) == 1


def test_the_host_starts_as_without(recipe: Callable[..., Recipe], tmp_path: Path) -> None:
    said = recipe().as_dict()
    with_, without = recipe_of(said), recipe_of({**said, "contrast": {}})
    vocabulary = loop.Vocabulary.build(REPORTS, cleaning="iu-xray", cutoff=1, max_words=12)
    reporters = []
    for one in (with_, without):
        torch.manual_seed(1)
        reporters.append(loop.build_reporter(one, vocabulary).state_dict())
    assert all(torch.equal(tensor, reporters[0][name]) for name, tensor in reporters[1].items())


def test_a_pool_of_another_width_is_refused(recipe: Callable[..., Recipe], tmp_path: Path) -> None:
    loop.train(recipe(epochs=1), tmp_path / "run")
    path = tmp_path / "run" / "best.safetensors"
    whole = load_checkpoint(path)
    save_checkpoint(path, replace(whole, tensors={**whole.tensors, "contrast.pool": torch.zeros(8, 1, 5)}))
    with pytest.raises(BadInput, match=r"of another shape \(contrast.pool"):
        load_reporter(path)


@pytest.mark.full
def test_two_processes_hold_one_pool(recipe: Callable[..., Recipe], tmp_path: Path) -> None:
    """DDP over gloo: the first process looks at the normal studies, and hands the pool to the other."""
    said = recipe(epochs=2, optimiser="sgd", lr=0.05).as_dict()
    said["encoder"]["frozen"] = True
    said["model"]["dropout"] = 0.0
    loop.train(recipe_of(said), tmp_path / "one")
    said["train"] |= {"devices": 2, "strategy": "ddp", "accelerator": "cpu"}
    recipe_of(said).save(tmp_path / "two.yaml")
    file = tmp_path / "go.py"
    file.write_text(
        "import sys; from negatoscope.training.loop import train; "
        "from negatoscope.training.recipe import load_recipe; train(load_recipe(sys.argv[1]), sys.argv[2])"
    )
    command = [sys.executable, str(file), str(tmp_path / "two.yaml"), str(tmp_path / "two")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    one, two = weights(tmp_path / "one", "best"), weights(tmp_path / "two", "best")
    for name, tensor in one.items():
        torch.testing.assert_close(tensor, two[name], atol=1e-5, rtol=0)

"""The cache of features: the encoder's own numbers, resumed, whole, and never those of another encoder."""

from __future__ import annotations

import errno
import json
import os
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from typer.testing import CliRunner

from negatoscope.errors import BadInput, Trouble, WrongUse
from negatoscope.studies.loader import StudyLoader
from negatoscope.studies.pixels import read_pixels
from negatoscope.studies.store import About, Store, write_about, write_part
from negatoscope.studies.study import Picture, Study
from negatoscope.vision import backbones, extract
from negatoscope.vision.encoder import EncoderSettings, build_encoder
from negatoscope.vision.extract import extract_features
from negatoscope.vision.features import FeatureCache, LookAtFeatures
from negatoscope.vision.prepare import prepare, read_grey

STUDIES = 7


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Seven studies of two pictures; the second study's frontal is the first's again, and the last has no lateral."""
    path = tmp_path / "store"
    (path / "images").mkdir(parents=True)
    rng = np.random.default_rng(0)
    studies = []
    for number in range(STUDIES):
        pictures = []
        for view in ("frontal", "lateral")[: 1 if number == STUDIES - 1 else 2]:
            name = f"images/{number}-{view}.png"
            grey = rng.integers(0, 256, (40, 50), dtype=np.uint8)
            if (number, view) == (1, "frontal"):
                grey = read_pixels(path / "images/0-frontal.png").grey
            Image.fromarray(grey).save(path / name)
            pictures.append(Picture(name, view, width=50, height=40, sha256=read_pixels(path / name).sha256()))
        split = "val" if number == 3 else "train"
        studies.append(Study(f"s{number}", tuple(pictures), f"report {number}", split))
    write_part(path, 0, studies)
    counts = {"studies": STUDIES, "pictures": 2 * STUDIES - 1}
    write_about(path, About(source="test", complete=True, parts=1, counts=counts))
    return Store.open(path)


@pytest.fixture
def settings(tmp_path: Path) -> EncoderSettings:
    torch.manual_seed(0)
    save_file(backbones.build("resnet10-narrow").state_dict(), tmp_path / "w.safetensors")
    said = {"backbone": "resnet10-narrow", "weights": tmp_path / "w.safetensors", "image_size": 64}
    return EncoderSettings(**said, precision="float32")


def test_the_cache_holds_what_the_encoder_sees(store: Store, settings: EncoderSettings, tmp_path: Path):
    done = extract_features(store, settings, tmp_path / "cache", batch=4)
    assert (done.pictures, done.computed, done.left_out) == (12, 12, ())
    cache = FeatureCache.open(tmp_path / "cache")
    assert len(cache) == 12
    encoder = build_encoder(settings).eval()
    for study in store:
        for picture in study.pictures:
            held = cache.get(picture.sha256)
            assert isinstance(held, np.memmap)
            assert (held.dtype, held.shape) == (np.float16, (4, 128))
            grey = prepare(read_grey(store.picture_path(picture)), 64)
            with torch.no_grad():
                seen = encoder.maps(grey[None])[0].flatten(1).T
            assert np.allclose(held, seen.numpy(), rtol=2e-3, atol=1e-3)


def test_pooled_is_the_mean_of_the_patches(store: Store, settings: EncoderSettings, tmp_path: Path):
    extract_features(store, settings, tmp_path / "all")
    extract_features(store, settings, tmp_path / "pooled", pooled=True)
    whole, pooled = FeatureCache.open(tmp_path / "all"), FeatureCache.open(tmp_path / "pooled")
    assert pooled.key.patches == 1
    for study in store:
        sha256 = study.pictures[0].sha256
        mean = whole.get(sha256).astype(np.float32).mean(0, keepdims=True)
        assert np.allclose(pooled.get(sha256), mean, rtol=2e-3, atol=1e-3)


def test_an_interrupted_run_goes_on_and_ends_with_the_same_bytes(
    store: Store, settings: EncoderSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    extract_features(store, settings, tmp_path / "whole", batch=2, pictures_a_part=4)
    written = extract._write_part

    def killed(path: Path, part: int, group) -> None:
        if part == 2:
            raise KeyboardInterrupt
        written(path, part, group)

    with monkeypatch.context() as patched:
        patched.setattr(extract, "_write_part", killed)
        with pytest.raises(KeyboardInterrupt):
            extract_features(store, settings, tmp_path / "cut", batch=2, pictures_a_part=4)
    assert len(FeatureCache.open(tmp_path / "cut")) == 8
    (tmp_path / "cut" / "part-00002.npy").write_bytes(b"half an array")  # without its list it is no part
    done = extract_features(store, settings, tmp_path / "cut", batch=2, pictures_a_part=4)
    assert (done.pictures, done.computed) == (12, 4)
    for path in (tmp_path / "whole").iterdir():
        assert path.read_bytes() == (tmp_path / "cut" / path.name).read_bytes(), path.name
    again = extract_features(store, settings, tmp_path / "cut", batch=2, pictures_a_part=4)
    assert again.computed == 0
    assert not list((tmp_path / "cut").glob("*.part*"))


def test_another_encoder_is_an_error_that_names_the_difference(store: Store, settings: EncoderSettings, tmp_path: Path):
    out = tmp_path / "cache"
    extract_features(store, settings, out)
    torch.manual_seed(1)
    save_file(backbones.build("resnet10-narrow").state_dict(), tmp_path / "other.safetensors")
    others = {
        "weights": settings.model_copy(update={"weights": tmp_path / "other.safetensors"}),
        "image_size": settings.model_copy(update={"image_size": 32}),
        "fit": settings.model_copy(update={"fit": "crop"}),
        "precision": settings.model_copy(update={"precision": "bf16"}),
    }
    for name, other in others.items():
        with pytest.raises(WrongUse, match=f"features of {name} "):
            extract_features(store, other, out)
        if name != "precision":  # a recipe may train in either
            with pytest.raises(WrongUse, match=f"features of {name} "):
                LookAtFeatures.open(out, other)
    with pytest.raises(WrongUse, match="features of pooled "):
        extract_features(store, settings, out, pooled=True)
    LookAtFeatures.open(out, settings)


def test_the_same_weights_in_another_file_are_the_same_key(store: Store, settings: EncoderSettings, tmp_path: Path):
    extract_features(store, settings, tmp_path / "cache")
    tensors = build_encoder(settings).backbone.state_dict()  # pyright: ignore[reportOptionalMemberAccess]
    again = {key: tensors[key].contiguous() for key in sorted(tensors, reverse=True) if "num_batches" not in key}
    save_file(again, tmp_path / "again.safetensors", {"said": "otherwise"})
    LookAtFeatures.open(tmp_path / "cache", settings.model_copy(update={"weights": tmp_path / "again.safetensors"}))


def test_the_loader_trains_from_the_cache(store: Store, settings: EncoderSettings, tmp_path: Path):
    extract_features(store, settings, tmp_path / "cache")
    look = LookAtFeatures.open(tmp_path / "cache", settings)
    for workers in (0, 1):
        loader = StudyLoader(store, "train", look, batch=STUDIES, workers=workers)
        (batch,) = loader.epoch()
        assert batch.images is None
        assert batch.features is not None
        assert batch.features.shape == (6, 2, 4, 128)
        assert batch.features.dtype == torch.float16
        assert batch.present.tolist() == [[True, True]] * 5 + [[True, False]]
        assert batch.features[5, 1].abs().sum() == 0
        sight = build_encoder(settings).eval()(batch)
        assert sight.grid == (2, 2, 2)
    assert len(pickle.dumps(look)) < 10_000  # a worker opens the files itself


def test_a_picture_without_features_names_its_study(store: Store, settings: EncoderSettings, tmp_path: Path):
    extract_features(store, settings, tmp_path / "cache", split="train")
    look = LookAtFeatures.open(tmp_path / "cache", settings)
    with pytest.raises(BadInput, match=r"study s3.*no features of the picture"):
        next(iter(StudyLoader(store, "val", look).epoch()))
    extract_features(store, settings, tmp_path / "cache")  # adds the rest
    look = LookAtFeatures.open(tmp_path / "cache", settings)
    assert len(list(StudyLoader(store, "val", look).epoch())) == 1


def test_bad_pictures_stop_the_run_or_are_listed(store: Store, settings: EncoderSettings, tmp_path: Path):
    first, second = (store.picture_path(study.pictures[1]) for study in (store.at(0), store.at(1)))
    first.write_bytes(first.read_bytes()[:80])
    Image.fromarray(np.zeros((9, 9), np.uint8)).save(second)
    with pytest.raises(BadInput, match=r"study s0: .*0-lateral\.png"):
        extract_features(store, settings, tmp_path / "cache")
    done = extract_features(store, settings, tmp_path / "cache", skip_bad=True)
    assert (done.pictures, len(done.left_out)) == (10, 2)
    assert "not the one that was imported" in done.left_out[1]
    assert len(FeatureCache.open(tmp_path / "cache")) == 10


def test_damaged_caches_are_told_from_whole_ones(store: Store, settings: EncoderSettings, tmp_path: Path):
    out = tmp_path / "cache"
    with pytest.raises(BadInput, match="no cache of features here"):
        FeatureCache.open(out)
    extract_features(store, settings, out)
    sha256 = store.at(0).pictures[0].sha256
    array = (out / "part-00000.npy").read_bytes()
    for damaged in (array[:-100], array[:50], b"", pickle.dumps([1])):
        (out / "part-00000.npy").write_bytes(damaged)
        with pytest.raises(BadInput, match="damaged"):
            FeatureCache.open(out).get(sha256)
    (out / "part-00000.npy").write_bytes(array)
    listed = json.loads((out / "part-00000.json").read_text())
    (out / "part-00000.json").write_text(json.dumps(listed[1:]))
    with pytest.raises(BadInput, match="damaged"):
        FeatureCache.open(out).get(sha256 if sha256 != listed[0] else listed[1])
    (out / "part-00000.json").write_text("[")
    with pytest.raises(BadInput, match="damaged"):
        FeatureCache.open(out)
    (out / "cache.json").write_text("{}")
    with pytest.raises(BadInput, match="no cache of features"):
        FeatureCache.open(out)


def test_two_processes_do_not_write_one_cache(store: Store, settings: EncoderSettings, tmp_path: Path):
    with extract._alone(tmp_path / "cache"), pytest.raises(Trouble, match="another process"):
        extract_features(store, settings, tmp_path / "cache")


def test_a_cache_is_no_file(store: Store, settings: EncoderSettings, tmp_path: Path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(WrongUse, match="is a file, not a folder"):
        extract_features(store, settings, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_full_disk_is_one_line_and_leaves_no_half_part(
    store: Store, settings: EncoderSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(extract, "_started", FeatureCache)  # the file of the key would fail first
        patched.setattr(os, "fsync", full)
        with pytest.raises(Trouble, match="the disk is full"):
            extract_features(store, settings, tmp_path / "cache")
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [".writing"]


def test_features_too_large_for_half_precision_stop_the_run(store: Store, settings: EncoderSettings, tmp_path: Path):
    tensors = build_encoder(settings).backbone.state_dict()  # pyright: ignore[reportOptionalMemberAccess]
    tensors = {key: tensor.contiguous() for key, tensor in tensors.items()}
    tensors["layer4.0.bn2.weight"].fill_(1e7)
    save_file(tensors, tmp_path / "huge.safetensors")
    huge = settings.model_copy(update={"weights": tmp_path / "huge.safetensors"})
    with pytest.raises(Trouble, match="too large for half precision"):
        extract_features(store, huge, tmp_path / "cache")


def test_a_store_without_hashes_is_refused(store: Store, settings: EncoderSettings, tmp_path: Path):
    one = store.at(0)
    write_part(store.path, 0, [replace(one, pictures=(replace(one.pictures[0], sha256=""),))])
    with pytest.raises(BadInput, match="study s0"):
        extract_features(Store.open(store.path), settings, tmp_path / "cache")


def test_the_command(store: Store, settings: EncoderSettings, tmp_path: Path):
    from negatoscope.cli import app

    said = ["features", str(store.path), "--backbone", "resnet10-narrow", "--weights", str(settings.weights)]
    said += ["--size", "64", "--precision", "float32", "--out", str(tmp_path / "cache")]
    done = CliRunner().invoke(app, [*said, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["computed"] == 12
    assert "computed 0" in CliRunner().invoke(app, said).stdout
    assert CliRunner().invoke(app, [*said, "--size", "32"]).exit_code == 2
    assert CliRunner().invoke(app, [*said, "--fit", "stretch"]).exit_code == 2
    assert CliRunner().invoke(app, [*said, "--split", "dev"]).exit_code == 2
    assert CliRunner().invoke(app, [*said, "--device", "quantum"]).exit_code == 2
    assert CliRunner().invoke(app, [*said[:4], "--out", str(tmp_path / "x")]).exit_code == 2
    assert CliRunner().invoke(app, ["features", str(tmp_path), *said[2:]]).exit_code == 1

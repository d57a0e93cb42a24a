"""Weights: every tensor in its place, any format, and nothing from a pickle but tensors."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from negatoscope.errors import BadInput, WrongUse
from negatoscope.vision import backbones, unpickling
from negatoscope.vision.backbones.densenet import DenseNet
from negatoscope.vision.weights import _modern, load_backbone, read_tensors, weights_hash


@pytest.fixture(scope="module")
def resnet() -> backbones.Backbone:
    torch.manual_seed(0)
    return backbones.build("resnet18", classes=10)


def test_formats_give_the_same_weights(resnet: backbones.Backbone, tmp_path: Path):
    tensors = resnet.state_dict()
    save_file(tensors, tmp_path / "a.safetensors")
    # A training script's file, from several GPUs, in the form of torchvision's first files.
    old = {f"module.{key}": tensor for key, tensor in tensors.items() if "num_batches" not in key}
    saved = {"epoch": 3, "state_dict": old}
    torch.save(saved, tmp_path / "b.pth.tar", _use_new_zipfile_serialization=False)
    hashes = {path.name: weights_hash(load_backbone("resnet18", path)) for path in sorted(tmp_path.iterdir())}
    assert len(hashes) == 2
    assert len(set(hashes.values())) == 1
    headed = load_backbone("resnet18", tmp_path / "a.safetensors", classes=10)
    assert weights_hash(headed) == weights_hash(resnet)
    assert weights_hash(headed) not in hashes.values()


def test_shared_files_load_strictly(shared: Callable[[str], Path]):
    for name, file in (("resnet50-v1", "resnet50-imagenet"), ("mobilenetv2", "mobilenet_v2-imagenet")):
        path = shared(f"weights/{file}.safetensors")
        tensors, _ = read_tensors(path)
        loaded = load_backbone(name, path, classes=1000).state_dict()
        assert loaded.keys() == tensors.keys()
        assert all(torch.equal(loaded[key], tensor.to(loaded[key].dtype)) for key, tensor in tensors.items())


def test_a_file_that_says_it_is_v1_is_not_taken_for_v15(shared: Callable[[str], Path]):
    with pytest.raises(WrongUse, match="resnet50-v1, not of resnet50; ask for resnet50-v1"):
        load_backbone("resnet50", shared("weights/resnet50-imagenet.safetensors"))


def test_what_does_not_fit_is_listed_in_one_line(resnet: backbones.Backbone, tmp_path: Path):
    tensors = dict(resnet.state_dict())
    del tensors["layer1.0.conv1.weight"]
    tensors["layer9.weight"] = torch.zeros(3)
    tensors["conv1.weight"] = torch.zeros(64, 1, 7, 7)
    tensors["bn1.bias"] = torch.zeros(64, dtype=torch.long)
    save_file(tensors, tmp_path / "w.safetensors")
    with pytest.raises(BadInput) as caught:
        load_backbone("resnet18", tmp_path / "w.safetensors")
    said = str(caught.value)
    for part in (
        "w.safetensors",
        "1 missing (layer1.0.conv1.weight)",
        "1 extra (layer9.weight)",
        "conv1.weight 64x1x7x7 instead of 64x3x7x7",
        "bn1.bias int64 instead of float32",
    ):
        assert part in said
    assert "\n" not in said


def test_a_wrong_name_is_told_which_one_fits(resnet: backbones.Backbone, tmp_path: Path):
    save_file(resnet.state_dict(), tmp_path / "w.safetensors")
    with pytest.raises(BadInput, match="its tensors fit resnet18"):
        load_backbone("resnet34", tmp_path / "w.safetensors")


def test_nothing_is_copied_before_all_fits(resnet: backbones.Backbone):
    from negatoscope.vision.weights import fill

    torch.manual_seed(7)
    other = backbones.build("resnet18", classes=10)
    before = weights_hash(other)
    tensors = dict(resnet.state_dict())
    del tensors["fc.weight"]
    with pytest.raises(BadInput):
        fill(other, tensors, where="w")
    assert weights_hash(other) == before


def test_first_densenet_checkpoints_are_renamed():
    current = DenseNet((1, 1, 1, 1), growth=2, stem=4).state_dict()
    old = [
        key.replace("norm1.", "norm.1.").replace("conv2.", "conv.2.") if "denselayer" in key else key for key in current
    ]
    assert old != list(current)
    assert [_modern(key) for key in old] == list(current)


class _Evil:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return os.system, (f"touch {self.mark}",)


@pytest.mark.parametrize("kind", ["torch", "cut"])
def test_anything_but_tensors_is_refused(kind: str, tmp_path: Path, resnet: backbones.Backbone):
    path, mark = tmp_path / "w.pth", tmp_path / "mark"
    if kind == "torch":
        torch.save({"conv1.weight": _Evil(mark)}, path)
    else:
        torch.save(resnet.state_dict(), path)
        path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(BadInput) as caught:
        load_backbone("resnet18", path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not mark.exists()


@pytest.mark.parametrize("read", [{}, [], 3, {"a": 3.0}, {3: torch.zeros(1)}, {"a": torch.zeros(2).to_sparse()}])
def test_only_a_dictionary_of_dense_tensors_is_one(read: object, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        unpickling.find_tensors(read)
    assert capsys.readouterr().err.count("\n") == 1


def test_missing_and_damaged_safetensors(tmp_path: Path, resnet: backbones.Backbone):
    with pytest.raises(BadInput, match="no such file"):
        read_tensors(tmp_path / "none.safetensors")
    save_file(resnet.state_dict(), tmp_path / "w.safetensors")
    (tmp_path / "cut.safetensors").write_bytes((tmp_path / "w.safetensors").read_bytes()[:9999])
    with pytest.raises(BadInput, match="no whole safetensors file"):
        read_tensors(tmp_path / "cut.safetensors")
    (tmp_path / "w.h5").touch()
    with pytest.raises(BadInput, match=r"not in '\.h5'"):
        read_tensors(tmp_path / "w.h5")


@pytest.mark.parametrize(
    "deed",
    [
        "import socket; socket.create_connection(('127.0.0.1', 9))",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.system('true')",
        "import ctypes; ctypes.CDLL('libm.so.6')",
    ],
)
def test_the_reader_of_pickles_has_no_way_out(deed: str):
    code = f"import sys; sys.path.insert(0, {str(Path(unpickling.__file__).parent)!r})\n"
    code += f"import unpickling; unpickling.leave_the_network(); unpickling.close_the_doors()\n{deed}"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "PermissionError" in done.stderr

"""The four families: names, shapes and counts as torchvision publishes them, the numbers as other people's code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional as F

from negatoscope.errors import WrongUse
from negatoscope.vision import backbones
from negatoscope.vision.backbones.densenet import DenseNet
from negatoscope.vision.backbones.resnet import Basic, Bottleneck, ResNet
from negatoscope.vision.backbones.vgg import VGG
from negatoscope.vision.weights import load_backbone

# Parameters with the 1000-class head, as torchvision's documentation lists them.
PUBLISHED = {
    "densenet121": 7_978_856,
    "mobilenetv2": 3_504_872,
    "resnet18": 11_689_512,
    "resnet34": 21_797_672,
    "resnet50": 25_557_032,
    "resnet50-v1": 25_557_032,
    "resnet101": 44_549_160,
    "resnet101-v1": 44_549_160,
    "resnet152": 60_192_808,
    "resnet152-v1": 60_192_808,
    "vgg19": 143_667_240,
    "vgg19-bn": 143_678_248,
}
# Some of the tensors of torchvision's state dictionaries, with their shapes.
TENSORS = {
    "densenet121": {
        "features.conv0.weight": (64, 3, 7, 7),
        "features.denseblock1.denselayer1.norm1.running_mean": (64,),
        "features.denseblock4.denselayer16.conv1.weight": (128, 992, 1, 1),
        "features.denseblock4.denselayer16.conv2.weight": (32, 128, 3, 3),
        "features.transition3.conv.weight": (512, 1024, 1, 1),
        "features.norm5.weight": (1024,),
        "classifier.weight": (1000, 1024),
    },
    "mobilenetv2": {
        "features.0.0.weight": (32, 3, 3, 3),
        "features.1.conv.0.0.weight": (32, 1, 3, 3),
        "features.1.conv.2.bias": (16,),
        "features.17.conv.2.weight": (320, 960, 1, 1),
        "features.18.1.running_var": (1280,),
        "classifier.1.weight": (1000, 1280),
    },
    "resnet101": {
        "conv1.weight": (64, 3, 7, 7),
        "layer1.0.downsample.0.weight": (256, 64, 1, 1),
        "layer3.22.bn3.num_batches_tracked": (),
        "layer4.2.conv2.weight": (512, 512, 3, 3),
        "fc.weight": (1000, 2048),
    },
    "resnet18": {"layer2.0.downsample.1.bias": (128,), "layer4.1.conv2.weight": (512, 512, 3, 3)},
    "vgg19": {
        "features.0.weight": (64, 3, 3, 3),
        "features.34.bias": (512,),
        "classifier.0.weight": (4096, 25088),
        "classifier.3.weight": (4096, 4096),
        "classifier.6.bias": (1000,),
    },
    "vgg19-bn": {"features.1.running_mean": (64,), "features.49.weight": (512, 512, 3, 3)},
}


def test_every_name_is_checked():
    ours = {"resnet10-narrow"}  # published by nobody: small enough to learn phantoms on two cores
    assert sorted({*PUBLISHED, *ours}) == backbones.names()
    assert backbones.names("vgg*") == ["vgg19", "vgg19-bn"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_count_names_and_map_sizes(name: str):
    with torch.device("meta"):
        backbone = backbones.build(name, classes=1000).eval()
        stages = backbone.stages(torch.zeros(2, 3, 96, 64))
        logits = backbone.logits(torch.zeros(2, 3, 96, 64))
    assert sum(parameter.numel() for parameter in backbone.parameters()) == PUBLISHED[name]
    shapes = {key: tuple(tensor.shape) for key, tensor in backbone.state_dict().items()}
    assert TENSORS.get(name, {}).items() <= shapes.items()
    assert [tuple(stage.shape) for stage in stages] == [
        (2, width, 96 // stride, 64 // stride) for width, stride in zip(backbone.widths, backbone.strides)
    ]
    assert (backbone.width, backbone.stride) == (stages[-1].shape[1], 32)
    assert logits.shape == (2, 1000)


@pytest.mark.parametrize("name", ["densenet121", "mobilenetv2", "resnet18", "resnet50", "resnet50-v1", "vgg19-bn"])
def test_forward_is_the_last_stage_and_learns(name: str):
    torch.manual_seed(0)
    backbone = backbones.build(name)
    backbone.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    x = torch.randn(2, 3, 64, 64)
    seen = backbone(x.contiguous(memory_format=torch.channels_last))
    seen.square().mean().backward()
    for key, parameter in backbone.named_parameters():
        assert parameter.grad is not None, key
        assert torch.isfinite(parameter.grad).all(), key
    backbone.eval()
    with torch.no_grad():
        assert torch.equal(backbone(x), backbone.stages(x)[-1])


def test_unknown_name_offers_the_near_one():
    with pytest.raises(WrongUse, match="resnet50"):
        backbones.build("resnet-50")


def test_frozen_norms_stay_through_training():
    torch.manual_seed(0)
    backbone = ResNet(Basic, (1, 1, 1, 1)).freeze_norms()
    backbone.train()
    before = {key: tensor.clone() for key, tensor in backbone.state_dict().items() if "bn" in key}
    optimiser = torch.optim.SGD([p for p in backbone.parameters() if p.requires_grad], lr=0.1)
    backbone(torch.randn(2, 3, 64, 64)).mean().backward()
    optimiser.step()
    after = backbone.state_dict()
    assert all(torch.equal(after[key], tensor) for key, tensor in before.items())
    assert backbone.conv1.weight.grad is not None  # pyright: ignore[reportAttributeAccessIssue]
    # Without it, one step in training mode moves the statistics.
    free = ResNet(Basic, (1, 1, 1, 1)).train()
    free(torch.randn(2, 3, 64, 64))
    assert free.state_dict()["bn1.running_mean"].abs().sum() > 0


# --- the same numbers as an independent implementation: transformers' ResNet and MobileNetV2 with ImageNet weights ---


@pytest.fixture(scope="module")
def pictures(shared: Callable[[str], Path]) -> Tensor:
    """(6, 3, 224, 224): four real radiographs, a ramp, noise; normalised."""
    folder = shared("data/iu-xray")
    studies = json.loads((folder / "annotation.json").read_text())["val"][:2]
    films = [Image.open(folder / "images" / path) for study in studies for path in study["image_path"]]
    greys = [np.asarray(film.convert("L").resize((224, 224), Image.Resampling.BILINEAR)) / 255 for film in films]
    ramp = np.linspace(0, 1, 224)[None].repeat(224, 0)
    noise = np.random.default_rng(0).random((224, 224))
    stack = torch.tensor(np.stack([*greys, ramp, noise]), dtype=torch.float32).unsqueeze(1).expand(-1, 3, -1, -1)
    mean, std = (torch.tensor(v).view(1, 3, 1, 1) for v in (backbones.IMAGENET_MEAN, backbones.IMAGENET_STD))
    return (stack - mean) / std


def theirs_resnet(tensors: dict[str, Tensor], *, v1: bool) -> Any:
    from transformers import ResNetConfig, ResNetModel

    model = ResNetModel(ResNetConfig(downsample_in_bottleneck=v1))
    mapped = {}
    for key, tensor in tensors.items():
        part, _, rest = key.partition(".")
        if part in ("conv1", "bn1"):
            name = f"embedder.embedder.{'convolution' if part == 'conv1' else 'normalization'}.{rest}"
        else:
            block, inner, kind = rest.split(".", 2)
            if inner == "downsample":
                number, kind = kind.split(".")
                name = f"shortcut.{'convolution' if number == '0' else 'normalization'}.{kind}"
            else:
                name = f"layer.{int(inner[-1]) - 1}.{'convolution' if inner[:4] == 'conv' else 'normalization'}.{kind}"
            name = f"encoder.stages.{int(part[-1]) - 1}.layers.{block}.{name}"
        mapped[name] = tensor
    model.load_state_dict(mapped)
    return model.eval()


def theirs_mobilenet(tensors: dict[str, Tensor]) -> Any:
    from transformers import MobileNetV2Config, MobileNetV2Model

    model = MobileNetV2Model(MobileNetV2Config(tf_padding=False, layer_norm_eps=1e-5), add_pooling_layer=False)
    own = model.state_dict()
    # Both keep their layers in the order of the network: the n-th tensor here is the n-th there.
    assert len(own) == len(tensors)
    mapped = dict(zip(own, tensors.values(), strict=True))
    assert all(own[key].shape == tensor.shape for key, tensor in mapped.items())
    model.load_state_dict(mapped)
    return model.eval()


def largest_difference(ours: Tensor, theirs: Tensor) -> float:
    assert ours.shape == theirs.shape
    return float((ours - theirs).abs().max() / theirs.abs().max())


@pytest.mark.parametrize("v1", [True, False])
def test_resnet50_with_imagenet_weights_equals_transformers(v1: bool, pictures: Tensor, shared: Callable[[str], Path]):
    ours = load_backbone("resnet50-v1", shared("weights/resnet50-imagenet.safetensors")).eval()
    if not v1:  # the same tensors with the stride in the other place
        tensors = ours.state_dict()
        ours = backbones.build("resnet50").eval()
        ours.load_state_dict(tensors)
    with torch.no_grad():
        stages = ours.stages(pictures)
        said = theirs_resnet(dict(ours.state_dict()), v1=v1)(pictures, output_hidden_states=True)
    differences = [largest_difference(a, b) for a, b in zip(stages, said.hidden_states[1:], strict=True)]
    print(f"resnet50 {'v1' if v1 else 'v1.5'}: largest relative difference of each stage {differences}")
    assert max(differences) < 1e-4
    assert torch.allclose(stages[-1], said.last_hidden_state, atol=1e-4, rtol=1e-4)


def test_mobilenetv2_with_imagenet_weights_equals_transformers(pictures: Tensor, shared: Callable[[str], Path]):
    ours = load_backbone("mobilenetv2", shared("weights/mobilenet_v2-imagenet.safetensors")).eval()
    with torch.no_grad():
        seen = ours(pictures)
        said = theirs_mobilenet(dict(ours.state_dict()))(pictures).last_hidden_state
    print(f"mobilenetv2: largest relative difference {largest_difference(seen, said)}")
    assert largest_difference(seen, said) < 1e-4
    assert torch.allclose(seen, said, atol=1e-4, rtol=1e-4)


def test_channels_last_gives_the_same_numbers(pictures: Tensor, shared: Callable[[str], Path]):
    backbone = load_backbone("mobilenetv2", shared("weights/mobilenet_v2-imagenet.safetensors")).eval()
    with torch.no_grad():
        plain = backbone(pictures)
        backbone.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        last = backbone(pictures.contiguous(memory_format=torch.channels_last))
    assert largest_difference(last, plain) < 1e-5


def test_imagenet_weights_know_what_they_see(pictures: Tensor, shared: Callable[[str], Path]):
    """The head belongs to the maps: other weights than these, or a wrong stride, spread the classes evenly."""
    backbone = load_backbone("resnet50-v1", shared("weights/resnet50-imagenet.safetensors"), classes=1000).eval()
    with torch.no_grad():
        chances = backbone.logits(pictures[:4]).softmax(1)
        spoilt = backbone.logits(pictures[:4].flip(1) * 0).softmax(1)
    assert chances.max() > 5 * spoilt.max()


# --- DenseNet and VGG against a plain computation in float64 from their tensors alone ---------------------------------


def shaken(backbone: backbones.Backbone) -> dict[str, Tensor]:
    """Random affine weights and statistics, so that a norm in the wrong place shows; the tensors in float64."""
    torch.manual_seed(1)
    backbone.double().eval()
    for key, tensor in backbone.state_dict().items():
        if "running_var" in key or ("norm" in key and key.endswith("weight")):
            tensor.uniform_(0.5, 2)
        elif tensor.is_floating_point() and tensor.dim() == 1:
            tensor.normal_(std=0.3)
    return backbone.state_dict()


def norm(x: Tensor, t: dict[str, Tensor], key: str) -> Tensor:
    def column(end: str) -> Tensor:
        return t[f"{key}.{end}"].view(1, -1, 1, 1)

    return (x - column("running_mean")) / (column("running_var") + 1e-5).sqrt() * column("weight") + column("bias")


def test_densenet_equals_its_equations():
    backbone = DenseNet((2, 1, 1, 2), growth=4, stem=8)
    t = shaken(backbone)
    x = torch.randn(2, 3, 64, 64, dtype=torch.float64)
    y = F.conv2d(x, t["features.conv0.weight"], stride=2, padding=3)
    y = F.max_pool2d(norm(y, t, "features.norm0").clamp_min(0), 3, 2, 1)
    expected = []
    for block, depth in enumerate((2, 1, 1, 2), start=1):
        for layer in range(1, depth + 1):
            key = f"features.denseblock{block}.denselayer{layer}"
            z = F.conv2d(norm(y, t, f"{key}.norm1").clamp_min(0), t[f"{key}.conv1.weight"])
            z = F.conv2d(norm(z, t, f"{key}.norm2").clamp_min(0), t[f"{key}.conv2.weight"], padding=1)
            y = torch.cat([y, z], 1)
        if block < 4:
            key = f"features.transition{block}"
            expected.append(norm(y, t, f"{key}.norm").clamp_min(0))
            y = F.avg_pool2d(F.conv2d(expected[-1], t[f"{key}.conv.weight"]), 2, 2)
    expected.append(norm(y, t, "features.norm5").clamp_min(0))
    for seen, wanted in zip(backbone.stages(x), expected, strict=True):
        assert torch.allclose(seen, wanted, atol=1e-10)


@pytest.mark.parametrize("norms", [False, True])
def test_vgg_equals_its_equations(norms: bool):
    backbone = VGG((1, 2, 1, 1, 1), norms=norms)
    t = shaken(backbone)
    x = torch.randn(1, 3, 64, 64, dtype=torch.float64)
    expected, y, number = [], x, 0
    for depth in (1, 2, 1, 1, 1):
        for _ in range(depth):
            y = F.conv2d(y, t[f"features.{number}.weight"], t[f"features.{number}.bias"], padding=1)
            if norms:
                y = norm(y, t, f"features.{number + 1}")
            y = y.clamp_min(0)
            number += 3 if norms else 2
        expected.append(y)
        y = F.max_pool2d(y, 2, 2)
        number += 1
    expected.append(y)
    for seen, wanted in zip(backbone.stages(x), expected, strict=True):
        assert torch.allclose(seen, wanted, atol=1e-10)


def test_v1_and_v15_stride_in_different_places():
    both: list[Any] = [ResNet(Bottleneck, (1, 1, 1, 1), v1=v1) for v1 in (True, False)]
    strides = [(net.layer2[0].conv1.stride, net.layer2[0].conv2.stride) for net in both]
    assert strides == [((2, 2), (1, 1)), ((1, 1), (2, 2))]

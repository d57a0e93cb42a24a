"""The image encoders of the papers, by name. A new one is one file here and one line in `_BUILD`."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatch

from negatoscope.errors import WrongUse, nearest_names
from negatoscope.vision.backbones.backbone import IMAGENET_MEAN, IMAGENET_STD, Backbone
from negatoscope.vision.backbones.densenet import DenseNet
from negatoscope.vision.backbones.mobilenet import MobileNetV2
from negatoscope.vision.backbones.resnet import Basic, Bottleneck, ResNet
from negatoscope.vision.backbones.vgg import VGG

__all__ = ["IMAGENET_MEAN", "IMAGENET_STD", "Backbone", "build", "names"]

_BUILD: dict[str, Callable[[int | None], Backbone]] = {
    "densenet121": lambda classes: DenseNet((6, 12, 24, 16), classes=classes),
    "mobilenetv2": lambda classes: MobileNetV2(classes=classes),
    # Nobody's but ours: a small one for phantoms and tests.
    "resnet10-narrow": lambda classes: ResNet(Basic, (1, 1, 1, 1), narrowest=16, classes=classes),
    "resnet18": lambda classes: ResNet(Basic, (2, 2, 2, 2), classes=classes),
    "resnet34": lambda classes: ResNet(Basic, (3, 4, 6, 3), classes=classes),
    "resnet50": lambda classes: ResNet(Bottleneck, (3, 4, 6, 3), classes=classes),
    "resnet50-v1": lambda classes: ResNet(Bottleneck, (3, 4, 6, 3), v1=True, classes=classes),
    "resnet101": lambda classes: ResNet(Bottleneck, (3, 4, 23, 3), classes=classes),
    "resnet101-v1": lambda classes: ResNet(Bottleneck, (3, 4, 23, 3), v1=True, classes=classes),
    "resnet152": lambda classes: ResNet(Bottleneck, (3, 8, 36, 3), classes=classes),
    "resnet152-v1": lambda classes: ResNet(Bottleneck, (3, 8, 36, 3), v1=True, classes=classes),
    "vgg19": lambda classes: VGG(classes=classes),
    "vgg19-bn": lambda classes: VGG(norms=True, classes=classes),
}


def names(pattern: str = "*") -> list[str]:
    """The registered backbones whose name fits a pattern with wildcards: `names("resnet*")`."""
    return sorted(name for name in _BUILD if fnmatch(name, pattern))


def build(name: str, *, classes: int | None = None, pretrained: bool = True) -> Backbone:
    """A backbone by name, its weights drawn from torch's generator. `hub:FOLDER_OR_ID` takes a vision model of
    `transformers`, with the weights it brings unless `pretrained` is off.

    Raises WrongUse for a name that is not registered.
    """
    if name.startswith("hub:"):
        from negatoscope.vision.backbones.hub import load_hub

        return load_hub(name.removeprefix("hub:"), pretrained=pretrained)
    if name not in _BUILD:
        near = nearest_names(name, _BUILD)
        raise WrongUse(f"no backbone is called {name!r}", remedy=f"{near} or hub:FOLDER for a transformers model")
    return _BUILD[name](classes)

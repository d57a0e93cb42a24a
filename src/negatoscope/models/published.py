"""The published code's tensors under our names: R2Gen, R2GenCMN and XProNet as their authors saved them.

The three share a code base, so one table of names serves them; what each has of its own is a function beneath it. The
image encoder's tensors (`visual_extractor.model.<place in torchvision's ResNet>`) become our backbone's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from negatoscope.errors import BadInput

# In order: each pattern sees what the ones before it left. `\1` is a number.
_DECODERS = (
    (r"^encoder_decoder\.", ""),
    (r"^att_embed\.", "project."),
    (r"^logit\.", "out."),
    (r"^model\.encoder\.", "among_patches."),
    (r"^model\.decoder\.", "decoder."),
    (r"^model\.tgt_embed\.0\.lut\.", "embed.table."),
    (r"^model\.rm\.attn\.", "memory."),
    (r"^model\.rm\.mlp\.", "memory.think."),
    (r"^model\.rm\.", "memory."),
    (r"^model\.fuse_feature\.", "join_words."),
    (r"^fuse_feature\.", "join_patches."),
    (r"^cmn\.", "ask."),
    (r"^memory_matrix$", "memory"),
    (r"^protypes$", "prototypes"),
    (r"^dim_reduction\.", "narrow."),
    (r"\bfeed_forward\.w_1\.", "feed_forward.0."),
    (r"\bfeed_forward\.w_2\.", "feed_forward.3."),
    (r"\bsublayer\.(\d)\.norm\.", r"norms.\1."),
    (r"^(among_patches\..*)\bself_attn\.", r"\1attention."),
    (r"\bself_attn\.", "to_words."),
    (r"\bsrc_attn\.", "to_patches."),
    (r"\blinears\.0\.", "query."),
    (r"\blinears\.1\.", "key."),
    (r"\blinears\.2\.", "value."),
    (r"\blinears\.3\.", "out."),
    (r"\ba_2$", "gamma"),
    (r"\bb_2$", "beta"),
)
_STEM = {"0": "conv1", "1": "bn1", "4": "layer1", "5": "layer2", "6": "layer3", "7": "layer4"}
"""torchvision's ResNet as a list of parts: 2 and 3 are the ReLU and the pooling."""

Names = dict[str, Tensor]


def from_published(model: str, tensors: Mapping[str, Tensor]) -> Names:
    """The authors' state dict of `model` as ours; raises BadInput where it is another model's."""
    if model not in _OWN:
        raise BadInput(f"no published code of {model!r} is known", remedy=f"known: {', '.join(_OWN)}")
    own = {}
    for name, tensor in tensors.items():
        # Positions are computed; R2GenCMN's and XProNet's look-up is saved under two names.
        if not name.endswith(".pe") and not re.search(r"(^|\.)model\.cmn\.", name):
            own[_backbone_name(name) or _decoder_name(name)] = tensor
    return _OWN[model](own)


def _backbone_name(name: str) -> str | None:
    found = re.match(r"visual_extractor\.model\.(\d+)\.(.*)", name)
    if found is None:
        return None
    if found[1] not in _STEM:
        raise BadInput(
            f"tensor {name!r} is of no ResNet", remedy="only the ResNet encoders of the published code are known"
        )
    return f"encoder.backbone.{_STEM[found[1]]}.{found[2]}"


def _decoder_name(name: str) -> str:
    for pattern, instead in _DECODERS:
        name = re.sub(pattern, instead, name)
    return name


def _r2gen(own: Names) -> Names:
    """Eighteen perceptrons, gamma's and beta's of each norm of each layer, become one of eighteen parts."""
    found = [re.fullmatch(r"(decoder\.layers\.(\d+)\.norms\.(\d)\.mlp_gamma)\.0\.weight", name) for name in own]
    norms = sorted((int(one[2]), int(one[3])) for one in found if one)
    if not norms:
        raise BadInput("holds no memory-driven layer norm", where="r2gen", remedy="is it another model's?")

    def parts(which: str) -> list[Tensor]:
        try:
            return [
                own.pop(f"decoder.layers.{layer}.norms.{norm}.mlp_{kind}.{which}")
                for layer, norm in norms
                for kind in ("gamma", "beta")
            ]
        except KeyError as error:
            raise BadInput(f"lacks the tensor {error}", where="r2gen") from error

    own["conditioning.first.weight"] = torch.cat(parts("0.weight"))
    own["conditioning.first.bias"] = torch.cat(parts("0.bias"))
    own["conditioning.second"] = torch.stack([weight.T for weight in parts("2.weight")])
    own["conditioning.bias"] = torch.stack(parts("2.bias"))
    return own


def _xpronet(own: Names) -> Names:
    """The head that predicts observations is ours alone: a published XProNet is given the reference's labels. It starts
    as an answer of "No Finding" for every image."""
    width, observations = own["out.weight"].shape[1], 14
    own["observe.weight"] = torch.zeros(observations, width)
    own["observe.bias"] = torch.cat([torch.ones(1), -torch.ones(observations - 1)])
    return own


def _as_they_are(own: Names) -> Names:
    return own


_OWN: dict[str, Callable[[Names], Names]] = {"r2gen": _r2gen, "r2gencmn": _as_they_are, "xpronet": _xpronet}


def settings_of(model: str, tensors: Mapping[str, Tensor]) -> dict[str, int]:
    """Sizes that tensors under our names tell of: width, layers ... What they do not tell (heads, top_k) keeps its
    default."""
    said = {
        "width": tensors["out.weight"].shape[1],
        "inner": tensors["decoder.layers.0.feed_forward.0.weight"].shape[0],
        "layers": 1 + max(int(name.split(".")[2]) for name in tensors if name.startswith("decoder.layers.")),
    }
    if model == "r2gen":
        said["slots"] = tensors["conditioning.first.weight"].shape[1] // said["width"]
    if model == "r2gencmn":
        said["memories"] = tensors["memory"].shape[0]
    if model == "xpronet":
        said["per_observation"] = tensors["prototypes"].shape[0] // 14
        said["text_width"] = tensors["prototypes"].shape[1] - tensors["project.0.weight"].shape[1]
    return said

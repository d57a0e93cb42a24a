"""Any vision model of `transformers` as a backbone: ViT, Swin, DINOv2 and RAD-DINO, ResNet, the eye of CLIP ...
(extra `hub`).

Safetensors alone, and never code that comes with the weights.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from negatoscope.errors import BadInput, Trouble, WrongUse
from negatoscope.vision.backbones.backbone import IMAGENET_MEAN, IMAGENET_STD, Backbone

_SETTINGS_OF_PICTURES = ("preprocessor_config.json", "processor_config.json")


class HubBackbone(Backbone):
    """Tokens become a map: whatever stands before the patches (class token, registers) is dropped."""

    def __init__(
        self, model: nn.Module, mean: Sequence[float] = IMAGENET_MEAN, std: Sequence[float] = IMAGENET_STD
    ) -> None:
        super().__init__()
        # Models of pictures and text hold an eye that can stand alone.
        self.model: nn.Module = getattr(model, "vision_model", model)
        self.mean, self.std = _three(mean), _three(std)
        config: Any = self.model.config
        self.patch = _first(getattr(config, "patch_size", None)) or 0
        # Swin joins 2 x 2 tokens between its stages, and pads where a side is odd.
        self.joins = max(0, len(getattr(config, "depths", ())) - 1) if self.patch else 0
        self.any_size = "interpolate_pos_encoding" in inspect.signature(self.model.forward).parameters
        self.prefix: int | None = None
        self._measure(_first(getattr(config, "image_size", None)) or 224)

    def _measure(self, own_size: int) -> None:
        """Widths, strides and the number of tokens before the patches: told by one small black picture, whatever the
        family."""
        small = 2 * (self.patch or 32) * 2 ** (self.joins + 1)
        training = self.model.training
        self.model.eval()
        with torch.no_grad():
            try:
                side, maps = small, self.stages(torch.zeros(1, 3, small, small))
            except (ValueError, RuntimeError):  # a model that takes its own size alone
                side, maps = own_size, self.stages(torch.zeros(1, 3, own_size, own_size))
        self.model.train(training)
        self.widths = tuple(found.shape[1] for found in maps)
        self.strides = tuple(max(1, round(side / found.shape[2])) for found in maps)

    def each_stage(self, x: Tensor) -> Iterator[Tensor]:
        said = self._ask(x, output_hidden_states=True)
        # The last hidden state has been through the model's closing norm; its double in the list has not.
        earlier = said.hidden_states[1:-1]
        for number, tokens in enumerate(earlier, start=1):
            yield self._map(tokens, x, min(number, self.joins))
        yield self._map(said.last_hidden_state, x, self.joins)

    def forward(self, x: Tensor) -> Tensor:
        return self._map(self._ask(x).last_hidden_state, x, self.joins)

    def _ask(self, x: Tensor, **wishes: bool) -> Any:
        if self.any_size:
            wishes["interpolate_pos_encoding"] = True
        return self.model(pixel_values=x, **wishes)

    def _map(self, tokens: Tensor, x: Tensor, joins: int) -> Tensor:
        """Tokens (B, prefix + h * w, D) of pictures x (B, 3, H, W) -> (B, D, h, w); what is a map already stays as it
        is."""
        if tokens.dim() == 4:
            return tokens
        sides = x.shape[-2:]
        h, w = (_joined(-(-side // self.patch), joins) if self.joins else side // self.patch for side in sides)
        prefix = tokens.shape[1] - h * w
        if self.prefix is None:
            self.prefix = prefix
        if prefix != self.prefix or prefix < 0:
            raise BadInput(
                f"{tokens.shape[1]} tokens of a {sides[0]} x {sides[1]} picture are no map of {h} x {w} patches",
                where=type(self.model).__name__,
                remedy="give it pictures of its own size",
            )
        return tokens[:, prefix:].transpose(1, 2).unflatten(2, (h, w))


def load_hub(source: str, *, pretrained: bool = True) -> HubBackbone:
    """From a local folder, or by a hub id (downloaded by `transformers` into its own cache).

    Raises BadInput where there are no safetensors, where a weight is missing from them, or where code would have to
    be trusted.
    """
    try:
        from transformers import AutoConfig, AutoModel
    except ImportError as error:
        raise WrongUse("hub backbones need transformers", remedy="pip install 'negatoscope[hub]'") from error
    local = Path(source).expanduser()
    if not local.is_dir() and (source.startswith((".", "/", "~")) or source.count("/") > 1):
        raise BadInput("no such folder of a transformers model", where=source)
    where = str(local) if local.is_dir() else source
    common: dict[str, Any] = {"trust_remote_code": False, "local_files_only": local.is_dir()}
    try:
        if pretrained:
            model, found = AutoModel.from_pretrained(where, use_safetensors=True, output_loading_info=True, **common)
            _check_complete(found, source)
        else:
            model = AutoModel.from_config(AutoConfig.from_pretrained(where, **common), trust_remote_code=False)
        return HubBackbone(model.float(), *_mean_and_std(where, **common))
    except Trouble:
        raise
    except Exception as error:  # the library raises nearly everything there is for a folder that it cannot read
        said = " ".join(str(error).split())[:300]
        raise BadInput(
            f"is no vision model that can be used ({said})",
            where=source,
            remedy="give a folder with config.json and model.safetensors",
        ) from error


def _check_complete(found: Any, source: str) -> None:
    """`transformers` fills what a file lacks with chance and a warning. Of the classifier-like pooler alone that does
    no harm."""
    missing = sorted(
        name for name in found["missing_keys"] if "pooler" not in name and not name.startswith("text_model.")
    )
    different = sorted(str(entry[0]) for entry in found.get("mismatched_keys", ()))
    if missing or different:
        names = ", ".join((missing + different)[:4])
        raise BadInput(
            f"{len(missing)} tensors are missing and {len(different)} of another shape ({names} ...)",
            where=source,
            remedy="fetch the whole model again",
        )


def _mean_and_std(where: str, **common: Any) -> tuple[Sequence[float], Sequence[float]]:
    """What the model's own preparation subtracts and divides by; ImageNet's where it does not say."""
    from transformers.utils import cached_file

    for name in _SETTINGS_OF_PICTURES:
        path = cached_file(
            where,
            name,
            local_files_only=common["local_files_only"],
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )
        if path is None:
            continue
        said = json.loads(Path(path).read_text(encoding="utf-8"))
        said = said.get("image_processor", said)
        if said.get("do_normalize") is False:
            return (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
        return said.get("image_mean", IMAGENET_MEAN), said.get("image_std", IMAGENET_STD)
    return IMAGENET_MEAN, IMAGENET_STD


def _three(values: Sequence[float]) -> tuple[float, float, float]:
    first, second, third = values
    return float(first), float(second), float(third)


def _first(size: Any) -> int | None:
    return int(size[0]) if isinstance(size, Sequence) else size


def _joined(cells: int, times: int) -> int:
    for _ in range(times):
        cells = -(-cells // 2)
    return cells

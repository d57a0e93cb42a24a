"""Weights from a file into a module: every tensor in its place, or an error that says which are not."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from negatoscope.errors import BadInput, WrongUse
from negatoscope.vision import backbones, unpickling
from negatoscope.vision.backbones import Backbone

_CHECKPOINT_ENDINGS = (".pth", ".pt", ".tar", ".ckpt", ".bin")
_COUNTER = "num_batches_tracked"  # absent from checkpoints of before 2018, and used by no forward pass
_NAMED = 4  # how many tensors an error names of each kind


def read_tensors(path: Path | str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The named tensors of a .safetensors or PyTorch checkpoint, and the file's own description of itself.

    Raises BadInput where there is no such file, where it is damaged, or where it holds anything but tensors.
    """
    path = Path(path)
    if not path.is_file():
        raise BadInput("no such file of weights", where=path)
    if path.suffix == ".safetensors":
        return _read_safetensors(path)
    if path.suffix not in _CHECKPOINT_ENDINGS:
        known = ", ".join(_CHECKPOINT_ENDINGS)
        raise BadInput(f"weights end in .safetensors or {known}, not in {path.suffix or 'nothing'!r}", where=path)
    with tempfile.TemporaryDirectory(prefix="negatoscope-weights-") as folder:
        out = Path(folder) / "weights.safetensors"
        _unpickle(path, out)
        tensors, said = _read_safetensors(out)
        return {name: tensor.clone() for name, tensor in tensors.items()}, said


def _read_safetensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    try:
        with safe_open(path, framework="pt") as opened:
            return {name: opened.get_tensor(name) for name in opened.keys()}, dict(opened.metadata() or {})  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise BadInput(f"is no whole safetensors file ({error})", where=path, remedy="fetch it again") from error


def _unpickle(path: Path, out: Path) -> None:
    command = [sys.executable, "-I", unpickling.__file__, str(path.resolve()), str(out)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=unpickling.SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise BadInput("took too long to read", where=path, remedy="convert it to safetensors") from error
    if done.returncode != 0 or not out.is_file():
        said = done.stderr.strip().splitlines()
        raise BadInput(
            said[-1] if said else f"its reader ended with {done.returncode}",
            where=path,
            remedy="only a dictionary of named tensors is taken; save model.state_dict() or convert it to safetensors",
        )


def load_backbone(name: str, weights: Path | str | None = None, *, classes: int | None = None) -> Backbone:
    """A backbone by name, with the weights of a file; untrained where there is none, but for hub backbones.

    A classifier in the file that the backbone was not asked for is left out; anything else must fit tensor by tensor.
    Raises BadInput where it does not, WrongUse for an unknown name or for weights that say they are another backbone's.
    """
    backbone = backbones.build(name, classes=classes)
    if weights is None:
        return backbone
    tensors, said = read_tensors(weights)
    _check_architecture(name, said.get("architecture", ""), weights)
    tensors = {_modern(key): tensor for key, tensor in tensors.items()}
    if classes is None and backbone.head:
        tensors = {key: tensor for key, tensor in tensors.items() if not key.startswith(f"{backbone.head}.")}
    fill(backbone, tensors, where=weights, called=name)
    return backbone


def fill(module: nn.Module, tensors: Mapping[str, Tensor], *, where: object, called: str = "the model") -> None:
    """Copies tensors into the module's own, by name. All or none: raises BadInput that lists what is missing, extra
    or different."""
    own = module.state_dict()
    missing = [name for name in own if name not in tensors and not name.endswith(_COUNTER)]
    extra = [name for name in tensors if name not in own]
    different = [
        f"{name} {_shape(tensor)} instead of {_shape(own[name])}"
        for name, tensor in tensors.items()
        if name in own and tensor.shape != own[name].shape
    ]
    # Half-precision files fill float32 models; integers where numbers belong are another file altogether.
    different += [
        f"{name} {tensor.dtype} instead of {own[name].dtype}".replace("torch.", "")
        for name, tensor in tensors.items()
        if name in own and tensor.is_floating_point() != own[name].is_floating_point()
    ]
    if missing or extra or different:
        wrong = [_listed(missing, "missing"), _listed(extra, "extra"), _listed(different, "of another shape or type")]
        fits = [name for name in _who_fits(tensors) if name != called] if isinstance(module, Backbone) else []
        remedy = f"its tensors fit {' or '.join(fits)}" if fits else "take weights of the same architecture"
        said = ", ".join(part for part in wrong if part)
        raise BadInput(f"does not fit {called}: {said}", where=where, remedy=remedy)
    with torch.no_grad():
        for name, tensor in tensors.items():
            own[name].copy_(tensor)


def weights_hash(module: nn.Module) -> str:
    """SHA-256 over the names, types, shapes and values of all its tensors: the same for one set of weights in any
    file format."""
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        if name.endswith(_COUNTER):
            continue
        digest.update(f"{name} {tensor.dtype} {_shape(tensor)}\n".encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        digest.update(np.ascontiguousarray(flat.numpy()).data)
    return digest.hexdigest()


def _listed(names: list[str], what: str) -> str:
    if not names:
        return ""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{len(names)} {what} ({', '.join(names[:_NAMED])}{more})"


def _shape(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape)) or "scalar"


def _modern(name: str) -> str:
    """torchvision's first DenseNet checkpoints number the parts of a layer with a point:
    `denselayer1.norm.1.weight`."""
    return re.sub(r"(denselayer\d+\.(?:norm|conv))\.([12])\.", r"\1\2.", name)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _check_architecture(name: str, said: str, where: object) -> None:
    """ResNet v1 and v1.5 have the same tensors, so only what the file says of itself can tell a mix-up."""
    said_name = _plain(said.split("(", maxsplit=1)[0])
    for known in backbones.names():
        if _plain(known) == said_name and known != name:
            raise WrongUse(f"these are weights of {known}, not of {name}", where=where, remedy=f"ask for {known}")


def _who_fits(tensors: Mapping[str, Tensor]) -> list[str]:
    return [name for name in backbones.names() if _fits(name, tensors)]


def _fits(name: str, tensors: Mapping[str, Tensor]) -> bool:
    with torch.device("meta"):
        backbone = backbones.build(name)
    shapes = {key: tensor.shape for key, tensor in backbone.state_dict().items() if not key.endswith(_COUNTER)}
    given = {key: tensor.shape for key, tensor in tensors.items() if not _ignored(key, backbone.head)}
    return shapes == given


def _ignored(name: str, head: str) -> bool:
    return name.endswith(_COUNTER) or name.startswith(f"{head}.")

"""Runs in a process of its own: reads a PyTorch checkpoint and writes its tensors as safetensors.

    python -I unpickling.py CHECKPOINT OUT.safetensors

A checkpoint is a pickle, and a pickle is a program. Here it runs under torch's own interpreter, which knows tensors
and plain containers and nothing else (`weights_only`), in a process that can open no socket and start no other
process, and that has a limit on its time and on what it writes. `weights.py` starts it; nothing else should.
"""

from __future__ import annotations

import ctypes
import re
import resource
import sys
from typing import Any, NoReturn

SECONDS = 600
LARGEST = 16 << 30
# Where training scripts put the model among the optimizer and the rest.
_NESTS = ("state_dict", "model_state_dict", "model_state", "model", "net")
_FORBIDDEN = (
    "socket.",
    "subprocess.",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.system",
    "os.fork",
    "ctypes.dlopen",
)


def refuse(why: str) -> NoReturn:
    print(" ".join(why.split()), file=sys.stderr)
    raise SystemExit(3)


def leave_the_network() -> None:
    """A network namespace with nothing in it, where the system grants one (Linux, before the first thread); the guard
    stands anyway."""
    new_user, new_network = 0x10000000, 0x40000000
    unshare = getattr(ctypes.CDLL(None), "unshare", None)
    if unshare is not None and unshare(new_network) != 0:
        unshare(new_user | new_network)


def close_the_doors() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST, LARGEST))

    def guard(event: str, _: Any) -> None:
        if event.startswith(_FORBIDDEN):
            raise PermissionError(f"{event} while reading a checkpoint")

    sys.addaudithook(guard)


def find_tensors(read: Any) -> dict[str, Any]:
    """The one dictionary of tensors in what was read, with the names that `DataParallel` prefixed made plain again."""
    import torch

    for nest in _NESTS:
        if isinstance(read, dict) and isinstance(read.get(nest), dict):
            read = read[nest]
            break
    if not isinstance(read, dict) or not read:
        refuse(f"holds a {type(read).__name__}, no dictionary of named tensors")
    for name, tensor in read.items():
        if not isinstance(name, str) or not isinstance(tensor, torch.Tensor):
            refuse(f"entry {name!r} is a {type(tensor).__name__}, no tensor")
        if tensor.layout != torch.strided or tensor.is_quantized:
            refuse(f"entry {name!r} is a sparse or quantized tensor")
    prefix = "module." if all(name.startswith("module.") for name in read) else ""
    return {name.removeprefix(prefix): tensor.detach() for name, tensor in read.items()}


def main(checkpoint: str, out: str) -> None:
    leave_the_network()
    import torch
    from safetensors.torch import save_file

    close_the_doors()
    try:
        read = torch.load(checkpoint, map_location="cpu", weights_only=True)
    except Exception as error:
        stranger = re.search(r"GLOBAL (\S+)", str(error))
        if stranger:
            refuse(f"is a pickle that asks for {stranger[1]}, and only tensors are read here")
        refuse(f"cannot be read ({str(error).strip().split(chr(10))[0].split('. ')[0][:200]})")
    # Tensors that share memory in a checkpoint are written apart: safetensors knows no sharing.
    save_file({name: tensor.clone().contiguous() for name, tensor in find_tensors(read).items()}, out)


if __name__ == "__main__":
    main(*sys.argv[1:])

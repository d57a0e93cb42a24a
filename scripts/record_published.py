"""Records what the authors' R2Gen, R2GenCMN and XProNet answer at tiny size: tests/published/<model>.safetensors.

    python scripts/record_published.py r2gen FOLDER_OF_THE_AUTHORS_REPOSITORY

Weights and inputs are drawn by name from a seed (tests/published/drawn.py), so that only answers are kept:
logits of three reports read with teacher forcing, and the words of beam searches. The authors' code is run
as it is, from where it lies.
"""

from __future__ import annotations

import importlib
import json
import sys
import types
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.published.drawn import BEAMS, LONGEST, PUBLISHED, TINY, WORDS, drawn_inputs, drawn_tensor


def authors_model(model: str, folder: Path, sizes: dict[str, Any] = TINY, words: int = WORDS) -> Any:
    """Their encoder-decoder. What it imports for images alone is replaced by nothing."""
    for name in ("cv2", "torchvision", "torchvision.models"):
        sys.modules[name] = types.ModuleType(name)
    sys.path.insert(0, str(folder))
    torch.Tensor.cuda = lambda self, *_, **__: self  # pyright: ignore[reportAttributeAccessIssue]
    args = types.SimpleNamespace(**{**PUBLISHED, **sizes})
    tokens = types.SimpleNamespace(idx2token={number: str(number) for number in range(1, words)})
    if model == "r2gencmn":
        return importlib.import_module("modules.base_cmn").BaseCMN(args, tokens).eval()
    kind = importlib.import_module("modules.encoder_decoder").EncoderDecoder
    return (kind(args, tokens, mode="sample") if model == "xpronet" else kind(args, tokens)).eval()


@torch.no_grad()
def record(model: str, folder: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    theirs = authors_model(model, folder)
    if model == "xpronet":  # the one part whose width is written out there, 512
        theirs.model.fuse_feature = torch.nn.Linear(2 * TINY["d_model"], TINY["d_model"])
    state = theirs.state_dict()
    for name, tensor in state.items():
        if not name.endswith(".pe"):
            tensor.copy_(drawn_tensor(model, name, tuple(tensor.shape)))
    batch, labels = drawn_inputs()
    assert batch.features is not None
    more = {"labels": labels} if model == "xpronet" else {}
    seen = batch.features.mean((1, 2)), batch.features.flatten(1, 2)
    logits: list[Tensor] = []
    hook = theirs.logit.register_forward_hook(lambda _module, _given, said: logits.append(said))
    read = theirs(*seen, batch.words, mode="forward", **more)
    hook.remove()
    answers = {"logits": logits[0]}
    if model == "xpronet":
        answers["image_contrast"] = read[1]
    for beam in BEAMS:  # their `sample` would draw by chance at beam 1, so the search is called itself
        answers[f"words-{beam}"], _ = theirs._sample_beam(*seen, opt={**vars(theirs.args), "beam_size": beam}, **more)
    shapes = {name: list(tensor.shape) for name, tensor in state.items()}
    return answers, {"shapes": json.dumps(shapes), "longest": str(LONGEST)}


def main() -> None:
    model, folder = sys.argv[1], Path(sys.argv[2])
    answers, about = record(model, folder)
    out = Path(__file__).resolve().parents[1] / "tests" / "published" / f"{model}.safetensors"
    save_file({name: tensor.contiguous() for name, tensor in answers.items()}, out, metadata=about)
    print(f"{out}: {out.stat().st_size} bytes")
    for beam in BEAMS:
        print(f"beam {beam}: {answers[f'words-{beam}'].tolist()}")


if __name__ == "__main__":
    main()

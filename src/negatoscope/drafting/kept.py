"""The drafter as one safetensors file: every tensor that a draft needs, in its header every name. No report, no
image."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from negatoscope.drafting.author import Author, AuthorSettings
from negatoscope.drafting.calibration import Calibration
from negatoscope.drafting.doubt import Doubt
from negatoscope.drafting.drafter import Drafter
from negatoscope.drafting.library import Library
from negatoscope.errors import BadInput
from negatoscope.metrics.chexpert.labeler import Labeler
from negatoscope.models.dictated import Dictated, DictatedSettings
from negatoscope.models.recogniser import Recogniser, RecogniserSettings
from negatoscope.settings import read_settings
from negatoscope.text.words import Vocabulary
from negatoscope.training.checkpoint import fill, under
from negatoscope.training.recognise_lessons import Subjects, SubjectSettings
from negatoscope.whole_files import whole_file

FORMAT = 1
SHIPPED = "iu-xray.safetensors"


def shipped() -> Path:
    """The drafter that comes with the package. Raises BadInput where it was left out."""
    path = Path(str(files("negatoscope.drafting") / "shipped" / SHIPPED))
    if not path.exists():
        raise BadInput("no drafter came with this installation", where=path, remedy="--model FILE")
    return path


def save_drafter(path: Path | str, drafter: Drafter) -> None:
    """Matrices in half precision, vectors as they are."""
    author = drafter.author
    subjects = author.space
    assert isinstance(subjects, Subjects)
    header = {
        "format": FORMAT,
        "recogniser": drafter.recogniser.settings.model_dump(mode="json"),
        "writer": author.writer.settings.model_dump(mode="json"),
        "author": author.settings.model_dump(mode="json"),
        "vocabulary": author.vocabulary.as_json(),
        "subjects": subjects.settings.model_dump(mode="json"),
        "tags": subjects.tags,
        "phrases": subjects.phrases,
        "grams": subjects.grams,
        "calibration": {"names": author.calibration.names, "studies": author.calibration.studies},
        "studies": author.library.ids,
        "about": dict(drafter.about),
    }
    tensors: dict[str, Tensor] = {
        "calibration/slope": torch.from_numpy(author.calibration.slope),
        "calibration/shift": torch.from_numpy(author.calibration.shift),
        "calibration/spread": torch.from_numpy(author.calibration.spread),
        "limits": torch.from_numpy(author.limits),
        "subjects/rarity": torch.from_numpy(subjects.rarity),
        "subjects/directions": _half(torch.from_numpy(subjects.directions)),
    }
    tensors |= {f"doubt/{name}": _half(tensor) for name, tensor in vars(drafter.doubt).items()}
    known = {name: held for name, held in vars(author.library).items() if name != "ids"}
    tensors |= {f"library/{name}": _half(tensor) for name, tensor in known.items()}
    for part, module in (("recogniser", drafter.recogniser), ("writer", author.writer)):
        tensors |= {f"{part}/{name}": _half(tensor) for name, tensor in module.state_dict().items()}
    kept = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    with whole_file(path) as part:
        save_file(kept, part, metadata={"drafter": json.dumps(header, ensure_ascii=False)})


def load_drafter(path: Path | str | None = None) -> Drafter:
    """One that was saved; none: the one that ships. Raises BadInput for a file that is none or is damaged."""
    path = shipped() if path is None else Path(path)
    try:
        with safe_open(path, framework="pt") as opened:
            said = json.loads((opened.metadata() or {})["drafter"])
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - no mapping
        if said["format"] != FORMAT:
            raise BadInput(f"a drafter of format {said['format']}, this version reads {FORMAT}", where=path)
        return _assembled(said, {name: _full(tensor) for name, tensor in tensors.items()}, path)
    except FileNotFoundError as error:
        raise BadInput("no such drafter", where=path) from error
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise BadInput(f"no drafter, or a damaged one ({error})", where=path) from error


def _assembled(said: dict[str, Any], tensors: dict[str, Tensor], path: Path) -> Drafter:
    recogniser = Recogniser(read_settings(RecogniserSettings, said["recogniser"], where=path), pretrained=False)
    fill(recogniser, under(tensors, "recogniser"), where=path)
    vocabulary = Vocabulary.from_json(said["vocabulary"], where=path)
    writer = Dictated(read_settings(DictatedSettings, said["writer"], where=path), vocabulary.logits)
    fill(writer, under(tensors, "writer"), where=path)
    fitted = {name: tensor.double().numpy() for name, tensor in under(tensors, "calibration").items()}
    calibration = Calibration(tuple(said["calibration"]["names"]), studies=said["calibration"]["studies"], **fitted)
    subjects = Subjects(
        read_settings(SubjectSettings, said["subjects"], where=path),
        tuple(said["tags"]),
        tuple(said["phrases"]),
        tuple(said["grams"]),
        tensors["subjects/rarity"].numpy(),
        tensors["subjects/directions"].numpy(),
    )
    author = Author(
        writer.eval(),
        vocabulary,
        subjects,
        Library(tuple(said["studies"]), **under(tensors, "library")),
        calibration,
        np.asarray(tensors["limits"], np.float64),
        Labeler(),
        read_settings(AuthorSettings, said["author"], where=path),
    )
    doubt = Doubt(**under(tensors, "doubt"))
    return Drafter(recogniser.eval(), author, doubt, tuple(said["phrases"]), said["about"])


def _half(tensor: Tensor) -> Tensor:
    return tensor.half() if tensor.ndim > 1 and tensor.dtype.is_floating_point else tensor


def _full(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype == torch.float16 else tensor

"""Texts by an encoder of `transformers`, or of sentence-transformers: BiomedBERT, RadBERT, CheXbert, all-MiniLM ...

An encoder is a folder or a hub id. Where sentence-transformers made it, what it says of itself holds: how words become
one vector, how long a text may be, and a linear layer after that, if it has one. Nothing but `transformers` is needed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn.functional import linear

from negatoscope.errors import BadInput, Trouble
from negatoscope.text.embed import Vectors, sha256_of, unit_rows
from negatoscope.watch import Watch, quiet

Pooling = Literal["mean", "cls", "max"]
LONGEST = 512
"""Sub-words of a text that are read, where the encoder says nothing."""
_POOLINGS: dict[str, Pooling] = {"mean": "mean", "mean_sqrt_len": "mean", "cls": "cls", "max": "max"}
"""Of their names ours. What differs in length alone is one, as all vectors end up with length 1."""


@dataclass(frozen=True)
class _Said:
    """What a folder or hub id says of itself."""

    within: str = ""
    """Where in it the transformer is."""
    pooling: Pooling = "mean"
    longest: int | None = None
    dense: tuple[_Dense, ...] = ()


class EncoderEmbedder:
    """Of the last layer the mean over a text's words, or the first place ([CLS]). Needs the extra `hub`."""

    def __init__(
        self,
        source: str | Path,
        *,
        pooling: Pooling | None = None,
        longest: int | None = None,
        batch: int = 64,
        device: str = "auto",
        watch: Watch = quiet,
    ) -> None:
        """Raises BadInput where there is no encoder that can be read."""
        try:
            from transformers import AutoModel, AutoTokenizer
        except ImportError as error:
            raise Trouble("encoders need transformers", remedy="pip install 'negatoscope[hub]'") from error
        said = _said_by(source, pooling)
        where: dict[str, Any] = {"subfolder": said.within} if said.within else {}
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(str(source), **where)
            model = AutoModel.from_pretrained(str(source), dtype=torch.float32, **where).eval()
        except (OSError, ValueError) as error:
            raise BadInput(
                "no encoder that can be read",
                where=source,
                remedy="name a folder that transformers can load, or a hub id",
            ) from error
        found = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
        self._device = torch.device(found)
        self._model = model.to(self._device)
        self._dense = said.dense
        self.longest = longest or said.longest or min(LONGEST, self._tokenizer.model_max_length)
        self.batch, self.watch = batch, watch
        self.pooling: Pooling = said.pooling
        self.name = f"cls:{source}" if pooling == "cls" else str(source)

    def fit(self, texts: Sequence[str]) -> Self:
        return self

    @torch.inference_mode()
    def embed(self, texts: Sequence[str]) -> Vectors:
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))  # texts of one length need little padding
        rows: list[Any] = [None] * len(texts)
        starts = range(0, len(texts), self.batch)
        for at in self.watch(starts, "embedding", len(starts)):
            chosen = order[at : at + self.batch]
            for place, row in zip(chosen, self._vectors([texts[i] for i in chosen]).cpu().numpy(), strict=True):
                rows[place] = row
        return unit_rows(np.stack(rows) if rows else np.zeros((0, self._model.config.hidden_size), np.float32))

    def _vectors(self, texts: list[str]) -> Tensor:
        read = self._tokenizer(texts, padding=True, truncation=True, max_length=self.longest, return_tensors="pt")
        read = read.to(self._device)
        states = self._model(**read).last_hidden_state  # (B, T, d)
        mask = read["attention_mask"].unsqueeze(-1)  # (B, T, 1)
        if self.pooling == "cls":
            vectors = states[:, 0]
        elif self.pooling == "max":
            vectors = states.masked_fill(mask == 0, -torch.inf).amax(1)
        else:
            vectors = (states * mask).sum(1) / mask.sum(1)
        for layer in self._dense:
            vectors = layer(vectors)
        return vectors

    def fingerprint(self) -> str:
        state = self._model.state_dict()
        weights = (
            part for name in sorted(state) for part in (name.encode(), state[name].cpu().contiguous().numpy().tobytes())
        )
        after = (layer(torch.eye(layer.weight.shape[1])).numpy().tobytes() for layer in self._dense)
        return sha256_of(chain([f"{self.pooling} {self.longest}".encode()], weights, after))


@dataclass(frozen=True)
class _Dense:
    """A linear layer, and tanh where it has one."""

    weight: Tensor
    bias: Tensor | None
    bent: bool

    def __call__(self, vectors: Tensor) -> Tensor:
        bias = None if self.bias is None else self.bias.to(vectors)
        made = linear(vectors, self.weight.to(vectors), bias)
        return made.tanh() if self.bent else made


def _said_by(source: str | Path, asked: Pooling | None) -> _Said:
    """Where a pooling is asked for, it holds, and nothing comes after it.

    Raises BadInput for a part of sentence-transformers that is not known here.
    """
    modules = _json(source, "modules.json")
    if not isinstance(modules, list):
        return _Said(pooling=asked or "mean")
    within, pooling, dense = "", asked or "mean", []
    for module in modules:
        kind, path = str(module.get("type", "")).rpartition(".")[2], str(module.get("path", ""))
        if kind == "Transformer":
            within = path
        elif asked is not None:
            continue
        elif kind == "Pooling":
            pooling = _pooling(_json(source, f"{path}/config.json") or {}, source)
        elif kind == "Dense":
            dense.append(_dense(source, path))
        elif kind not in ("Normalize", "Dropout"):  # all vectors are brought to length 1, and nothing is dropped
            raise BadInput(f"has a part {kind!r} that is not known here", where=source, remedy="take another encoder")
    about = _json(source, "/".join(filter(None, (within, "sentence_bert_config.json")))) or {}
    return _Said(within, pooling, about.get("max_seq_length"), tuple(dense))


def _pooling(said: dict[str, Any], source: object) -> Pooling:
    """`pooling_mode: mean` in newer files, `pooling_mode_mean_tokens: true` in older ones."""
    named = said.get("pooling_mode")
    modes = [named] if isinstance(named, str) else [
        key.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token")
        for key, value in said.items()
        if key.startswith("pooling_mode_") and value
    ]  # fmt: skip
    if len(modes) > 1 or any(mode not in _POOLINGS for mode in modes):
        told = " and ".join(map(str, modes))
        raise BadInput(f"pools by {told}, which is not known here", where=source, remedy="ask for its [CLS] by cls:")
    return _POOLINGS[modes[0]] if modes else "mean"


def _dense(source: str | Path, path: str) -> _Dense:
    said, weights = _json(source, f"{path}/config.json") or {}, _file(source, f"{path}/model.safetensors")
    bent = str(said.get("activation_function", "")).rpartition(".")[2]
    if weights is None or bent not in ("", "Identity", "Tanh"):
        what = "has no safetensors" if weights is None else f"has the activation {bent!r}, which is not known here"
        raise BadInput(f"its layer {path!r} {what}", where=source, remedy="ask for its [CLS] by cls:")
    tensors = load_file(weights)
    return _Dense(tensors["linear.weight"], tensors.get("linear.bias"), bent == "Tanh")


def _json(source: str | Path, name: str) -> Any:
    found = _file(source, name)
    if found is None:
        return None
    try:
        return json.loads(found.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{name} is no JSON ({error})", where=source) from error


def _file(source: str | Path, name: str) -> Path | None:
    """In the folder, or from the hub; none where it has no such file."""
    if Path(source).is_dir():
        return Path(source) / name if (Path(source) / name).is_file() else None
    from transformers.utils import cached_file

    try:
        found = cached_file(str(source), name)
    except (OSError, ValueError):
        return None
    return None if found is None else Path(found)

"""VisualGPT (Chen, Guo, Yi, Li, Elhoseiny: VisualGPT: Data-efficient Adaptation of Pretrained Language Models for
Image Captioning, CVPR 2022): a pretrained GPT-2 that looks at an image.

In each block of GPT-2, between its look at the words before and its perceptron, with H the words so far and I the
image's patches after a Transformer encoder:

    EncDecAttn(H, I) = softmax(W^DQ H (W^DK I)^T / sqrt(d)) W^DV I                            paper eq. 2, in heads
    H <- B^vis * EncDecAttn(H, I) + B^lan * H                                                 eq. 3
    B^vis = sigmoid(H) 1(sigmoid(H) > tau),   B^lan = (1 - sigmoid(H)) 1(1 - sigmoid(H) > tau)   eq. 4, 5

the self-resurrecting activation unit: each unit leans on what it sees or on what it knows, a small share counts as
none, and as no unit is shut on both sides at once (tau < 0.5), each gets a slope again.

GPT-2's blocks, positions and last norm are taken over. Its sub-words are not: our words are whole, a vocabulary's
entry each, so that decoding, scores and sentence ends stay those of every other reporter. A word starts as the mean
of the embeddings of its sub-words, the end as GPT-2's end of text. Input and output share the table, as in GPT-2.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from negatoscope.errors import BadInput, WrongUse
from negatoscope.models.base import Encoder as ImageEncoder
from negatoscope.models.base import Reading, Reporter, log_probabilities
from negatoscope.models.layers import Attention, DecoderState, Encoder, KeysValues, longer, looking_mask
from negatoscope.settings import Settings
from negatoscope.studies.batch import Batch
from negatoscope.text.words import END, UNKNOWN, Vocabulary
from negatoscope.vision.sight import Sight


class VisualGPTSettings(Settings):
    gpt2: str | None = None
    """A folder of GPT-2 in the form of `transformers` (config.json, model.safetensors, a tokenizer) or a hub id such as
    openai-community/gpt2. None starts from chance. A finished checkpoint no longer needs it."""
    words_from: Literal["sub-words", "chance"] = "sub-words"
    """How our word embeddings start: from GPT-2's sub-words, or by chance (where the folder has no tokenizer)."""
    width: int = 768
    blocks: int = Field(default=12, ge=1)
    heads: int = 12
    positions: int = 1024
    """Longest report. This and the three before it are GPT-2's own sizes."""
    encoder_layers: int = 3
    tau: float = Field(default=0.2, ge=0, lt=0.5)
    dropout: float = 0.1
    patch_dropout: float = 0.5


class SelfAttention(nn.Module):
    """GPT-2's: queries, keys and values in one product."""

    def __init__(self, d: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x: Tensor, past: KeysValues | None) -> tuple[Tensor, KeysValues]:
        """x (R, T, d) -> (R, T, d), and keys and values of the past and of x. With a past, T is 1."""
        q, k, v = (one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in self.qkv(x).chunk(3, -1))
        kv = (k, v) if past is None else longer(past, (k, v))
        dropout = self.dropout if self.training else 0.0
        found = F.scaled_dot_product_attention(q, *kv, dropout_p=dropout, is_causal=past is None)
        return self.out(found.transpose(1, 2).flatten(2)), kv


class Block(nn.Module):
    """A block of GPT-2 that looks at the image in its middle."""

    def __init__(self, settings: VisualGPTSettings) -> None:
        super().__init__()
        d, p = settings.width, settings.dropout
        self.norm_1, self.norm_2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.to_words = SelfAttention(d, settings.heads, p)
        self.to_patches = Attention(d, settings.heads, p)  # EncDecAttn
        self.perceptron = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU("tanh"), nn.Linear(4 * d, d))
        self.drop, self.tau = nn.Dropout(p), settings.tau

    def forward(self, x: Tensor, patches: KeysValues, mask: Tensor) -> Tensor:
        """All words at once, (B, T, d)."""
        said, _ = self.to_words(self.norm_1(x), None)
        H = x + self.drop(said)
        return self._think(resurrecting(H, self.to_patches(H, patches, mask=mask), self.tau))

    def step(self, x: Tensor, past: KeysValues, patches: KeysValues, mask: Tensor) -> tuple[Tensor, KeysValues]:
        """One word a row, (R, 1, d), and the longer past."""
        said, past = self.to_words(self.norm_1(x), past)
        H = x + said
        return self._think(resurrecting(H, self.to_patches.of_study(H, patches, mask), self.tau)), past

    def _think(self, x: Tensor) -> Tensor:
        return x + self.drop(self.perceptron(self.norm_2(x)))


def resurrecting(H: Tensor, seen: Tensor, tau: float) -> Tensor:
    """B^vis * seen + B^lan * H."""
    share = H.sigmoid()
    B_vis, B_lan = share * (share > tau), (1 - share) * (1 - share > tau)
    return B_vis * seen + B_lan * H


class VisualGPT(Reporter):
    Settings = VisualGPTSettings
    tiny: ClassVar[Mapping[str, Any]] = {"width": 16, "blocks": 2, "heads": 4, "positions": 32, "encoder_layers": 1}
    name = "visualgpt"
    paper = "Chen et al.: VisualGPT: Data-efficient Adaptation of Pretrained Language Models for Image Captioning"
    year = 2022

    def __init__(self, settings: VisualGPTSettings, encoder: ImageEncoder, words: int) -> None:
        super().__init__(encoder, words)
        d = self.width = settings.width
        self.settings = settings
        self.project = nn.Sequential(nn.Linear(encoder.width, d), nn.ReLU(), nn.Dropout(settings.patch_dropout))
        self.among_patches = Encoder(settings.encoder_layers, d, settings.heads, d, settings.dropout)
        self.embed, self.place = nn.Embedding(words, d), nn.Embedding(settings.positions, d)
        self.blocks: Any = nn.ModuleList(Block(settings) for _ in range(settings.blocks))
        self.norm, self.drop = nn.LayerNorm(d), nn.Dropout(settings.dropout)
        for table in (self.embed, self.place):
            nn.init.normal_(table.weight, std=0.02)

    def look(self, batch: Batch) -> Sight:
        seen = self.encoder(batch)
        return seen.with_features(self.project(seen.patches), self.project(seen.overall))

    def start(self, sight: Sight) -> DecoderState:
        patches = self.among_patches(sight.patches, sight.mask)
        held = tuple(block.to_patches.keys_values(patches) for block in self.blocks)
        nothing = tuple((k[:, :, :0], v[:, :, :0]) for k, v in held)
        return DecoderState(nothing, held, looking_mask(sight.mask))

    def step(self, words: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        x = self.embed(words.unsqueeze(1)) + self.place.weight[self._room(state.position + 1) - 1]  # (R, 1, d)
        said = []
        for block, past, patches in zip(self.blocks, state.words, state.patches, strict=True):
            x, past = block.step(x, past, patches, state.mask)
            said.append(past)
        return log_probabilities(self._words(self.norm(x[:, 0]))), DecoderState(tuple(said), state.patches, state.mask)

    def read(self, sight: Sight, words: Tensor, mask: Tensor) -> Reading:
        patches = self.among_patches(sight.patches, sight.mask)  # (B, N, d)
        x = self.drop(self.embed(words) + self.place.weight[: self._room(words.shape[1])])  # (B, T, d)
        for block in self.blocks:
            x = block(x, block.to_patches.keys_values(patches), looking_mask(sight.mask))
        hidden = self.norm(x)
        return Reading(self._words(hidden), hidden, mask, sight.with_features(patches, sight.overall))

    def _words(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self.embed.weight)  # one table for input and output

    def _room(self, words: int) -> int:
        longest = self.place.num_embeddings
        if words > longest:
            raise WrongUse(f"{words} words, and {longest} positions", where="model.positions", remedy="write less")
        return words

    # From a pretrained GPT-2

    def take_pretrained(self, vocabulary: Vocabulary) -> None:
        if self.settings.gpt2 is None:
            return
        gpt2, where, heads = _load_gpt2(self.settings.gpt2)
        if heads != self.settings.heads:
            raise WrongUse("GPT-2 has another number of heads", where=where, remedy=f"set model.heads: {heads}")
        self._take_blocks(gpt2)
        if self.settings.words_from == "sub-words":
            table = _word_table(gpt2["wte.weight"], where, vocabulary)
            with torch.no_grad():
                self.embed.weight.copy_(table)

    @torch.no_grad()
    def _take_blocks(self, gpt2: Mapping[str, Tensor]) -> None:
        """Raises WrongUse where a size is not GPT-2's."""
        taken: dict[str, Tensor] = {"place.weight": gpt2["wpe.weight"]}
        taken |= {f"norm.{kind}": gpt2[f"ln_f.{kind}"] for kind in ("weight", "bias")}
        number = 0
        while f"h.{number}.ln_1.weight" in gpt2:
            for theirs, ours in _OF_BLOCK.items():
                for kind in ("weight", "bias"):
                    tensor = gpt2[f"h.{number}.{theirs}.{kind}"]
                    # Theirs are (in, out), a linear layer's are (out, in).
                    turned = tensor.T if kind == "weight" and not theirs.startswith("ln") else tensor
                    taken[f"blocks.{number}.{ours}.{kind}"] = turned
            number += 1
        mine = self.state_dict()
        shapes = {name: tuple(tensor.shape) for name, tensor in taken.items()}
        other = [name for name in taken if name not in mine or tuple(mine[name].shape) != shapes[name]]
        if other or number != len(self.blocks):
            sizes = f"width: {len(gpt2['ln_f.bias'])}, blocks: {number}, positions: {len(gpt2['wpe.weight'])}"
            raise WrongUse("GPT-2 has other sizes", where=self.settings.gpt2, remedy=f"set model.{{{sizes}}}")
        for name, tensor in taken.items():
            mine[name].copy_(tensor)


_OF_BLOCK = {
    "ln_1": "norm_1",
    "attn.c_attn": "to_words.qkv",
    "attn.c_proj": "to_words.out",
    "ln_2": "norm_2",
    "mlp.c_fc": "perceptron.0",
    "mlp.c_proj": "perceptron.2",
}


def _load_gpt2(source: str) -> tuple[dict[str, Tensor], str, int]:
    """Its tensors, where `transformers` finds its tokenizer, and its heads, which no tensor tells.

    Safetensors alone, and never code that comes along.
    """
    try:
        from transformers import GPT2Model
    except ImportError as error:
        raise WrongUse("model.gpt2 needs transformers", remedy="pip install 'negatoscope[hub]'") from error
    local = Path(source).expanduser()
    if not local.is_dir() and (source.startswith((".", "/", "~")) or source.count("/") > 1):
        raise BadInput("no such folder of GPT-2", where=source)
    where = str(local) if local.is_dir() else source
    try:
        loaded: Any = GPT2Model.from_pretrained(
            where,
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=local.is_dir(),
            output_loading_info=True,
        )
    except Exception as error:  # the library raises nearly everything there is for a folder that it cannot read
        said = " ".join(str(error).split())[:300]
        remedy = "give a folder with config.json and model.safetensors"
        raise BadInput(f"is no GPT-2 that can be used ({said})", where=source, remedy=remedy) from error
    model, found = loaded
    config = model.config
    if config.activation_function != "gelu_new" or config.scale_attn_by_inverse_layer_idx:
        raise BadInput("is a GPT-2 of another make", where=source, remedy="take one with gelu_new and plain attention")
    if found["missing_keys"]:
        names = ", ".join(sorted(found["missing_keys"])[:3])
        raise BadInput(f"tensors are missing ({names} ...)", where=source, remedy="fetch the whole model again")
    return dict(model.float().state_dict()), where, config.n_head


def _word_table(sub_words: Tensor, where: str, vocabulary: Vocabulary) -> Tensor:
    """(W, d): for each of our words the mean of its sub-words' embeddings; the end is GPT-2's end of text."""
    from transformers import AutoTokenizer

    remedy = "add tokenizer.json, or set model.words_from: chance"
    try:
        tokenizer = AutoTokenizer.from_pretrained(where, trust_remote_code=False, local_files_only=Path(where).is_dir())
    except Exception as error:  # as above
        raise BadInput("has no tokenizer that can be read", where=where, remedy=remedy) from error
    table = sub_words.mean(0).repeat(vocabulary.logits, 1)  # what <unk> starts from
    if tokenizer.eos_token_id is not None:
        table[END] = sub_words[tokenizer.eos_token_id]
    for number, word in enumerate(vocabulary.words, start=1):
        # In running text a word follows a blank, a full stop does not.
        spelt = f" {word}" if any(map(str.isalnum, word)) else word
        pieces = tokenizer(spelt, add_special_tokens=False).input_ids
        if not pieces or max(pieces) >= len(sub_words):  # without its files the library makes an empty one
            raise BadInput(f"its tokenizer has no pieces of {word!r}", where=where, remedy=remedy)
        if word != UNKNOWN:
            table[number] = sub_words[pieces].mean(0)
    return table

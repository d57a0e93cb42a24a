"""Records what ImageCaptioning.pytorch says for the weights and studies of tests/models/captioning_cases.py.

python -m scripts.record_captioning path/to/ImageCaptioning.pytorch     (from the root of this repository)

The folder is a clone of github.com/ruotianluo/ImageCaptioning.pytorch with its history: Show, Attend and Tell is in it
only up to a commit of 2018, and Show and Tell fits its own beam search only there. Needs the package `six`. Writes
tests/published/captioning-<model>.safetensors: the studies, the reference's logits, and its words by beam search.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import warnings
from argparse import Namespace
from collections.abc import Callable
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import torch
from safetensors.torch import save_file
from tests.models.captioning_cases import BEAMS, CASES, MAX_WORDS, RECORDED, drawn_batch, reporter_of
from tests.models.every import FEATURES, WORDS, CachedFeatures
from torch import Tensor

from negatoscope.studies.batch import Batch

BEFORE_CLEANING = "5fdfc53^"  # the last commit that holds Show, Attend and Tell
Weights = dict[str, Tensor]


def main(reference: Path) -> None:
    RECORDED.mkdir(exist_ok=True)
    sys.path.insert(0, str(reference))
    models = import_module("captioning.models")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.path.insert(0, _checked_out(reference, BEFORE_CLEANING, Path(folder)))
        # Scores for its training, with requirements of their own: never called here.
        sys.modules["misc.rewards"] = Mock()
        before = {
            "show_tell": import_module("models.ShowTellModel").ShowTellModel,
            "show_attend_tell": import_module("models.OldModel").ShowAttendTellModel,
        }
        vars(import_module("models.CaptionModel"))["reduce"] = reduce  # a builtin when it was written
        torch.Tensor.cuda = lambda self, *_, **__: self  # what that commit calls in the middle of its search
        for case in CASES:
            ours = {name: p.detach().clone() for name, p in reporter_of(case).named_parameters()}
            a, d = ours.get("attention.w.weight", torch.zeros(1, 1)).shape[1], ours["out.weight"].shape[1]
            model = before.get(case, models.setup)(_options(case, a, d))
            model.load_state_dict(TRANSLATIONS[case](ours))
            _record(case, model.eval(), drawn_batch())


def _checked_out(reference: Path, commit: str, folder: Path) -> str:
    archive = subprocess.run(["git", "-C", str(reference), "archive", commit], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    return str(folder)


def _options(case: str, a: int, d: int) -> Namespace:
    return Namespace(
        caption_model=case, vocab_size=WORDS - 1, vocab={str(word): str(word) for word in range(1, WORDS)},
        input_encoding_size=d, rnn_size=d, rnn_type="lstm", num_layers=1, att_hid_size=a,
        fc_feat_size=FEATURES, att_feat_size=FEATURES, drop_prob_lm=0.5, seq_length=MAX_WORDS, max_length=MAX_WORDS,
    )  # fmt: skip


def _record(case: str, model: Any, batch: Batch) -> None:
    sight = CachedFeatures()(batch)
    assert batch.words is not None
    logits: list[Tensor] = []
    hook = model.logit.register_forward_hook(lambda _module, _given, said: logits.append(said))
    with torch.no_grad():
        read, search = READERS.get(case, (_read, _search))
        read(model, sight, batch.words[:, :-1])
        hook.remove()
        said = torch.stack(logits, 1) if case != "show_attend_tell" else torch.cat(logits).view(len(batch), -1, WORDS)
        found = {f"found-{beam}": search(model, sight, beam) for beam in BEAMS}
    tensors = {
        "features": batch.features,
        "words": batch.words,
        "word_mask": batch.word_mask,
        "logits": said,
        **found,
    }
    path = RECORDED / f"captioning-{case}.safetensors"
    save_file({name: tensor.contiguous() for name, tensor in tensors.items() if tensor is not None}, path)
    print(f"{path}: logits {tuple(said.shape)}, words of beam 3 {found['found-3'].tolist()}")


# Reading and searching, as each of the three generations of the reference wants to be called. The beam search of the
# two old ones works, what they wrap around it no longer does.


def _read(model: Any, sight: Any, words: Tensor) -> None:
    """A word at a time, all of them: its own loop stops at the first column of padding."""
    prepared = model._prepare_feature(sight.overall, sight.patches, sight.mask.float())
    state = model.init_hidden(len(words))
    for word in words.unbind(1):
        _, state = model.get_logprobs_state(word, *prepared, state)


def _search(model: Any, sight: Any, beam: int) -> Tensor:
    """Its `sample` takes beam 1 for another method, so the search is called itself."""
    return model._sample_beam(sight.overall, sight.patches, sight.mask.float(), opt={"beam_size": beam, "sample_n": 1})[
        0
    ]


def _read_show_tell(model: Any, sight: Any, words: Tensor) -> None:
    _, state = model.core(model.img_embed(sight.overall)[None], model.init_hidden(len(words)))
    for word in words.unbind(1):
        _, state = model.get_logprobs_state(word, state)


def _search_show_tell(model: Any, sight: Any, beam: int) -> Tensor:
    found = []
    for overall in sight.overall:
        _, state = model.core(model.img_embed(overall).expand(1, beam, -1), model.init_hidden(beam))
        log_p, state = model.get_logprobs_state(torch.zeros(beam, dtype=torch.long), state)
        found.append(model.beam_search(state, log_p, opt={"beam_size": beam, "sample_n": 1})[0]["seq"])
    return torch.stack(found)


def _each_alone(sight: Any) -> list[tuple[Tensor, Tensor]]:
    """It knows no masks: each study with only the patches that it has."""
    return [
        (overall[None], patches[mask][None]) for overall, patches, mask in zip(sight.overall, sight.patches, sight.mask)
    ]


def _read_show_attend_tell(model: Any, sight: Any, words: Tensor) -> None:
    for (overall, patches), report in zip(_each_alone(sight), words):
        state = model.init_hidden(overall)
        for word in report:
            _, state = model.get_logprobs_state(word[None], overall, patches, state)


def _search_show_attend_tell(model: Any, sight: Any, beam: int) -> Tensor:
    found = []
    for overall, patches in _each_alone(sight):
        seen = overall.expand(beam, -1), patches.expand(beam, -1, -1).contiguous()
        log_p, state = model.get_logprobs_state(torch.zeros(beam, dtype=torch.long), *seen, model.init_hidden(seen[0]))
        found.append(model.beam_search(state, log_p, *seen, opt={"beam_size": beam, "sample_n": 1})[0]["seq"])
    return torch.stack(found)


READERS: dict[str, tuple[Callable[[Any, Any, Tensor], None], Callable[[Any, Any, int], Tensor]]] = {
    "show_tell": (_read_show_tell, _search_show_tell),
    "show_attend_tell": (_read_show_attend_tell, _search_show_attend_tell),
}


# Our weights under the reference's names.


def _linear(ours: Weights, here: str, there: str) -> Weights:
    return {f"{there}.{part}": ours[f"{here}.{part}"] for part in ("weight", "bias") if f"{here}.{part}" in ours}


def _shared_bias(bias: Tensor, one: str, other: str) -> Weights:
    """Where the reference adds two biases and we have one, they share it unevenly."""
    share = torch.linspace(-1, 1, len(bias))
    return {one: bias - share, other: share}


def _attention(ours: Weights, keys: str, core: str) -> Weights:
    """W, U, w; its bias of w moves all scores alike."""
    return {
        f"{keys}.weight": ours["attention.W.weight"],
        f"{core}h2att.weight": ours["attention.U.weight"],
        **_shared_bias(ours["attention.U.bias"], f"{core}h2att.bias", f"{keys}.bias"),
        f"{core}alpha_net.weight": ours["attention.w.weight"],
        f"{core}alpha_net.bias": torch.tensor([0.7]),
    }


def _lstm(ours: Weights, here: str, there: str, inputs: tuple[int, ...]) -> Weights:
    """Ours has a matrix for each input, PyTorch's cell one for all of them in the order `inputs`."""
    return {
        f"{there}.weight_ih": torch.cat([ours[f"{here}.of.{number}.weight"] for number in inputs], 1),
        f"{there}.weight_hh": ours[f"{here}.of_hidden.weight"],
        **_shared_bias(ours[f"{here}.of.0.bias"], f"{there}.bias_ih", f"{there}.bias_hh"),
    }


def _show_tell(ours: Weights) -> Weights:
    core = {f"core.{name.removeprefix('lstm.')}": weight for name, weight in ours.items() if name.startswith("lstm.")}
    return {
        **_linear(ours, "image", "img_embed"),
        **core,
        **_linear(ours, "embed", "embed"),
        **_linear(ours, "out", "logit"),
    }


def _show_attend_tell(ours: Weights) -> Weights:
    lstm = _lstm(ours, "lstm", "core.rnn", (0, 1))
    return {
        **_linear(ours, "first_both", "linear"),
        **_linear(ours, "embed.0", "embed"),
        **_linear(ours, "out", "logit"),
        **_attention(ours, "core.ctx2att", "core."),
        "core.rnn.weight_ih_l0": lstm["core.rnn.weight_ih"],
        "core.rnn.weight_hh_l0": lstm["core.rnn.weight_hh"],
    }


def _embeddings(ours: Weights) -> Weights:
    return {
        **_linear(ours, "embed.0", "embed.0"),
        **_linear(ours, "image.of_patches.0", "att_embed.0"),
        **_linear(ours, "image.of_overall.0", "fc_embed.0"),
        **_linear(ours, "out", "logit"),
    }


def _maxout(ours: Weights) -> Weights:
    return {
        **_attention(ours, "ctx2att", "core.attention."),
        "core.i2h.weight": ours["lstm.of.0.weight"],
        "core.h2h.weight": ours["lstm.of_hidden.weight"],
        **_shared_bias(ours["lstm.of.0.bias"], "core.i2h.bias", "core.h2h.bias"),
        **_linear(ours, "lstm.of_image", "core.a2c"),
    }


def _att2in(ours: Weights) -> Weights:
    return {**_maxout(ours), **_linear(ours, "embed.0", "embed"), **_linear(ours, "out", "logit")}


def _att2in2(ours: Weights) -> Weights:
    return {**_maxout(ours), **_embeddings(ours)}


def _updown(ours: Weights) -> Weights:
    return {
        **_embeddings(ours),
        **_attention(ours, "ctx2att", "core.attention."),
        **_lstm(ours, "attending", "core.att_lstm", (2, 1, 0)),
        **_lstm(ours, "speaking", "core.lang_lstm", (0, 1)),
    }


def _adaatt(ours: Weights) -> Weights:
    d = ours["out.weight"].shape[1]
    i, f, g, o, show = range(5)  # our order of the gates; its own is i, f, o, g, and the sentinel's apart

    def gates(name: str, *which: int) -> Tensor:
        return torch.cat([ours[f"lstm.{name}"][d * gate : d * gate + d] for gate in which])

    lstm: Weights = {}
    for part, which in (("", (i, f, o, g)), ("r_", (show,))):
        hidden = f"core.lstm.{part}h2h" + ("" if part else ".0")
        lstm[f"core.lstm.{part}w2h.weight"] = gates("of.0.weight", *which)
        lstm[f"core.lstm.{part}v2h.weight"] = gates("of.1.weight", *which)
        lstm[f"{hidden}.weight"] = gates("of_hidden.weight", *which)
        bias = gates("of.0.bias", *which)
        lstm |= _shared_bias(bias, f"core.lstm.{part}w2h.bias", f"core.lstm.{part}v2h.bias")
        lstm[f"{hidden}.bias"] = torch.zeros_like(bias)
    core = "core.attention"
    of_queries = _shared_bias(ours["attention.U.bias"], f"{core}.ho_embed.bias", "ctx2att.bias")
    return {
        **_embeddings(ours),
        **lstm,
        **_linear(ours, "of_sentinel.0", f"{core}.fr_linear.0"),
        **_linear(ours, "of_hidden.0", f"{core}.ho_linear.0"),
        **_linear(ours, "before_out.0", f"{core}.att2h"),
        "ctx2att.weight": ours["attention.W.weight"],
        f"{core}.ho_embed.weight": ours["attention.U.weight"],
        **of_queries,
        f"{core}.fr_embed.weight": ours["attention.W_s.weight"],
        f"{core}.fr_embed.bias": of_queries["ctx2att.bias"],  # the patches' and the sentinel's keys get the same share
        f"{core}.alpha_net.weight": ours["attention.w.weight"],
        f"{core}.alpha_net.bias": torch.tensor([0.7]),
    }


TRANSLATIONS: dict[str, Callable[[Weights], Weights]] = {
    "show_tell": _show_tell,
    "show_attend_tell": _show_attend_tell,
    "adaatt": _adaatt,
    "att2in": _att2in,
    "att2in2": _att2in2,
    "updown": _updown,
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reference", type=Path)
    main(parser.parse_args().reference)

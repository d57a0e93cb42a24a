"""The authors' R2Gen, R2GenCMN or XProNet beside ours at the published size: logits, and words of beam 3.

    python scripts/compare_published.py xpronet FOLDER_OF_THE_AUTHORS_REPOSITORY [--studies 4]

Same weights, as their code draws them; the last layer is made steeper, so that reports differ between studies. The
recorded comparison (record_published.py) is the small one that runs as a test.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
from record_published import authors_model

from negatoscope.decoding import DecodeSettings, write
from negatoscope.models import reporter_class
from negatoscope.models.published import from_published, settings_of
from negatoscope.studies.batch import Batch
from negatoscope.vision.encoder import Encoder

WORDS, LONGEST, PATCHES, FEATURES = 761, 60, 49, 2048
SIZES = {
    **{"d_model": 512, "d_ff": 512, "d_vf": FEATURES, "num_heads": 8, "num_layers": 3, "max_seq_length": LONGEST},
    **{"rm_num_slots": 3, "rm_num_heads": 8, "rm_d_model": 512},
    **{"cmm_size": 2048, "cmm_dim": 512},
    **{"num_cluster": 14, "num_protype": 20, "d_txt_ebd": 768, "d_img_ebd": FEATURES},
}
TOP_K = {"r2gen": 0, "r2gencmn": 32, "xpronet": 15}


def batch_of(studies: int) -> Batch:
    draw = torch.Generator().manual_seed(3)
    words = torch.randint(1, WORDS, (studies, LONGEST), generator=draw)
    words[:, 0] = 0
    labels = (torch.rand(studies, 14, generator=draw) < 0.2).float()
    labels[labels.sum(1) == 0, 0] = 1
    return Batch(
        tuple(map(str, range(studies))),
        torch.ones(studies, 2, dtype=torch.bool),
        features=torch.randn(studies, 2, PATCHES, FEATURES, generator=draw).abs() * 0.5,
        words=words,
        word_mask=torch.ones_like(words, dtype=torch.bool),
        labels=labels,
    )


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=list(TOP_K))
    parser.add_argument("repository", type=Path)
    parser.add_argument("--studies", type=int, default=4)
    said = parser.parse_args()
    torch.manual_seed(0)
    theirs = authors_model(said.model, said.repository, {**SIZES, "topk": TOP_K[said.model]}, WORDS)
    if said.model == "xpronet":
        theirs.protypes.normal_()  # they come from a file, and are uninitialised memory without it
    theirs.logit.weight.mul_(3)
    theirs.logit.bias[0] -= 1
    tensors = from_published(said.model, theirs.state_dict())
    kind = reporter_class(said.model)
    told = {"labels": "reference"} if said.model == "xpronet" else {}
    settings = kind.Settings(**settings_of(said.model, tensors), **told)
    ours = kind(settings, Encoder(None, width=FEATURES), WORDS).eval()  # pyright: ignore[reportCallIssue]
    ours.load_state_dict(tensors)

    batch = batch_of(said.studies)
    assert batch.features is not None
    more = {"labels": batch.labels} if said.model == "xpronet" else {}
    seen = batch.features.mean((1, 2)), batch.features.flatten(1, 2)
    logits: list[torch.Tensor] = []
    hook = theirs.logit.register_forward_hook(lambda _module, _given, said: logits.append(said))
    theirs(*seen, batch.words, mode="forward", **more)
    hook.remove()
    off = (ours(batch).logits - logits[0]).abs().max().item()
    print(
        f"{said.model}: largest difference of a logit {off:.1e}, their spread {logits[0].std().item():.2f}", flush=True
    )
    rows, _ = theirs._sample_beam(*seen, opt={**vars(theirs.args), "beam_size": 3}, **more)
    wanted = [tuple(row[: row.index(0)] if 0 in row else row) for row in rows.tolist()]
    written = [best[0].words for best in write(ours, batch, DecodeSettings(beam=3, max_words=LONGEST))]
    same = sum(one == other for one, other in zip(written, wanted, strict=True))
    print(f"{said.model}: the same words in {same} of {len(wanted)} reports, {len(set(wanted))} of them distinct")


if __name__ == "__main__":
    main()

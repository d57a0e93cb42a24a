"""With the same weights we say what ruotianluo/ImageCaptioning.pytorch says: see scripts/record_captioning.py."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from negatoscope.decoding import DecodeSettings, write
from negatoscope.models.base import log_probabilities
from negatoscope.studies.batch import Batch
from negatoscope.text.words import END
from tests.models.captioning_cases import (
    BEAMS,
    CASES,
    MAX_WORDS,
    NEVER_THE_LAST_WORD,
    RECORDED,
    recorded_batch,
    reporter_of,
)
from tests.models.every import WORDS

pytestmark = pytest.mark.parametrize("case", list(CASES))


@pytest.fixture
def recorded(case: str) -> dict[str, Tensor]:
    return load_file(RECORDED / f"captioning-{case}.safetensors")


@pytest.fixture
def batch(recorded: dict[str, Tensor]) -> Batch:
    return recorded_batch(recorded["features"], recorded["words"], recorded["word_mask"])


def test_same_logits(case: str, recorded: dict[str, Tensor], batch: Batch) -> None:
    """Logits, not only what the softmax makes of them; reports of four lengths, one study without a lateral view."""
    with torch.inference_mode():
        reading = reporter_of(case)(batch)
    difference = (reading.logits - recorded["logits"])[reading.mask].abs().max().item()
    print(f"{case}: largest difference {difference:.1e}")
    assert difference < 1e-4
    assert recorded["logits"].std() > 1, "a comparison of near-zeros would say nothing"


@pytest.mark.parametrize("beam", BEAMS)
def test_same_words_by_beam_search(case: str, recorded: dict[str, Tensor], batch: Batch, beam: int) -> None:
    settings = DecodeSettings(beam=beam, max_words=MAX_WORDS, suppress_unknown=case in NEVER_THE_LAST_WORD)
    written = [best[0].words for best in write(reporter_of(case), batch, settings, unknown=WORDS - 1)]
    assert written == [_until_end(row) for row in recorded[f"found-{beam}"].tolist()]
    assert len(set(written)) > 1, "all studies alike would say nothing"


def test_other_weights_say_something_else(case: str, recorded: dict[str, Tensor], batch: Batch) -> None:
    reporter = reporter_of(case)
    for name, parameter in reporter.named_parameters():
        kept = parameter.detach().clone()
        with torch.inference_mode():
            parameter.mul_(1.5).add_(0.05)
            reading = reporter(batch)
            off = (log_probabilities(reading.logits) - log_probabilities(recorded["logits"]))[reading.mask].abs().max()
            parameter.copy_(kept)
        assert off > 1e-3, f"{name} takes no part in the comparison"


def _until_end(row: list[int]) -> tuple[int, ...]:
    return tuple(row[: row.index(END)] if END in row else row)

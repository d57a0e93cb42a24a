"""Writing reports for a batch of studies."""

from __future__ import annotations

import torch

from negatoscope.decoding.beam import beam_search
from negatoscope.decoding.sample import sample
from negatoscope.decoding.settings import DecodeSettings, Written
from negatoscope.models.base import Reporter
from negatoscope.studies.batch import Batch


@torch.inference_mode()
def write(
    reporter: Reporter, batch: Batch, settings: DecodeSettings, unknown: int | None = None
) -> list[list[Written]]:
    """For each study of the batch its reports, best first. `unknown` is the number of <unk>, for `suppress_unknown`."""
    was_training = reporter.training
    reporter.eval()
    try:
        state = reporter.start(reporter.see(batch))
        search = beam_search if settings.method == "beam" else sample
        return search(reporter, state, batch.ids, settings, unknown)
    finally:
        reporter.train(was_training)

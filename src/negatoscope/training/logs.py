"""What a run writes down while it runs: log.csv with one line an epoch, TensorBoard with one point a step."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from negatoscope.whole_files import write_text


class Logs:
    """`steps_done` by an earlier part of this run: what was logged beyond it is done again, and purged."""

    def __init__(self, folder: Path, steps_done: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.folder = folder
        self.board = SummaryWriter(str(folder / "tensorboard"), purge_step=steps_done)

    def step(self, terms: Mapping[str, float], number: int) -> None:
        for name, value in terms.items():
            self.board.add_scalar(f"step/{name}", value, number)

    def epoch(self, history: Sequence[Mapping[str, float]], steps: int) -> None:
        """The whole CSV anew each time: an interrupted run leaves no half line, a resumed one none twice."""
        for name, value in history[-1].items():
            self.board.add_scalar(f"epoch/{name}", value, steps)
        self.board.flush()
        columns = list(dict.fromkeys(name for entry in history for name in entry))
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: f"{value:.6g}" for name, value in entry.items()} for entry in history)
        write_text(self.folder / "log.csv", text.getvalue())

"""Writes the vocabulary that ships as `--vocabulary iu-xray`: the words of IU X-Ray's training split, cut-off 3.

python scripts/ship_vocabulary.py path/to/iu-xray/annotation.json
"""

from __future__ import annotations

import sys
from pathlib import Path

import negatoscope.text
from negatoscope.metrics.forms import read_reports
from negatoscope.text.words import Vocabulary


def main(annotation: str) -> None:
    training = read_reports(annotation, role="reference", split="train")
    vocabulary = Vocabulary.build(training.texts, cleaning="iu-xray", cutoff=3, max_words=60)
    path = Path(negatoscope.text.__file__).parent / "data" / "iu-xray.json"
    vocabulary.save(path)
    print(f"{path}: {len(vocabulary)} words from {len(training)} reports")


if __name__ == "__main__":
    main(*sys.argv[1:])

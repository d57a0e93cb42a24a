"""Records tests/models/golden.safetensors: what every registered reporter says now, at tiny size.

python -m scripts.record_golden [NAME ...]     (from the root of this repository; without names, all of them)

Look at what has changed before you commit it: each line says how far a model is from what was recorded.
"""

from __future__ import annotations

import sys

from safetensors.torch import load_file, save_file
from tests.models.golden import GOLDEN, NAMES, said_now


def main() -> None:
    names = sys.argv[1:] or NAMES
    before = load_file(GOLDEN) if GOLDEN.exists() else {}
    tensors = {key: tensor for key, tensor in before.items() if key.split("/")[0] in set(NAMES) - set(names)}
    for name in names:
        said = {f"{name}/{part}": tensor for part, tensor in said_now(name)[0].items()}
        known = [key for key in said if key in before and before[key].shape == said[key].shape]
        off = max(((said[key] - before[key]).abs().max().item() for key in known), default=0.0)
        print(f"{name}: {f'at most {off:.1e} away' if len(known) == len(said) else 'new, or of another size'}")
        tensors |= said
    save_file(dict(sorted(tensors.items())), GOLDEN)


if __name__ == "__main__":
    main()

"""What every test may use."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

_SHARED = Path(os.environ.get("NEGATOSCOPE_SHARED", Path(__file__).resolve().parents[2] / "shared"))


@pytest.fixture(scope="session")
def shared() -> Callable[[str], Path]:
    """`shared("data/iu-xray")`: real data and weights that cannot ship with the package. Skips where they are not at
    hand."""

    def find(path: str) -> Path:
        found = _SHARED / path
        if not found.exists():
            pytest.skip(f"needs {path} in {_SHARED}: set NEGATOSCOPE_SHARED to the folder that has it")
        return found

    return find

"""Many short ranges of numbers laid end to end: how loops over "each word's matches" become array operations."""

from __future__ import annotations

import numpy as np


def ranges(start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For the ranges start[0]..stop[0]-1, start[1]..stop[1]-1 ...: whose range each number is of, and the number."""
    length = stop - start
    owner = np.repeat(np.arange(len(start)), length)
    number = np.arange(len(owner)) + np.repeat(start - (np.cumsum(length) - length), length)
    return owner, number


def firsts(owner: np.ndarray, owners: int) -> np.ndarray:
    """(owners + 1,) where the things of each owner begin, sorted by owner."""
    return np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=owners))])

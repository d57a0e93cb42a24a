"""Which ids were seen, in 16 to 32 bytes an id: a Python set of 400,000 of them takes fifty megabytes."""

from __future__ import annotations

import hashlib

import numpy as np


class SeenIds:
    """A set of ids by their 64-bit digests. The chance that two of 400,000 ids share one is 4 in 10^9."""

    def __init__(self) -> None:
        self._slots = np.zeros(1024, dtype=np.uint64)  # 0: free
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, id: str) -> bool:
        return bool(self._slots[self._slot(_digest(id))])

    def add(self, id: str) -> bool:
        """Whether the id is new."""
        digest = _digest(id)
        slot = self._slot(digest)
        if self._slots[slot]:
            return False
        self._slots[slot] = digest
        self._count += 1
        if 2 * self._count > len(self._slots):
            self._grow()
        return True

    def _slot(self, digest: int) -> int:
        """Where a digest stands, or would."""
        slots, last = self._slots, len(self._slots) - 1
        slot = digest & last
        while (there := int(slots[slot])) and there != digest:
            slot = (slot + 1) & last
        return slot

    def _grow(self) -> None:
        old = self._slots[self._slots > 0].tolist()
        self._slots = np.zeros(2 * len(self._slots), dtype=np.uint64)
        for digest in old:
            self._slots[self._slot(digest)] = digest


def _digest(id: str) -> int:
    return int.from_bytes(hashlib.blake2b(id.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") or 1

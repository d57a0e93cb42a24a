"""Reading files in threads while something else computes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def read_ahead(items: Iterable[T], read: Callable[[T], R], *, ahead: int, threads: int = 2) -> Iterator[R]:
    """`read` of each item, in order, at most `ahead` of them before they are asked for."""
    with ThreadPoolExecutor(threads, thread_name_prefix="reading") as pool:
        waiting: deque[Future[R]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(read, item))
                if len(waiting) >= ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for late in waiting:
                late.cancel()

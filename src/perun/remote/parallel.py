"""Doing the same with many things at once, without having more of them in memory than are at work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")


def in_parallel(
    pool: ThreadPoolExecutor, work: Callable[[T], U], items: Iterable[T], ahead: int
) -> Iterator[tuple[T, U]]:
    """Each item with what `work` makes of it, as it is done; at most `ahead` are begun beforehand."""
    left = iter(items)
    running: dict[Future[U], T] = {pool.submit(work, one): one for one in islice(left, ahead)}
    try:
        while running:
            done, _rest = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                item = running.pop(future)
                running.update((pool.submit(work, one), one) for one in islice(left, 1))
                yield item, future.result()
    finally:
        for future in running:
            future.cancel()

"""Many pairs of profiles compared one after the other, with the help of the spare cores if that pays."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, TypeVar

from perun.porcelain.check.compare import Comparer, Outcome, Pair
from perun.porcelain.check.report import Options
from perun.porcelain.repository import Repository

HELP_AFTER: Final = 0.5
"""Seconds of comparing after which other processes help: their start takes at least that long."""
CHUNK_SECONDS: Final = 0.25
CHUNK_PAIRS: Final = 64
CHUNK_ITEMS: Final = 512
"""The size of a chunk for another process: neighbours, which share profiles, in small numbers, so that no
result waits for long."""
MAX_WORKERS: Final = 8

M = TypeVar("M")


def compare(repo: Repository, options: Options, items: Iterable[Pair | M]) -> Iterator[Outcome | M]:
    """The outcome of each pair among the items, in their order; what is no pair is passed through.

    Items are taken as they are needed, and a bounded number of them ahead once other processes help.

    :raises PluginError: if a check breaks its contract.
    """
    comparer = Comparer(repo, options)
    iterator = iter(items)
    spent, pairs = 0.0, 0
    for item in iterator:
        if not isinstance(item, Pair):
            yield item
            continue
        begun = time.monotonic()
        outcome = comparer.registered(item)
        spent += time.monotonic() - begun
        pairs += 1
        yield outcome
        if spent > HELP_AFTER:
            break
    size = min(max(int(CHUNK_SECONDS * pairs / max(spent, 1e-9)), 1), CHUNK_PAIRS)
    chunks = _chunks(iterator, size)
    first = next(chunks, None)
    second = next(chunks, None) if first else None
    if first is None:
        return
    together = chain((first, second), chunks) if second else iter((first,))
    workers = min(cores(), MAX_WORKERS)
    if second is None or workers < 2:
        for chunk in together:
            for item in chunk:
                yield comparer.registered(item) if isinstance(item, Pair) else item
        return
    from perun.porcelain.check.workers import Workers  # only long work needs them

    with Workers(repo, options, workers, comparer) as helpers:
        for chunk, outcomes in helpers.compare(together):
            found = iter(outcomes)
            for item in chunk:
                yield next(found) if isinstance(item, Pair) else item


def cores() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _chunks(items: Iterator[Pair | M], size: int) -> Iterator[list[Pair | M]]:
    """Runs of items with `size` pairs each."""
    chunk: list[Pair | M] = []
    pairs = 0
    for item in items:
        chunk.append(item)
        pairs += isinstance(item, Pair)
        if pairs >= size or len(chunk) >= CHUNK_ITEMS:
            yield chunk
            chunk, pairs = [], 0
    if chunk:
        yield chunk

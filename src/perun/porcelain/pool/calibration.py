"""How fast a machine is now: a fixed piece of work, to see when it is not as fast as it was."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from typing import Final

from perun.porcelain.pool.folders import machine_name
from perun.porcelain.pool.machine_lock import MachineLock

REPEATS: Final = 15
_BLOCK: Final = bytes(1 << 20)
_BLOCKS: Final = 16


def measure(environ: Mapping[str, str]) -> float:
    """Seconds of processor time that the work takes, the least of several times; nothing else is measured
    then.

    The least of many is what the machine can do: whatever else runs there can only make it slower.
    """
    lock = MachineLock(machine_name(environ))
    try:
        lock.alone()
        return min(_once() for _ in range(REPEATS))
    finally:
        lock.close()


def _once() -> float:
    start = time.thread_time()
    digest = hashlib.sha256()
    for _ in range(_BLOCKS):
        digest.update(_BLOCK)
    return time.thread_time() - start


def drift(seconds: float, reference: float) -> float:
    """By how many percent the machine is slower than it was; below 0 where it is faster."""
    return (seconds / reference - 1) * 100

"""How the processes of a run share the work of its start.

Each of them collects all tests. Most of that time pytest rewrites assertions, whose byte code it keeps in
files, so each process begins with other modules, and finds those of the others when it comes to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import hypothesis.strategies
import pytest

TESTS = Path(__file__).parent


def begin_elsewhere(config: pytest.Config) -> None:
    """Let each process of pytest-xdist begin with another part of all tests, where all are collected."""
    worker = getattr(config, "workerinput", None)
    if worker and [Path(config.rootpath, argument) for argument in config.args] == [TESTS]:
        files = sorted(TESTS.rglob("test_*.py"))
        first = beginning(
            [file.stat().st_size for file in files],
            int(worker["workerid"].removeprefix("gw")) / worker["workercount"],
        )
        config.args[:] = map(str, files[first:] + files[:first])


def beginning(sizes: Sequence[int], part: float) -> int:
    """The position before which so large a part of the sum of the sizes is; 0 <= part < 1."""
    return next((i for i, end in enumerate(accumulate(sizes)) if end > part * sum(sizes)), 0)


def in_order(items: list[pytest.Item]) -> None:
    """Sort tests by their files, as pytest does where it collects a folder; all processes need one order."""
    items.sort(key=lambda item: item.path.parts)


def make_tables() -> None:
    """Write the file of all characters that hypothesis chooses from, unless it is there.

    The process that starts the others has nothing else to do while they collect, and each would make its own.
    """
    hypothesis.strategies.text().validate()

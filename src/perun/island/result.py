"""What the supervisor knows of a run: `run.json` in the folder of its recordings."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.core import atomic
from perun.core.errors import ProfileError
from perun.core.regular import read_regular

NAME: Final = "run.json"
STOPS: Final = "stops"
"""Name of the log of stops, in the same folder."""
VERSION: Final = 1
_MAX_SIZE: Final = 1 << 24


class RunResult(NamedTuple):
    """One run of a program.

    Times are ns of CLOCK_MONOTONIC; `realtime` is CLOCK_REALTIME at `started`. `ended` and `status` (as of
    `waitpid`) are -1 where the supervisor was killed before the program ended. `io` are the bytes that the
    process and those that it waited for have read and written by the system's files, -1 if unknown.
    """

    argv: list[str]
    started: int
    realtime: int
    pid: int = -1
    ended: int = -1
    status: int = -1
    user: float = 0.0
    system: float = 0.0
    io: tuple[int, int] = (-1, -1)
    limits: tuple[str, ...] = ()
    burst: float = 0.0
    stop_rule: str = "exact"
    all_calls: bool = False
    held: str = ""
    """How the limit of `cpu` was held: `duty cycle`, `cgroup`; "" without one."""
    throttled: int = 0
    """ns for which the scheduler held the control group of the program back."""
    lost_stops: int = 0
    """Stops that could not be written to the log."""

    @property
    def ending(self) -> str:
        """How the program ended, for people."""
        if self.status < 0:
            return "the supervisor was killed before the program ended"
        code = os.waitstatus_to_exitcode(self.status)
        return f"exit code {code}" if code >= 0 else f"killed by {signal_name(-code)}"


def signal_name(number: int) -> str:
    """`SIGTERM`; of real-time signals the number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def write(folder: Path, result: RunResult) -> None:
    """Keep the result in the folder. :raises OSError: if it cannot be written."""
    values = {"version": VERSION, **result._asdict()}
    atomic.write(folder / NAME, json.dumps(values, indent=1, ensure_ascii=True).encode())


def read(folder: Path) -> RunResult:
    """The result in the folder.

    :raises ProfileError: if there is none, or none that this version reads.
    """
    path = folder / NAME
    try:
        values: Any = json.loads(read_regular(path, _MAX_SIZE))
        if values.pop("version") != VERSION:
            raise ValueError("it is of another version")
        found = RunResult(**values)
        _validate(found)
    except OSError as problem:
        raise ProfileError(f"cannot read {path}: {problem.strerror}", "record the program again") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as problem:
        raise ProfileError(
            f"{path} is no result of a recorded run: {problem}", "record the program again"
        ) from None
    return found._replace(io=(found.io[0], found.io[1]), limits=tuple(found.limits))


def _validate(result: RunResult) -> None:
    for name in ("started", "realtime", "pid", "ended", "status", "throttled", "lost_stops"):
        if type(getattr(result, name)) is not int:
            raise TypeError(f"{name} is no whole number")
    for name in ("user", "system", "burst"):
        if type(getattr(result, name)) not in (int, float):
            raise TypeError(f"{name} is no number")
    for name in ("argv", "limits"):
        if not all(isinstance(one, str) for one in getattr(result, name)):
            raise TypeError(f"{name} is no list of texts")
    if not (len(result.io) == 2 and all(type(one) is int for one in result.io)):
        raise TypeError("io is no pair of whole numbers")
    if not (isinstance(result.stop_rule, str) and isinstance(result.held, str)):
        raise TypeError("stop_rule and held are no texts")

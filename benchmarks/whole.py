"""What a whole command takes: CPU time and memory of its processes, and the bytes that it stores."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

_EVERY: Final = 0.05  # seconds between two looks at the processes
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class Whole(NamedTuple):
    """What a command took.

    :param cpu: seconds of all its processes but those that were left out.
    :param memory: megabytes of all its processes together at the worst moment that was seen, and at least
        what the kernel tells of the largest one: not `ru_maxrss`, which begins with the peak of the process
        that started it.
    """

    cpu: float
    memory: float


def whole(argv: Sequence[str], folder: Path, leave_out: str = "") -> Whole:
    """Execute a command, which must succeed, and watch its processes.

    :param leave_out: name of a program that the command only measures: its CPU time does not count.
    """
    process = subprocess.Popen(argv, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    watch = _Watch(process.pid, leave_out)
    watch.start()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    watch.ended.set()
    watch.join()
    if process.returncode:
        raise SystemExit(f"{' '.join(argv)} ended with {process.returncode}")
    # The kernel's sum has what the last look missed, but also the program that is left out.
    all_cpu = used.ru_utime + used.ru_stime
    return Whole(min(all_cpu, sum(watch.cpu.values())), max(watch.memory, watch.largest))


class _Watch(threading.Thread):
    """Looks at a process and all that it started, until it has ended."""

    def __init__(self, pid: int, leave_out: str) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.cpu: dict[int, float] = {}
        self.memory = self.largest = 0.0
        self._pid = pid
        self._leave_out = leave_out

    def run(self) -> None:
        while not self.ended.wait(_EVERY):
            memory = 0.0
            for pid in _tree(self._pid):
                with suppress(OSError, IndexError, ValueError):  # it has ended meanwhile
                    name, _, numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
                    memory += _megabytes(f"/proc/{pid}/smaps_rollup", "Pss:")
                    self.largest = max(self.largest, _megabytes(f"/proc/{pid}/status", "VmHWM:"))
                    fields = numbers.split()
                    if name.partition("(")[2] != self._leave_out:
                        self.cpu[pid] = (int(fields[11]) + int(fields[12])) / _TICKS
            self.memory = max(self.memory, memory)


def _tree(pid: int) -> Iterator[int]:
    yield pid
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split():
                yield from _tree(int(child))


def _megabytes(file: str, key: str) -> float:
    """A line of a file of the kernel on a process. `Pss`: what several share counts once."""
    for line in Path(file).read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) / 1024
    return 0.0

"""Starts a command from a process so small that its own memory does not count as the command's.

Linux begins to count the peak memory of a process with that of the process that started it: `wait4` says of
`true` that it took 120 MB where a Python program with a few libraries started it. So where the peak is
wanted, Perun starts this file as a program of its own, which therefore imports next to nothing; see
:mod:`perun.process.launching`. It ends as the command did.
"""

from __future__ import annotations

import os
import signal
import sys
from time import perf_counter_ns

_KIB = 1024  # the unit of `ru_maxrss` on Linux


def main(result: str, path: str, argv: list[str]) -> int:
    """Run `argv`, the program at `path`, and write what it took to the file `result`; its exit code."""
    start = perf_counter_ns()
    pid = os.posix_spawn(path, argv, os.environ)
    _, status, usage = os.wait4(pid, 0)
    real = (perf_counter_ns() - start) / 1e9
    with open(result, "w", encoding="ascii") as file:
        file.write(f"{real} {usage.ru_utime} {usage.ru_stime} {usage.ru_maxrss * _KIB}")
    if os.WIFSIGNALED(status):
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    try:
        code = main(sys.argv[1], sys.argv[2], sys.argv[3:])
    except OSError as problem:
        sys.exit(f"cannot start {sys.argv[2]}: {problem.strerror}")
    sys.exit(code)

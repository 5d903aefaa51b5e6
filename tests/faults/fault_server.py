"""Runs perun again and again in forks of one process that has imported it, with `inject.c` preloaded.

Started as a program by `fault_injection.Server`. Each line of standard input is a trial in JSON: arguments,
folder, environment and the numbers of the plan; each line of standard output says how it ended.
"""

import contextlib
import ctypes
import importlib
import json
import mmap
import os
import pkgutil
import signal
import struct
import sys
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
NAMES = (
    "armed", "mode", "target", "error", "sticky", "kinds", "calls", "fired", "dead", "leader", "alone",
    "recording", "recorded", "no_flush"
)  # fmt: skip
"""The numbers at the start of the shared file, in the order of `inject.c`."""


class Control:
    """The file that this process, its forks and `inject.c` share."""

    def __init__(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDWR)
        self._map = mmap.mmap(descriptor, 0)
        os.close(descriptor)

    def __getitem__(self, name: str) -> int:
        return int(struct.unpack_from("q", self._map, NAMES.index(name) * 8)[0])

    def __setitem__(self, name: str, value: int) -> None:
        struct.pack_into("q", self._map, NAMES.index(name) * 8, value)


def trial(control: Control, order: dict[str, Any]) -> None:
    """What the fork does: perun, on files in the place of its streams."""
    for number, name in ((0, "/dev/null"), (1, order["out"]), (2, order["err"])):
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT | (os.O_TRUNC if number else 0), 0o600)
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environ"])
    for name in NAMES:
        control[name] = order["plan"].get(name, 0)
    control["leader"] = os.getpid()
    sys.argv = ["perun", *order["arguments"]]
    exec(order["sabotage"], {})
    from perun.__main__ import main

    code: object = 0
    control["armed"] = 1
    try:
        main()
    except SystemExit as ending:
        code = ending.code or 0
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 99
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 98)


def run(control: Control, order: dict[str, Any]) -> dict[str, Any]:
    """Fork a trial, and wait for it and for all that it has started."""
    child = os.fork()
    if not child:
        try:
            trial(control, order)
        finally:
            os._exit(97)  # whatever happens, there is one server
    status = 0
    with contextlib.suppress(ChildProcessError):
        while True:
            # Orphans become ours (see main), so that nobody writes any more when this has come to its end.
            pid, ended = os.waitpid(-1, 0)
            if pid == child:
                status = ended
    control["armed"] = 0
    return {"code": os.waitstatus_to_exitcode(status), **{name: control[name] for name in NAMES}}


def main() -> None:
    """Import perun, then serve."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    orders, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    import perun

    for name in sys.argv[2:]:
        importlib.import_module(name)
    for module in pkgutil.walk_packages(perun.__path__, "perun."):
        # Not the programs, nor the libraries that collectors preload.
        if not module.name.endswith(("__main__", "helptext")) and ".lib" not in module.name:
            importlib.import_module(module.name)
    control = Control(sys.argv[1])
    for line in orders:
        answers.write(json.dumps(run(control, json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()

"""Runs in the interpreter of a measured Python program; needs only the standard library and memray.

    python_agent.py record FILE SECONDS FOLLOW (PROGRAM | -m MODULE | -c CODE) [ARGUMENT...]
    python_agent.py read FILE

`record` runs the program as the interpreter would, while memray writes its allocations to the file. `read`
writes them to standard output in the format that `python.py` reads: a line of JSON about the recording, and
then pieces, each a line of JSON and the columns that it announces, as arrays in the byte order of the
machine.

The interpreter starts this file by its path. So it must not import anything of Perun, and must run on every
Python that memray supports.
"""

from __future__ import annotations

import json
import os
import sys
import time
from array import array
from importlib import import_module
from typing import Any

PIECE = 1 << 16
MARK = 1 << 16
"""Bytes of a mark of time (see :func:`mark`), to which the milliseconds since the start are added."""
KINDS = {
    "PYMALLOC_MALLOC": 12,
    "PYMALLOC_CALLOC": 12,
    "PYMALLOC_REALLOC": 12,
    "MALLOC": 1,
    "CALLOC": 2,
    "REALLOC": 3,
    "MEMALIGN": 5,
    "POSIX_MEMALIGN": 6,
    "ALIGNED_ALLOC": 7,
    "VALLOC": 8,
    "PVALLOC": 9,
    "MMAP": 13,
    "FREE": 32,
    "PYMALLOC_FREE": 32,
    "MUNMAP": 32,
}
"""Allocator in memray to the kind of event in `kinds.py`."""
FIRST_RELEASE = 32
REALLOC_RELEASE = 35
KIND = 4
"""Position of the column with the kinds of events."""
IS_MARK = -1
"""In place of the number of a stack: the allocation is a mark of time."""
RUNNERS = ("runpy.py", "pkgutil.py")
REALLOCS = ("REALLOC", "PYMALLOC_REALLOC")


def record(arguments: list[str]) -> None:
    """Run the program under memray."""
    import _thread
    import runpy  # noqa: F401 - here, so that its import is not recorded
    import threading

    path, seconds, follow, *words = arguments
    memray = import_module("memray")
    start = time.monotonic()

    def tick() -> None:
        # A thread of `threading` would be visible to the program. memray needs the profile hook of that
        # module.
        sys.setprofile(getattr(threading, "_profile_hook", None))
        while True:
            time.sleep(float(seconds))
            mark(start)

    def begin() -> None:
        _thread.start_new_thread(tick, ())

    if follow == "1":
        os.register_at_fork(after_in_child=begin)
    with memray.Tracker(path, trace_python_allocators=True, follow_fork=follow == "1"):
        begin()
        try:
            run(words)
        finally:
            mark(start)


def mark(start: float) -> None:
    """Allocate a mark of time, because memray does not record the times of events."""
    size = MARK + int((time.monotonic() - start) * 1000)
    bytes(size)


def run(words: list[str]) -> None:
    """Run the program as the interpreter does: a file, or the value of `-m` or `-c`."""
    import runpy
    from types import ModuleType

    if words[0] == "-m":
        sys.argv = words[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        sys.path.insert(0, "")
        module = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(words[1], "<string>", "exec"), module.__dict__)
    else:
        sys.argv = words
        sys.path.insert(0, os.path.dirname(os.path.realpath(words[0])))
        runpy.run_path(words[0], run_name="__main__")


def read(arguments: list[str]) -> None:
    """Write the recording to standard output."""
    memray = import_module("memray")
    reader = memray.FileReader(arguments[0])
    names = {one.value: one.name for one in memray.AllocatorType}
    kinds = {value: KINDS.get(name, 1) for value, name in names.items()}
    reallocs = {value for value, name in names.items() if name in REALLOCS}
    out, stacks, places = sys.stdout.buffer, Stacks(), columns()
    write(out, about(reader))
    now, empty = 0, sys.getsizeof(b"")
    position, released, released_by = 0, -1, -1  # position and thread of the last release, maybe of a realloc
    add = [column.append for column in places]
    for one in reader.get_allocation_records():
        allocator, thread, size = one.allocator, one.tid, one.size
        kind = kinds[allocator]
        number = stacks.number(one) if kind < FIRST_RELEASE else 0
        if number == IS_MARK:
            if size >= MARK:
                now = (size - MARK - empty) * 1000000
            continue
        if thread in stacks.own_threads:
            continue
        if kind >= FIRST_RELEASE:
            released, released_by = position, thread
        elif allocator in reallocs and released == position - 1 >= 0 and released_by == thread:
            places[KIND][released] = REALLOC_RELEASE
        add[0](one.address)
        add[1](size)
        add[2](number)
        add[3](thread)
        add[4](kind)
        add[5](now)
        position += 1
        if position >= PIECE and kind < FIRST_RELEASE:  # not between a release and its realloc
            write_piece(out, places, stacks.new())
            places = columns()
            add = [column.append for column in places]
            position, released = 0, -1
    write_piece(out, places, stacks.new())


def columns() -> list[Any]:
    """Empty columns: address, size, stack, thread, kind, nanoseconds."""
    return [array(kind) for kind in "QQQQBq"]


class Stacks:
    """The stacks to which memray refers by numbers from 1 on; 0 is for a stack that is not shown."""

    def __init__(self) -> None:
        self.own_threads: set[int] = set()
        self._numbers: dict[int, int] = {0: 0}
        self._new: dict[int, Any] = {}

    def number(self, one: Any) -> int:
        """The number of the stack of an allocation; 0 if it has no frame of the program."""
        number = self._numbers.get(one.stack_id)
        if number is None:
            number = self._numbers[one.stack_id] = self._add(one.stack_id, one.stack_trace(), one.tid)
        return number

    def new(self) -> list[Any]:
        """Number and frames of the stacks that are new since the last call."""
        new = list(self._new.items())
        self._new = {}
        return new

    def _add(self, number: int, trace: Any, thread: int) -> int:
        own = [function for function, file, _ in trace if file == __file__]
        if own and own[-1] == "tick":
            self.own_threads.add(thread)
        if own and own[0] == "mark":
            return IS_MARK
        frames = of_program(trace)
        if frames:
            self._new[number] = frames
        return number if frames else 0


def about(reader: Any) -> dict[str, Any]:
    """The header of the recording."""
    import sysconfig

    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return {
        "pid": reader.metadata.pid,
        "python": ".".join(map(str, sys.version_info[:3])),
        "memray": getattr(import_module("memray"), "__version__", ""),
        "started": reader.metadata.start_time.timestamp(),
        "folders": sorted(folders | {os.path.realpath(folder) for folder in folders}),
    }


def of_program(trace: Any) -> list[Any]:
    """The frames, innermost first, without those of this file and of the modules that start the program."""
    frames = list(trace)
    while frames and is_of_runner(frames[-1][1]):
        frames.pop()
    began_here = len(frames) < len(trace)
    return [] if began_here and frames and frames[-1][0] != "<module>" else frames


def is_of_runner(file: str) -> bool:
    """Whether an outermost frame belongs to what starts the program, and not to the program."""
    return file == __file__ or file.startswith("<frozen ") or os.path.basename(file) in RUNNERS


def write_piece(out: Any, columns: list[Any], stacks: list[Any]) -> None:
    """Write the columns, and the stacks to which they refer first."""
    write(out, {"events": len(columns[0]), "stacks": stacks})
    for column in columns:
        out.write(column.tobytes())


def write(out: Any, value: Any) -> None:
    """Write a line of JSON in ASCII, because names may hold surrogates."""
    out.write(json.dumps(value).encode("ascii") + b"\n")


def main() -> None:
    """Run the command that the first argument names."""
    # The interpreter puts the folder of this file first, where modules would hide those of the program.
    if sys.path and os.path.realpath(sys.path[0]) == os.path.dirname(os.path.realpath(__file__)):
        del sys.path[0]
    {"record": record, "read": read}[sys.argv[1]](sys.argv[2:])


if __name__ == "__main__":
    main()

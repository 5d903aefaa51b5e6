"""Runs in the interpreter of a measured Python program; needs only the standard library and memray.

    python_agent.py record FILE SECONDS FOLLOW (PROGRAM | -m MODULE | -c CODE) [ARGUMENT...]
    python_agent.py read FILE

`record` runs the program as the interpreter would, while memray writes its allocations to the file. `read`
writes them to standard output in the format that `python.py` reads: a line of JSON about the recording, and
then pieces, each a line of JSON and the columns that it announces, as arrays in the byte order of the
machine. What the columns mean is found out there, where numpy is.

The interpreter starts this file by its path. So it must not import anything of Perun, and must run on every
Python that memray supports.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from array import array
from contextlib import suppress
from importlib import import_module
from itertools import islice
from operator import attrgetter
from typing import Any

PIECE = 1 << 16
BATCH = 1 << 10
"""Events that are read at a time: more of them do not fit into the caches of processors."""
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
FIELDS = ("address", "size", "stack_id", "tid", "allocator")
"""What is written of each event; the allocator says which kind of event it is."""
STACK = 2
"""Position of the number of the stack."""
RUNNERS = ("runpy.py", "pkgutil.py")
REALLOCS = ("REALLOC", "PYMALLOC_REALLOC")
WHOLE = ".whole"
"""`RECORD_WHOLE` of `native/record.h`."""
ENDED = 0o400
"""The mode of a recording whose program ended by itself."""


def record(arguments: list[str]) -> None:
    """Run the program under memray."""
    import _thread
    import runpy  # noqa: F401 - here, so that its import is not recorded
    import threading

    path, seconds, follow, *words = arguments
    memray = import_module("memray")
    start, process = time.monotonic(), os.getpid()

    # Threads of `threading` would be visible to the program. memray needs the profile hook of that module.
    def tick() -> None:
        sys.setprofile(getattr(threading, "_profile_hook", None))
        while True:
            time.sleep(float(seconds))
            mark(start)

    def last(done: Any) -> None:
        sys.setprofile(getattr(threading, "_profile_hook", None))
        mark(start)
        done.release()

    def end() -> None:
        if os.getpid() == process:
            mark(start)
        elif follow == "1":  # memray does not know the stack of the thread that forked
            done = _thread.allocate_lock()
            done.acquire()
            _thread.start_new_thread(last, (done,))
            done.acquire()

    def begin() -> None:
        _thread.start_new_thread(tick, ())

    def begin_forked() -> None:
        if not os.path.exists(f"{path}.{os.getpid()}"):
            with suppress(OSError):
                os.unlink(path + WHOLE)
        begin()

    if follow == "1":
        os.register_at_fork(after_in_child=begin_forked)
    try:
        with memray.Tracker(path, trace_python_allocators=True, follow_fork=follow == "1"):
            begin()
            try:
                run(words)
            finally:
                end()
    finally:
        # This needs no room on a disk. Where memray finds none, it says so on standard error only.
        with suppress(OSError):
            os.chmod(path if os.getpid() == process else f"{path}.{os.getpid()}", ENDED)


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
    gc.disable()  # what is read has no cycles, and searching each batch for them takes longer than reading it
    reader = memray.FileReader(arguments[0])
    names = {one.value: one.name for one in memray.AllocatorType}
    releasing = {value for value, name in names.items() if KINDS.get(name, 1) >= FIRST_RELEASE}
    out, stacks, places = sys.stdout.buffer, MemrayStacks(releasing), columns()
    write(out, about(reader, names))
    records, numbers = reader.get_allocation_records(), attrgetter(*FIELDS)
    batch = list(islice(records, BATCH))
    while batch:
        found = list(zip(*map(numbers, batch)))  # noqa: B905 - Python 3.9 knows no `strict`
        stacks.learn(dict(zip(found[STACK], batch)))  # noqa: B905
        for place, column in zip(places, found):  # noqa: B905
            place.extend(array(place.typecode, column))
        # A release and its realloc stay together: the last event is neither a release nor one to be left out.
        if len(places[0]) >= PIECE and stacks.is_shown(batch[-1]):
            write_piece(out, places, stacks)
            places = columns()
        batch = list(islice(records, BATCH))
    write_piece(out, places, stacks)


def columns() -> list[Any]:
    """Empty columns for the fields of events."""
    return [array(kind) for kind in "QQQQB"]


class MemrayStacks:
    """The stacks to which memray refers by numbers.

    :param releasing: the allocators that release memory, whose events have no stack.
    """

    def __init__(self, releasing: set[int]) -> None:
        self.own_threads: set[int] = set()
        self.marks: set[int] = set()
        self.ended = False  # whether there was the last mark, after the program
        self._releasing = releasing
        self._known: set[int] = set()
        self._new: dict[int, Any] = {}

    def learn(self, records: dict[int, Any]) -> None:
        """Keep the stacks of events, given by their numbers, that are not known yet."""
        for number in records.keys() - self._known:
            one = records[number]
            if one.allocator not in self._releasing:
                self._known.add(number)
                self._add(number, one.stack_trace(), one.tid)

    def is_shown(self, one: Any) -> bool:
        """Whether an event is an allocation of the program."""
        return (
            one.allocator not in self._releasing
            and one.stack_id not in self.marks
            and one.tid not in self.own_threads
        )

    def new(self) -> list[Any]:
        """Number and frames of the stacks that are new since the last call."""
        new = list(self._new.items())
        self._new = {}
        return new

    def _add(self, number: int, trace: Any, thread: int) -> None:
        own = [function for function, file, _ in trace if file == __file__]
        if own and own[-1] in ("tick", "last"):
            self.own_threads.add(thread)
        if own and own[0] == "mark":
            self.marks.add(number)
            self.ended |= own[1:2] in (["end"], ["last"])
            return
        frames = of_program(trace)
        if frames:
            self._new[number] = frames


def about(reader: Any, names: dict[int, str]) -> dict[str, Any]:
    """The header of the recording.

    `kinds` has the kind of event of each allocator of memray, `reallocs` the allocators that release memory,
    too, and `mark` the size in bytes of the object that stands for the start.
    """
    import sysconfig

    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return {
        "pid": reader.metadata.pid,
        "python": ".".join(map(str, sys.version_info[:3])),
        "memray": getattr(import_module("memray"), "__version__", ""),
        "started": reader.metadata.start_time.timestamp(),
        "kinds": [[value, KINDS.get(name, 1)] for value, name in names.items()],
        "reallocs": [value for value, name in names.items() if name in REALLOCS],
        "mark": MARK + sys.getsizeof(b""),
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


def write_piece(out: Any, columns: list[Any], stacks: MemrayStacks) -> None:
    """Write the columns, and first the stacks to which they refer and which of them, and of the threads, are
    of this file."""
    head = {"events": len(columns[0]), "stacks": stacks.new()}
    head.update(marks=sorted(stacks.marks), ended=stacks.ended)
    write(out, {**head, "own-threads": sorted(stacks.own_threads)})
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

"""Records the allocations of Python programs by memray, in the interpreter of the program.

`python_agent.py` runs in that interpreter, so that memray must be installed in the environment of the
program, which may be another one than that of Perun.
"""

from __future__ import annotations

import json
import os
import shlex
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from perun.collect._common.recordings import DamagedRecording, require_room
from perun.collect._common.runs import python_program_of, succeeds
from perun.collect.memory.analysis import AllocationEvents
from perun.collect.memory.events import FIRST_RELEASE, KINDS, REALLOC_RELEASE, BlockStates
from perun.collect.memory.places import AllocationSite, StackTraces, TraceFrame, site_of
from perun.collect.memory.records import End, ExitState, no_room
from perun.core.errors import CollectorUnavailable, JobFailed
from perun.core.process import programs
from perun.native.columns import Ints
from perun.native.symboliser import SymbolFrame
from perun.plugin.api import Run

AGENT: Final = Path(__file__).with_name("python_agent.py")
UNWINDER: Final = "python"
_COLUMNS: Final = ("u8", "u8", "u8", "u8", "u1")
"""Address, size, stack, thread and allocator of each event (`FIELDS` of the agent)."""
_MILLISECOND: Final = 1_000_000
_MAX_EVENTS: Final = 1 << 22
_LAST_LINES: Final = 3
_PAGE: Final = 4096


def prepared(run: Run, file: Path, interval: float, follow: bool) -> Run:
    """The command that runs the same program under memray.

    :param file: for the recording. :param interval: seconds between marks of time in the recording.
    :param follow: also record forked processes.
    :raises UsageError: where it is not a Python program, see :func:`program_of`.
    :raises CollectorUnavailable: where its interpreter has no memray.
    """
    python, options, words = python_program_of(run)
    if not succeeds("import memray", run, python, options):
        raise CollectorUnavailable(
            f"--python needs memray, which is not installed for {python}",
            f"install it with: {shlex.quote(python)} -m pip install memray",
        )
    agent = [str(AGENT), "record", str(file.absolute()), str(interval), str(int(follow))]
    workload = run.workload if run.workload.strip().startswith("<") else ""
    return run._replace(cmd=shlex.join([python, *options, *agent, *words]), args="", workload=workload)


class PythonRecording:
    """The recording of one Python process; attributes are those of :class:`MemoryRecording`."""

    def __init__(self, path: Path, python: str, run: Run) -> None:
        self.path = path
        self.exe = os.path.basename(python)
        self.unwinder = UNWINDER
        self.notes: list[str] = []
        self.end = End(ExitState.EXITED)
        self.reach: BlockStates | None = None
        self.started = 0
        self.pid = int(path.suffix[1:]) if path.suffix[1:].isdecimal() else 0
        self._python = python
        self._run = run
        self._traces: list[list[SymbolFrame]] = [[]]
        self._numbers = {0: 0}
        self._folders: tuple[str, ...] = ()
        self._kinds: Ints = np.zeros(256, np.int64)
        self._reallocs: list[int] = []
        self._mark = 0
        self._ended = False
        self._now = 0

    def pieces(self, *, reuse: bool = False) -> Iterator[AllocationEvents]:
        """All events in the order of time, in batches; only once.

        :param reuse: has no effect here: each batch has columns of its own.
        :raises DamagedRecording: where memray cannot read its file.
        :raises OSError: where there is no room for the rest of the recording.
        :raises JobFailed: where it lacks the end of a program that ended by itself.
        """
        with (
            self.path.with_name(f"{self.path.name}.errors").open("w+b") as errors,
            programs.Program(
                [self._python, str(AGENT), "read", str(self.path.absolute())],
                cwd=self._run.cwd,
                environ=self._run.environ,
                stdout=programs.PIPE,
                stderr=errors,
            ) as process,
        ):
            assert process.stdout
            try:
                yield from self._read(process.stdout)
            except (ValueError, KeyError, TypeError, IndexError):
                process.end()
                raise self._damaged(errors) from None
            if process.wait():
                raise self._damaged(errors)
        self._require_end()

    def sites(self, places: StackTraces, *, whole: bool) -> list[AllocationSite | None]:
        """The site of each stack, which has only frames of Python."""
        return [
            site_of([self._place(places, frame) for frame in trace], whole=whole) if trace else None
            for trace in self._traces
        ]

    def _place(self, places: StackTraces, frame: SymbolFrame) -> TraceFrame:
        known = not frame.source.startswith("<")
        # Libraries count like system headers: what they allocate counts for their callers.
        library = not known or frame.source.startswith(self._folders)
        shown = frame._replace(source=places.relative(frame.source) if known else frame.source)
        return TraceFrame(shown, False, True, library)

    def _read(self, stream: IO[bytes]) -> Iterator[AllocationEvents]:
        about = json.loads(stream.readline())
        self.pid = int(about["pid"])
        self.started = round(about["started"] * 1_000_000_000)
        self._folders = tuple(os.path.join(folder, "") for folder in about["folders"])
        for allocator, kind in about["kinds"]:
            self._kinds[int(allocator)] = int(kind)
        self._reallocs = [int(allocator) for allocator in about["reallocs"]]
        self._mark = int(about["mark"])
        while line := stream.readline():
            yield self._piece(json.loads(line), stream)

    def _piece(self, head: Mapping[str, Any], stream: IO[bytes]) -> AllocationEvents:
        count = head["events"]
        if not 0 <= count <= _MAX_EVENTS:
            raise ValueError(count)
        for number, frames in head["stacks"]:
            self._numbers[number] = len(self._traces)
            self._traces.append([SymbolFrame(str(name), str(file), int(line)) for name, file, line in frames])
        self._ended = bool(head["ended"])
        address, size, stack, thread, allocator = (_column(stream, form, count) for form in _COLUMNS)
        kind = self._kinds[allocator]
        if not KINDS.keys() >= set(np.unique(kind).tolist()):
            raise ValueError("unknown kind of event")
        marks = np.isin(stack, head["marks"]) & (kind < FIRST_RELEASE)
        time = self._times(np.where(marks & (size >= self._mark), size, -1))
        kept = np.flatnonzero(~marks & ~np.isin(thread, head["own-threads"]))
        address, size, stack, thread, allocator, kind, time = (
            column[kept] for column in (address, size, stack, thread, allocator, kind, time)
        )
        # A realloc is a release and an allocation of one thread, one after the other.
        realloc = np.isin(allocator[1:], self._reallocs) & (thread[:-1] == thread[1:])
        kind[:-1][realloc & (kind[:-1] >= FIRST_RELEASE)] = REALLOC_RELEASE
        releases = kind >= FIRST_RELEASE
        pairs, site = np.unique((np.where(releases, 0, stack) << 8) | kind, return_inverse=True)
        stacks = np.array([self._numbers.get(number, 0) for number in (pairs >> 8).tolist()], np.int64)
        return AllocationEvents(
            stacks,
            pairs & 0xFF,
            site.astype(np.int64),
            releases,
            address,
            np.where(releases, 0, size),
            thread,
            time,
        )

    def _require_end(self) -> None:
        """Refuse a recording without the last mark, unless the program ended by a signal or by `os._exit`.

        Where memray cannot write it only says so on the standard error of the program, and records no more.
        """
        if self._ended:
            return
        require_room(self.path, self.path.stat().st_size // 10 + _PAGE)  # by so much memray makes it longer
        if not self.path.stat().st_mode & stat.S_IWUSR:  # `ENDED` of the agent
            raise no_room(self.path.parent, "the end of the program is")

    def _times(self, marks: Ints) -> Ints:
        """The time of each event in ns since the start, which is that of the last mark before it.

        :param marks: of each event the size of the mark of time that it is, -1 for any other event.
        """
        at = np.maximum.accumulate(np.where(marks >= 0, np.arange(len(marks)), -1))
        known = np.append(marks - self._mark, -1) * _MILLISECOND
        times = np.where(at >= 0, known[at], self._now).astype(np.int64)
        if len(times):
            self._now = int(times[-1])
        return times

    def _damaged(self, errors: IO[bytes]) -> DamagedRecording:
        errors.seek(0)
        lines = errors.read().decode("utf-8", "replace").strip().splitlines()[-_LAST_LINES:]
        reason = "; ".join(line.strip() for line in lines if line.strip()) or "it ends unexpectedly"
        return DamagedRecording(
            f"cannot read the recording of memray {self.path}: {reason}", "collect the profile again"
        )


def recordings(file: Path, python: str, run: Run) -> list[PythonRecording]:
    """The recording of the program, and then those of the processes that it forked.

    :raises JobFailed: where there is none, because the interpreter ended before the program started.
    """
    if not file.exists():
        raise JobFailed(
            "no allocation was recorded: the interpreter ended before the program started",
            f"check that this works: {shlex.quote(python)} -c 'import memray'",
        )
    children = sorted(path for path in file.parent.glob(f"{file.name}.*") if path.suffix[1:].isdecimal())
    return [PythonRecording(path, python, run) for path in (file, *children)]


def _column(stream: IO[bytes], form: str, count: int) -> Ints:
    data = stream.read(count * np.dtype(form).itemsize)
    return np.frombuffer(data, form, count).astype(np.int64)

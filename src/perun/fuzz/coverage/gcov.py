"""Coverage by the counters of gcc: programs compiled with `--coverage` (manual 9.5).

Normally the counters lie in memory that is shared with the program, which is copied for each run by the fork
server of `native/fork_server.c`. A program that cannot be copied is started for each run, with the same
counters; one that the library cannot be loaded into writes them into `.gcda` files, which are read.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy

from perun.core.errors import JobFailed, PerunError
from perun.fuzz.coverage import shared
from perun.fuzz.coverage.api import CoverageTarget
from perun.fuzz.coverage.gcno import (
    ArcFunction,
    CoverageModule,
    DamagedNotes,
    NotElf,
    WordReader,
    read_module,
)
from perun.fuzz.coverage.inputs import TargetInput
from perun.fuzz.coverage.lines import SourceLine, line_map, not_compiled
from perun.fuzz.coverage.running import (
    SLOWER,
    CounterCoverage,
    ForkServer,
    NoServer,
    RunExit,
    RunMode,
    share,
    spawn,
)
from perun.fuzz.coverage.shared import PAGE, CounterRange, Record

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Counters in `.gcda` files, which programs compiled with `--coverage` write when they end.

_FUNCTION: Final = 0x01000000
_COUNTERS: Final = 0x01A10000


class CounterFiles:
    """A folder that counters are written to, instead of beside the objects of the program.

    :ivar environ: what the program needs in its environment for it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.environ = {"GCOV_PREFIX": str(folder), "GCOV_PREFIX_STRIP": "0"}
        self._places: dict[tuple[str, tuple[int, int, int]], slice] = {}
        self._size = 0

    def clear(self) -> None:
        """Remove what a run has written: the next one would add to it."""
        self._folder.mkdir(exist_ok=True)
        for path in self._paths():
            path.unlink()

    def functions(self) -> list[ArcFunction]:
        """The functions of the files that the last run has written."""
        return [
            ArcFunction(notes, stamp, key, 0, len(values))
            for notes, stamp, key, values in self._read()
        ]  # fmt: skip

    def expect(self, functions: list[ArcFunction]) -> None:
        """Say of which functions :meth:`counters` are, and in which order."""
        for function in functions:
            self._places[function.notes, function.key] = slice(self._size, self._size + function.counters)
            self._size += function.counters

    def counters(self) -> NDArray[numpy.int64]:
        """The counters of the last run, 0 where it has written none."""
        found = numpy.zeros(self._size, numpy.int64)
        for notes, _, key, values in self._read():
            place = self._places.get((notes, key))
            if place is not None and place.stop - place.start == len(values):
                found[place] += values
        return found

    def _paths(self) -> list[Path]:
        """The files in a stable order. Folders are kept between runs, and few."""
        return sorted(
            Path(folder, name)
            for folder, _, names in os.walk(self._folder)
            for name in names
            if name.endswith(".gcda")
        )

    def _read(self) -> Iterator[tuple[str, int, tuple[int, int, int], NDArray[numpy.int64]]]:
        for path in self._paths():
            notes = "/" + str(path.relative_to(self._folder).with_suffix(".gcno"))
            try:
                stamp, records = _counters(path.read_bytes())
            except (OSError, DamagedNotes):  # a killed process wrote only a part
                continue
            for key, values in records:
                yield notes, stamp, key, values


def _counters(data: bytes) -> tuple[int, list[tuple[tuple[int, int, int], NDArray[numpy.int64]]]]:
    reader = WordReader(data, b"gcda")
    if reader.release >= 12:
        reader.word()  # checksum
    found = []
    key = (0, 0, 0)
    while reader.at + 8 <= len(data):
        tag = reader.word()
        length = struct.unpack("=i", struct.pack("=I", reader.word()))[0]
        start = reader.at
        if tag == _FUNCTION and length:
            key = (reader.word(), reader.word(), reader.word())
        elif tag == _COUNTERS:
            size = abs(length) * reader.unit
            if length < 0:  # all of them are 0, and left out
                found.append((key, numpy.zeros(size // 8, numpy.int64)))
            elif start + size > len(data):
                raise DamagedNotes("it ends too early")
            else:
                found.append((key, numpy.frombuffer(data[start : start + size], "<i8")))
        reader.at = start + max(length, 0) * reader.unit
    return reader.stamp, found


_FIRST_RUN: Final = 10.0
"""Seconds for a run with an empty input, that tells whether there are counters."""


class GcovCoverage(CounterCoverage):
    """Counts are of lines.

    :param notes: folders where `.gcno` files are looked for that are not where they were written.
    """

    unit = "lines"

    def __init__(self, target: CoverageTarget, scratch: Path, notes: Sequence[Path] = ()) -> None:
        super().__init__(target, scratch)
        self._folders = notes
        self._read: Callable[[], NDArray[numpy.int64]] = _nothing

    @property
    def lines(self) -> list[SourceLine]:
        """The line of each count."""
        return self._lines.lines

    def start(self) -> None:
        """Find the counters, and the way to run the program."""
        self.close()
        self._given = TargetInput(self._target, self._scratch)
        self._way, functions = self._choose(self._given)
        self._lines = line_map(functions, self._folders)

    def _counts(self) -> NDArray[numpy.int64]:
        return self._lines.counts(self._read())

    def _choose(self, given: TargetInput) -> tuple[RunMode, list[ArcFunction]]:
        """The fastest way that works, and the functions in the order of its counters."""
        program = _module(given.program)
        reason = _why_files(program)
        if not reason:
            modules = self._modules(given, program)
            functions = [function for module in modules for function in module.functions]
            reason = "" if functions else "its counters have no names, as it is stripped"
            if any(module.forks for module in modules):
                reason = "it starts processes"
            if not reason:
                found = self._share(given, modules)
                if found is not None:
                    return found, functions
                reason = "the fork server cannot be loaded into it"
        way = _Files(self._target, given, self._scratch)
        functions = way.first_run()
        if not functions and (program is None or program.kind != "gcov"):
            raise not_compiled(given.program)
        if not functions:
            raise JobFailed(
                f"{given.program} wrote no counters when it ran with an empty input",
                "counters are written when a program ends by itself; run it by hand",
            )
        self.note = SLOWER + reason
        self._read = way.counters
        return way, functions

    def _modules(self, given: TargetInput, program: CoverageModule | None) -> list[CoverageModule]:
        """The program and the libraries with counters that are loaded when it starts."""
        assert program is not None
        record = Record([], 0, None, 0, once=False)
        try:
            server = ForkServer(given, self._target.cwd, _environ(self._target, record), record)
        except NoServer:
            return [program]
        try:
            paths = _mapped(server.pid)
        finally:
            server.close()
            record.close()
        found = {os.stat(given.program).st_ino: program}
        for path in paths:
            with_counters = _with_counters(path)
            if with_counters is not None:
                found.setdefault(path.stat().st_ino, with_counters)
        return list(found.values())

    def _share(self, given: TargetInput, modules: Sequence[CoverageModule]) -> RunMode | None:
        """A way with shared counters; None if the library does not work there, as with some sanitizers."""
        counters = _Counters(modules)

        def make(once: bool) -> Record:
            argument = 0 if once else given.index  # it is among the words of a program that is started
            return Record(counters.ranges, 0, self._target.memory, argument, once=once)

        way, record, self.note = share(
            self._target, given, make, lambda record: _environ(self._target, record)
        )
        if self.note:
            given.write(b"")
            way.run(b"", _FIRST_RUN)
            if record.state != shared.READY:
                way.close()
                return None
        self._read = counters.reader(record)
        return way


class _Counters:
    """Where the counters of modules are in a record."""

    def __init__(self, modules: Sequence[CoverageModule]) -> None:
        self.ranges: list[CounterRange] = []
        self._places: list[tuple[int, int, int]] = []  # number of the range, offset in it, count
        for module in modules:
            _place(module, self.ranges, self._places)

    def reader(self, record: Record) -> Callable[[], NDArray[numpy.int64]]:
        """What returns a copy of the counters."""
        indices = numpy.concatenate(
            [
                numpy.arange(count, dtype=numpy.intp) + (record.offsets[number] + offset) // 8
                for number, offset, count in self._places
            ]
        )
        memory = numpy.frombuffer(record.memory, numpy.int64)
        return lambda: memory[indices]


class _Files:
    """By starting the program, and reading the files that it writes."""

    def __init__(self, target: CoverageTarget, given: TargetInput, scratch: Path) -> None:
        self._target = target
        self._given = given
        self._files = CounterFiles(scratch / "counters")
        self._environ = {**target.environ, **self._files.environ}

    def first_run(self) -> list[ArcFunction]:
        """The functions that have counters, as a run with an empty input tells them."""
        self.run(b"", _FIRST_RUN)
        functions = self._files.functions()
        self._files.expect(functions)
        return functions

    def run(self, data: bytes, timeout: float, until: float = math.inf) -> RunExit:
        self._files.clear()
        target = self._target
        return spawn(self._given, data, target.cwd, self._environ, timeout, until, target.memory)

    def counters(self) -> NDArray[numpy.int64]:
        return self._files.counters()

    def close(self) -> None:
        self._files.clear()


def _nothing() -> NDArray[numpy.int64]:
    return numpy.zeros(0, numpy.int64)


def _module(path: Path) -> CoverageModule | None:
    """The program; None for a script."""
    try:
        return read_module(path)
    except NotElf:
        return None
    except OSError as problem:
        raise PerunError(f"cannot read {path}: {problem.strerror}") from None


def _why_files(program: CoverageModule | None) -> str:
    """Why the library cannot be loaded into the program; empty if it probably can."""
    if program is None:
        return "it is a script"
    if not program.dynamic:
        return "it is linked statically"
    if not shared.LIBRARY.is_file():
        return "this Perun was built without the fork server"
    return ""


def _environ(target: CoverageTarget, record: Record) -> Mapping[str, str]:
    before = target.environ.get("LD_PRELOAD", "")
    return {
        **shared.environ_of(target.environ, record),
        "LD_PRELOAD": f"{shared.LIBRARY}:{before}" if before else str(shared.LIBRARY),
        "PERUN_FUZZ_PRELOAD": before,
    }


def _mapped(pid: int) -> list[Path]:
    """The files that a process has mapped."""
    lines = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    names = {line.split(maxsplit=5)[5] for line in lines if line.count("/")}
    return [path for path in map(Path, sorted(names)) if path.is_file()]


def _with_counters(path: Path) -> CoverageModule | None:
    """A library with counters of gcc; None for others, most of which name no counter file."""
    try:
        if b".gcda\0" not in path.read_bytes():
            return None
        module = read_module(path)
    except (OSError, NotElf):
        return None
    return module if module.functions else None


def _place(module: CoverageModule, ranges: list[CounterRange], places: list[tuple[int, int, int]]) -> None:
    """Add the pages of a module that have counters, and where in them these are."""
    status = os.stat(module.path)
    wanted: set[int] = set()
    for function in module.functions:
        last = function.address + 8 * function.counters - 1
        wanted.update(range(function.address // PAGE, last // PAGE + 1))
    number_of: dict[int, int] = {}
    previous = -2
    for page in sorted(wanted):
        if page == previous + 1:
            ranges[-1] = ranges[-1]._replace(length=ranges[-1].length + PAGE)
        else:
            ranges.append(CounterRange(status.st_dev, status.st_ino, page * PAGE, PAGE))
        number_of[page] = len(ranges) - 1
        previous = page
    for function in module.functions:
        number = number_of[function.address // PAGE]
        places.append((number, function.address - ranges[number].address, function.counters))

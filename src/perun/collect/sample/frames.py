"""Names the frames of sampled stacks: functions, sources and lines, inlined functions apart."""

from __future__ import annotations

import contextlib
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from perun.collect.sample.made import MadeCode, made_code
from perun.collect.sample.records import (
    FRAME_POINTERS,
    KERNEL,
    MODULE_SHIFT,
    PYTHON_MODULE,
    UNKNOWN,
    WHOLE,
    SampledModule,
    SampledStack,
    SampleRecording,
)
from perun.native.elf import Elf, read_elf
from perun.native.function_names import demangled
from perun.native.symboliser import SymbolFrame, Symboliser
from perun.native.symbols import Debuginfod, SymbolTable, with_debug_file

NATIVE, PYTHON, OF_KERNEL, JIT = "native", "python", "kernel", "jit"
"""The kinds of frames: code of a file, functions of Python, the kernel, and code that a program makes."""
NO_SYMBOLS: Final = "(no symbols)"
"""All functions of a binary without names: their addresses differ from build to build."""
UNKNOWN_CODE: Final = "(unknown code)"
"""Code that lies in no file, and that the program tells no names of."""
_MARK: Final = "py::"
"""What names of functions of Python begin with, as `-X perf` writes them."""
_STARTS: Final = frozenset(
    {
        *("_start", "__libc_start_main", "__libc_start_main_impl", "__libc_start_call_main", "(below main)"),
        *(
            "start_thread",
            "clone",
            "clone3",
            "__clone",
            "__clone3",
            "__GI___clone3",
            "thread_start",
            "_dl_start",
        ),
        *("_dl_start_user", "runtime.goexit", "runtime.goexit.abi0", "runtime.mstart", "runtime.rt0_go"),
    }
)
"""What runs around the outermost function of a program or thread."""
_C_LIBRARY: Final = ("libc.so", "libc-", "libpthread", "ld-linux", "ld-musl", "ld-2")
_HELPERS: Final = (*_C_LIBRARY, "libm.so", "libm-", "[vdso]")
"""Libraries whose functions count for the interpreter that calls them."""


class SampledFrame(NamedTuple):
    """A frame: its kind, function, source file or else the name of the binary, and line, 0 if unknown."""

    kind: str
    function: str
    source: str = ""
    line: int = 0


Trace = tuple[SampledFrame, ...]
"""The frames of a stack, the innermost first."""


class NamedStacks:
    """The traces of the stacks of a recording.

    :param folder: where the program ran: sources below it are named relative to it.
    :param fold: whether to leave out the interpreter's own functions in stacks with functions of Python.
    :ivar replaced: paths of files that are no longer what ran. :ivar nameless: of binaries without names.
    """

    def __init__(
        self,
        recording: SampleRecording,
        folder: Path,
        symboliser: Symboliser,
        debuginfod: Debuginfod | None = None,
        *,
        fold: bool = True,
    ) -> None:
        self.replaced: set[str] = set()
        self.nameless: set[str] = set()
        self._recording = recording
        self._symboliser = symboliser
        self._debuginfod = debuginfod
        self._folder = folder
        self._folders = tuple({os.path.join(path, "") for path in (str(folder), os.path.realpath(folder))})
        self._frames: dict[int, Trace] = {}
        # Sums and times ask for the same ones.
        self.trace: Callable[[SampledStack], tuple[Trace, bool]] = cache(self._trace)
        stacks = {stack for stack, _ in (*recording.amounts, *recording.waits)}
        self._interpreters = {
            number
            for number, module in enumerate(recording.modules)
            if os.path.basename(module.path).startswith("python")
        } | {module for stack in stacks for module in self._after_python(stack)}
        self._fold = fold
        self._learn({frame for stack in stacks for frame in self._folded(stack)})

    def _after_python(self, stack: SampledStack) -> Iterator[int]:
        """The modules whose code evaluates functions of Python."""
        modules = [frame >> MODULE_SHIFT for frame in stack.places()]
        return (after for one, after in pairwise(modules) if one == PYTHON_MODULE != after)

    def _folded(self, stack: SampledStack) -> list[int]:
        """The frames without the interpreter's own, and what it calls of the C library, if any is of Python.

        Functions of extensions, and what these call, stay.
        """
        numbers = stack.places()
        modules = [frame >> MODULE_SHIFT for frame in numbers]
        if PYTHON_MODULE not in modules or not self._fold:
            return numbers
        # Without frame pointers what follows them finds places that are none.
        strays = {UNKNOWN} if stack.flags & FRAME_POINTERS else set()
        kept: list[int] = []
        is_inside = False
        for number, module in zip(reversed(numbers), reversed(modules), strict=True):
            path = self._recording.modules[module].path if module < len(self._recording.modules) else ""
            is_own = module in self._interpreters or (
                is_inside and os.path.basename(path).startswith(_HELPERS)
            )
            if module in strays:
                continue
            if not is_own:
                kept.append(number)
            is_inside = module == PYTHON_MODULE or is_own
        return kept[::-1]

    def _trace(self, stack: SampledStack) -> tuple[Trace, bool]:
        """The frames of a stack without what runs around `main`, and whether it is whole."""
        numbers = self._folded(stack)
        kept = numbers
        while len(kept) > 1 and _is_start(self._frames[kept[-1]][-1]):
            kept = kept[:-1]
        last = self._frames[numbers[-1]][-1] if numbers else SampledFrame(NATIVE, UNKNOWN_CODE)
        by_name = bool(stack.flags & FRAME_POINTERS) and (
            len(kept) < len(numbers) or last.function in _STARTS
        )
        is_python = any(number >> MODULE_SHIFT == PYTHON_MODULE for number in kept)
        frames = tuple(
            frame
            for number in kept
            for frame in self._frames[number]  # those that it tells itself with `-X perf` are there twice
            if not is_python or frame.kind != PYTHON or number >> MODULE_SHIFT == PYTHON_MODULE
        )
        return frames or (last,), bool(stack.flags & WHOLE) or by_name or is_python

    def _learn(self, numbers: Iterable[int]) -> None:
        by_module: dict[int, dict[int, int]] = {}
        for number in numbers:
            place = self._recording.place(number)
            by_module.setdefault(place.module, {})[number] = place.offset
        for number, places in by_module.items():
            module = (
                self._recording.modules[number]
                if number < len(self._recording.modules)
                else SampledModule("")
            )
            if number == PYTHON_MODULE:
                self._frames |= {key: (self._of_python(place),) for key, place in places.items()}
            elif number == KERNEL:
                self._frames |= _of_kernel(places)
            elif module.pid or not module.path:
                self._frames |= self._of_process(module.pid, places)
            else:
                self._frames |= self._of_file(module, places)

    def _of_file(self, module: SampledModule, places: Mapping[int, int]) -> dict[int, Trace]:
        path, name = module.path, _readable(os.path.basename(module.path))
        elf = read_elf(path)
        if elf is not None and module.build_id and elf.build_id and not _same(elf.build_id, module.build_id):
            self.replaced.add(path)
            elf = None
        elf = with_debug_file(elf, path)
        if elf is not None and not elf.has_lines and not elf.debug_file and self._debuginfod:
            elf = elf._replace(debug_file=self._debuginfod.debug_file(elf.build_id))
        addresses = {number: elf.address_of(offset) if elf else offset for number, offset in places.items()}
        known = self._symboliser.frames(path, elf, addresses.values()) if self._symboliser.tool else {}
        plain = _by_tables(elf, path, addresses.values()) if not self._symboliser.tool else {}
        found: dict[int, Trace] = {}
        for number, address in addresses.items():
            frames = known.get(address) or plain.get(address) or (SymbolFrame("", "", 0),)
            found[number] = tuple(self._named(frame, name) for frame in frames)
        if elf is not None and not elf.has_symbols and not elf.debug_file:
            self.nameless.add(path)
        return found

    def _of_process(self, pid: int, places: Mapping[int, int]) -> dict[int, Trace]:
        """Frames in code that a process made: it may tell the names in a file of its own."""
        code = made_code(pid, self._folder) if pid else MadeCode({})
        return {number: (self._made(*code.at(address)),) for number, address in places.items()}

    def _made(self, name: str, source: str, line: int) -> SampledFrame:
        if name.startswith(_MARK):
            function, _, source = name.removeprefix(_MARK).partition(":")
            return SampledFrame(PYTHON, function, source)
        return SampledFrame(JIT, name or UNKNOWN_CODE, self._relative(source), line)

    def _of_python(self, place: int) -> SampledFrame:
        name, source, line = self._recording.function(place)
        return SampledFrame(PYTHON, name, self._relative(source), line)

    def _named(self, frame: SymbolFrame, binary: str) -> SampledFrame:
        source = self._relative(frame.source)
        return SampledFrame(NATIVE, frame.function or NO_SYMBOLS, source or binary, frame.line)

    def _relative(self, source: str) -> str:
        for folder in self._folders:
            source = source.removeprefix(folder)
        return source


def _is_start(frame: SampledFrame) -> bool:
    """Whether a frame runs around the outermost function: of a stripped C library that has no name."""
    nameless = frame.function == NO_SYMBOLS and frame.source.startswith(_C_LIBRARY)
    return nameless or frame.function in _STARTS


def _same(one: str, other: str) -> bool:
    """Whether two build ids are the same: the kernel tells no more than 20 bytes."""
    size = min(len(one), len(other))
    return one[:size] == other[:size]


def _by_tables(elf: Elf | None, path: str, addresses: Iterable[int]) -> dict[int, tuple[SymbolFrame, ...]]:
    """Frames by the tables of symbols alone, where no symboliser is installed."""
    if elf is None:
        return {}
    table = SymbolTable([path, *filter(None, [elf.debug_file])])
    symbols = {address: table.at(address)[:1] for address in addresses}
    names = demangled({name for found in symbols.values() for name in found})
    return {
        address: tuple(SymbolFrame(names[one], "", 0) for one in found) for address, found in symbols.items()
    }


def _readable(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _of_kernel(places: Mapping[int, int]) -> dict[int, Trace]:
    """Frames of the kernel, named where the system tells its symbols."""
    entries: list[tuple[int, str]] = []
    with (
        contextlib.suppress(OSError, ValueError),
        open("/proc/kallsyms", encoding="ascii", errors="replace") as file,
    ):
        for line in file:
            words = line.split()
            if words[1] in "tTwW" and (address := int(words[0], 16)):
                entries.append((address & ((1 << 48) - 1), words[2]))
    entries.sort()
    starts: Sequence[int] = [address for address, _ in entries]
    found: dict[int, Trace] = {}
    for number, address in places.items():
        place = bisect_right(starts, address) - 1
        name = entries[place][1] if place >= 0 else "(kernel)"
        found[number] = (SampledFrame(OF_KERNEL, name, "[kernel]"),)
    return found

"""Turns call stacks into traces: selects the frames to show, and the frame that counts as the allocating one.

By manual 4.1.2 a trace begins with the function that allocated and ends with the outermost one; a frame
without source is `unreachable`. Without `--all` a trace has neither allocators nor unreachable frames.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from perun.collect.memory.records import UNWINDERS, MappedModule, MemoryRecording, Stack
from perun.native.elf import Elf, read_elf
from perun.native.symboliser import NOTHING, Frames, SymbolFrame, Symboliser
from perun.native.symbols import Debuginfod, with_debug_file

UNREACHABLE: Final = "unreachable"
"""Source of a function whose source is unknown (manual 4.1.2)."""
UNKNOWN: Final = SymbolFrame("unknown", UNREACHABLE, 0)
"""The frame of an unknown call stack."""

_RUNTIME: Final = (
    *("ld-linux", "ld-musl", "ld.so", "libc.", "libc-", "libpthread", "libdl.", "librt.", "libm."),
    *("libstdc++", "libgcc_s", "libc++", "libunwind", "libperun_memory", "linux-vdso", "[vdso]"),
    *("libjemalloc", "libtcmalloc", "libmimalloc"),
)
"""Prefixes of the names of runtime libraries, whose allocations count for their callers."""
_SYSTEM_HEADERS: Final = (
    *("/usr/include/", "/usr/lib/gcc", "/usr/lib/llvm", "/usr/local/include/c++"),
    *("/rustc/", "/rust/deps/", "/usr/src/rustc-"),  # alloc, core and std of Rust, which every program has
)
_STARTS: Final = frozenset({"_start", "_init", "_fini", "_dl_relocate_static_pie", "__libc_csu_init"})
_START_SIZE: Final = 64  # bytes of the code at the entry point of a program
_BUFFER_ALLOCATORS: Final = frozenset(
    {"_IO_file_doallocate", "__GI__IO_file_doallocate", "_IO_wfile_doallocate"}
)
"""Functions of the C library that allocate buffers of streams, which it keeps until the program ends."""


class TraceFrame(NamedTuple):
    """A frame, with what decides whether a trace shows it.

    :param runtime: whether it is in a runtime library or in start-up code.
    :param reachable: whether its source is known. :param header: whether its source is a system header.
    """

    frame: SymbolFrame
    runtime: bool
    reachable: bool
    header: bool


class AllocationSite(NamedTuple):
    """A place that allocates: the frame that is the uid of its resources, and the trace, innermost first.

    :param kept_by_libc: whether the C library keeps the memory, so that the program cannot release it.
    """

    uid: SymbolFrame
    trace: Frames
    kept_by_libc: bool = False


_SYSTEM: Final = SymbolFrame("system libraries", UNREACHABLE, 0)
SYSTEM: Final = AllocationSite(_SYSTEM, (_SYSTEM,), kept_by_libc=True)
"""What allocates where no function of the program is on the stack, as the loader does before `main`. The
program cannot release that, so that it is no leak."""


class StackTraces:
    """Finds the traces of the stacks of recordings.

    :param folder: where the program ran. Sources below it get relative names, so that they are the same
        wherever a version is measured.
    :param debuginfod: who is asked for debug information that is not on the machine; None for nobody.
    """

    def __init__(self, symboliser: Symboliser, folder: Path, debuginfod: Debuginfod | None = None) -> None:
        self._symboliser = symboliser
        self._debuginfod = debuginfod
        self._folders = tuple({os.path.join(path, "") for path in (str(folder), os.path.realpath(folder))})
        self._elves: dict[str, Elf | None] = {}
        self.without_lines: set[str] = set()
        """Paths of modules without line numbers that are on a stack, but for runtime libraries."""
        self.without_names: set[str] = set()
        """Those of them without the names of all functions."""

    def of(self, recording: MemoryRecording, *, whole: bool) -> list[AllocationSite | None]:
        """The sites of all stacks of a recording; all are `unknown` in a recording without stacks."""
        if recording.unwinder == UNWINDERS[0]:
            return [AllocationSite(UNKNOWN, (UNKNOWN,))] * len(recording.stacks)
        return self.sites(recording.stacks, recording.modules, whole=whole)

    def sites(
        self, stacks: Sequence[Stack], modules: Sequence[MappedModule], *, whole: bool
    ) -> list[AllocationSite | None]:
        """The site of each stack; None for a stack without a frame to show.

        :param whole: show every frame of every stack (`--all`).
        """
        known: dict[tuple[int, ...], AllocationSite | None] = {}
        sites = []
        located = _located(stacks, modules)
        places = self._places(located)
        for numbers in located.stacks:
            if numbers not in known:
                frames = [place for number in reversed(numbers) for place in places[number]]
                known[numbers] = site_of(frames, whole=whole)
            sites.append(known[numbers])
        return sites

    def relative(self, source: str) -> str:
        """The name of a source in a profile: relative to the folder of the run, if it lies in there."""
        for folder in self._folders:
            source = source.removeprefix(folder)
        return source

    def _places(self, located: _Located) -> list[tuple[TraceFrame, ...]]:
        by_path: dict[str, dict[int, int]] = {}
        for number, (path, offset) in enumerate(located.locations):
            by_path.setdefault(path, {})[number] = offset
        places: list[tuple[TraceFrame, ...]] = [()] * len(located.locations)
        for path, offsets in by_path.items():
            for number, found in self._in_module(path, offsets):
                places[number] = found
        return places

    def _in_module(self, path: str, offsets: dict[int, int]) -> Iterable[tuple[int, tuple[TraceFrame, ...]]]:
        elf = self._elf(path)
        name = readable(os.path.basename(path)) or "generated-code"
        runtime = is_runtime(path)
        if elf and not runtime and not elf.has_lines and not elf.debug_file and self._debuginfod:
            elf = self._elves[path] = elf._replace(debug_file=self._debuginfod.debug_file(elf.build_id))
        addresses = {number: elf.address_of(at) if elf else at for number, at in offsets.items()}
        frames = self._symboliser.frames(path, elf, addresses.values())
        if elf and not runtime and not elf.has_lines and not elf.debug_file:
            self.without_lines.add(path)
            if not elf.has_symbols:
                self.without_names.add(path)
        for number, address in addresses.items():
            starts = elf is not None and elf.entry <= address < elf.entry + _START_SIZE
            inside = frames.get(address, NOTHING)
            if not inside:
                # Generated code has no path, and its addresses differ from run to run.
                inside = (SymbolFrame(f"{name}+{address:#x}" if path else name, "", 0),)
            yield number, tuple(self._place(frame, runtime or starts, name) for frame in inside)

    def _place(self, frame: SymbolFrame, runtime: bool, module: str) -> TraceFrame:
        source = self.relative(frame.source)
        function = frame.function or module
        shown = SymbolFrame(function, source or UNREACHABLE, frame.line)
        return TraceFrame(
            shown, runtime or function in _STARTS, bool(source), source.startswith(_SYSTEM_HEADERS)
        )

    def _elf(self, path: str) -> Elf | None:
        if path not in self._elves:
            self._elves[path] = with_debug_file(read_elf(path), path) if path else None
        return self._elves[path]


def is_runtime(path: str) -> bool:
    """Whether a module is a runtime library, whose allocations count for their callers."""
    return os.path.basename(path).startswith(_RUNTIME)


def readable(name: str) -> str:
    """A file name as text that every encoding can write: bytes that are not UTF-8 become U+FFFD."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def site_of(places: Sequence[TraceFrame], *, whole: bool) -> AllocationSite | None:
    """The site of a stack, whose innermost frame comes first; None if no frame is shown."""
    return _whole(places) if whole else _shown(places)


def _shown(places: Sequence[TraceFrame]) -> AllocationSite | None:
    """The site with reachable frames only.

    What the outermost frames in system headers allocate, e.g. a container that grows, counts for their
    caller.
    """
    own = [place for place in places if not place.runtime]
    shown = [place for place in own if place.reachable] or own
    if not shown:
        return None
    begin = next((number for number, place in enumerate(shown) if not place.header), 0)
    trace = tuple(place.frame for place in shown[begin:])
    return AllocationSite(trace[0], trace, _is_kept_by_libc(places))


def _whole(places: Sequence[TraceFrame]) -> AllocationSite:
    site = _shown(places)
    trace = tuple(place.frame for place in places)
    uid = site.uid if site else trace[0] if trace else UNKNOWN
    return AllocationSite(uid, trace or (UNKNOWN,), site is None or site.kept_by_libc)


def _is_kept_by_libc(places: Sequence[TraceFrame]) -> bool:
    return any(place.runtime and place.frame.function in _BUFFER_ALLOCATORS for place in places)


class _Located(NamedTuple):
    """Stacks as numbers of code locations, the outermost first; a location is a file and an offset in it."""

    stacks: list[tuple[int, ...]]
    locations: list[tuple[str, int]]


def _located(stacks: Sequence[Stack], modules: Sequence[MappedModule]) -> _Located:
    """Find the code locations of all addresses, each in the modules that were defined before its stack."""
    numbers: dict[tuple[str, int], int] = {}
    located: list[tuple[int, ...]] = [()] * len(stacks)
    by_epoch: dict[int, list[int]] = {}
    for position, stack in enumerate(stacks):
        by_epoch.setdefault(stack.modules, []).append(position)
    memory = _Memory()
    defined = 0
    for epoch in sorted(by_epoch):
        for module in modules[defined:epoch]:
            memory.define(module)
        defined = epoch
        positions = by_epoch[epoch]
        addresses = np.frombuffer(b"".join(stacks[at].addresses for at in positions), np.uint64)
        unique, inverse = np.unique(addresses, return_inverse=True)
        # A return address is just after the call and may belong to the next line or function: subtract 1.
        found = [memory.location(address - 1) for address in unique.tolist() if address]
        found = [("", 0)] * (len(unique) - len(found)) + found  # for the address 0, which sorts first
        codes = np.array([numbers.setdefault(one, len(numbers)) for one in found], np.int64)[inverse]
        begin = 0
        for at in positions:
            end = begin + len(stacks[at].addresses) // 8
            located[at] = tuple(codes[begin:end].tolist())
            begin = end
    return _Located(located, list(numbers))


class _Memory:
    """The modules in the address space; a later one replaces those that it overlaps."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._modules: list[MappedModule] = []

    def define(self, module: MappedModule) -> None:
        kept = [one for one in self._modules if one.end <= module.start or one.start >= module.end]
        self._modules = sorted([*kept, module])
        self._starts = [one.start for one in self._modules]

    def location(self, address: int) -> tuple[str, int]:
        """The file that is mapped at an address, and the offset in it; an empty path and 0 for none."""
        place = bisect_right(self._starts, address) - 1
        if place >= 0:
            module = self._modules[place]
            if address < module.end and module.path:
                return module.path, address - module.start + module.offset
        return "", 0

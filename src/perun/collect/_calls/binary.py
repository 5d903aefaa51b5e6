"""Reads an ELF program or library: its functions, its USDT probes, and whether it may throw exceptions.

Functions come from the symbol table; each refers to its entry in the debug information, so that types are
read only when they are needed. Reading a large program takes seconds. A cache keeps the result by build-id,
because it never changes for one build.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun import atomic
from perun.collect._calls.debug_entries import lines_of, with_code
from perun.collect._calls.names import (
    demangled,
    is_called_by_go,
    is_own,
    is_rust,
    match,
    plain_name,
    source_name,
)
from perun.collect._calls.probeable import is_probeable
from perun.collect._calls.split import Skeleton, read_split
from perun.collect._calls.usdt import Usdt, read_probes
from perun.collect._common.debug_files import debug_file
from perun.collect._common.elf import Segment, build_id, load_segments
from perun.collect._common.symbol_table import unpacked
from perun.errors import CollectorUnavailable, JobFailed, UsageError
from perun.plugin.params import nearest
from perun.wording import listed

CACHED_BINARIES: Final = 200
"""How many binaries the cache holds; the one that was not used for the longest time goes first."""
_VERSION: Final = 7  # of the files of the cache
_STRIPPED: Final = (".symtab", ".debug_info", ".zdebug_info")
"""The sections that are read and that `strip` takes away."""
_EXCEPTIONS: Final = ("__cxa_throw", "__cxa_rethrow", "__cxa_begin_catch", "_Unwind_RaiseException")
"""Functions whose use shows that a program may throw or catch an exception, or a panic of Rust."""
_SWITCHES: Final = ("swapcontext", "setcontext", "makecontext")
"""Functions whose use shows that functions may not return in the order in which they were called, as after
an exception: the program runs them on several stacks in turn."""
_NEAREST: Final = 10
"""How many names an error lists where none is spelled like what was asked for."""
_FILE: Final = 1 << 40
"""More than any offset: what the number of a file of debug information is multiplied with."""
_FRAGMENT: Final = re.compile(r"\.(cold|part\.\d+)\b")


class Function(NamedTuple):
    """One function of a binary.

    :ivar symbol: its name for the linker. :ivar name: its name in the source, in C++ with its parameters.
    :ivar address: its virtual address in the file. :ivar offset: its position in the file. :ivar size: bytes.
    :ivar entry: offset of its entry in the debug information, with the number of the file where that is in
        several; -1 where it has none.
    :ivar clone: whether it is a copy of which the compiler may have changed the parameters.
    """

    symbol: str
    name: str
    address: int
    offset: int
    size: int
    entry: int = -1
    clone: bool = False


class _Contents(NamedTuple):
    functions: list[Function]
    probes: list[Usdt]
    throws: bool
    unread: list[str]


class Binary:
    """One ELF file, of which each part is read when it is needed; a context manager that closes the file.

    :param cache: folder of the cache; None for no cache.
    :raises CollectorUnavailable: where pyelftools is not installed.
    :raises JobFailed: where the file cannot be read, or is not an ELF file.
    """

    def __init__(self, path: str | Path, cache: Path | None = None) -> None:
        self.path = os.path.realpath(path)
        self._cache = cache
        self._files = contextlib.ExitStack()
        self._elf = self._open(self.path)

    def __enter__(self) -> Binary:
        return self

    def __exit__(self, *exc: object) -> None:
        self._files.close()

    @cached_property
    def build_id(self) -> str:
        """The build-id in hexadecimal; empty where the file has none."""
        return build_id(self._elf)

    @property
    def machine(self) -> str:
        """The architecture as ELF calls it, e.g. `EM_X86_64`."""
        return str(self._elf["e_machine"])

    @property
    def functions(self) -> list[Function]:
        """All functions in the order of their addresses: one for each address, and no fragments."""
        return self._contents.functions

    @property
    def probes(self) -> list[Usdt]:
        """The USDT probes in the order of the file; several probes may have one name."""
        return self._contents.probes

    @property
    def throws(self) -> bool:
        """Whether return probes kill it: it throws as C++ does, panics as Rust, moves stacks as Go, or
        switches between them."""
        return self._contents.throws or self.is_go

    @property
    def own_functions(self) -> list[Function]:
        """Functions of the program's own source: neither the compiler's nor those of the C++ library."""
        return [function for function in self.functions if is_own(function.symbol, function.name)]

    @cached_property
    def debug(self) -> Any:
        """The debug information (DWARFInfo of pyelftools), maybe from a separate file; None without any."""
        for elf in (self._elf, self._debug_elf):
            # Otherwise pyelftools takes `.eh_frame`, which stripped programs have, for debug information.
            if elf is not None and elf.has_dwarf_info(strict=True):
                return elf.get_dwarf_info()
        return None

    @cached_property
    def _debug_elf(self) -> Any:
        """The separate file with the debug information; None where there is none."""
        path = debug_file(self.path, self.build_id)
        return self._open(path) if path else None

    def description(self, function: Function) -> Any:
        """The entry (DIE) of the debug information that describes `function`; None where there is none."""
        number, offset = divmod(function.entry, _FILE)
        if function.entry < 0 or self.debug is None:
            return None
        debug = self._split.get(number) if number else self.debug
        return debug.get_DIE_from_refaddr(offset) if debug else None

    def offset_of(self, address: int) -> int:
        """The position in the file of what is loaded at `address`; -1 where that is not from the file."""
        for segment in self._segments:
            if segment.address <= address < segment.address + segment.size:
                return address - segment.address + segment.offset
        return -1

    def code(self, function: Function) -> bytes:
        """The machine code of a function."""
        return self._code_at(function.offset, function.size)

    def _code_at(self, offset: int, size: int = 15) -> bytes:
        """As many bytes of machine code at an offset in the file; by default, a whole instruction or more."""
        self._elf.stream.seek(offset)
        return bytes(self._elf.stream.read(size))

    def find(self, wanted: str) -> list[Function]:
        """The functions that a name or pattern of :func:`perun.collect._calls.names.match` means.

        :raises UsageError: where there is none; names the most similar ones.
        """
        found = match(self.functions, wanted) or self._other_names(wanted)
        if not found:
            own = self.own_functions
            spellings = {function.symbol for function in own if not is_rust(function.symbol)}
            spellings |= {plain_name(function.name) for function in own}
            where = os.path.basename(self.path)
            raise UsageError(f"{where} has no function {wanted!r}", _nearest(wanted, spellings))
        return found

    def _other_names(self, wanted: str) -> list[Function]:
        """The function that has a symbol beside the one it is known by, as `malloc` in the C library."""
        at = {address for symbol, address, _ in self._symbols() if symbol == wanted}
        return [one._replace(symbol=wanted, name=wanted) for one in self.functions if one.address in at]

    def places(self, location: str) -> list[Usdt]:
        """Probes for a line of a source, e.g. `list.c:12`: one at its first instruction in each function.

        :raises UsageError: where no instruction belongs to the line; names the nearest lines that have some.
            Or where the kernel cannot probe that instruction.
        """
        source, _, number = location.rpartition(":")
        if not source or not number.isdecimal():
            raise UsageError(
                f"cannot parse the location {location!r}", "write <source>:<line>, e.g. list.c:12"
            )
        lines: dict[int, set[int]] = {}
        for unit in self.debug.iter_CUs() if self.debug else ():
            for line, address in lines_of(self.debug.line_program_for_CU(unit), source):
                lines.setdefault(line, set()).add(address)
        wanted = int(number)
        if wanted not in lines:
            near = sorted(lines, key=lambda line: abs(line - wanted))[:3]
            hint = f"the nearest lines with instructions are: {', '.join(map(str, sorted(near)))}"
            raise UsageError(
                f"{os.path.basename(self.path)} has no instruction for {location}",
                hint if near else "compile with -g, which writes the lines of the source into the program",
            )
        first = self._first_of_each_function(sorted(lines[wanted]))
        found = [Usdt("", location, address, self.offset_of(address), 0, "") for address in first]
        if not all(is_probeable(self._code_at(one.offset)) for one in found):
            raise UsageError(
                f"the kernel cannot probe {location}, which begins with a vector instruction",
                "name another line of the function",
            )
        return found

    def _first_of_each_function(self, addresses: Sequence[int]) -> list[int]:
        starts = [function.address for function in self.functions]
        first: dict[int, int] = {}
        for address in addresses:
            first.setdefault(bisect_right(starts, address), address)
        return list(first.values())

    @cached_property
    def is_go(self) -> bool:
        """Whether Go compiled the program: return probes kill it, and goroutines change threads."""
        return self._elf.get_section_by_name(".gopclntab") is not None

    @cached_property
    def notes(self) -> list[str]:
        """What is not known of the functions of the file, and why, for the user."""
        name, notes = os.path.basename(self.path), []
        if unread := self._contents.unread:
            notes.append(
                f"{name} was compiled with -gsplit-dwarf, and Perun cannot read {listed(unread)}: without "
                "sizes of structures there the numbers of the calls are used; keep the .dwo files where they "
                "were compiled (a .dwp file is not read), or compile without -gsplit-dwarf"
            )
        if self.is_go or any(is_rust(function.symbol) for function in self.own_functions):
            language = "Go" if self.is_go else "Rust"
            notes.append(
                f"{name} is written in {language}, whose compiler passes parameters in a way of its own: "
                "sizes are the numbers of the calls"
            )
        return notes

    @cached_property
    def _segments(self) -> tuple[Segment, ...]:
        return load_segments(self._elf)

    @cached_property
    def _contents(self) -> _Contents:
        import msgspec

        # Debug information that is installed later gives more names, and a program has the same build-id once
        # it is stripped.
        debug = "-debug" if self._debug_elf is not None else ""
        own = "".join(name.replace(".", "-") for name in _STRIPPED if self._elf.has_section(name))
        name = f"{self.build_id}{debug}{own}.functions-{_VERSION}.json"
        file = self._cache / name if self._cache else None
        if file is None or not self.build_id:
            return self._read()
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            cached = msgspec.json.decode(file.read_bytes(), type=_Contents)
            os.utime(file)
            return cached
        contents = self._read()
        if not self._skeletons:  # files of their own may come and go
            _write_cache(file, msgspec.json.encode(contents))
        return contents

    def _read(self) -> _Contents:
        entries = dict(self._entries())
        symbols = list(self._symbols())
        names = demangled([symbol for symbol, *_ in symbols])
        functions: dict[int, Function] = {}
        for symbol, address, size in symbols:
            offset = self.offset_of(address)
            if self.is_go and not is_called_by_go(symbol):
                continue
            # The entry point is jumped to: on the stack it has arguments in place of a return address.
            if offset >= 0 and address not in functions and address != self._elf["e_entry"]:
                name, clone = source_name(symbol, names[symbol])
                entry = entries.get(address, -1)
                functions[address] = Function(symbol, name, address, offset, size, entry, clone)
        ordered = [functions[address] for address in sorted(functions)]
        probes = list(read_probes(self._elf, self.offset_of))
        return _Contents(ordered, probes, self._imports_throw(), self._unread())

    def _symbols(self) -> Iterator[tuple[str, int, int]]:
        """Symbol, address and size of functions; of several at one address the global one comes first."""
        for tables in self._symbol_tables():
            found = [
                (symbol["st_info"]["bind"] == "STB_LOCAL", symbol.name, symbol["st_value"], symbol["st_size"])
                for table in tables
                for symbol in table.iter_symbols()
                if symbol["st_info"]["type"] == "STT_FUNC"
                and symbol["st_shndx"] != "SHN_UNDEF"
                and symbol["st_size"]
                and not _FRAGMENT.search(symbol.name)
            ]
            # Sorted, so that of several names of one address always the same one comes first: C1 and C2 of a
            # constructor, for example.
            for _, symbol, address, size in sorted(found):
                yield symbol.partition("@")[0], address, size
            if found:
                return

    def _symbol_tables(self) -> Iterator[list[Any]]:
        """The tables with the functions of the file, the best first: all its own, those of the file with its
        debug information, the small one of a stripped file, and those that other files use."""
        used_by_others = self._elf.get_section_by_name(".dynsym")
        others = [used_by_others] if used_by_others is not None else []
        for elf in (self._elf, self._debug_elf):
            table = elf.get_section_by_name(".symtab") if elf is not None else None
            if table is not None:
                yield [table]
        small = self._elf.get_section_by_name(".gnu_debugdata")
        if small is not None:
            with contextlib.suppress(Exception):  # pyelftools raises what it likes for what it cannot read
                elf = type(self._elf)(BytesIO(unpacked(small.data())))
                yield [elf.get_section_by_name(".symtab"), *others]
        yield others

    def _entries(self) -> Iterator[tuple[int, int]]:
        """Address and offset in the debug information of every function that has code."""
        if self.debug is None:
            return
        for unit in self.debug.iter_CUs():
            yield from with_code(unit.get_top_DIE())
        for number, debug in self._split.items():
            with contextlib.suppress(Exception):  # pyelftools raises what it likes for what it cannot read
                for unit in debug.iter_CUs():
                    for address, offset in with_code(unit.get_top_DIE()):
                        yield address, offset + number * _FILE

    @cached_property
    def _skeletons(self) -> list[Skeleton]:
        """What `-gsplit-dwarf` left in the program of the debug information of each source."""
        if self.debug is None:
            return []
        return [found for unit in self.debug.iter_CUs() if (found := Skeleton.of(unit)) is not None]

    @cached_property
    def _split(self) -> dict[int, Any]:
        """The debug information in files of its own, by the number of the file from 1 on."""
        found: dict[int, Any] = {}
        for number, skeleton in enumerate(self._skeletons, 1):
            path = skeleton.path(self.path)
            debug = read_split(skeleton, self.debug, path) if path else None
            if debug is not None:
                found[number] = debug
        return found

    def _unread(self) -> list[str]:
        """The files of debug information that are missing or cannot be read."""
        skeletons = enumerate(self._skeletons, 1)
        return [skeleton.name for number, skeleton in skeletons if number not in self._split]

    def _imports_throw(self) -> bool:
        for name in (".dynsym", ".symtab"):
            table = self._elf.get_section_by_name(name)
            if table is not None and any(
                table.get_symbol_by_name(one) for one in (*_EXCEPTIONS, *_SWITCHES)
            ):
                return True
        return False

    def _open(self, path: str) -> Any:
        try:
            from elftools.common.exceptions import ELFError
            from elftools.elf.elffile import ELFFile
        except ImportError:
            raise CollectorUnavailable(
                "Perun needs pyelftools to read programs", "install it with: pip install pyelftools"
            ) from None
        try:
            file = self._files.enter_context(Path(path).open("rb"))  # noqa: SIM115
            return ELFFile(file)
        except OSError as problem:
            raise JobFailed(
                f"cannot read the program {path}: {problem.strerror}", "check the path and its permissions"
            ) from None
        except ELFError:
            self._files.close()
            raise JobFailed(
                f"{path} is not an ELF program, so it has no functions to trace",
                "name the program that the command runs with --binary (-b)",
            ) from None


def _nearest(wanted: str, names: set[str]) -> str:
    """A hint that names what is spelled like `wanted`, or the ten nearest names."""
    if len(names) <= _NEAREST or difflib.get_close_matches(wanted, names, n=1, cutoff=0.6):
        return nearest(wanted, names)
    close = difflib.get_close_matches(wanted, sorted(names), n=_NEAREST, cutoff=0.0)
    return f"the nearest of its {len(names):,} names are: {', '.join(close)}"


def _write_cache(file: Path, content: bytes) -> None:
    with contextlib.suppress(OSError, ValueError):
        file.parent.mkdir(parents=True, exist_ok=True)
        atomic.write(file, content)
        kept = sorted((path.stat().st_mtime, path) for path in file.parent.glob("*.functions-*.json"))
        for _, path in kept[: max(0, len(kept) - CACHED_BINARIES)]:
            path.unlink()

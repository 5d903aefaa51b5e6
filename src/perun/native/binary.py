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
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from perun.core import atomic
from perun.core.errors import JobFailed, UsageError
from perun.core.wording import listed
from perun.native.dwarf import Skeleton, lines_of, read_split, with_code
from perun.native.elf import (
    DYNAMIC_SYMBOLS,
    MAGIC,
    PT_LOAD,
    SYMBOLS,
    X86_64,
    Damaged,
    ElfFile,
    checked,
    debug_information,
    text_at,
    with_debug_information,
)
from perun.native.function_names import (
    demangled,
    is_called_by_go,
    is_own,
    is_rust,
    match,
    plain_name,
    source_name,
)
from perun.native.symbols import debug_file, unpacked
from perun.plugin.params import nearest

# Statically defined probes (USDT) of an ELF file, which `sys/sdt.h` notes in the section `.note.stapsdt`.


class Usdt(NamedTuple):
    """One statically defined probe: its place, its semaphore in the file (0: none) and its operands."""

    provider: str
    name: str
    address: int
    offset: int
    semaphore: int
    arguments: str


def read_probes(elf: Any, offset_of: Callable[[int], int]) -> Iterator[Usdt]:
    """The probes of a file. :param offset_of: the position in the file of an address."""
    section = elf.get_section_by_name(".note.stapsdt")
    if section is None:
        return
    base = elf.get_section_by_name(".stapsdt.base")
    for note in section.iter_notes():
        content = note["n_desc"]
        content = content.encode("latin-1") if isinstance(content, str) else content
        address, linked, semaphore = struct.unpack_from("<QQQ", content)
        # A tool such as prelink may have moved the program after its notes were written.
        shift = base["sh_addr"] - linked if base is not None else 0
        provider, name, arguments, *_ = content[24:].split(b"\0")
        address += shift
        semaphore = offset_of(semaphore + shift) if semaphore else 0
        yield Usdt(
            provider.decode("utf-8", "replace"),
            name.decode("utf-8", "replace"),
            address,
            offset_of(address),
            semaphore,
            arguments.decode("latin-1"),
        )


# Which instructions the kernel can probe (x86-64).
#
# For a vector instruction the kernel (seen with Linux 6.18) looks up the opcode in the table of instructions
# without a prefix. So it takes `vmovdqa` for `outs` and refuses the probe, without a word where the program
# is not running yet. It takes `vpshufd` for a conditional jump, which it emulates, and `vcmpps` for a return:
# then the program computes something else, or crashes. See `arch_uprobe_analyze_insn` in
# arch/x86/kernel/uprobes.c.

_OPCODE_AFTER: Final = {0xC5: 2, 0xC4: 3, 0x62: 4}
"""First byte of an instruction in the encodings VEX and EVEX to the position of its opcode."""
_TAKEN_FOR_INVALID: Final = (
    "06 07 0e 16 17 1e 1f 27 2f 37 3f 60 61 62 6c 6d 6e 6f 82 9a d4 d5 d6 e4 e5 e6 e7 ec ed ee ef f1 f4 fa fb"
)
_TAKEN_FOR_JUMPS: Final = "70 71 72 73 74 75 76 77 78 79 7a 7b 7c 7d 7e 7f 90 9d c2 c3 ca cb e8 e9 ea eb ff"
_MISTAKEN: Final = frozenset(bytes.fromhex(_TAKEN_FOR_INVALID + _TAKEN_FOR_JUMPS))


def is_probeable(code: bytes) -> bool:
    """Whether a probe may be put at an instruction, which `code` begins with."""
    place = _OPCODE_AFTER.get(code[0]) if code else None
    return place is None or len(code) <= place or code[place] not in _MISTAKEN


CACHED_BINARIES: Final = 200
"""How many binaries the cache holds; the one that was not used for the longest time goes first."""
_VERSION: Final = 8  # of the files of the cache
_STRIPPED: Final = (".symtab", ".debug_info", ".zdebug_info")
"""The sections that are read and that `strip` takes away."""
_EXCEPTIONS: Final = ("__cxa_throw", "__cxa_rethrow", "__cxa_begin_catch", "_Unwind_RaiseException")
"""Functions whose use shows that a program may throw or catch an exception, or a panic of Rust."""
_SWITCHES: Final = ("swapcontext", "setcontext", "makecontext")
"""Functions whose use shows that functions may not return in the order in which they were called, as after
an exception: the program runs them on several stacks in turn."""
_FUNCTION: Final = 2
"""Type of symbols: STT_FUNC."""
_DEBUG: Final = "debug information"
_PROBES: Final = "list of USDT probes"
"""What a program can be traced without."""
_NEAREST: Final = 10
"""How many names an error lists where none is spelled like what was asked for."""
_FILE: Final = 1 << 40
"""More than any offset: what the number of a file of debug information is multiplied with."""
_T = TypeVar("_T")
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


_Symbol = tuple[bool, str, int, int]
"""Of a function: whether only its file knows it, symbol, address and size."""


class _Contents(NamedTuple):
    functions: list[Function]
    probes: list[Usdt]
    throws: bool
    unread: list[str]
    damaged: dict[str, str]


class Binary:
    """One ELF file, of which each part is read when it is needed; a context manager that closes the file.

    What is damaged in its debug information or its USDT probes counts as not there, and :attr:`notes` say so.

    :param cache: folder of the cache; None for no cache.
    :raises JobFailed: where the file cannot be read, or is not an ELF file; so does whatever needs segments
        or symbols that are damaged.
    """

    def __init__(self, path: str | Path, cache: Path | None = None) -> None:
        self.path = os.path.realpath(path)
        self._cache = cache
        self._files = contextlib.ExitStack()
        self._damaged: dict[str, str] = {}
        self._elf = self._open(self.path)

    def __enter__(self) -> Binary:
        return self

    def __exit__(self, *exc: object) -> None:
        self._files.close()

    @cached_property
    def build_id(self) -> str:
        """The build-id in hexadecimal; empty where the file has none."""
        with contextlib.suppress(Damaged):
            return self._headers.build_id
        return ""

    @property
    def is_x86_64(self) -> bool:
        """Whether it is for the architecture whose calls are understood."""
        return self._headers.machine == X86_64

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
            with self._noting(_DEBUG):
                if elf is not None and (found := debug_information(elf)) is not None:
                    return found
        return None

    @cached_property
    def _debug_elf(self) -> Any:
        """The separate file with the debug information; None where there is none."""
        path = debug_file(self.path, self.build_id)
        found = None
        with self._noting(_DEBUG):
            found = self._open(path) if path else None
        return found

    def described(self, function: Function, read: Callable[[Any], _T], otherwise: _T) -> _T:
        """What `read` makes of the entry (DIE) of the debug information that describes `function`.

        :param otherwise: is returned where there is no entry, or it or what it refers to is damaged.
        """
        number, offset = divmod(function.entry, _FILE)
        if function.entry < 0 or self.debug is None:
            return otherwise
        found = otherwise
        with self._noting(_DEBUG):
            debug = self._split.get(number) if number else self.debug
            found = read(debug.get_DIE_from_refaddr(offset)) if debug else otherwise
        return found

    @contextmanager
    def _noting(self, what: str) -> Iterator[None]:
        """Go on after the block where something in it is damaged, and note what of the file that was."""
        try:
            with checked():
                yield
        except Damaged as problem:
            self._damaged.setdefault(what, str(problem))

    @contextmanager
    def _needed(self) -> Iterator[None]:
        """:raises JobFailed: where something is damaged without which there are no functions."""
        try:
            with checked():
                yield
        except Damaged as problem:
            raise JobFailed(
                f"{self.path} is damaged, so that its functions cannot be read: {problem}",
                "build the program again",
            ) from None

    def offset_of(self, address: int) -> int:
        """The position in the file of what is loaded at `address`; -1 where that is not from the file."""
        for segment in self._headers.segments:
            if segment.type == PT_LOAD and segment.address <= address < segment.address + segment.size:
                return address - segment.address + segment.offset
        return -1

    def code(self, function: Function) -> bytes:
        """The machine code of a function."""
        return self._code_at(function.offset, function.size)

    def _code_at(self, offset: int, size: int = 15) -> bytes:
        """As many bytes of machine code at an offset in the file; by default, a whole instruction or more."""
        with self._needed():
            self._elf.stream.seek(offset)
            return bytes(self._elf.stream.read(size))

    def find(self, wanted: str) -> list[Function]:
        """The functions that a name or pattern of :func:`perun.native.function_names.match` means.

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
        with self._noting(_DEBUG):
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
        with self._needed():
            return self._headers.section(".gopclntab") is not None

    @property
    def notes(self) -> list[str]:
        """What is not known of the functions of the file so far, and why, for the user."""
        name, notes = os.path.basename(self.path), []
        unread, damaged = self._contents.unread, {**self._contents.damaged, **self._damaged}
        for what, why in damaged.items():
            notes.append(
                f"the {what} of {name} is damaged ({why}): what cannot be read of it counts as not there, "
                "and functions are known by their symbols; build the program again"
            )
        if unread:
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
    def _headers(self) -> ElfFile:
        with self._needed():
            return ElfFile(self._elf.stream)

    @cached_property
    def _contents(self) -> _Contents:
        import msgspec

        # Debug information that is installed later gives more names, and a program has the same build-id once
        # it is stripped.
        debug = "-debug" if self._debug_elf is not None else ""
        with self._needed():
            own = "".join(name.replace(".", "-") for name in _STRIPPED if self._headers.section(name))
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
        entries: dict[int, int] = {}
        with self._noting(_DEBUG):
            entries.update(self._entries())
        symbols = list(self._symbols())
        names = demangled([symbol for symbol, *_ in symbols])
        functions: dict[int, Function] = {}
        for symbol, address, size in symbols:
            offset = self.offset_of(address)
            if self.is_go and not is_called_by_go(symbol):
                continue
            # The entry point is jumped to: on the stack it has arguments in place of a return address.
            if offset >= 0 and address not in functions and address != self._headers.entry:
                name, clone = source_name(symbol, names[symbol])
                entry = entries.get(address, -1)
                functions[address] = Function(symbol, name, address, offset, size, entry, clone)
        ordered = [functions[address] for address in sorted(functions)]
        probes: list[Usdt] = []
        with self._noting(_PROBES):
            probes += read_probes(self._elf, self.offset_of)
        return _Contents(ordered, probes, self._imports_throw(), self._unread(), dict(self._damaged))

    def _symbols(self) -> Iterator[tuple[str, int, int]]:
        """Symbol, address and size of functions; of several at one address the global one comes first."""
        # Sorted, so that of several names of one address always the same one comes first: C1 and C2 of a
        # constructor, for example.
        for _, symbol, address, size in sorted(next(filter(None, self._symbol_tables()), [])):
            yield symbol.partition("@")[0], address, size

    def _symbol_tables(self) -> Iterator[list[_Symbol]]:
        """The functions in the tables of the file, the best first: all its own, those of the file with its
        debug information, the small table of a stripped file, and those that other files use."""
        with self._needed():
            found = list(_functions(self._headers, SYMBOLS))
        yield found
        found = []
        if self._debug_elf is not None:
            with self._noting(_DEBUG):
                found += _functions(ElfFile(self._debug_elf.stream), SYMBOLS)
        yield found
        with self._needed():
            others = list(_functions(self._headers, DYNAMIC_SYMBOLS))
        if small := self._headers.section(".gnu_debugdata"):
            with contextlib.suppress(Damaged):
                inner = ElfFile(BytesIO(unpacked(self._headers.content(small))))
                others += _functions(inner, SYMBOLS)
        yield others

    def _entries(self) -> Iterator[tuple[int, int]]:
        """Address and offset in the debug information of every function that has code."""
        if self.debug is None:
            return
        for unit in self.debug.iter_CUs():
            yield from with_code(unit.get_top_DIE())
        for number, debug in self._split.items():
            with self._noting(_DEBUG):
                for unit in debug.iter_CUs():
                    for address, offset in with_code(unit.get_top_DIE()):
                        yield address, offset + number * _FILE

    @cached_property
    def _skeletons(self) -> list[Skeleton]:
        """What `-gsplit-dwarf` left in the program of the debug information of each source."""
        found: list[Skeleton] = []
        with self._noting(_DEBUG):
            units = map(Skeleton.of, self.debug.iter_CUs() if self.debug is not None else ())
            found += [one for one in units if one is not None]
        return found

    @cached_property
    def _split(self) -> dict[int, Any]:
        """The debug information in files of its own, by the number of the file from 1 on."""
        found: dict[int, Any] = {}
        for number, skeleton in enumerate(self._skeletons, 1):
            path = skeleton.path(self.path)
            with contextlib.suppress(Damaged):
                debug = read_split(skeleton, self.debug, path) if path else None
                if debug is not None:
                    found[number] = debug
        return found

    def _unread(self) -> list[str]:
        """The files of debug information that are missing or cannot be read."""
        skeletons = enumerate(self._skeletons, 1)
        return [skeleton.name for number, skeleton in skeletons if number not in self._split]

    def _imports_throw(self) -> bool:
        with self._needed():
            tables = (self._headers.symbols(kind) for kind in (DYNAMIC_SYMBOLS, SYMBOLS))
            known = {text_at(table[1], at) for table in tables if table for at in table[0]["name"].tolist()}
            return not known.isdisjoint(name.encode() for name in (*_EXCEPTIONS, *_SWITCHES))

    def _open(self, path: str) -> Any:
        try:
            file = self._files.enter_context(Path(path).open("rb"))  # noqa: SIM115
            start = file.read(len(MAGIC))
            return with_debug_information(file)
        except OSError as problem:
            raise JobFailed(
                f"cannot read the program {path}: {problem.strerror}", "check the path and its permissions"
            ) from None
        except Damaged as problem:
            self._files.close()
            if start == MAGIC:
                raise JobFailed(
                    f"{path} is damaged, so that its functions cannot be read: {problem}",
                    "build the program again",
                ) from None
            raise JobFailed(
                f"{path} is not an ELF program, so it has no functions to trace",
                "name the program that the command runs with --binary (-b)",
            ) from None


def _functions(elf: ElfFile, kind: int) -> Iterator[_Symbol]:
    """The functions in a table of symbols."""
    rows, names = elf.symbols(kind) or ((), b"")
    for name, info, _, section, address, size in (one.item() for one in rows):
        if info & 15 == _FUNCTION and section and size:
            symbol = text_at(names, name).decode("utf-8", "replace")
            if not _FRAGMENT.search(symbol):
                yield not info >> 4, symbol, address, size


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

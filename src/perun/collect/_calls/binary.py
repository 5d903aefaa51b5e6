"""Reads a program or library: its functions, its USDT probes, and whether it may throw exceptions.

Functions come from the symbol table, and where each is described in the debug information is noted, so that
types need not be read before somebody asks for them. Reading all that of a large program takes seconds: the
answer is kept by build-id, as it never changes for one build.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.collect._common.elf import Segment, build_id, debug_file, load_segments
from perun.errors import CollectorUnavailable, JobFailed, UsageError
from perun.plugin.params import nearest

KEPT_BINARIES: Final = 200
_VERSION: Final = 2
_EXCEPTIONS: Final = ("__cxa_throw", "__cxa_rethrow", "__cxa_begin_catch")
"""Functions whose use shows that a program may throw or catch an exception."""
_RUNTIME: Final = re.compile(
    r"_start|_init|_fini|(de)?register_tm_clones|__do_global_(c|d)tors_aux|frame_dummy|__libc_csu_\w+"
    r"|_dl_relocate_static_pie|__(x86|i686)\.\w+|__cyg_profile_func_\w+|_GLOBAL__sub_[ID]_.*"
    r"|__static_initialization_and_destruction_0|__clang_call_terminate|atexit|at_quick_exit|__stack_chk_\w+"
)
"""Functions that the compiler and the C library add to every program."""
_LIBRARY_SPACES: Final = ("std::", "__gnu_cxx::", "__cxxabiv1::", "operator new", "operator delete")
_FRAGMENT: Final = re.compile(r"\.(cold|part\.\d+)\b")
_CLONE: Final = re.compile(r"\.(constprop|isra|lto_priv|llvm|localalias)\b")
_CLONE_TEXT: Final = re.compile(r" (\[clone [^]]*\]|\(\.[^)]*\))")


class Function(NamedTuple):
    """One function of a binary.

    :ivar symbol: as the linker knows it. :ivar name: as the source has it, in C++ with its parameters.
    :ivar address: as the file numbers it. :ivar offset: the same as a position in the file.
    :ivar entry: where the debug information describes it; -1 where it does not.
    :ivar clone: whether the compiler changed its parameters.
    """

    symbol: str
    name: str
    address: int
    offset: int
    size: int
    entry: int = -1
    clone: bool = False


class Usdt(NamedTuple):
    """One statically defined probe: where it lies in the file, its semaphore (0: none) and its operands."""

    provider: str
    name: str
    address: int
    offset: int
    semaphore: int
    arguments: str


class _Kept(NamedTuple):
    functions: list[Function]
    probes: list[Usdt]
    throws: bool


class Binary:
    """One ELF file, read as far as it is asked for; a context manager, as the file stays open.

    :param cache: folder for what was found; nothing is kept where it is None.
    :raises CollectorUnavailable: where pyelftools is not installed.
    :raises JobFailed: where the file cannot be read, or is no program of this kind of machine.
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
        """In hexadecimal; empty where it has none."""
        return build_id(self._elf)

    @property
    def machine(self) -> str:
        """The architecture as ELF calls it, e.g. `EM_X86_64`."""
        return str(self._elf["e_machine"])

    @property
    def functions(self) -> list[Function]:
        """All functions by address: one for each address, without fragments of functions."""
        return self._known.functions

    @property
    def probes(self) -> list[Usdt]:
        """The USDT probes, in the order of the file; one name may stand at several places."""
        return self._known.probes

    @property
    def throws(self) -> bool:
        """Whether it throws or catches exceptions of C++."""
        return self._known.throws

    @property
    def own_functions(self) -> list[Function]:
        """Functions of the program's own source: neither the compiler's nor those of the C++ library."""
        return [function for function in self.functions if is_own(function)]

    @cached_property
    def debug(self) -> Any:
        """The debug information as pyelftools has it; None where there is none."""
        elf = self._elf
        if not elf.has_dwarf_info():
            path = debug_file(self.build_id)
            if not path:
                return None
            elf = self._open(path)
        return elf.get_dwarf_info() if elf.has_dwarf_info() else None

    def description(self, function: Function) -> Any:
        """The entry of the debug information that describes `function`; None where there is none."""
        if function.entry < 0 or self.debug is None:
            return None
        return self.debug.get_DIE_from_refaddr(function.entry)

    def offset_of(self, address: int) -> int:
        """The position in the file of what is loaded at `address`; -1 where it is not from the file."""
        for segment in self._segments:
            if segment.address <= address < segment.address + segment.size:
                return address - segment.address + segment.offset
        return -1

    def code(self, function: Function) -> bytes:
        """The instructions of a function."""
        self._elf.stream.seek(function.offset)
        return bytes(self._elf.stream.read(function.size))

    def find(self, wanted: str) -> list[Function]:
        """The functions that are meant by a name; several where they are overloaded, or by a pattern.

        A name is a symbol, or a name of the source with or without parameters, template arguments and
        namespaces; with `*`, `?` or `[` it is a pattern.

        :raises UsageError: names the nearest ones where there is none.
        """
        found = match(self.functions, wanted)
        if not found:
            spellings = {function.symbol for function in self.own_functions}
            spellings |= {plain_name(function.name) for function in self.own_functions}
            where = os.path.basename(self.path)
            raise UsageError(f"there is no function {wanted!r} in {where}", nearest(wanted, spellings))
        return found

    def places(self, location: str) -> list[Usdt]:
        """Probes for a line of a source, `list.c:12`: at its first instruction, wherever it was compiled to.

        :raises UsageError: where no instruction is of that line; names the nearest lines that have some.
        """
        source, _, number = location.rpartition(":")
        if not source or not number.isdecimal():
            raise UsageError(f"cannot parse the location {location!r}", "write <source>:<line>")
        lines: dict[int, set[int]] = {}
        for unit in self.debug.iter_CUs() if self.debug else ():
            for line, address in _lines(self.debug.line_program_for_CU(unit), source):
                lines.setdefault(line, set()).add(address)
        wanted = int(number)
        if wanted not in lines:
            near = sorted(lines, key=lambda line: abs(line - wanted))[:3]
            hint = f"nearest lines with instructions: {', '.join(map(str, sorted(near)))}"
            raise UsageError(
                f"{os.path.basename(self.path)} has no instruction for {location}",
                hint if near else "compile with -g",
            )
        first = self._first_of_each_function(sorted(lines[wanted]))
        return [Usdt("", location, address, self.offset_of(address), 0, "") for address in first]

    def _first_of_each_function(self, addresses: Sequence[int]) -> list[int]:
        from bisect import bisect_right

        starts = [function.address for function in self.functions]
        first: dict[int, int] = {}
        for address in addresses:
            first.setdefault(bisect_right(starts, address), address)
        return list(first.values())

    @cached_property
    def _segments(self) -> tuple[Segment, ...]:
        return load_segments(self._elf)

    @cached_property
    def _known(self) -> _Kept:
        import msgspec

        file = self._cache / f"{self.build_id}.functions-{_VERSION}.json" if self._cache else None
        if file is None or not self.build_id:
            return self._read()
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            kept = msgspec.json.decode(file.read_bytes(), type=_Kept)
            os.utime(file)
            return kept
        found = self._read()
        _keep(file, msgspec.json.encode(found))
        return found

    def _read(self) -> _Kept:
        described = dict(self._described())
        symbols = list(self._symbols())
        names = demangled([symbol for symbol, *_ in symbols])
        functions: dict[int, Function] = {}
        for symbol, address, size in symbols:
            offset = self.offset_of(address)
            if offset >= 0 and address not in functions:
                name = _CLONE_TEXT.sub("", names[symbol])
                clone = bool(_CLONE.search(symbol))
                if name == symbol and clone:
                    name = symbol[: symbol.index(".")]
                entry = described.get(address, -1)
                functions[address] = Function(symbol, name, address, offset, size, entry, clone)
        ordered = [functions[address] for address in sorted(functions)]
        return _Kept(ordered, list(self._usdt()), self._imports_throw())

    def _symbols(self) -> Iterator[tuple[str, int, int]]:
        """Symbol, address and size of functions; of several at an address the global one comes first."""
        for name in (".symtab", ".dynsym"):
            table = self._elf.get_section_by_name(name)
            if table is None:
                continue
            found = [
                (symbol["st_info"]["bind"] == "STB_LOCAL", symbol.name, symbol["st_value"], symbol["st_size"])
                for symbol in table.iter_symbols()
                if symbol["st_info"]["type"] == "STT_FUNC"
                and symbol["st_shndx"] != "SHN_UNDEF"
                and symbol["st_size"]
                and not _FRAGMENT.search(symbol.name)
            ]
            # The names of one address in a lasting order; C1 and C2 are one constructor mostly.
            for _, symbol, address, size in sorted(found):
                yield symbol.partition("@")[0], address, size
            if found:
                return

    def _described(self) -> Iterator[tuple[int, int]]:
        """Address and place in the debug information of every function that has code."""
        if self.debug is None:
            return
        for unit in self.debug.iter_CUs():
            yield from _with_code(unit.get_top_DIE())

    def _imports_throw(self) -> bool:
        for name in (".dynsym", ".symtab"):
            table = self._elf.get_section_by_name(name)
            if table is not None and any(table.get_symbol_by_name(one) for one in _EXCEPTIONS):
                return True
        return False

    def _usdt(self) -> Iterator[Usdt]:
        import struct

        section = self._elf.get_section_by_name(".note.stapsdt")
        if section is None:
            return
        base = self._elf.get_section_by_name(".stapsdt.base")
        for note in section.iter_notes():
            content = note["n_desc"]
            content = content.encode("latin-1") if isinstance(content, str) else content
            address, linked, semaphore = struct.unpack_from("<QQQ", content)
            moved = base["sh_addr"] - linked if base is not None else 0
            provider, name, arguments, *_ = content[24:].split(b"\0")
            address += moved
            semaphore = self.offset_of(semaphore + moved) if semaphore else 0
            yield Usdt(
                provider.decode("utf-8", "replace"),
                name.decode("utf-8", "replace"),
                address,
                self.offset_of(address),
                semaphore,
                arguments.decode("latin-1"),
            )

    def _open(self, path: str) -> Any:
        try:
            from elftools.common.exceptions import ELFError
            from elftools.elf.elffile import ELFFile
        except ImportError:
            raise CollectorUnavailable(
                "reading programs needs pyelftools", "install it with: pip install pyelftools"
            ) from None
        try:
            file = self._files.enter_context(Path(path).open("rb"))  # noqa: SIM115
            return ELFFile(file)
        except OSError as problem:
            raise JobFailed(f"cannot read the program {path}: {problem.strerror}") from None
        except ELFError:
            self._files.close()
            raise JobFailed(
                f"{path} is not a binary program, so it has no functions to trace",
                "name the program that the command runs with --binary (-b)",
            ) from None


def is_own(function: Function) -> bool:
    """Whether a function is of the program's own source."""
    if _RUNTIME.fullmatch(function.symbol) or _RUNTIME.fullmatch(function.name.partition("(")[0]):
        return False
    return not plain_name(function.name).startswith(_LIBRARY_SPACES)


def match(functions: Sequence[Function], wanted: str) -> list[Function]:
    """The functions that `wanted` names, by the most exact spelling that names any."""
    import fnmatch

    if any(letter in wanted for letter in "*?[") and not wanted.startswith("operator"):
        form = re.compile(fnmatch.translate(wanted))
        return [
            function
            for function in functions
            if form.match(function.symbol)
            or form.match(function.name)
            or form.match(plain_name(function.name))
        ]
    squeezed = wanted.replace(" ", "")
    spellings = (
        lambda function: function.symbol,
        lambda function: function.name.replace(" ", ""),
        lambda function: plain_name(function.name).replace(" ", ""),
        lambda function: without_arguments(plain_name(function.name)).replace(" ", ""),
        lambda function: without_arguments(plain_name(function.name)).rpartition("::")[2],
    )
    for spelling in spellings:
        found = [function for function in functions if spelling(function) == squeezed]
        if found:
            return found
    return []


def plain_name(name: str) -> str:
    """The name without parameters and result: `void ns::add<int>(int) const` is `ns::add<int>`."""
    depth, end, start = 0, len(name), 0
    guarded = name.replace("(anonymous namespace)", "{anonymous namespace}").replace(
        "operator()", "operator[]"
    )
    for position, letter in enumerate(guarded):
        if letter in "<{" and not guarded.startswith("operator<", max(0, position - 8)):
            depth += 1
        elif letter in ">}" and depth and guarded[position - 1] != "-":
            depth -= 1
        elif letter == "(" and not depth:
            end = position
            break
        elif (
            letter == " " and not depth and not guarded[:position].rpartition("::")[2].startswith("operator")
        ):
            start = position + 1
    return name[start:end]


def without_arguments(name: str) -> str:
    """The name without template arguments: `ns::Bag<int>::add` is `ns::Bag::add`."""
    if "operator" in name or "<" not in name:
        return name
    depth, kept = 0, []
    for letter in name:
        depth += letter == "<"
        if not depth:
            kept.append(letter)
        depth -= letter == ">"
    return "".join(kept)


def demangled(symbols: Iterable[str]) -> dict[str, str]:
    """The names of the source for symbols; a symbol that is no name of C++ stays as it is."""
    names = {symbol: symbol for symbol in symbols}
    mangled = [symbol for symbol in names if symbol.startswith("_Z")]
    if mangled:
        names.update(zip(mangled, _demangle(mangled), strict=True))
    return names


def _demangle(symbols: list[str]) -> list[str]:
    import ctypes

    try:
        library = ctypes.CDLL("libstdc++.so.6")
        demangle = library.__cxa_demangle
    except (OSError, AttributeError):
        return _filtered(symbols)
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    free.restype = None
    demangle.restype = ctypes.c_void_p
    demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    names = []
    for symbol in symbols:
        status = ctypes.c_int()
        address = demangle(symbol.encode(), None, None, ctypes.byref(status))
        text = ctypes.string_at(address).decode("utf-8", "replace") if address else symbol
        if address:
            free(address)
        names.append(text)
    return names


def _filtered(symbols: list[str]) -> list[str]:
    import subprocess

    try:
        done = subprocess.run(
            ["c++filt"], input="\n".join(symbols), capture_output=True, text=True, check=False
        )
    except OSError:
        return symbols
    names = done.stdout.splitlines()
    return names if len(names) == len(symbols) else symbols


def _lines(program: Any, source: str) -> Iterator[tuple[int, int]]:
    """Lines of a source, and the addresses where their statements begin."""
    if program is None:
        return
    files = program["file_entry"]
    first = 0 if program["version"] >= 5 else 1
    for entry in program.get_entries():
        state = entry.state
        if state is None or state.end_sequence or not state.is_stmt:
            continue
        place = state.file - first
        if 0 <= place < len(files):
            name = files[place].name.decode("utf-8", "replace")
            if name == source or name.endswith("/" + source) or source.endswith("/" + name):
                yield state.line, state.address


def _with_code(parent: Any) -> Iterator[tuple[int, int]]:
    for entry in parent.iter_children():
        if entry.tag == "DW_TAG_subprogram":
            if "DW_AT_low_pc" in entry.attributes:
                yield entry.attributes["DW_AT_low_pc"].value, entry.offset
            elif "DW_AT_ranges" in entry.attributes:
                yield from _first_range(entry)
        elif entry.tag in ("DW_TAG_namespace", "DW_TAG_module"):
            yield from _with_code(entry)


def _first_range(entry: Any) -> Iterator[tuple[int, int]]:
    """The start of a function whose cold part lies elsewhere: its first range."""
    lists = entry.dwarfinfo.range_lists()
    if lists is None:
        return
    with contextlib.suppress(Exception):  # pyelftools raises what it likes for what it cannot read
        ranges = lists.get_range_list_at_offset(entry.attributes["DW_AT_ranges"].value, cu=entry.cu)
        base = entry.cu.get_top_DIE().attributes.get("DW_AT_low_pc")
        for one in ranges:
            if hasattr(one, "base_address"):
                base = one
                continue
            start = one.begin_offset
            if not getattr(one, "is_absolute", True):
                start += getattr(base, "base_address", getattr(base, "value", 0))
            yield start, entry.offset
            return


def _keep(file: Path, content: bytes) -> None:
    from perun import atomic

    with contextlib.suppress(OSError, ValueError):
        file.parent.mkdir(parents=True, exist_ok=True)
        atomic.write(file, content)
        kept = sorted((path.stat().st_mtime, path) for path in file.parent.glob("*.functions-*.json"))
        for _, path in kept[: max(0, len(kept) - KEPT_BINARIES)]:
            path.unlink()

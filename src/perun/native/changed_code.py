"""The code of one program that another build of it does not have the same.

The two files are compared as the processor sees them. All but code must be equal where it is in memory:
data, tables of the dynamic linker, addresses of sections. Pointers to code, in data and in instructions, must
lead to the same place of the function of the same name. Then a run that executes none of the changed code
goes through the same instructions in both, by induction over its steps: each reads and writes the same, and
leads to the same place. What is not understood is no answer: the caller takes it as changed.

That holds as long as a program neither reads its code as data nor computes with addresses of code, and is
left by no exception, which reads tables that are not compared (:func:`unwinds`).
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from perun.native.elf import ALLOCATED, NO_BITS, SYMBOLS, Damaged, ElfFile, Section, checked, text_at

Ranges = tuple[tuple[int, int], ...]
"""First addresses, and those behind the last ones, as they are in the file; sorted."""

MOST_CODE: Final = 16 << 20
"""Bytes of code of the largest program that is compared."""
_SHARED: Final = 3
_X86_64: Final = 62
_EXECUTABLE: Final = 4
_FUNCTION: Final = 2
_INDIRECT: Final = 10
_RELATIVE: Final = 8
_IRELATIVE: Final = 37
_INIT_AND_FINI: Final = frozenset({12, 13})
_RELA: Final = struct.Struct("<QQq")
_DYNAMIC: Final = struct.Struct("<QQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_BY_PROCESSOR: Final = re.compile(rb"\x0f(\xa2|\x01[\xd0\xf9]|\x31|\xc7[\xf0-\xff])|\x48\xc1\xc7\x0d")
"""Code that asks for the processor, a clock, chance, or whether valgrind is there (`cpuid`, `xgetbv`,
`rdtsc`, `rdrand`, `rol $13, %rdi`): its way may be another one in the next run."""
_BY_MOMENT: Final = re.compile(
    r"(?i)clock|(?<!run)time|random|rand_s|getauxval|__cpu_|pthread_create|thrd_create|_M_start_thread|dlopen|getpid"
    r"|sched_getcpu|get_nprocs|sysconf|getloadavg|getrusage|setitimer|alarm|dl_iterate_phdr|backtrace"
)
"""Names of functions of libraries that answer differently from run to run, or natively and under valgrind."""
_NOT_READ: Final = frozenset({".note.gnu.build-id", ".eh_frame", ".eh_frame_hdr", ".gcc_except_table"})


def unwinds(function: str) -> bool:
    """Whether a function of this name reads the tables of exceptions, which are not compared."""
    return function.startswith("_Unwind_")


class _Function(NamedTuple):
    start: int
    end: int
    limit: int
    key: tuple[str, int]


class _Program:
    """The parts of one file.

    :raises Damaged: where it is of a kind that is not compared.
    """

    def __init__(self, elf: ElfFile) -> None:
        if not elf.is_usual or elf.machine != _X86_64:
            raise Damaged("it is not for this kind of machine")
        self.elf = elf
        self.sections = [one for one in elf.sections if one.flags & ALLOCATED]
        text = next((one for one in self.sections if one.name == ".text"), None)
        if text is None or text.size > MOST_CODE:
            raise Damaged("it has no code, or too much")
        self.text, self.code = text, elf.content(text)
        if _BY_PROCESSOR.search(self.code):
            raise Damaged("its way depends on the processor")
        self.functions = list(self._functions())
        self._starts = [one.start for one in self.functions]
        self.places = {one.key: one.start for one in self.functions}

    def _functions(self) -> Iterator[_Function]:
        table = self.elf.symbols(SYMBOLS)
        if table is None:
            raise Damaged("it has no symbols")
        rows, names = table
        first, behind = self.text.address, self.text.address + self.text.size
        found: dict[int, tuple[str, int]] = {}
        for name_at, info, _, section, value, size in rows.tolist():
            kind, name = info & 15, text_at(names, name_at).decode("utf-8", "replace")
            if kind == _INDIRECT or (not section and _BY_MOMENT.search(name)):
                raise Damaged(f"its way may depend on {name}")
            if kind == _FUNCTION and section and first <= value < behind:
                known = found.get(value, (name, 0))
                found[value] = (min(name, known[0]), max(size, known[1]))
        seen: Counter[str] = Counter()
        starts = sorted(found)
        for start, limit in zip(starts, [*starts[1:], behind], strict=True):
            name, size = found[start]
            seen[name] += 1
            yield _Function(start, min(start + size, limit) if size else limit, limit, (name, seen[name]))

    def function_at(self, address: int) -> _Function | None:
        """The one that has the address, filling behind it included."""
        place = bisect_right(self._starts, address) - 1
        one = self.functions[place] if place >= 0 else None
        return one if one is not None and address < one.limit else None

    def bytes_of(self, start: int, end: int) -> bytes:
        """Of the code."""
        return self.code[start - self.text.address : end - self.text.address]


def changed_code(old: Path, new: Path) -> Ranges | None:
    """The code of the old program that the new one has not the same; None where more differs, or where that
    cannot be told."""
    try:
        with open(old, "rb") as first, open(new, "rb") as second, checked():
            return _Comparison(_Program(ElfFile(first)), _Program(ElfFile(second))).changed()
    except (Damaged, OSError):
        return None


class _Comparison:
    def __init__(self, old: _Program, new: _Program) -> None:
        self._old, self._new = old, new
        self._moved = {
            one.start: place - one.start
            for one in old.functions
            if (place := new.places.get(one.key)) is not None
        }

    def changed(self) -> Ranges | None:
        """As of :func:`changed_code`."""
        old, new = self._old, self._new
        stays = old.places == new.places
        if old.elf.type != new.elf.type or not (stays or old.elf.type == _SHARED):
            return None  # addresses that are fixed cannot be told from numbers
        if [one.type for one in old.elf.segments] != [one.type for one in new.elf.segments]:
            return None
        pairs = list(zip(old.sections, new.sections, strict=False))
        if len(old.sections) != len(new.sections) or not self._leads(old.elf.entry, new.elf.entry):
            return None
        pointers: set[int] = set()
        for first, second in pairs:
            if (first.name, first.type, first.flags) != (second.name, second.type, second.flags):
                return None
            if first.name.startswith(".rela") and not self._same_relocations(first, second, pointers):
                return None
        if not all(self._same_section(first, second, pointers) for first, second in pairs):
            return None
        return tuple(self._ranges())

    def _leads(self, before: int, after: int) -> bool:
        """Whether an address of the old program means the same as one of the new."""
        text = self._old.text
        if not text.address <= before < text.address + text.size:
            return before == after and not self._in_new_text(after)
        function = self._old.function_at(before)
        moved = None if function is None else self._moved.get(function.start)
        return moved is not None and before + moved == after

    def _in_new_text(self, address: int) -> bool:
        text = self._new.text
        return text.address <= address < text.address + text.size

    def _same_relocations(self, first: Section, second: Section, pointers: set[int]) -> bool:
        contents = [one.elf.content(part) for one, part in ((self._old, first), (self._new, second))]
        if len(contents[0]) != len(contents[1]) or len(contents[0]) % _RELA.size:
            return False
        for before, after in zip(*map(_RELA.iter_unpack, contents), strict=True):
            kind = before[1] & 0xFFFFFFFF
            if before[:2] != after[:2] or kind == _IRELATIVE:
                return False
            if kind == _RELATIVE:
                pointers.add(before[0])
                if not self._leads(before[2], after[2]):
                    return False
            elif before[2] != after[2]:
                return False
        return True

    def _same_section(self, first: Section, second: Section, pointers: set[int]) -> bool:
        if first.name == ".text":
            return True
        if first.name == ".fini":  # it stands behind the code, and has no addresses in it
            return self._content(self._old, first, set()) == self._content(self._new, second, set())
        if first.name in _NOT_READ:
            return True
        if first.address != second.address:
            return False
        if first.name.startswith(".rela"):
            return first.size == second.size
        if first.size != second.size:
            return False
        if first.type == NO_BITS:
            return True
        before, after = (
            self._content(program, one, pointers)
            for program, one in ((self._old, first), (self._new, second))
        )
        if first.name == ".dynamic":
            return all(
                one == other or (one[0] == other[0] and one[0] in _INIT_AND_FINI)
                for one, other in zip(*map(_DYNAMIC.iter_unpack, (before, after)), strict=True)
            )
        if first.name == ".dynsym":
            return all(map(self._same_symbol, _SYMBOL.iter_unpack(before), _SYMBOL.iter_unpack(after)))
        return before == after

    def _same_symbol(self, before: tuple[int, ...], after: tuple[int, ...]) -> bool:
        if before == after and not before[3]:
            return True
        same = before[:3] == after[:3] and bool(before[3]) == bool(after[3])
        return same and self._leads(before[4], after[4])

    @staticmethod
    def _content(program: _Program, section: Section, pointers: set[int]) -> bytes:
        """The bytes, without those that the dynamic linker writes."""
        data = bytearray(program.elf.content(section))
        for place in pointers:
            at = place - section.address
            if 0 <= at < len(data):
                data[at : at + 8] = bytes(len(data[at : at + 8]))
        return bytes(data)

    def _ranges(self) -> Iterator[tuple[int, int]]:
        done = self._old.text.address
        for one in self._old.functions:
            if not self._same(one):
                yield done, one.limit
            elif done < one.start or one.end < one.limit:
                yield from ((done, one.start),) if done < one.start else ()
                yield from ((one.end, one.limit),) if one.end < one.limit else ()
            done = one.limit

    def _same(self, function: _Function) -> bool:
        moved = self._moved.get(function.start)
        if moved is None:
            return False
        other = self._new.function_at(function.start + moved)
        if other is None or other.end - other.start != function.end - function.start:
            return False
        before = self._old.bytes_of(function.start, function.end)
        after = self._new.bytes_of(other.start, other.end)
        done = 0
        for start, size, field, width, is_jump in _instructions(before, function.start):
            if start != function.start + done or (is_jump and moved):
                return False  # a table of distances may lead it
            if width:
                parts = (data[done + field : done + field + width] for data in (before, after))
                distances = [int.from_bytes(part, "little", signed=True) for part in parts]
                end = start + size
                if not self._leads(end + distances[0], end + moved + distances[1]):
                    return False
            rest = [
                data[done : done + field] + data[done + field + width : done + size]
                for data in (before, after)
            ]
            if rest[0] != rest[1]:
                return False
            done += size
        return done == len(before)


def _instructions(code: bytes, address: int) -> Iterator[tuple[int, int, int, int, bool]]:
    """Address and size of each instruction, where in it a distance to another address is and its width, 0
    where there is none, and whether it jumps to what a register or the memory says."""
    import capstone
    from capstone import x86_const as x86

    engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    engine.detail = True
    for one in engine.disasm(code, address):
        field = width = 0
        by_memory = any(
            part.type == x86.X86_OP_MEM and part.mem.base == x86.X86_REG_RIP for part in one.operands
        )
        if by_memory:
            field, width = one.disp_offset, one.disp_size
        elif one.group(x86.X86_GRP_BRANCH_RELATIVE):
            field, width = one.imm_offset, one.imm_size
        jumps = one.id == x86.X86_INS_JMP and not by_memory and one.operands[0].type != x86.X86_OP_IMM
        if (by_memory or one.group(x86.X86_GRP_BRANCH_RELATIVE)) and not (field and width):
            return
        yield one.address, one.size, field, width, jumps

"""The formats of recordings: what the headers of the native code define is what Python reads and writes.

A small program is compiled with each header and prints its constants and the layout of its structures.
"""

import os
import re
import shutil
import struct
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

import perun.collect._calls.sizes as sizes
import perun.collect.complexity.records as calls
import perun.collect.complexity.records as decoding
import perun.collect.complexity.selection as table
import perun.collect.memory.records as memory
import perun.collect.trace.engines.ebpf as ebpf
from perun.collect._common.recordings import BYTE_ORDER
from perun.collect.memory.events import FIRST_RELEASE, KINDS, OF_PYTHON, REALLOC_FAILED, REALLOC_RELEASE

SOURCES = Path(__file__).parents[2] / "src" / "perun" / "collect"
Place = tuple[int, int]
"""Offset and size of a field, in bytes."""


class Header:
    """A header of the native code, as the compiler understands it."""

    def __init__(self, collector: str, folder: Path) -> None:
        self.text = (SOURCES / collector / "native" / "record.h").read_text("utf-8")
        self._header = SOURCES / collector / "native" / "record.h"
        self._folder = folder

    def values(self, expressions: Iterable[str]) -> list[int]:
        """What the expressions are."""
        compiler = shutil.which(os.environ.get("CC", "cc"))
        if compiler is None:
            pytest.skip("no C compiler is installed (apt-get install gcc)")
        prints = "".join(f'  printf("%lld\\n", (long long)({one}));\n' for one in expressions)
        source, program = self._folder / "print.c", self._folder / "print"
        source.write_text(
            f'#include <stddef.h>\n#include <stdio.h>\n#include "{self._header}"\nint main(void) {{\n'
            f"{prints}  return 0;\n}}\n"
        )
        subprocess.run([compiler, "-std=gnu11", "-o", program, source], check=True)
        return [int(line) for line in subprocess.check_output([program], text=True).split()]

    def constants(self, names: Iterable[str]) -> dict[str, int]:
        """The values of constants by their names."""
        wanted = list(names)
        return dict(zip(wanted, self.values(wanted), strict=True))

    def layout(self, name: str, fields: Iterable[str]) -> tuple[int, list[Place]]:
        """The size of `struct name`, and where its fields are."""
        size, *found = self.values(
            [
                f"sizeof(struct {name})",
                *(
                    part
                    for field in fields
                    for part in (f"offsetof(struct {name}, {field})", f"sizeof ((struct {name} *)0)->{field}")
                ),
            ]
        )
        return size, list(zip(found[::2], found[1::2], strict=True))

    def members(self, enumeration: str) -> set[str]:
        """The names in `enum enumeration`."""
        body = self.text.partition(f"enum {enumeration} {{")[2].partition("}")[0]
        items = re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL).split(",")
        return {item.partition("=")[0].strip() for item in items} - {""}


def layout_of(form: struct.Struct) -> tuple[int, list[Place]]:
    """The same of a form of the module struct, without what it skips."""
    order, text = ("=", form.format[1:]) if form.format.startswith("=") else ("", form.format)
    before, found = order, []
    for count, code in re.findall(r"(\d*)([a-zA-Z])", text):
        for item in [count + code] if code in "sx" else [code] * int(count or 1):
            before += item
            size = struct.calcsize("=" + item)
            if code != "x":
                found.append((struct.calcsize(before) - size, size))
    return form.size, found


def layout_of_rows(rows: Any) -> tuple[int, list[Place]]:
    """The same of a type of numpy."""
    return rows.itemsize, [(offset, kind.itemsize) for kind, offset, *_ in rows.fields.values()]


def upper(names: Mapping[str, int], prefix: str) -> dict[str, int]:
    return {prefix + name: int(value) for name, value in names.items()}


@pytest.mark.parametrize(
    ("name", "form", "fields"),
    [
        (
            "record_header",
            memory.HEADER.form,
            "magic byte_order version header_size pid parent unwinder wanted tick_shift ticks monotonic "
            "realtime pointer_size page_size",
        ),
        (
            "record_chunk",
            memory.CHUNK,
            "magic crc kind number packed unpacked words events sites amounts fresh thread first_ticks ticks "
            "monotonic width address_shift definitions",
        ),
        (
            "record_tail",
            memory.TAIL.form,
            "magic byte_order version pid state error words_capacity events_capacity "
            "half[0].chunk half[0].words half[0].words_offset half[0].events_offset "
            "half[1].chunk half[1].words half[1].words_offset half[1].events_offset "
            "skipped lost ticks monotonic",
        ),
    ],
)
def test_structures_of_memory(tmp_path: Path, name: str, form: struct.Struct, fields: str) -> None:
    assert Header("memory", tmp_path).layout(name, fields.split()) == layout_of(form)


def test_events_of_memory(tmp_path: Path) -> None:
    fields = memory.EVENT.names or ()
    assert Header("memory", tmp_path).layout("record_event", fields) == layout_of_rows(memory.EVENT)


def test_constants_of_memory(tmp_path: Path) -> None:
    header = Header("memory", tmp_path)
    names = {name.replace("[]", "_array"): kind for kind, name in KINDS.items() if kind != REALLOC_RELEASE}
    kinds = {f"RECORD_{name.upper()}": kind for name, kind in names.items() if kind not in OF_PYTHON}
    kinds |= {"RECORD_REALLOC_RELEASE": REALLOC_RELEASE, "RECORD_REALLOC_FAILED": REALLOC_FAILED}
    assert header.members("record_kind") == kinds.keys()
    assert header.members("record_state") == upper(memory.ExitState.__members__, "RECORD_").keys()
    wanted = {
        **kinds, **upper(memory.ExitState.__members__, "RECORD_"), "RECORD_VERSION": memory.HEADER.version,
        "RECORD_BYTE_ORDER": BYTE_ORDER, "RECORD_FREE": FIRST_RELEASE, "RECORD_STACK": memory.STACK,
        "RECORD_THREAD": memory.THREAD, "RECORD_MODULE": memory.MODULE, "RECORD_EVENTS": memory.EVENTS_CHUNK,
        "RECORD_TEXT": memory.TEXT_CHUNK, "RECORD_NO_CHUNK": memory.NO_CHUNK,
        "RECORD_MARK(300)": memory.MARK | 300 % memory.MARK
    }  # fmt: skip
    unwinders = ("NONE", "FRAME_POINTER", "LIBUNWIND", "TABLES")
    wanted |= {f"RECORD_UNWIND_{name}": number for number, name in enumerate(unwinders)}
    assert header.members("record_unwinder") == {f"RECORD_UNWIND_{name}" for name in unwinders}
    assert list(memory.UNWINDERS) == list(range(len(unwinders)))
    assert header.constants(wanted) == wanted
    for name, layout in (("RECORD_MAGIC", memory.HEADER), ("RECORD_TAIL_MAGIC", memory.TAIL)):
        assert f'#define {name} "{layout.magic.decode()}"' in header.text
    assert f'#define RECORD_CHUNK_MAGIC "{memory.CHUNK_MAGIC.decode()}"' in header.text


@pytest.mark.parametrize(
    ("name", "form", "fields"),
    [
        (
            "record_process",
            calls.PROCESS.form,
            "magic byte_order version pid parent is_tsc ended ticks[0] ticks[1] ticks[2] clock[0] clock[1] "
            "clock[2] functions lost_functions",
        ),
        (
            "record_thread",
            calls.THREAD.form,
            "magic byte_order version pid tid error number events_at written_at written window next end "
            "missed skipped too_deep lost",
        ),
        (
            "table_header",
            table.HEADER,
            "magic byte_order version modules functions programs steps only_listed paths",
        ),
        ("table_module", table.MODULE, "path path_size functions first_function programs first_program"),
        ("table_function", table.FUNCTION, "address size is_recorded sampling"),
        ("table_program", table.PROGRAM, "function low high offset place base steps first_step"),
        ("table_step", table.STEP, "operation number"),
    ],
)
def test_structures_of_complexity(tmp_path: Path, name: str, form: struct.Struct, fields: str) -> None:
    assert Header("complexity", tmp_path).layout(name, fields.split()) == layout_of(form)


def test_functions_of_complexity(tmp_path: Path) -> None:
    fields = calls.FUNCTION.names or ()
    assert Header("complexity", tmp_path).layout("record_function", fields) == layout_of_rows(calls.FUNCTION)


def test_constants_of_complexity(tmp_path: Path) -> None:
    header = Header("complexity", tmp_path)
    places, operations = (upper(one.__members__, "TABLE_") for one in (table.Operand, table.Operation))
    assert header.members("table_place") == places.keys()
    assert header.members("table_operation") == operations.keys()
    wanted = {
        **places, **operations, "RECORD_VERSION": calls.PROCESS.version, "RECORD_BYTE_ORDER": BYTE_ORDER,
        "RECORD_HEADER_SIZE": calls.HEADER_SIZE, "RECORD_MAX_FUNCTIONS": decoding.MAX_FUNCTIONS,
        "RECORD_ID_BITS": decoding.ID_BITS, "RECORD_ID_MASK": decoding.ID_MASK, "RECORD_EXIT": decoding.EXIT,
        "RECORD_SIZE": decoding.SIZE, "RECORD_UNSAMPLED_COUNT": decoding.UNSAMPLED_COUNT,
        "RECORD_UNSAMPLED_TICKS": decoding.UNSAMPLED_TICKS, "RECORD_UNSAMPLED": decoding.UNSAMPLED,
        "TABLE_FRAME": table.FRAME, "TABLE_INLINED": table.INLINED
    }  # fmt: skip
    assert header.constants(wanted) == wanted
    assert calls.THREAD.version == table.VERSION == calls.PROCESS.version
    magics = {"PROCESS": calls.PROCESS.magic, "CALLS": calls.THREAD.magic, "TABLE": table.MAGIC}
    for name, magic in magics.items():
        assert f'#define RECORD_{name}_MAGIC "{magic.decode()}"' in header.text


def test_constants_of_trace(tmp_path: Path) -> None:
    wanted = {
        "PERUN_EXIT": ebpf.EXIT >> 32, "PERUN_SIZED": 1 << (ebpf.SIZED_BIT - 32), "PERUN_STACK": ebpf.STACK,
        "PERUN_MAX_FUNCTIONS": ebpf.MAX_FUNCTIONS, "PERUN_MAX_STEPS": sizes.MAX_STEPS
    }  # fmt: skip
    assert Header("trace", tmp_path).constants(wanted) == wanted

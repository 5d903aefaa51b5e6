"""The table for the runtime: functions to record and how to read sizes. `native/record.h` owns its format."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from perun.collect._common.recordings import BYTE_ORDER

MAGIC: Final = b"PERUNCXT"
VERSION: Final = 2
FRAME: Final = 255
"""In place of the number of a register: the address of the frame of the function."""
INLINED: Final = 256
"""Added to the place of a program that is for where the function is inlined."""

HEADER: Final = struct.Struct("=8sIIIIIIII")
MODULE: Final = struct.Struct("=IIIIII")
FUNCTION: Final = struct.Struct("=QQII")
PROGRAM: Final = struct.Struct("=QQQqIIII")
STEP: Final = struct.Struct("=Qq")


class Place(IntEnum):
    """What a program begins with: a register, the memory at register and offset, or that address."""

    REGISTER = 0
    MEMORY = 1
    ADDRESS = 2


class Operation(IntEnum):
    """What a step does on the stack of values; see `enum table_operation`."""

    ADD = 0
    LOAD = 1
    LOAD_INT = 2
    COPY = 3
    SWAP = 4
    SUM = 5
    DIVIDE = 6
    MULTIPLY = 7
    MASK = 8
    EXTEND = 9


class Step(NamedTuple):
    """One step of a program."""

    operation: Operation
    number: int = 0


class Program(NamedTuple):
    """How to read a size where the hook returns to an address in [`low`, `high`).

    :param function: address of the entered function, which may be inlined in another one.
    :param base: number of a register in DWARF, or :data:`FRAME`. :param offset: bytes added to it.
    :param is_inlined: whether the program is for places where the function is inlined.
    """

    function: int
    low: int
    high: int
    place: Place
    base: int
    offset: int
    steps: tuple[Step, ...]
    is_inlined: bool = False


class TableFunction(NamedTuple):
    """A function: its address and bytes, whether its calls are recorded, and one in how many of them."""

    address: int
    size: int
    is_recorded: bool = True
    sampling: int = 1


class Module(NamedTuple):
    """The functions and programs of one file; :param path: its real path."""

    path: str
    functions: Sequence[TableFunction] = ()
    programs: Sequence[Program] = ()


def encoded(modules: Sequence[Module], *, only_listed: bool) -> bytes:
    """The bytes of the table.

    :param only_listed: record only functions of the table; otherwise all that it does not exclude.
    """
    texts = b""
    functions: list[bytes] = []
    programs: list[bytes] = []
    steps: list[bytes] = []
    heads: list[bytes] = []
    for module in modules:
        path = module.path.encode("utf-8", "surrogateescape")
        head = (len(texts), len(path), len(module.functions), len(functions))
        heads.append(MODULE.pack(*head, len(module.programs), len(programs)))
        texts += path
        functions += [FUNCTION.pack(*one) for one in sorted(module.functions)]
        for program in module.programs:
            where = (program.function, program.low, program.high, program.offset)
            how = (
                program.place + (INLINED if program.is_inlined else 0),
                program.base,
                len(program.steps),
                len(steps),
            )
            programs.append(PROGRAM.pack(*where, *how))
            steps += [STEP.pack(*step) for step in program.steps]
    counts = (len(modules), len(functions), len(programs), len(steps))
    header = HEADER.pack(MAGIC, BYTE_ORDER, VERSION, *counts, only_listed, len(texts))
    return b"".join([header, *heads, *functions, *programs, *steps, texts])

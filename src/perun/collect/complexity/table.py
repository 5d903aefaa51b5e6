"""The table of what is recorded and how sizes are read; `native/record.h` owns its format."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from perun.collect._common.recordings import BYTE_ORDER

MAGIC: Final = b"PERUNCXT"
VERSION: Final = 2
FRAME: Final = 255
"""The base of what lies at a distance from the frame of the function."""

INLINED: Final = 256
HEADER: Final = struct.Struct("=8sIIIIIIII")
MODULE: Final = struct.Struct("=IIIIII")
FUNCTION: Final = struct.Struct("=QQII")
PROGRAM: Final = struct.Struct("=QQQqIIII")
STEP: Final = struct.Struct("=Qq")


class Place(IntEnum):
    """What the first value of a program is."""

    REGISTER = 0
    MEMORY = 1
    ADDRESS = 2


class Operation(IntEnum):
    """What a step does with the last value."""

    ADD = 0
    LOAD = 1
    LOAD_INT = 2
    COPY = 3
    SWAP = 4
    SUBTRACT = 5
    SUM = 6
    DIVIDE = 7
    MULTIPLY = 8
    MASK = 9
    EXTEND = 10


class Step(NamedTuple):
    """One step of a program."""

    operation: Operation
    number: int = 0


class Program(NamedTuple):
    """How a size is read where the hook returns to an address from `low` to `high`.

    :param function: address of the function that the hook says is entered, which may be inlined in another.
    :param base: register, as DWARF numbers them, or :data:`FRAME`.
    :param is_inlined: whether this is for a place where it is.
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
    """A function: where it is, whether its calls are recorded, and every how many."""

    address: int
    size: int
    is_recorded: bool = True
    sampling: int = 1


class Module(NamedTuple):
    """What the table has of one file; :param path: its real path."""

    path: str
    functions: Sequence[TableFunction] = ()
    programs: Sequence[Program] = ()


def encoded(modules: Sequence[Module], *, only_listed: bool) -> bytes:
    """The table as the runtime reads it.

    :param only_listed: functions that are not in the table are not recorded.
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

"""What the runtime is told: the layout of the table, and steps that read sizes."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.collect._calls.sizes import Size, Term
from perun.collect.complexity.programs import (
    FRAME,
    Module,
    Operand,
    Operation,
    Program,
    Step,
    TableFunction,
    encoded,
    steps_of,
)


def test_layout() -> None:
    program = Program(0x10, 0x11, 0x12, Operand.MEMORY, FRAME, -24, (Step(Operation.LOAD, 4),), True)
    functions = [TableFunction(0x30, 5), TableFunction(0x10, 3, False, 10)]
    table = encoded([Module("/a"), Module("/bc", functions, [program])], only_listed=True)
    assert struct.unpack_from("=8s8I", table) == (b"PERUNCXT", 0x01020304, 2, 2, 2, 1, 1, 1, 5)
    assert struct.unpack_from("=12I", table, 40) == (0, 2, 0, 0, 0, 0, 2, 3, 2, 0, 1, 0)
    assert struct.unpack_from("=QQIIQQII", table, 88) == (0x10, 3, 0, 10, 0x30, 5, 1, 1)
    assert struct.unpack_from("=QQQqIIII", table, 136) == (0x10, 0x11, 0x12, -24, 257, 255, 1, 0)
    assert struct.unpack_from("=Qq", table, 184) == (1, 4)
    assert table[200:] == b"/a/bc"


def run(size: Size, value: int, memory: Mapping[int, int]) -> int:
    """What the runtime makes of the steps."""
    stack = [value]
    for operation, number in steps_of(size):
        last = stack.pop()
        if operation == Operation.COPY:
            stack += [last, last]
        elif operation in (Operation.SWAP, Operation.SUM):
            before = stack.pop()
            stack += [last, before] if operation == Operation.SWAP else [before + last]
        else:
            stack.append(after(operation, number, last, memory))
    (result,) = stack
    return result


def after(operation: Operation, number: int, last: int, memory: Mapping[int, int]) -> int:
    if operation == Operation.ADD:
        return last + number
    if operation == Operation.DIVIDE:
        return last // number
    if operation == Operation.MULTIPLY:
        return last * number
    if operation == Operation.MASK:
        return last & number
    if operation == Operation.EXTEND:
        return (last + (1 << 8 * number - 1)) % (1 << 8 * number) - (1 << 8 * number - 1)
    assert operation in (Operation.LOAD, Operation.LOAD_INT)
    return memory[last]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (Size(0, 0, (Term(1, (8,), 4, False),)), 30),
        (Size(0, 0, (Term(1, (0, 16), 8, False),)), 70),
        # The end minus the start, by the size of an element.
        (Size(0, 0, (Term(1, (24,), 8, False), Term(-1, (32,), 8, False)), 0, 4), 25),
        (Size(0, 0, (Term(1, (8,), 4, False), Term(2, (24,), 8, False), Term(-1, (32,), 8, False)), 5), 235),
        (Size(0, 0, (Term(1, (), 2, False),)), 1000),
        (Size(0, 0, (Term(1, (), 1, True),)), -24),
    ],
)
def test_steps(size: Size, expected: int) -> None:
    memory = {1008: 30, 1000: 2000, 2016: 70, 1024: 200, 1032: 100}
    if len(size.terms) == 3:
        memory[1032] = 200
    assert run(size, 1000, memory) == expected


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=6), st.integers(-9, 9))
def test_sums(factors: list[int], constant: int) -> None:
    terms = tuple(Term(factor, (8 * number,), 8, False) for number, factor in enumerate(factors))
    memory = {1000 + 8 * number: 10**number for number in range(len(factors))}
    expected = sum(factor * 10**number for number, factor in enumerate(factors)) + constant
    assert run(Size(0, 0, terms, constant), 1000, memory) == expected

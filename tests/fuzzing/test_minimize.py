"""Delta debugging of inputs."""

from __future__ import annotations

from itertools import count

import counting_programs as programs
import pytest

from perun.fuzz.after import Progress, keeps_cost, minimize


def test_it_leaves_what_the_cost_depends_on_and_nothing_else() -> None:
    data = b"#include <stdio.h>\nint main(void) {\n" + b" " * 300 + b"return 7;\n}\nint other;\n"
    before = programs.trim(data, 1)
    found = minimize(data, keeps_cost(programs.trim, before, 1))
    assert set(found.data) == {ord(" ")}
    assert 0.9 * before.total <= programs.trim(found.data, 1).total <= before.total
    assert found.before == len(data)
    assert found.complete
    assert found.tests == sum(stage.tests for stage in found.stages) < 200


@pytest.mark.parametrize("needle", [b"k7", b"\0\xff\0"])
def test_it_works_with_any_condition(needle: bytes) -> None:
    data = b"some words\nand lines " + needle + b" between others\n\0\x01" * 20
    found = minimize(data, lambda candidate: needle in candidate)
    assert found.data == needle


def test_what_is_left_cannot_lose_a_single_byte() -> None:
    def keeps(data: bytes) -> bool:
        return data.count(b"(") == data.count(b")") and data.count(b"(") >= 3

    found = minimize(b"f(x, g(y), h(1, 2)) + (3 * (4 + 5))", keeps)
    assert len(found.data) <= 8
    for at in range(len(found.data)):
        assert not keeps(found.data[:at] + found.data[at + 1 :])


def test_a_hang_remains_a_hang_and_a_fault_the_same_fault() -> None:
    hang = b"spse1poailcospse1poailcospse1poailco"
    found = minimize(hang, keeps_cost(programs.email, programs.email(hang, 1), 1))
    assert programs.email(found.data, 1).outcome == "hang"
    assert len(found.data) == 22  # 2^22 > 3,000,000
    assert set(found.data) <= set(b"a0")

    fault = b"x" * 50 + b"((" * 400 + b"y" * 50
    found = minimize(fault, keeps_cost(programs.parser, programs.parser(fault, 1), 1))
    assert found.data == b"(" * 701
    other = keeps_cost(programs.parser, programs.Ran("fault", 0, 0.0, -6), 1)
    assert not other(fault)


def test_runs_and_time_are_limited_and_that_is_said() -> None:
    data = b" ".join(b"w%d" % number for number in range(400))
    before = programs.hash_table(data, 1)
    seen: list[Progress] = []
    found = minimize(data, keeps_cost(programs.hash_table, before, 1), tests=40, report=seen.append)
    assert not found.complete
    assert found.tests == len(seen) <= 40
    assert programs.hash_table(found.data, 1).total >= 0.9 * before.total
    assert seen[-1].size == len(found.data)

    ticks = count()
    found = minimize(data, lambda _: False, seconds=50, clock=lambda: float(next(ticks)))
    assert not found.complete
    assert found.data == data


def test_an_empty_input_is_a_possible_answer() -> None:
    assert minimize(b"abc", lambda _: True).data == b""
    assert minimize(b"", lambda _: True).data == b""

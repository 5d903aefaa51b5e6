"""What is read of the text that perf prints."""

from __future__ import annotations

import pytest

from perun.collect.instructions.perf import StackSample, count, samples
from perun.collect.instructions.tree import RecordedFunction


@pytest.mark.parametrize(
    ("text", "value", "why"),
    [
        ("# started on ...\n\n123456,,instructions:u,1000,100.00,,\n", 123456, ""),
        ("0.48,msec,instructions:u,485711,100.00,0.355,CPUs utilized\n", 1, ""),
        ("<not supported>,,instructions:u,0,100.00,,\n", None, "not supported"),
        ("<not counted>,,instructions:u,0,100.00,,\n", None, "not counted"),
        ("12,,cycles:u,0,100.00,,\n", None, "perf printed no count"),
        ("Error:\nNo permission to enable instructions:u event.\n", None, "perf printed no count"),
        ("", None, "perf printed no count"),
        (f"{'9' * 20},,instructions:u,,,\n", 1 << 64, ""),
        (f"{'9' * 21},,instructions:u,,,\n", None, "9" * 21),
    ],
)
def test_counts(text: str, value: int | None, why: str) -> None:
    assert count(text, "instructions:u") == (value, why)


def test_samples() -> None:
    text = """
25810     100000 instructions:u:u:\x20
\t           18ffb leaf (/usr/lib/libx.so)
\t           1913f inlined_one (inlined)
\t           1913f std::map<int, (lambda)>::find(int) const (/tmp/a prog (deleted))
\t    ffffffff8001 [unknown] ([unknown])

a strange line
25811/25812     7 instructions:u:
\t           18ffb main+0x12 (/tmp/prog)
"""
    assert list(samples(text.splitlines())) == [
        StackSample(
            25810,
            100000,
            (
                RecordedFunction("leaf", "", "/usr/lib/libx.so"),
                RecordedFunction("inlined_one", "", "/tmp/a prog (deleted)"),
                RecordedFunction("std::map<int, (lambda)>::find(int) const", "", "/tmp/a prog (deleted)"),
                RecordedFunction("[unknown]", "", ""),
            ),
        ),
        StackSample(25811, 7, (RecordedFunction("main", "", "/tmp/prog"),)),
    ]


def test_no_samples() -> None:
    assert list(samples([])) == []
    assert list(samples(["\t 12 main (/x)", "", "no sample"])) == []

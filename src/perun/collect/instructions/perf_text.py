"""Reads what perf prints: the counts of `perf stat -x,`, and the samples of `perf script`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from math import ceil
from typing import Final, NamedTuple

from perun.collect.instructions.graph import Function

SCRIPT_FIELDS: Final = "pid,event,period,ip,sym,dso"
"""What is asked for of each sample, in this order, by `perf script -F`."""
_SAMPLE: Final = re.compile(r"\s*(?:.*\s)?(\d+)(?:/\d+)?\s+(\d+)\s+[\w:/.\-=,]+:\s*$")
_FRAME: Final = re.compile(r"\s+([0-9a-f]{1,16}) (.*) \(([^()]*(?:\([^()]*\))?[^()]*)\)\s*$")
_OFFSET: Final = re.compile(r"\+0x[0-9a-f]+$")
_LARGEST: Final = 1 << 64


class Sample(NamedTuple):
    """One sample: its process, how much it stands for, and its call stack, the innermost function first."""

    pid: int
    period: int
    stack: tuple[Function, ...]


def count(text: str, event: str) -> tuple[int | None, str]:
    """What `perf stat -x,` counted of an event; None, and why, where it did not.

    A line is: value, unit, event, and more that is of no interest. The value is a number, or a text such as
    `<not supported>`.
    """
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if event not in fields[1:4]:
            continue
        value = fields[0]
        if re.fullmatch(r"\d{1,20}(\.\d*)?", value):
            return min(ceil(float(value)) if "." in value else int(value), _LARGEST), ""
        return None, value.strip("<>") or "no value"
    return None, "perf printed no count"


def samples(lines: Iterable[str]) -> Iterator[Sample]:
    """The samples of `perf script`: a line for each, a line for each frame below it, and an empty one.

    Lines that are neither are passed over: newer releases print more than older ones.
    """
    pid = period = -1
    stack: list[Function] = []
    for line in lines:
        found = _SAMPLE.match(line)
        frame = None if found else _FRAME.match(line)
        if frame is not None and pid >= 0:
            name = _OFFSET.sub("", frame[2])
            binary = "" if frame[3] in ("[unknown]", "inlined") else frame[3]
            stack.append(Function(name, "", binary))
        elif found is not None or not line.strip():
            if pid >= 0:
                yield Sample(pid, period, _with_binaries(stack))
            pid, period, stack = -1, -1, []
        if found is not None:
            pid, period = int(found[1]), min(int(found[2]), _LARGEST)
    if pid >= 0:
        yield Sample(pid, period, _with_binaries(stack))


def _with_binaries(stack: list[Function]) -> tuple[Function, ...]:
    """The stack, in which an inlined function has the binary of the one that it is inlined in."""
    filled: list[Function] = []
    binary = ""
    for function in reversed(stack):
        binary = function.object or binary
        filled.append(function if function.object else function._replace(object=binary))
    return tuple(reversed(filled))

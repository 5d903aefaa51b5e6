"""Files: what `open` makes, and the standard streams.

In C the methods of the `_io` types are recorded for the files that are known; in Python `open` makes files of
derived classes. `io.open_code`, by which modules are imported, is left alone, and so are files of
`io.FileIO(...)`.
"""

from __future__ import annotations

import builtins
import io
import os
import stat
import sys
from time import monotonic_ns

from ..layout import NUMBERS
from ..recorder.base import Recorder
from ..recorder.rules import (
    ALWAYS,
    CLOSES,
    LENGTH_OF_RESULT,
    NESTED,
    NOTHING,
    OF_SELF,
    ONE,
    RAW,
    RESULT,
    Rule,
)

TYPE_CHECKING = False  # the module `typing` takes longer to load than all of the recorder
if TYPE_CHECKING:
    from typing import Any

    from ..recorder.rules import Describe


_READ, _WRITE, _LINE = NUMBERS["file.read"], NUMBERS["file.write"], NUMBERS["file.readline"]
_FLUSH, _CLOSE, _NEXT = NUMBERS["file.flush"], NUMBERS["file.close"], NUMBERS["file.next"]

_READS = {
    "read": Rule(_READ, LENGTH_OF_RESULT, OF_SELF),
    "read1": Rule(_READ, LENGTH_OF_RESULT, OF_SELF),
    "readinto": Rule(_READ, RESULT, OF_SELF),
    "readinto1": Rule(_READ, RESULT, OF_SELF),
    "readline": Rule(_LINE, LENGTH_OF_RESULT, OF_SELF),
}
_WRITES = {"write": Rule(_WRITE, RESULT, OF_SELF), "flush": Rule(_FLUSH, NOTHING, OF_SELF)}
_RAW = {
    "read": Rule(_READ, LENGTH_OF_RESULT, OF_SELF | RAW),
    "readall": Rule(_READ, LENGTH_OF_RESULT, OF_SELF | RAW),
    "readinto": Rule(_READ, RESULT, OF_SELF | RAW),
    "write": Rule(_WRITE, RESULT, OF_SELF | RAW),
}
_LINES = {
    "readlines": Rule(NUMBERS["file.readlines"], NESTED, OF_SELF),
    "writelines": Rule(NUMBERS["file.writelines"], NESTED, OF_SELF),
}
_TEXT_READS = ("read", "readline")
_METHODS: list[tuple[type, dict[str, Rule]]] = [
    (io.TextIOWrapper, {**{name: _READS[name] for name in _TEXT_READS}, **_WRITES}),
    (io.BufferedReader, _READS),
    (io.BufferedWriter, _WRITES),
    (io.BufferedRandom, {**_READS, **_WRITES}),
    (io.FileIO, _RAW),
]
_ITERATED = (io.TextIOWrapper, io.BufferedReader, io.BufferedRandom)


def install(recorder: Recorder) -> None:
    """Record the files of the program from now on."""
    closing = Rule(_CLOSE, NOTHING, OF_SELF | CLOSES, None)
    if recorder.limits is not None and recorder.limits.for_resource("filesopened"):
        closing = Rule(_CLOSE, NOTHING, OF_SELF | CLOSES | ALWAYS, _closing(recorder))
    methods = [(owner, name, rule) for owner, rules in _METHODS for name, rule in rules.items()]
    methods += [(owner, "close", closing) for owner, _ in _METHODS]
    opening = Rule(NUMBERS["file.open"], ONE, ALWAYS, _opening(recorder))
    if recorder.native:
        _install_native(recorder, methods, opening)
    else:
        _install_pure(recorder, methods, opening)


def _install_native(recorder: Any, methods: list[tuple[type, str, Rule]], opening: Rule) -> None:
    for owner, name, rule in methods:
        recorder.patch(owner, name, rule)
    for name, rule in _LINES.items():
        recorder.patch(io._io._IOBase, name, rule)  # type: ignore[attr-defined]
    for owner in _ITERATED:
        recorder.patch_next(owner, Rule(_NEXT, LENGTH_OF_RESULT, OF_SELF))
    _replace_open(recorder, recorder.wrapped(io.open, None, opening, recorder.limited(opening.api)))
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name, None)
        if isinstance(stream, io.TextIOWrapper):
            known(recorder, stream, monotonic_ns(), f"<{name}>")


def _install_pure(recorder: Any, methods: list[tuple[type, str, Rule]], opening: Rule) -> None:
    from ..recorder.pure_files import classes, opener

    methods = [*methods, *((io.IOBase, name, rule) for name, rule in _LINES.items())]
    methods += [(owner, "__next__", Rule(_NEXT, LENGTH_OF_RESULT, OF_SELF)) for owner in _ITERATED]
    made = opener(io.open, classes(recorder, methods))
    for name in ("stdin", "stdout", "stderr"):
        _record_stream(recorder, getattr(sys, name, None), f"<{name}>")
    _replace_open(recorder, recorder.wrapped(made, None, opening, recorder.limited(opening.api)))


def _record_stream(recorder: Any, stream: Any, name: str) -> None:
    """Record a stream that was there before: its methods become attributes of the object."""
    if type(stream) is io.TextIOWrapper:
        known(recorder, stream, monotonic_ns(), name)
        for method, rule in {"read": _READS["read"], "readline": _READS["readline"], **_WRITES}.items():
            original = getattr(io.TextIOWrapper, method)
            made = recorder.wrapped(original, io.TextIOWrapper, rule, recorder.limited(rule.api))
            recorder.replace(stream, method, made.__get__(stream))


def _replace_open(recorder: Recorder, replacement: Any) -> None:
    recorder.replace(builtins, "open", replacement)
    recorder.replace(io, "open", replacement)


def _opening(recorder: Recorder) -> Describe:
    def describe(_: Any, arguments: Any, named: Any, result: Any, start: int) -> int:
        return 0 if result is None else known(recorder, result, start)

    return describe


def _closing(recorder: Recorder) -> Describe:
    open_numbers: set[int] = set()

    def describe(file: Any, arguments: Any, named: Any, result: Any, start: int) -> int:
        number = recorder.number_of(file)
        if number not in open_numbers:
            open_numbers.add(number)
            recorder.limits.release("filesopened")
        return number

    return describe


def known(recorder: Recorder, file: Any, start: int, name: str = "") -> int:
    """Name a file, and know it and what it consists of; answers with its number."""
    kind, found = _identity(file)
    number = recorder.new_object(kind, name or found, start, f"mode\0{getattr(file, 'mode', '')}\0")
    buffer = getattr(file, "buffer", file)
    raw = getattr(buffer, "raw", buffer)
    recorder.track(file, number, 0, True)
    if buffer is not file:
        recorder.track(buffer, number, 0, False)
    if raw is not buffer:
        recorder.track(raw, number, 0, False)
    return number


def _identity(file: Any) -> tuple[str, str]:
    """Kind and name of a file: its absolute path, or what it is where it has none."""
    name = file.name
    # Whether a file can be positioned is known already; what else it is the system must be asked.
    plain = type(name) is str and name[:1] == "/" and "/." not in name and "//" not in name
    if plain and name[:5] != "/dev/" and file.seekable():
        return "file", name
    try:
        descriptor = file.fileno()
        kind = _kind(os.fstat(descriptor).st_mode, descriptor)
    except (OSError, ValueError):
        return "file", ""
    if isinstance(name, int):
        if kind not in ("file", "terminal", "device"):
            return kind, kind
        name = os.readlink(f"/proc/self/fd/{descriptor}")
    return kind, os.path.abspath(os.fsdecode(name))


def _kind(mode: int, descriptor: int) -> str:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISFIFO(mode):
        return "pipe"
    if stat.S_ISSOCK(mode):
        return "socket"
    if stat.S_ISCHR(mode):
        return "terminal" if os.isatty(descriptor) else "device"
    return "folder" if stat.S_ISDIR(mode) else "file"

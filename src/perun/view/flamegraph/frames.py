"""Frames of call stacks, made from the records of traces and from uids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from perun.profile.uid import flatten

MAX_AMOUNT: Final = 1e290
"""Larger amounts are left out, because the sum of many could overflow a float."""

_FUNCTIONS: Final = ("function", "func", "method", "procedure", "name")
_SOURCES: Final = ("source", "file", "module", "package", "bin")
_UNKNOWN_PLACES: Final = ("", "unreachable", "unknown", "??", "None")


class Frame(NamedTuple):
    """One call in a stack; an unknown source is empty, an unknown line 0."""

    name: str
    source: str = ""
    line: int = 0


def frame_of(record: Any) -> Frame:
    """The frame of a record of a trace, or of a uid; each is a mapping or text."""
    if not isinstance(record, Mapping):
        return Frame(str(flatten(record)))
    name = _first(record, _FUNCTIONS)
    source = _first(record, _SOURCES)
    if not name:
        return Frame(str(flatten(record)) or "?")
    line = record.get("line")
    return Frame(
        name, "" if source in _UNKNOWN_PLACES else source, line if type(line) is int and line > 0 else 0
    )


def _first(record: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((str(flatten(record[name])) for name in names if record.get(name) is not None), "")

"""What is not right yet. A test that succeeds all the same demands that its entry goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_SILENT: Final = "functions that uftrace could not patch have no calls, and no note names them"
_KILLS: Final = "the trampoline of returns breaks the program, because a panic unwinds its frames"

KNOWN_GAPS: Final[Mapping[tuple[str, str], str]] = {
    **dict.fromkeys(
        (
            ("known_registers", "uftrace"),
            ("tail_calls", "uftrace"),
            ("forks", "uftrace"),
            ("becomes_itself", "uftrace"),
            ("becomes_another", "uftrace"),
            ("leaves", "uftrace"),
            ("hidden_result", "uftrace"),
            ("plugin", "uftrace"),
            ("extension", "uftrace"),
        ),
        _SILENT,
    ),
    ("floats", "uftrace"): "a parameter behind one of type long double is looked for in the wrong place",
    ("vectors", "uftrace"): _SILENT,
    ("musl", "uftrace"): "uftrace never ends",
    ("set_user", "uftrace"): "uftrace never ends",
    ("killed", "uftrace"): "uftrace prints a message among the errors of the program",
    ("rust", "uftrace"): "uftrace crashes the program",
    ("other_allocator", "memory"): "new and delete are lost where malloc is replaced",
    ("rust", "memory"): "the functions of the library of Rust are not passed over",
    ("borrowed_memory", "callgrind"): "callgrind counts calls again that a child of vfork is born in",
    ("go", "ebpf"): "the trampoline of returns breaks the program, because its stacks move",
    ("rust", "ebpf"): _KILLS,
}
"""By program and engine."""

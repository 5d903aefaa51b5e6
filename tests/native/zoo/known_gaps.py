"""What is not right yet. A test that succeeds all the same demands that its entry goes."""

from collections.abc import Mapping
from typing import Final

_SILENT: Final = "functions that uftrace could not patch have no calls, and no note names them"

KNOWN_GAPS: Final[Mapping[tuple[str, str], str]] = {
    **dict.fromkeys(
        (("becomes_another", "uftrace"), ("plugin", "uftrace"), ("extension", "uftrace")), _SILENT
    ),
    ("musl", "uftrace"): "uftrace never ends",
    ("set_user", "uftrace"): "uftrace never ends",
    ("killed", "uftrace"): "uftrace prints a message among the errors of the program",
    ("self_checking", "ebpf"): "a probe is a byte of the code, which a program that reads its code sees",
    **dict.fromkeys(
        (("seccomp", "uftrace"), ("no_clock", "uftrace")),
        "uftrace does not know that a program confines itself",
    ),
    ("seccomp", "memory"): "system calls of the recorder end a program that allows few; a note says so",
}
"""By program and engine."""

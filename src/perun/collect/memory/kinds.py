"""Kinds of events: `enum record_kind` of `native/record.h`, and two more for Python programs."""

from __future__ import annotations

from typing import Final

KINDS: Final = {
    1: "malloc",
    2: "calloc",
    3: "realloc",
    4: "reallocarray",
    5: "memalign",
    6: "posix_memalign",
    7: "aligned_alloc",
    8: "valloc",
    9: "pvalloc",
    10: "new",
    11: "new[]",
    12: "object",
    13: "mmap",
    32: "free",
    33: "delete",
    34: "delete[]",
    35: "free",  # by realloc
}
"""Kind of an event to the subtype of its resource."""
OF_PYTHON: Final = frozenset({12, 13})
"""Kinds of Python programs only: allocations of objects, and memory that extensions map."""
FIRST_RELEASE: Final = 32
"""This kind and larger ones release memory."""
REALLOC_RELEASE: Final = 35
"""A realloc releases its old block."""
REALLOC_FAILED: Final = 36
"""The realloc has failed, so that the release before did not happen."""

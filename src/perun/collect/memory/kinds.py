"""Kinds of events: `enum record_kind` of `native/record.h`, and two more of Python programs."""

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
    35: "free",  # of what was given to realloc
}
"""Subtypes of resources by the kind of event."""
OF_PYTHON: Final = frozenset({12, 13})
"""Kinds of Python programs only: what its allocator of objects gives out, and memory mapped by extensions."""
FIRST_RELEASE: Final = 32
"""Kinds from here on release memory."""
REALLOC_RELEASE: Final = 35
"""The release of the block that realloc gets."""
REALLOC_FAILED: Final = 36
"""The realloc failed: its release did not take place."""

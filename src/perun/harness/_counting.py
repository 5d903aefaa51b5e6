"""Asks callgrind to count, as the macros CALLGRIND_START_INSTRUMENTATION and _STOP_ of its header do.

It is copied beside scripts that run in the Python of a project (3.9 or newer) and measure one benchmark
alone: what their libraries do at the start takes longer than most benchmarks.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager

_CODE = bytes.fromhex("4889f8 31d2 48c1c703 48c1c70d 48c1c73d 48c1c733 4887db c3")
"""For x86-64: mov rax, rdi; xor edx, edx; the rotations and the exchange that Valgrind knows; ret."""
_TOOL = ord("C") << 24 | ord("T") << 16
_START, _STOP = _TOOL + 4, _TOOL + 5


@contextmanager
def counted() -> Iterator[None]:
    """What happens within counts, and nothing else. Without Valgrind that does nothing."""
    _ask(_START)
    try:
        yield
    finally:
        _ask(_STOP)


def _ask(request: int) -> None:
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(_CODE)
    words = (ctypes.c_uint64 * 6)(request)
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(ctypes.addressof(words))

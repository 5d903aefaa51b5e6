"""Whether a program opens its input before it is copied: then all copies would see the same one."""

from __future__ import annotations

import contextlib
import ctypes
import os
from pathlib import Path
from typing import Final

_OPENED: Final = 0x20  # IN_OPEN
_READ: Final = 0x01  # IN_ACCESS


class Watch:
    """Watches one file, where the kernel lets us (inotify); elsewhere nothing is seen."""

    def __init__(self, path: Path) -> None:
        self._fd = -1
        with contextlib.suppress(OSError, AttributeError):
            library = ctypes.CDLL(None, use_errno=True)
            self._fd = int(library.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
            if self._fd >= 0:
                library.inotify_add_watch(self._fd, os.fsencode(path), ctypes.c_uint32(_OPENED | _READ))

    def saw_something(self) -> bool:
        """Whether the file was opened or read since; ends the watch."""
        if self._fd < 0:
            return False
        try:
            return bool(os.read(self._fd, 4096))
        except BlockingIOError:
            return False
        finally:
            os.close(self._fd)
            self._fd = -1

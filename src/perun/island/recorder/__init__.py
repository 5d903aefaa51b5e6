"""Recording inside of a measured program: in C where that was built, else in Python.

All of this imports nothing but the standard library, and its own package by relative names: it is loaded by
its path into Pythons that have no Perun. `layout` says what is written, `perun.island.record` reads it.
"""

from __future__ import annotations

from . import native as _native
from .base import Recorder

__all__ = ["Recorder", "open_recorder"]


def open_recorder(folder: str, native: bool | None = None) -> Recorder:
    """Begin to record this process into a new file of the folder.

    :param native: by the library in C; `None`: where it is there.
    :raises OSError: where the file cannot be made. :raises ImportError: where C is wanted, and not there.
    """
    library = _native.load() if native is not False else None
    if library is not None:
        return _native.NativeRecorder(folder, library)
    if native:
        raise ImportError(f"cannot load {_native.LIBRARY}")
    from .pure import PureRecorder

    return PureRecorder(folder)

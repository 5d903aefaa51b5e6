"""Keeps numpy's library for linear algebra to one thread.

OpenBLAS starts a thread for each further processor as numpy is loaded, and each first waits for work in a
busy loop: 0.1 s of CPU time, beside the very command that is measured. The matrices of Perun are small.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Final

VARIABLE: Final = "OPENBLAS_NUM_THREADS"
_CHOSEN_BY: Final = (VARIABLE, "OMP_NUM_THREADS", "GOTO_NUM_THREADS")


def keep_to_one_thread() -> None:
    """Let the library start no threads once numpy is loaded, unless the user says how many."""
    if "numpy" not in sys.modules and not any(name in os.environ for name in _CHOSEN_BY):
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finds numpy as Python does, and sets the variable while it is loaded, and no longer: a program that is
    measured meanwhile or later must not inherit it."""

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "numpy":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                os.putenv(VARIABLE, "1")  # `os.environ` stays as it is
                try:
                    load(module)
                finally:
                    os.unsetenv(VARIABLE)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

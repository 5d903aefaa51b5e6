"""Recording inside of a measured program: in C where that was built, else in Python.

All of this imports nothing but the standard library, and its own package by relative names: it is loaded by
its path into Pythons that have no Perun. `layout` says what is written, `perun.island.record` reads it.
"""

from __future__ import annotations

import os
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import ExtensionFileLoader

from .base import Recorder, is_plain, real_dictionary

TYPE_CHECKING = False  # the module `typing` takes longer to load than all of the recorder
if TYPE_CHECKING:
    from typing import Any

    from .rules import LimitHooks, Rule

__all__ = ["Recorder", "open_recorder"]

LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_recorder.abi3.so")


def open_recorder(folder: str, native: bool | None = None) -> Recorder:
    """Begin to record this process into a new file of the folder.

    :param native: by the library in C; `None`: where it is there.
    :raises OSError: where the file cannot be made. :raises ImportError: where C is wanted, and not there.
    """
    library = load() if native is not False else None
    if library is not None:
        return NativeRecorder(folder, library)
    if native:
        raise ImportError(f"cannot load {LIBRARY}")
    from .pure import PureRecorder

    return PureRecorder(folder)


# The recorder in C (`native/`), loaded by its path: the Python of the program may know nothing of Perun.


def load() -> Any:
    """The module `_recorder`, `None` where it was not built or this Python cannot load it."""
    if not is_plain() or not os.path.exists(LIBRARY):
        return None
    # What `importlib` does, without loading that.
    loader = ExtensionFileLoader("_recorder", LIBRARY)
    try:
        module = loader.create_module(ModuleSpec("_recorder", loader, origin=LIBRARY))
        loader.exec_module(module)
    except ImportError:
        return None
    return module


class NativeRecorder(Recorder):
    """Records by replaced methods of Python's own types: objects of the program are what they are without.

    :param library: the module that :func:`load` answers with.
    """

    native = True

    def __init__(self, folder: str, library: Any) -> None:
        self._library = library
        self.event = library.event  # type: ignore[method-assign]
        self.text = library.text  # type: ignore[method-assign]
        self.track = library.track  # type: ignore[method-assign]
        self.number_of = library.number_of  # type: ignore[method-assign]
        self.thread_ends = library.thread_ends  # type: ignore[method-assign]
        self.open_file = library.open  # type: ignore[method-assign]
        self.close_file = library.close  # type: ignore[method-assign]
        super().__init__(folder)

    def state(self, island: int = -1) -> tuple[int, int]:
        """Number and island of this thread; the island becomes another one where it is given."""
        answer: tuple[int, int] = self._library.thread_state(island)
        return answer

    def wrapped(self, original: Any, owner: type | None, rule: Rule, limited: LimitHooks) -> Any:
        """A function, or a method of `owner`, that calls the original and records that."""
        return self._library.wrap(original, owner, _told(rule, limited))

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Replace an attribute of a module or class, also of one that Python holds for immutable."""
        try:
            setattr(owner, name, value)
        except TypeError:
            real = real_dictionary(owner)
            if real is not None:
                self._library.put_attribute(owner, real, name, value)

    def patch_next(self, owner: type, rule: Rule) -> None:
        """Record each step of an iteration over objects of this type, until `unpatch`."""
        if self._library.wrap_next(owner, _told(rule, self.limited(rule.api))):
            self._undo.append(lambda: self._library.unwrap_next(owner))


def _told(rule: Rule, limited: LimitHooks) -> tuple[Any, ...]:
    """What the library is told of a call (`fill_call` of native/module.c)."""
    return rule.api, rule.amount, rule.rules, rule.describe, limited.before, limited.after, limited.failed

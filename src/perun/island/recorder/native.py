"""The recorder in C (`native/`), loaded by its path: the Python of the program may know nothing of Perun."""

from __future__ import annotations

import os
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from typing import Any

from .base import Recorder, is_plain, real_dictionary
from .rules import Limited, Rule

LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_recorder.abi3.so")


def load() -> Any:
    """The module `_recorder`, `None` where it was not built or this Python cannot load it."""
    if not is_plain() or not os.path.exists(LIBRARY):
        return None
    loader = ExtensionFileLoader("_recorder", LIBRARY)
    spec = spec_from_loader("_recorder", loader)
    if spec is None:
        return None
    try:
        module = module_from_spec(spec)
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
        self.open_file = library.open  # type: ignore[method-assign]
        self.close_file = library.close  # type: ignore[method-assign]
        super().__init__(folder)

    def state(self, island: int = -1) -> tuple[int, int]:
        """Number and island of this thread; the island becomes another one where it is given."""
        answer: tuple[int, int] = self._library.thread_state(island)
        return answer

    def wrapped(self, original: Any, owner: type | None, rule: Rule, limited: Limited) -> Any:
        """A function, or a method of `owner`, that calls the original and records that."""
        return self._library.wrap(original, owner, (*rule[:3], rule.describe, *limited))

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
        if self._library.wrap_next(owner, (*rule[:3], rule.describe, *self.limited(rule.api))):
            self._undo.append(lambda: self._library.unwrap_next(owner))

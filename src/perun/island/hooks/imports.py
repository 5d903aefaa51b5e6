"""Patches modules when the program imports them: what it does not need is not loaded for the recorder."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # the module `typing` takes longer to load than all of the recorder
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from importlib.machinery import ModuleSpec
    from typing import Any

    from ..recorder.base import Recorder

    Patch = Callable[[Recorder, Any], None]


class Patching:
    """A finder before all others, which finds nothing itself: it has the loader of a module patch it.

    :param patches: of each module what is done when it has been executed; at once where it is loaded.
    """

    def __init__(self, recorder: Recorder, patches: Mapping[str, Patch]) -> None:
        self._recorder = recorder
        self._patches: dict[str, Patch] = {}
        for name, patch in patches.items():
            if name in sys.modules:
                patch(recorder, sys.modules[name])
            else:
                self._patches[name] = patch
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Patch nothing any more."""
        self._patches.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """What the other finders say, with a loader that patches the module (protocol of finders)."""
        if name not in self._patches:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                self._prepare(spec, name)
                return spec
        return None

    def _prepare(self, spec: ModuleSpec, name: str) -> None:
        loader = spec.loader
        execute = getattr(loader, "exec_module", None)
        if loader is None or execute is None:
            return

        def exec_module(module: Any) -> None:
            vars(loader).pop("exec_module", None)
            execute(module)
            patch = self._patches.pop(name, None)
            if patch is not None:
                patch(self._recorder, module)

        try:
            loader.exec_module = exec_module  # type: ignore[method-assign]
        except (AttributeError, TypeError):
            return  # a loader of Python's own modules, which is one for all: `sys.modules` has these already

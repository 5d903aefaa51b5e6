"""Which calls are recorded: a module for each family of them.

`install` replaces functions and methods, so it runs before the program. Modules that the program may not need
are patched when it imports them.
"""

from __future__ import annotations

import sys

from ..recorder.base import Recorder
from . import files, sockets, waiting

TYPE_CHECKING = False  # the module `typing` takes longer to load than all of the recorder
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from importlib.machinery import ModuleSpec
    from typing import Any

    Patch = Callable[[Recorder, Any], None]

__all__ = ["install"]

_PATCHES = {
    "_thread": waiting.patch_locks,
    "threading": waiting.patch_threading,
    "random": waiting.patch_random,
    "socket": sockets.patch_socket,
    "ssl": sockets.patch_ssl,
    "select": sockets.patch_select,
    "selectors": sockets.patch_selectors,
    "asyncio.tasks": waiting.patch_asyncio,
}


def install(
    recorder: Recorder, limits: Any = None, *, all_calls: bool = False, spawned: str = ""
) -> Callable[[], None]:
    """Record the calls of this process from now on; answers with a function that puts all back.

    :param limits: of `perun.island.limits`; `None` for none.
    :param all_calls: also `os.read`, `os.write` and their relatives.
    :param spawned: code that has a Python recorded which `multiprocessing` spawns; empty: none is.
    """
    recorder.limits = limits
    files.install(recorder)
    waiting.install(recorder, all_calls)
    own = {"multiprocessing.util": waiting.patch_spawning(spawned)} if spawned else {}
    patching = PatchingFinder(recorder, {**_PATCHES, **own})

    def uninstall() -> None:
        patching.remove()
        recorder.unpatch()

    return uninstall


class PatchingFinder:
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
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, lambda module: self._done(name, module))  # type: ignore[assignment]
                return spec
        return None

    def _done(self, name: str, module: Any) -> None:
        patch = self._patches.pop(name, None)
        if patch is not None:
            patch(self._recorder, module)


class _Loader:
    """Stands in for the loader of a module until that is executed, and then patches the module."""

    def __init__(self, loader: Any, patch: Callable[[Any], None]) -> None:
        self._loader = loader
        self._patch = patch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: Any) -> Any:
        """What the loader makes, by the protocol of loaders."""
        spec.loader = self._loader
        try:
            return self._loader.create_module(spec) if hasattr(self._loader, "create_module") else None
        finally:
            spec.loader = self

    def exec_module(self, module: Any) -> None:
        """Execute the module, whose loader is its own again, and patch it."""
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._patch(module)

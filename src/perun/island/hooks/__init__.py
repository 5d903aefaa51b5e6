"""Which calls are recorded: a module for each family of them.

`install` replaces functions and methods, so it runs before the program. Modules that the program may not need
are patched when it imports them.
"""

from __future__ import annotations

from ..recorder.base import Recorder
from . import files, sockets, waiting
from .imports import PatchingFinder

TYPE_CHECKING = False  # the module `typing` takes longer to load than all of the recorder
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

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

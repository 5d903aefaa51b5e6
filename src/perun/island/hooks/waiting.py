"""Sleeping, random bytes, threads, timers, locks, processes, and the end of the program."""

from __future__ import annotations

import os
import sys
import time
from time import monotonic_ns

from ..layout import CONCURRENT, NUMBERS, RAISED
from ..recorder.base import Recorder
from ..recorder.rules import (
    LENGTH_OF_RESULT,
    NANOSECONDS_OF_FIRST,
    NOTHING,
    ONE,
    ONLY_LONG,
    RAW,
    RESULT,
    WAITS,
    Rule,
)

TYPE_CHECKING = False  # the module `typing` takes longer to load than all of the recorder
if TYPE_CHECKING:
    from typing import Any


_START = NUMBERS["thread.start"]
_ENDS = ("_exit", "abort", "execv", "execve")


def install(recorder: Recorder, all_calls: bool) -> None:
    """Record what modules do that every Python has loaded."""
    recorder.patch(time, "sleep", Rule(NUMBERS["time.sleep"], NANOSECONDS_OF_FIRST, WAITS))
    random = Rule(NUMBERS["random.bytes"], LENGTH_OF_RESULT)
    for name in ("urandom", "getrandom"):
        recorder.patch(os, name, random)
    for name in _ENDS:
        recorder.patch(os, name, Rule(NUMBERS["exit"], NOTHING, WAITS))
    for name in ("waitpid", "wait", "wait3", "wait4", "waitid"):
        recorder.patch(os, name, Rule(NUMBERS["wait.process"], NOTHING, ONLY_LONG | WAITS))
    if all_calls:
        _install_all(recorder)


def _install_all(recorder: Recorder) -> None:
    read, write = NUMBERS["os.read"], NUMBERS["os.write"]
    for name in ("read", "pread"):
        recorder.patch(os, name, Rule(read, LENGTH_OF_RESULT, RAW))
    for name in ("readv", "preadv"):
        recorder.patch(os, name, Rule(read, RESULT, RAW))
    for name in ("write", "pwrite", "writev", "pwritev", "sendfile", "copy_file_range", "splice"):
        recorder.patch(os, name, Rule(write, RESULT, RAW))


def patch_random(recorder: Recorder, module: Any) -> None:
    """Record the random bytes of the system that the module `random` took for itself."""
    if getattr(module, "_urandom", os.urandom) is not os.urandom:
        recorder.replace(module, "_urandom", os.urandom)


def patch_thread(recorder: Recorder, module: Any) -> None:
    """Record new threads: `_thread`, or `threading`, which has names of its own for its functions."""
    for name in ("start_new_thread", "_start_new_thread", "start_joinable_thread", "_start_joinable_thread"):
        original = getattr(module, name, None)
        if original is not None and not hasattr(original, "__perun__"):
            recorder.replace(module, name, _starting(recorder, original))


def patch_threading(recorder: Recorder, module: Any) -> None:
    """Record joining, timers and waiting for the objects of `threading`."""
    patch_thread(recorder, module)
    recorder.patch(module.Thread, "join", Rule(NUMBERS["thread.join"], NOTHING, ONLY_LONG | WAITS))
    recorder.patch(module.Condition, "wait", Rule(NUMBERS["lock.acquire"], NOTHING, ONLY_LONG | WAITS))
    recorder.patch(module.Timer, "cancel", Rule(NUMBERS["timer.cancel"], ONE))
    start = vars(module.Thread)["start"]
    timer = recorder.wrapped(start, module.Timer, Rule(NUMBERS["timer.start"], ONE), recorder.limited(0))
    recorder.replace(module.Timer, "start", timer)


def patch_locks(recorder: Recorder, module: Any) -> None:
    """Record new threads, and waiting for locks where the recorder can: only in C."""
    patch_thread(recorder, module)
    if recorder.native:
        rule = Rule(NUMBERS["lock.acquire"], NOTHING, ONLY_LONG)
        for kind in (module.LockType, module.RLock):
            for name in ("acquire", "__enter__"):
                recorder.patch(kind, name, rule)


def patch_spawning(code: str) -> Any:
    """What has the processes recorded that `multiprocessing` spawns, and the server that forks them.

    :param code: what they do first. Not so what keeps shared resources, and another Python.
    """

    def patch(recorder: Recorder, module: Any) -> None:
        original = module.spawnv_passfds

        def spawnv_passfds(path: Any, args: Any, passfds: Any) -> Any:
            words = list(args)
            place = words.index("-c") + 1 if "-c" in words else len(words)
            told = words[place : place + 1]
            if os.fsdecode(path) == sys.executable and told and "resource_tracker" not in str(told[0]):
                words[place] = code + words[place]
            return original(path, words, passfds)

        recorder.replace(module, "spawnv_passfds", spawnv_passfds)

    return patch


class _Started:
    """What a thread runs: the function that it was started with, known to the recorder."""

    def __init__(self, recorder: Recorder, function: Any, ended: Any) -> None:
        self._recorder = recorder
        self._function = function
        self._ended = ended
        self._parent, self._island = recorder.state()

    def __repr__(self) -> str:
        return repr(self._function)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        function = self._function
        name = getattr(getattr(function, "__self__", None), "name", "") or getattr(function, "__name__", "")
        self._recorder.thread(str(name), self._parent, self._island)
        try:
            return function(*arguments, **named)
        finally:
            if self._ended:
                self._ended(_START)
            self._recorder.thread_ends()


def _starting(recorder: Recorder, original: Any) -> Any:
    """A function that starts a thread which is known to the recorder."""
    limited = recorder.limited(_START)

    def start_new_thread(function: Any = None, *arguments: Any, **named: Any) -> Any:
        if not callable(function):
            return original(function, *arguments, **named)
        if limited.before:
            limited.before(_START)
        start, flags = monotonic_ns(), RAISED
        try:
            answer = original(_Started(recorder, function, limited.failed), *arguments, **named)
            flags = 0
            return answer
        finally:
            recorder.event(_START, 0, start, monotonic_ns(), 1, flags)
            if flags and limited.failed:
                limited.failed(_START)

    start_new_thread.__perun__ = True  # type: ignore[attr-defined]
    return start_new_thread


def patch_asyncio(recorder: Recorder, module: Any) -> None:
    """Record `asyncio.sleep`: a task sleeps while its thread does other things."""
    original, number = module.sleep, NUMBERS["asyncio.sleep"]

    async def sleep(delay: Any, result: Any = None) -> Any:
        """Coroutine that completes after a given time (in seconds)."""
        start, flags = monotonic_ns(), CONCURRENT | RAISED
        try:
            answer = await original(delay, result)
            flags = CONCURRENT
            return answer
        finally:
            amount = round(delay * 1e9) if isinstance(delay, (int, float)) and 0 < delay < 1e9 else 0
            recorder.event(number, 0, start, monotonic_ns(), amount, flags)

    recorder.replace(module, "sleep", sleep)
    package = sys.modules.get("asyncio")
    if package is not None and getattr(package, "sleep", None) is original:
        recorder.replace(package, "sleep", sleep)

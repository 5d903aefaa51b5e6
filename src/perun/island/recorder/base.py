"""What both recorders share: names of objects, threads and islands, replaced functions, and limits."""

from __future__ import annotations

import gc
import os
import sys
from itertools import count
from time import monotonic_ns

from .. import layout
from .rules import LimitHooks, Rule

TYPE_CHECKING = False  # the module `typing` takes longer to load than all of the recorder
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_FILES = 1000


class Recorder:
    """Records the calls of this process into a file of its folder; a forked process gets its own.

    The file is `rec.PID`, or `rec.PID.N` where there is one of the same process.
    """

    native: bool

    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)
        self.limits: Any = None
        self._numbers = count(1)
        self._islands = count(1)
        self._island_names = ["program"]
        self._undo: list[Callable[[], None]] = []
        self._open()
        self.thread("MainThread", -1, 0)
        os.register_at_fork(after_in_child=self._forked)
        self._closed = False

    # What differs between the two.

    def open_file(self, path: str, read: int, written: int) -> None:
        """Begin a recording in a new file; `read` and `written` are those of /proc/self/io.

        :raises FileExistsError: if there is one. :raises OSError: if it cannot be made.
        """
        raise NotImplementedError

    def close_file(self, read: int, written: int) -> None:
        """Complete the recording: the interpreter is about to end."""
        raise NotImplementedError

    def event(self, api: int, number: int, start: int, end: int, amount: int, flags: int) -> None:
        """Record a call of this thread, or a note."""
        raise NotImplementedError

    def text(self, note: int, number: int, start: int, data: bytes) -> None:
        """Record text."""
        raise NotImplementedError

    def state(self, island: int = -1) -> tuple[int, int]:
        """Number and island of this thread; the island becomes another one where it is given."""
        raise NotImplementedError

    def wrapped(self, original: Any, owner: type | None, rule: Rule, limited: LimitHooks) -> Any:
        """A function, or a method of `owner`, that calls the original and records that."""
        raise NotImplementedError

    def track(self, thing: Any, number: int, kind: int, closes: bool) -> bool:
        """Know an object by this number, until it is gone; answers whether that is possible.

        :param kind: position in `layout.KINDS` for sockets, else 0.
        :param closes: the object of this number is closed when the thing is gone.
        """
        raise NotImplementedError

    def number_of(self, thing: Any) -> int:
        """The number of a tracked object, 0 for any other."""
        raise NotImplementedError

    def spill(self) -> None:
        """What this thread has recorded goes to the file, where it is not there already."""

    def thread_ends(self) -> None:
        """This thread is about to end."""

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Replace an attribute of a module or class."""
        setattr(owner, name, value)

    # What is the same.

    def patch(self, owner: Any, name: str, rule: Rule) -> None:
        """Record calls of a function of a module, or of a method of a class, until :meth:`unpatch`.

        Where there is no such function, as in another Python or system, nothing happens.
        """
        found = name in vars(owner)
        original = vars(owner)[name] if found else getattr(owner, name, None)
        if original is None:
            return
        kind = None if isinstance(owner, type(sys)) else getattr(original, "__objclass__", owner)
        self.replace(owner, name, self.wrapped(original, kind, rule, self.limited(rule.api)))

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Replace an attribute of a module or class until :meth:`unpatch`."""
        found = name in vars(owner)
        original = vars(owner).get(name)
        self.put(owner, name, value)
        if found:
            self._undo.append(lambda: self.put(owner, name, original))
        else:
            self._undo.append(lambda: delattr(owner, name))

    def unpatch(self) -> None:
        """Put back all that was replaced, the last first."""
        while self._undo:
            self._undo.pop()()

    def limited(self, api: int) -> LimitHooks:
        """What the limits need of calls of this API; nothing where it has no limit."""
        limits, resource = self.limits, layout.APIS[api].resource
        if limits is None or not resource:
            return LimitHooks()
        apis = layout.APIS
        if resource in layout.COUNTED:
            if not limits.for_resource(resource):
                return LimitHooks()
            return LimitHooks(
                before=lambda api: limits.acquire(apis[api].resource),
                failed=lambda api: limits.release(apis[api].resource),
            )
        same = [one.resource for one in apis if one.name == apis[api].name]
        if not any(map(limits.for_resource, same)):
            return LimitHooks()

        def after(api: int, amount: int) -> int:
            deadline: int = limits.spend(apis[api].resource, amount)
            if deadline:
                limits.wait(deadline)
            return deadline

        return LimitHooks(after=after)

    def new_object(self, kind: str, name: str, start: int, more: str = "") -> int:
        """Name an object that the program opened at `start`; answers with its number.

        :param more: other facts, as `layout.text` makes text of them.
        """
        number = next(self._numbers)
        data = f"kind\0{kind}\0name\0{name}\0{more}".encode("utf-8", "surrogatepass")
        self.text(layout.NOTE_OBJECT, number, start, data)
        return number

    def say(self, number: int, start: int, **facts: str) -> None:
        """Say more, or something else, of an object."""
        self.text(layout.NOTE_OBJECT, number, start, layout.text(facts))

    def thread(self, name: str, parent: int, island: int) -> None:
        """Name this thread, which the thread `parent` started (-1: none did) in its island."""
        self.state(island)
        start = monotonic_ns()
        self.text(layout.NOTE_THREAD, parent & 0xFFFFFFFF, start, layout.text({"name": name}))
        if island:
            self.event(layout.NOTE_ENTERED, island, start, start, 0, 0)

    def island(self, name: str) -> int:
        """A new island with this name; answers with its number."""
        number = next(self._islands)
        self._island_names.append(name)
        self.text(layout.NOTE_ISLAND, number, monotonic_ns(), layout.text({"name": name}))
        return number

    def enter(self, number: int) -> int:
        """This thread is in another island from now on; answers with the number of the one before."""
        _, before = self.state(number)
        time = monotonic_ns()
        self.event(layout.NOTE_ENTERED, number, time, time, 0, 0)
        self.spill()
        return before

    def close(self) -> None:
        """The interpreter is about to end. Without this the recording is that of a killed program."""
        if not self._closed:
            self._closed = True
            self.close_file(*_input_output())

    def _open(self) -> None:
        for number in range(_FILES):
            path = os.path.join(self.folder, f"rec.{os.getpid()}" + (f".{number}" if number else ""))
            try:
                self.open_file(path, *_input_output())
            except FileExistsError:
                continue
            self.path = path
            return
        raise FileExistsError(path)

    def _forked(self) -> None:
        """In a new process: its calls go to a file of its own, in which names are said again."""
        if self.limits is not None:
            self.limits.after_fork()
        if self._closed:
            return
        _, island = self.state()
        try:
            self._open()
        except OSError:
            self._closed = True
            return
        for number, name in enumerate(self._island_names[1:], 1):
            self.text(layout.NOTE_ISLAND, number, monotonic_ns(), layout.text({"name": name}))
        self.thread("MainThread", -1, island)


def _input_output() -> tuple[int, int]:
    """Bytes that this process read and wrote, as the kernel counts; -1 where that is unknown."""
    try:
        descriptor = _open(f"/proc/{os.getpid()}/io", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1, -1
    try:
        words = _read(descriptor, 4096).split()
    except OSError:
        return -1, -1
    finally:
        _close(descriptor)
    return int(words[1]), int(words[3])


_open, _read, _close = os.open, os.read, os.close


def real_dictionary(owner: type) -> dict[str, Any] | None:
    """The dictionary behind `__dict__` of a type that cannot be changed; `None` where there is none."""
    for found in gc.get_referents(vars(owner)):
        if isinstance(found, dict) and found.keys() == vars(owner).keys():
            return found
    return None


def is_plain() -> bool:
    """Whether this is the Python whose types the recorder in C knows: CPython with a global lock."""
    unlocked = getattr(sys, "_is_gil_enabled", None)
    return sys.implementation.name == "cpython" and (unlocked is None or bool(unlocked()))

"""The recorder in Python, for where the one in C is not to be had: slower, and the last 0.1 s of a killed
program may be lost. Methods of Python's own types cannot be replaced from here: files are of classes of their
own (`pure_files`)."""

from __future__ import annotations

import os
from _thread import _local, get_native_id
from _weakref import ref
from itertools import count
from struct import calcsize, pack
from time import monotonic_ns as now
from time import thread_time_ns, time_ns

from .. import layout
from .base import Recorder
from .rules import (
    ALWAYS,
    BY_KIND,
    CLOSES,
    FIRST_OF_RESULT,
    LENGTH_OF_FIRST,
    LENGTH_OF_RESULT,
    LONG,
    NANOSECONDS_OF_FIRST,
    NESTED,
    OF_SELF,
    ONE,
    ONLY_LONG,
    RAW,
    RESULT,
    WAITS,
    LimitHooks,
    Rule,
)

TYPE_CHECKING = False  # the module `typing` takes longer to load than all of the recorder
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_SIZE = 1 << 18
"""Bytes of a chunk: to write one costs what a few hundred calls do, whatever its size."""
_SLOT = layout.SLOT.size
_FIRST = layout.CHUNK.size
_WORD = "n" if calcsize("n") == 8 else "q"
"""Format of a word of a slot: Python makes `n` of an integer in half of the time of `q`."""
_LATER = 100_000_000
"""ns after which what was recorded is written."""
_pack = layout.SLOT.pack_into
OWN_WORK = -1
"""Instead of the number of an object: the recorder itself is at work."""
OBJECT = "_perun_object"
"""Attribute of the files of `pure_files`: the number of the object and the API of a write, as in a slot."""
_WRITE = layout.NUMBERS["file.write"]
_open, _read, _pwrite, _close = os.open, os.read, os.pwrite, os.close


class ThreadRecorder:
    """What one thread records: a chunk in memory, which is written when it is full or 0.1 s old.

    :ivar top: number of the object of the innermost call that runs, and of `physical` and `nested` those of
        the call.
    """

    def __init__(self, recorder: PureRecorder, number: int) -> None:
        self.recorder = recorder
        self.number = number
        self.island = 0
        self.chunks = 0
        self.top = 0
        self.absorbing = 0
        self.physical = 0
        self.nested = 0
        self.buffer = bytearray(_SIZE)
        self.at = _SIZE  # where the next slot is
        self.low = _SIZE  # from where on nothing is written yet
        self.base = 0
        self.due = 0
        self.recent: list[int] = []  # whole calls that are not yet in the buffer: four words of each
        self.extend = self.recent.extend

    def flush(self) -> None:
        """Put the recent calls into the buffer, all at once: one by one takes three times as long."""
        words = self.recent[:]
        del self.recent[:]  # at once: a handler of a signal, which may run from here on, records calls, too
        data = pack(f"{len(words)}{_WORD}", *words)
        while data:
            if self.at == _SIZE:
                self._next_chunk()
            piece = data[: _SIZE - self.at]
            self.buffer[self.at : self.at + len(piece)] = piece
            self.at += len(piece)
            data = data[len(piece) :]

    def slot(self) -> int:
        """The place of a new slot in the buffer."""
        if self.recent:
            self.flush()
        at = self.at
        if at == _SIZE:
            self._next_chunk()
            at = self.at
        self.at = at + _SLOT
        return at

    def add(self, start: int, end: int, amount: int, api: int, flags: int, number: int) -> None:
        """Record a whole call."""
        if self.recent:
            self.flush()
        at = self.at
        if at == _SIZE:
            self._next_chunk()
            at = self.at
        _pack(self.buffer, at, start, end, amount, api, flags, number)
        self.at = at + _SLOT
        if end > self.due:
            self.spill()

    def add_text(self, start: int, note: int, number: int, data: bytes) -> None:
        """Record text; what does not fit into a chunk is cut off."""
        data = data[: _SIZE - _FIRST - _SLOT]
        slots = 1 + -(-len(data) // _SLOT)
        self.flush()
        if self.at + slots * _SLOT > _SIZE:
            self._next_chunk()
        at = self.at
        _pack(self.buffer, at, start, start, len(data), note, 0, number)
        self.buffer[at + _SLOT : at + _SLOT + len(data)] = data
        self.at = at + slots * _SLOT
        if start > self.due:
            self.spill()

    def spill(self, ended: int = 0) -> None:
        """Write what is recorded and not yet written, and a sample of the thread."""
        self.flush()
        self.due = now() + _LATER
        if self.base:
            self._write(ended)

    def _write(self, ended: int) -> None:
        time = now()
        head = layout.CHUNK.pack(
            *(layout.CHUNK_MAGIC, _SIZE, self.number, self.chunks - 1, get_native_id()),
            *(time, thread_time_ns(), _waited(), ended, 0),
        )
        self.buffer[:_FIRST] = head
        low = 0 if self.low == _FIRST else self.low
        with memoryview(self.buffer) as view:
            written = self.recorder.write(view[low : self.at], self.base + low)
            if low:
                self.recorder.write(head, self.base)
        if written:
            self.low = self.at
        else:
            self.recorder.lost += (self.at - self.low) // _SLOT
            self.low = self.at

    def rewrite(self, base: int, at: int, data: bytes) -> None:
        """Complete a slot of this or an earlier chunk."""
        if base == self.base:
            self.buffer[at : at + _SLOT] = data
            if at >= self.low:
                return
        self.recorder.write(data, base + at)

    def _next_chunk(self) -> None:
        if self.base:
            self._write(0)
        self.base = self.recorder.room(_SIZE)
        if self.base:  # so that a file that was cut off ends within a chunk, and no other does
            self.recorder.write(b"\0", self.base + _SIZE - 1)
        self.chunks += 1
        # What is still in the buffer is never written again: new memory for each chunk would take longer.
        self.at = self.low = _FIRST


class Only:
    """The thread of a process that has started no other: what belongs to a thread takes longer to find."""

    __slots__ = ("thread",)

    def __init__(self) -> None:
        self.thread: ThreadRecorder | None = None


class PureRecorder(Recorder):
    """Records by functions of Python around the originals."""

    native = False

    def __init__(self, folder: str) -> None:
        self.lost = 0
        self.local = _local()
        self.only = Only()
        self.ended = False
        self._kinds: dict[int, tuple[int, int, Any]] = {}
        super().__init__(folder)

    def open_file(self, path: str, read: int, written: int) -> None:
        """As in the base class."""
        descriptor = _open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        _close(descriptor)
        self.path = path
        self.only.thread = None
        vars(self.local).clear()  # in a new process, this is the only thread
        self._rooms = count(layout.HEADER_SIZE, _SIZE)
        self._threads = count()
        self.lost = 0
        self._started = now()
        self._clock = time_ns() - self._started
        self._before = read, written
        if not self._header(0, -1, -1):
            raise OSError(f"cannot write {path}")

    def close_file(self, read: int, written: int) -> None:
        """As in the base class."""
        # The functions here lose their globals while the interpreter ends, and files are still closed then.
        last = ThreadRecorder(self, 0)
        last.top = OWN_WORK
        self.here().spill()
        self._header(now(), read, written)
        self.ended, self.only.thread = True, last

    def _header(self, ended: int, read: int, written: int) -> bool:
        about = (os.getpid(), os.getppid(), 0, self._started, self._clock, ended, self.lost)
        head = layout.HEADER.pack(layout.MAGIC, layout.VERSION, *about, *self._before, read, written)
        return self.write(head.ljust(layout.HEADER_SIZE, b"\0"), 0)

    def here(self) -> ThreadRecorder:
        """The state of this thread."""
        try:
            found: ThreadRecorder = self.local.thread
        except AttributeError:
            number = next(self._threads)
            found = self.local.thread = ThreadRecorder(self, number)
            self.only.thread = None if number else found
        return found

    def room(self, size: int) -> int:
        """Where the next chunk of this many bytes goes in the file; 0: nowhere any more."""
        return next(self._rooms)

    def write(self, data: bytes | memoryview, at: int) -> bool:
        """Write to this place of the file; answers whether that could be done."""
        if not at and len(data) != layout.HEADER_SIZE:
            return True
        try:
            descriptor = _open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            return _pwrite(descriptor, data, at) == len(data)
        except OSError:
            return False
        finally:
            _close(descriptor)

    def event(self, api: int, number: int, start: int, end: int, amount: int, flags: int) -> None:
        """As in the base class."""
        self.here().add(start, end, amount, api, flags, number)

    def text(self, note: int, number: int, start: int, data: bytes) -> None:
        """As in the base class."""
        self.here().add_text(start, note, number, data)

    def state(self, island: int = -1) -> tuple[int, int]:
        """As in the base class."""
        thread = self.here()
        before = thread.island
        if island >= 0:
            thread.island = island
        return thread.number, before

    def spill(self) -> None:
        """As in the base class."""
        self.here().spill()

    def thread_ends(self) -> None:
        """As in the base class."""
        self.here().spill(now())

    def track(self, thing: Any, number: int, kind: int, closes: bool) -> bool:
        """As in the base class."""
        key = id(thing)

        def gone(_: object) -> None:
            if not self.ended and self._kinds.pop(key, None) is not None and closes:
                time = now()
                self.event(layout.NOTE_CLOSED, number, time, time, 0, 0)

        try:
            self._kinds[key] = number, kind, ref(thing, gone)
            if OBJECT in type(thing).__dict__:
                setattr(thing, OBJECT, number << 32 | _WRITE)
        except TypeError:
            return False
        return True

    def number_of(self, thing: Any) -> int:
        """As in the base class."""
        known = self._kinds.get(id(thing))
        return known[0] if known else 0

    def wrapped(self, original: Any, owner: type | None, rule: Rule, limited: LimitHooks) -> Any:
        """As in the base class."""
        call = wrapped(self, original, rule, limited)
        return BuiltinStandIn(call, original) if owner is None else call


class BuiltinStandIn:
    """Stands in for a built-in function: as an attribute of a class it does not become a method."""

    def __init__(self, call: Callable[..., Any], original: Any) -> None:
        self._call = call
        self._original = original
        self.__wrapped__ = original
        self.__name__ = original.__name__
        self.__qualname__ = original.__qualname__
        self.__module__ = original.__module__
        self.__doc__ = original.__doc__

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the original, and record that."""
        return self._call(*arguments, **named)

    def __repr__(self) -> str:
        return repr(self._original)

    def __reduce__(self) -> str:
        return str(self.__name__)


def wrapped(recorder: PureRecorder, original: Any, rule: Rule, limited: LimitHooks) -> Callable[..., Any]:
    """A function that calls the original and records that."""
    api, kind_of_amount, rules, describe = rule.api, rule.amount, rule.rules, rule.describe
    known = recorder._kinds

    def call(*arguments: Any, **named: Any) -> Any:
        if recorder.ended:
            return original(*arguments, **named)
        thread = recorder.here()
        if thread.top == OWN_WORK:
            return original(*arguments, **named)
        own = arguments[0] if rules & OF_SELF and arguments else None
        number, kind, _ = known.get(id(own), (0, 0, None)) if own is not None else (0, 0, None)
        if rules & OF_SELF and not number and (describe is None or rules & CLOSES):
            return original(*arguments, **named)
        first = (
            arguments[1] if own is not None and len(arguments) > 1 else arguments[0] if arguments else None
        )
        if number and thread.top >> 32 == number:
            return _absorbed(thread, original, rule, first, arguments, named)
        if limited.before:
            limited.before(api + kind * bool(rules & BY_KIND))
        outer = thread.top, thread.absorbing, thread.physical, thread.nested
        at, base, start = thread.slot(), thread.base, now()
        shown = api + (kind if rules & BY_KIND else 0)
        # What is asked of a sleep counts however it ends.
        amount = amount_of(kind_of_amount, None, first, 0) if kind_of_amount == NANOSECONDS_OF_FIRST else 0
        result, flags = None, layout.RAISED
        deadline = 0
        try:  # a handler of a signal may raise anywhere in it
            thread.top, thread.absorbing, thread.physical, thread.nested = number << 32, 0, 0, 0
            _pack(thread.buffer, at, start, 0, amount, shown, 0, number)
            if rules & WAITS:
                thread.spill()
            result = original(*arguments, **named)
            flags = layout.PHYSICAL if rules & RAW else 0
        finally:
            end = now()
            physical, nested = thread.physical, thread.nested
            thread.top, thread.absorbing, thread.physical, thread.nested = outer
            if recorder.here() is thread:
                try:
                    if flags != layout.RAISED:
                        amount = amount_of(kind_of_amount, result, first, nested)
                    if describe and (not number or rules & ALWAYS or end - start >= LONG):
                        rest = arguments[1:] if rules & OF_SELF else arguments
                        number = _described(thread, describe, own, rest, named, result, start) or number
                        if rules & BY_KIND and own is not None:
                            shown = api + known.get(id(own), (0, 0))[1]
                    if limited.after and flags != layout.RAISED:
                        flags |= layout.RAISED  # unless the wait ends as it should
                        deadline = limited.after(shown, amount)
                        flags &= ~layout.RAISED
                        end = now()
                    if limited.failed and flags & layout.RAISED:
                        limited.failed(shown)
                finally:
                    if rules & ONLY_LONG and end - start < LONG:
                        shown = 0
                    thread.rewrite(base, at, layout.SLOT.pack(start, end, amount, shown, flags, number))
                    if deadline:
                        thread.add(start, deadline, 1, layout.NOTE_EXPECTED, 0, number)
                    if physical and not rules & RAW:
                        thread.add(start, start, physical, layout.NOTE_PHYSICAL, 0, number)
                    if rules & CLOSES and number:
                        thread.add(end, end, 0, layout.NOTE_CLOSED, 0, number)
                    if end > thread.due:
                        thread.spill()
        return result

    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        try:
            setattr(call, name, getattr(original, name))
        except (AttributeError, TypeError):
            continue
    call.__wrapped__ = original  # type: ignore[attr-defined]
    return call


def _absorbed(
    thread: ThreadRecorder,
    original: Any,
    rule: Rule,
    first: Any,
    arguments: tuple[Any, ...],
    named: dict[str, Any],
) -> Any:
    """Call what is part of another call on the same object."""
    thread.absorbing += 1
    try:
        result = original(*arguments, **named)
    finally:
        thread.absorbing -= 1
    amount = amount_of(rule.amount, result, first, 0)
    if rule.rules & RAW:
        thread.physical += amount
    elif not thread.absorbing:
        thread.nested += amount
    return result


def amount_of(kind: int, result: Any, first: Any, nested: int) -> int:
    """The amount of a call, as its rule says; 0 where arguments or result are not what they should be."""
    try:
        if kind == ONE:
            return 1
        if kind == RESULT:
            return int(result or 0)
        if kind == LENGTH_OF_RESULT:
            return len(result)
        if kind == LENGTH_OF_FIRST:
            return int(len(first) if isinstance(first, (bytes, str)) else memoryview(first).nbytes)
        if kind == NANOSECONDS_OF_FIRST:
            return max(int(first * 1e9 + 0.5), 0)
        if kind == NESTED:
            return nested
        if kind == FIRST_OF_RESULT:
            return int(result[0]) if isinstance(result[0], int) else len(result[0])
    except (TypeError, ValueError, LookupError, OverflowError):
        pass
    return 0


def _described(
    thread: ThreadRecorder,
    describe: Any,
    own: Any,
    arguments: tuple[Any, ...],
    named: dict[str, Any],
    result: Any,
    start: int,
) -> int:
    top, thread.top = thread.top, OWN_WORK
    try:
        return int(describe(own, arguments, named, result, start) or 0)
    except Exception:
        return 0
    finally:
        thread.top = top


def _waited() -> int:
    """ns that this thread was ready to run and had no CPU."""
    try:
        descriptor = _open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return (1 << 64) - 1
    try:
        return int(_read(descriptor, 100).split()[1])
    except (OSError, LookupError, ValueError):
        return (1 << 64) - 1
    finally:
        _close(descriptor)

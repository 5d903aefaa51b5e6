"""Files for the recorder in Python: `open` makes them of classes that derive from Python's own.

A derived class, not an object around the file: what C code, `isinstance` and the program's own classes ask of
a file is answered by the file itself, and there is nothing that could keep an unclosed file, and its buffer,
alive.
"""

from __future__ import annotations

import io
import os
from time import monotonic_ns as now

from .. import layout
from ..layout import NUMBERS
from .pure import OBJECT, PureRecorder, ThreadRecorder, wrapped
from .rules import LENGTH_OF_RESULT, RESULT, LimitHooks, Rule

TYPE_CHECKING = False  # the module `typing` takes longer to load than all of the recorder
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_NEXT = NUMBERS["file.next"]
_MANY = 1 << 12
"""Words of recent calls that are kept in memory."""
_DEFAULTS = {
    **{"file": None, "mode": "r", "buffering": -1, "encoding": None, "errors": None, "newline": None},
    **{"closefd": True, "opener": None},
}
_NAMES = tuple(_DEFAULTS)


def classes(recorder: PureRecorder, methods: list[tuple[type, str, Rule]]) -> dict[type, type]:
    """For each class of a file a derived one, whose methods are recorded as the rules say.

    :param methods: class, name of a method, and its rule.
    """
    derived: dict[type, type] = {}
    for base in (io.FileIO, io.BufferedReader, io.BufferedWriter, io.BufferedRandom, io.TextIOWrapper):
        body: dict[str, Any] = {
            "__slots__": (OBJECT,),
            "__module__": base.__module__,
            "__qualname__": base.__qualname__,
        }
        for owner, name, rule in methods:
            if not issubclass(base, owner) or (owner is io.IOBase and base is io.FileIO):
                continue
            limited = recorder.limited(rule.api)
            fast = base is not io.FileIO and not limited.after and rule.amount in (RESULT, LENGTH_OF_RESULT)
            make = _fast if fast else wrapped
            body[name] = make(recorder, getattr(base, name), rule, limited)
        body["__repr__"] = _repr(base)
        derived[base] = type(base.__name__, (base,), body)
    return derived


def _repr(base: Any) -> Callable[[Any], str]:
    """Some of them show the name of their class without that of its module, where it is a derived one."""

    def show(self: Any) -> str:
        text: str = base.__repr__(self)
        return text if text.startswith("<_io.") else f"<_io.{text[1:]}"

    return show


def _fast(recorder: PureRecorder, original: Any, rule: Rule, limited: LimitHooks) -> Callable[..., Any]:
    """As `wrapped`, for the calls that programs make most often on files: it does the same with less ado.

    A call is whole when it is recorded. What is recorded goes to the disk with the buffer of the file, or
    when there are `_MANY` words of it.
    """
    api, local, only = rule.api, recorder.local, recorder.only
    other = api ^ NUMBERS["file.write"]
    slow, inner = wrapped(recorder, original, rule, limited), _inner

    def write(self: Any, data: Any, /) -> Any:
        try:
            thread = only.thread
            if thread is None:
                thread = local.thread
            word = self._perun_object
        except AttributeError:
            return slow(self, data)
        if thread.top:
            return inner(thread, slow, original, self, (data,))
        thread.top = word
        start = now()
        try:
            result = original(self, data)
            thread.extend((start, now(), result, word))
        except BaseException:
            _failed(thread, start, api, word)
            raise
        thread.top = 0
        if thread.physical or not result:
            _noted(thread, start, word)
        return result

    def read(self: Any, *data: Any) -> Any:
        try:
            thread = only.thread
            if thread is None:
                thread = local.thread
            word = self._perun_object
        except AttributeError:
            return slow(self, *data)
        if thread.top:
            return inner(thread, slow, original, self, data)
        thread.top = word
        start = now()
        try:
            result = original(self, *data)
            thread.extend((start, now(), len(result) if result else 0, word ^ other))
        except BaseException:
            _failed(thread, start, api, word)
            raise
        thread.top = 0
        if thread.physical or len(thread.recent) > _MANY:
            _noted(thread, start, word)
        return result

    call = write if rule.amount == RESULT and original.__name__ == "write" else read
    call = call if rule.amount == LENGTH_OF_RESULT or call is write else slow
    call.__name__ = original.__name__
    call.__qualname__ = original.__qualname__
    call.__doc__ = original.__doc__
    return call


def _inner(thread: ThreadRecorder, slow: Any, original: Any, self: Any, data: tuple[Any, ...]) -> Any:
    """A call inside of another one: it is a part of that if that is on the same file."""
    if thread.top >> 32 != self._perun_object >> 32:
        return slow(self, *data)
    thread.absorbing += 1
    try:
        result = original(self, *data)
    finally:
        thread.absorbing -= 1
    if result and not thread.absorbing:
        thread.nested += result if isinstance(result, int) else len(result)
    return result


def _failed(thread: ThreadRecorder, start: int, api: int, word: int) -> None:
    thread.top = 0
    thread.add(start, now(), 0, api, 0 if api == _NEXT else layout.RAISED, word >> 32)
    _noted(thread, start, word)


def _noted(thread: ThreadRecorder, start: int, word: int) -> None:
    """Note what a call exchanged with the system, and write what is due."""
    if thread.physical:
        thread.add(start, start, thread.physical, layout.NOTE_PHYSICAL, 0, word >> 32)
        thread.physical = 0
    thread.nested = 0
    if len(thread.recent) > _MANY:
        thread.flush()
    if now() > thread.due:
        thread.spill()


def opener(original: Any, derived: dict[type, type]) -> Callable[..., Any]:
    """A function like `open` that makes files of the derived classes.

    What it does is what the documentation of `io` says of `open`. Wrong arguments go to the original, which
    refuses them in its own words.
    """
    raw_file, text_file = derived[io.FileIO], derived[io.TextIOWrapper]

    def open(*arguments: Any, **named: Any) -> Any:
        given = {**dict(zip(_NAMES, arguments)), **named}  # noqa: B905 - Python 3.9 knows no `strict`
        if "file" not in given or given.keys() - _DEFAULTS.keys() or len(given) < len(arguments) + len(named):
            return original(*arguments, **named)
        values = {**_DEFAULTS, **given}
        file, mode, buffering, encoding, errors, newline, closefd, opener = (values[name] for name in _NAMES)
        kind = _kind_of(mode, buffering, encoding, errors, newline)
        if kind is None:
            return original(*arguments, **named)
        flags, base = kind
        result = raw = raw_file(file, flags, closefd, opener)
        try:
            size = buffering
            line_buffering = buffering == 1 or (buffering < 0 and raw.isatty())
            if line_buffering or buffering < 0:
                size = _buffer_size(raw)
            if buffering == 0:
                return result
            result = buffer = derived[base](raw, size)
            if "b" in mode:
                return result
            encoding = io.text_encoding(encoding) if hasattr(io, "text_encoding") else encoding
            result = text_file(buffer, encoding, errors, newline, line_buffering)
            result.mode = mode
            return result
        except BaseException:
            result.close()
            raise

    return open


def _kind_of(mode: Any, buffering: Any, encoding: Any, errors: Any, newline: Any) -> tuple[str, type] | None:
    """Flags for `FileIO` and the class of the buffer; `None` for what `open` refuses or warns of."""
    if not isinstance(mode, str) or not isinstance(buffering, int):
        return None
    letters = set(mode)
    binary = "b" in letters
    if letters - set("axrwb+t") or len(mode) > len(letters) or (binary and "t" in letters):
        return None
    if len(letters & set("xrwa")) != 1 or buffering < -1:
        return None
    if binary and (encoding is not None or errors is not None or newline is not None or buffering == 1):
        return None
    if not binary and buffering == 0:
        return None
    flags = "".join(letter for letter in mode if letter not in "bt")
    base = io.BufferedRandom if "+" in mode else io.BufferedReader if "r" in mode else io.BufferedWriter
    return flags, base


def _buffer_size(raw: Any) -> int:
    size = getattr(os.fstat(raw.fileno()), "st_blksize", 0)
    return size if size > 1 else io.DEFAULT_BUFFER_SIZE

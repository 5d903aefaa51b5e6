"""Recordings written down by hand: what the accounting is given in tests, without a recorder."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from perun.island.layout import APIS, CONCURRENT, NUMBERS, Api
from perun.island.record import DTYPE as DTYPE_OF_CALLS
from perun.island.record import Call, CallBlock, Object, Recording, Thread, call_blocks
from perun.island.scan import SLOT

DTYPE = np.dtype(
    [
        ("thread", "u4"), ("island", "u4"), ("api", "u2"), ("start", "i8"), ("end", "i8"), ("object", "i4"),
        ("amount", "i8"), ("physical", "i8"), ("expected", "i8"), ("arrived", "i8"), ("flags", "u2"),
    ]
)  # fmt: skip
SECOND = 1_000_000_000


def ns(seconds: float) -> int:
    return round(seconds * SECOND)


def api(name: str, resource: str = "") -> int:
    """The number of the API of this name that uses this resource."""
    if not resource:
        return NUMBERS[name]
    return next(number for number, one in enumerate(APIS) if (one.name, one.resource) == (name, resource))


def call(
    name: str, start: float, end: float, amount: int = 0, *, resource: str = "", thread: int = 0, **more: int
) -> Call:
    """A call; times in seconds. Sleeps ask for `amount` ns."""
    known = {"island": 0, "object": -1, "physical": -1, "expected": -1, "arrived": -1, "flags": 0}
    values = {
        "thread": thread, "api": api(name, resource), "start": ns(start), "end": ns(end), "amount": amount
    }  # fmt: skip
    return Call(**{**known, **values, **more})


def columns(calls: Iterable[Call]) -> Any:
    ordered = sorted(calls, key=lambda one: (one.thread, one.start))
    return np.array([tuple(getattr(one, name) for name in DTYPE.names or ()) for one in ordered], DTYPE)


def blocks(calls: Iterable[Call], size: int = 3) -> Iterator[CallBlock]:
    """The calls of one thread in blocks of so many; concurrent ones behind all others."""
    found = columns(calls).astype(DTYPE_OF_CALLS)
    concurrent = (found["flags"] & CONCURRENT) != 0
    none = np.zeros(0, SLOT)
    taking = found[~concurrent]
    yield from call_blocks((none, taking[at : at + size]) for at in range(0, len(taking), size))
    if concurrent.any():
        yield CallBlock(found[concurrent], 0, np.ones(int(concurrent.sum()), np.bool_))


def columns_of(recording: Recording) -> Any:
    """All calls of a recording by thread and start."""
    parts = [
        block.calls[block.done] for thread in recording.threads for block in recording.blocks(thread.number)
    ]
    found = np.concatenate([np.zeros(0, DTYPE_OF_CALLS), *parts])
    return found[np.lexsort((found["start"], found["thread"]))]


def thread(number: int, name: str, created: float, destroyed: float = -1.0, **more: int) -> Thread:
    """A thread; times in seconds."""
    known = {"native": 100 + number, "parent": -1, "sampled": ns(1e6), "cpu": -1, "run_queue": -1}
    gone = ns(destroyed) if destroyed >= 0 else -1
    return Thread(
        **{
            **known,
            "number": number,
            "name": name,
            "created": ns(created),
            "destroyed": gone,
            "island": 0,
            **more,
        }
    )  # type: ignore[arg-type]


class HandMade:
    """A recording with these calls."""

    apis: Sequence[Api] = APIS
    pid = 1
    started = 0
    io = (0, 0)
    io_end = (-1, -1)
    notes: Sequence[str] = ()

    def __init__(
        self, calls: Iterable[Call] = (), threads: Sequence[Thread] = (), objects: Sequence[Object] = (),
        islands: Sequence[str] = ("program",), entered: Sequence[tuple[float, int]] = ()
    ) -> None:  # fmt: skip
        """`entered` are the islands that the first thread was in, and since when [s]."""
        self._entered = list(entered)
        self._calls = list(calls)
        self.threads = list(threads)
        self.objects = list(objects)
        self.islands = list(islands)
        self.ended = max((one.end for one in self._calls), default=0)

    def blocks(self, number: int) -> Iterator[CallBlock]:
        yield from blocks(one for one in self._calls if one.thread == number)

    def of_thread(self, number: int) -> Iterator[Call]:
        return iter(sorted((one for one in self._calls if one.thread == number), key=lambda one: one.start))

    def entered(self, number: int) -> tuple[Any, Any]:
        pairs = self._entered if number == 0 else []
        times = np.array([ns(time) for time, _ in pairs], np.int64)
        return times, np.array([island for _, island in pairs], np.int32)

"""Limits of a program: bytes per second, and how many files, sockets and threads it holds at one time.

A rate is held by a leaky bucket. Each call first does its work, books its bytes, and then waits until as many
seconds have passed as they take at this rate: 20 bytes at 10 bytes per second take 2 s, and the next call
finds an empty bucket. `burst` is how many seconds of the rate may be used at once: with 1, the same call
takes 1 s.

These are limits by accounting: they hold for calls that are recorded, in each process by itself. They are no
protection from a program that wants to get around them.

This module is loaded into measured programs, so that it imports nothing of Perun.
"""

from __future__ import annotations

import errno
import time
from _thread import allocate_lock
from collections.abc import Callable, Iterable
from typing import NamedTuple

SECOND = 1_000_000_000

RATES = (
    "fileread", "filewrite", "tcpsend", "tcprecv", "udpsend", "udprecv", "unixsend", "unixrecv", "random",
)  # fmt: skip
"""Resources that are limited in bytes per second."""
GROUPS: dict[str, tuple[str, ...]] = {
    "netsend": ("tcpsend", "udpsend", "unixsend"),
    "netrecv": ("tcprecv", "udprecv", "unixrecv"),
}
"""Names for several of them that have one limit together."""
COUNTS = {
    "filesopened": "files",
    "outsockets": "connections",
    "insockets": "accepted connections",
    "events": "",
}
"""Resources of which a program may hold so many at one time, and what these are called."""


class WrongLimit(ValueError):
    """The text of a limit means nothing; the message says what is wrong and what is possible."""


class Limit(NamedTuple):
    """One limit: `value` per second of a rate, at one time of a count; of `cpu`, the share of one
    processor.
    """

    name: str
    value: float


def limit_of(text: str) -> Limit:
    """The limit that a text like `filewrite=10` or `cpu=.25` means.

    :raises WrongLimit: if it means none.
    """
    name, equals, value = text.partition("=")
    name = name.strip()
    if not equals:
        raise WrongLimit(f"the limit {text!r} has no value: write it as NAME=VALUE, e.g. filewrite=1000000")
    if name not in limitable():
        raise WrongLimit(f"there is no limit {name!r}; there are: {', '.join(limitable())}")
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if name in COUNTS:
        if not 0 <= number < 1e9 or number != int(number):
            raise WrongLimit(f"the limit {name} is a count, a whole number of at least 0, not {value!r}")
    elif not 0 < number < 1e18:
        unit = "a share of one processor" if name == "cpu" else "a number of bytes per second"
        raise WrongLimit(f"the limit {name} is {unit}, more than 0, not {value!r}")
    return Limit(name, number)


def limitable() -> list[str]:
    """The names that limits can have."""
    return ["cpu", *GROUPS, *RATES, *COUNTS]


class Bucket:
    """A leaky bucket: how much was used lately, and when it will have leaked out.

    :param rate: what leaks out in a second. :param burst: seconds of the rate that it holds without anybody
        waiting.
    """

    def __init__(self, rate: float, burst: float = 0.0) -> None:
        self._rate = rate
        self._burst = round(burst * SECOND)
        self._empty = 0
        self._lock = allocate_lock()

    def spend(self, amount: float, now: int) -> int:
        """Book the amount at the time `now` [ns]; the time at which the caller may go on, in ns.

        That is `now` or earlier where nobody has to wait. Callers share the rate in the order in which they
        book.
        """
        with self._lock:
            self._empty = max(self._empty, now) + round(amount * SECOND / self._rate)
            return self._empty - self._burst


class Limits:
    """The limits of a process.

    :param limits: those to hold; of two with one name the later counts. `cpu` is held from outside, by the
        runner.
    :param burst: see :class:`Bucket`; the original allowed one second.
    :param clock: ns; :param sleep: seconds. Tests have their own.
    """

    def __init__(
        self,
        limits: Iterable[Limit] = (),
        burst: float = 0.0,
        clock: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._buckets: dict[str, list[Bucket]] = {}
        self._most: dict[str, int] = {}
        self._held: dict[str, int] = {}
        self._lock = allocate_lock()
        self.cpu: float | None = None
        for name, value in {limit.name: limit.value for limit in limits}.items():
            if name == "cpu":
                self.cpu = value
            elif name in COUNTS:
                self._most[name] = int(value)
                self._held[name] = 0
            else:
                bucket = Bucket(value, burst)
                for resource in GROUPS.get(name, (name,)):
                    self._buckets.setdefault(resource, []).append(bucket)

    @classmethod
    def parse(cls, texts: Iterable[str], burst: float = 0.0) -> Limits:
        """Limits from texts as the option `--limit` takes them.

        :raises WrongLimit: names the text that is no limit.
        """
        if not 0 <= burst < 1e6:
            raise WrongLimit(f"the burst is a number of seconds, at least 0, not {burst!r}")
        return cls([limit_of(text) for text in texts], burst)

    def __bool__(self) -> bool:
        return bool(self._buckets or self._most)

    def for_resource(self, name: str) -> bool:
        """Whether calls that use this resource have to ask."""
        return name in self._buckets or name in self._most

    def spend(self, resource: str, amount: float) -> int:
        """Book what a call has used; the time [ns] until which :meth:`wait` shall wait, 0 where there is no
        limit.
        """
        buckets = self._buckets.get(resource)
        if not buckets or amount <= 0:
            return 0
        now = self._clock()
        return max(bucket.spend(amount, now) for bucket in buckets)

    def wait(self, deadline: int) -> None:
        """Wait until the deadline, which may have passed. No lock is held meanwhile."""
        while True:
            left = deadline - self._clock()
            if left <= 0:
                return
            self._sleep(left / SECOND)

    def acquire(self, resource: str) -> None:
        """Count one more that the program holds.

        :raises OSError: if it may hold no more, as by the system's own limit (EMFILE).
        :raises RuntimeError: for a thread or timer, as Python's own.
        """
        most = self._most.get(resource)
        if most is None:
            return
        with self._lock:
            if self._held[resource] < most:
                self._held[resource] += 1
                return
        if resource == "events":
            raise RuntimeError(f"can't start new thread: limit {resource}={most}")
        raise OSError(errno.EMFILE, f"Too many open {COUNTS[resource]}: limit {resource}={most}")

    def release(self, resource: str) -> None:
        """The program holds one less."""
        if resource in self._most:
            with self._lock:
                self._held[resource] = max(0, self._held[resource] - 1)

    def after_fork(self) -> None:
        """In a child process: locks that other threads held are free again."""
        self._lock = allocate_lock()
        for buckets in self._buckets.values():
            for bucket in buckets:
                bucket._lock = allocate_lock()

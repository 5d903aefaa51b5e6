"""Units of printed values.

Programs choose them by the size of a value, so `999 ms` and `1.001 s` must compare: times are kept in seconds
and amounts of memory in bytes, whatever was printed.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Kind(NamedTuple):
    """What a value is: the type of its resource, the unit it is kept in, and how to convert to that."""

    type: str
    unit: str
    times: int = 1
    by: int = 1

    def convert(self, value: float) -> float:
        """The value in the unit that it is kept in."""
        if self.times == self.by:
            return value
        # A division, for 1e-9 has no exact representation, and its products even less.
        return value * self.times / self.by if self.by > 1 else value * self.times


def _named(kind: Kind, *names: str) -> dict[str, Kind]:
    return dict.fromkeys(names, kind)


_KINDS: Final = {
    **_named(Kind("time", "s"), "s", "sec", "secs", "second", "seconds"),
    **_named(Kind("time", "s", by=10**3), "ms", "msec", "msecs", "millisecond", "milliseconds"),
    **_named(Kind("time", "s", by=10**6), "us", "\u00b5s", "\u03bcs", "usec", "usecs"),
    **_named(Kind("time", "s", by=10**6), "microsecond", "microseconds"),
    **_named(Kind("time", "s", by=10**9), "ns", "nsec", "nsecs", "nanosecond", "nanoseconds"),
    **_named(Kind("time", "s", times=60), "min", "mins", "minute", "minutes"),
    **_named(Kind("time", "s", times=3600), "h", "hour", "hours"),
    **_named(Kind("memory", "B"), "B", "byte", "bytes"),
    **_named(Kind("memory", "B", times=10**3), "kB", "KB"),
    **_named(Kind("memory", "B", times=10**6), "MB"),
    **_named(Kind("memory", "B", times=10**9), "GB"),
    **_named(Kind("memory", "B", times=2**10), "KiB", "kbytes", "Kbytes"),
    **_named(Kind("memory", "B", times=2**20), "MiB"),
    **_named(Kind("memory", "B", times=2**30), "GiB"),
}
"""GNU time calls 1024 bytes `kbytes`."""


def kind_of(unit: str) -> Kind:
    """What values of this unit are; of an unknown unit they are `mixed` and stay as they are."""
    return _KINDS.get(unit) or Kind("mixed", unit)

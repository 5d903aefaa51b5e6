"""Units of printed values.

Programs choose the unit by the size of a value. So that `999 ms` and `1.001 s` compare, times are converted
to seconds, amounts of memory to bytes, and rates to those of both.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from perun.profile.amounts import common_unit


class Kind(NamedTuple):
    """The type of the resource of a value, its unit in the profile, and the factor to it, `times / by`."""

    type: str
    unit: str
    times: float = 1
    by: int = 1

    def convert(self, value: float) -> float:
        """The value in the unit of the profile."""
        if self.times == self.by:
            return value
        # A division by 10^9 is rounded once; the factor 1e-9 has no exact representation already.
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
"""`kbytes` is what GNU time calls 1024 bytes."""


def kind_of(unit: str) -> Kind:
    """The kind of values of this unit; those of an unknown unit are `mixed` and keep their unit, or have the
    one in which rates compare."""
    if known := _KINDS.get(unit):
        return known
    factor, common = common_unit(unit)
    return Kind("mixed", common, factor)

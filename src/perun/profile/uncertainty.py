"""Times that recorders of calls cannot tell from what recording itself costs.

The collectors of calls subtract that cost, and note in the region `trace` of the profile, by function, how
far it may be wrong. A difference of two profiles within that says nothing of the program: it is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.profile.amounts import readable
from perun.profile.changes import DegradationInfo, PerformanceChange

if TYPE_CHECKING:
    from perun.profile.factory import Profile

_PART: Final = re.compile(r"^(?P<uid>.*) \[(?P<part>[^\[\]]*)\]$", re.DOTALL)
_TOTAL: Final = "total"
_RATIO: Final = "ratio"
_EXCLUSIVE: Final = "time"
"""The type of changes of exclusive times."""
_SURE: Final = (
    PerformanceChange.Unknown,
    PerformanceChange.NoChange,
    PerformanceChange.NotInBaseline,
    PerformanceChange.NotInTarget,
)
"""Results that say nothing of a change, or do not rest on times."""


class Uncertain(NamedTuple):
    """A time of a function and by how much it may be wrong; nanoseconds, in sum or by call.

    :param below: whether the time is not above its uncertainty.
    """

    time: float
    uncertainty: float
    below: bool


def of_function(profile: Mapping[str, Any], uid: str, which: str, *, total: bool) -> Uncertain | None:
    """The time of a function in a profile; None where the profile does not tell how far it may be wrong.

    :param which: `inclusive` or `exclusive`. :param total: the sum of all calls; else the mean of a call.
    """
    region = profile.get("trace")
    overhead = region.get("overhead") if isinstance(region, Mapping) else None
    functions = overhead.get("functions") if isinstance(overhead, Mapping) else None
    row = functions.get(uid) if isinstance(functions, Mapping) else None
    if not isinstance(row, Mapping):
        return None
    try:
        times, calls = row[which], 1 if total else row["calls"]
        return Uncertain(times["time"] / calls, times["uncertainty"] / calls, bool(times["below"]))
    except (KeyError, TypeError, ZeroDivisionError):
        return None


def without_doubtful(
    changes: Iterable[DegradationInfo], baseline: Profile, target: Profile
) -> Iterator[DegradationInfo]:
    """The changes; those that may be due to the cost of recording become Unknown, and their rule says so."""
    for change in changes:
        reason = "" if change.result in _SURE else _doubt(change, baseline, target)
        if reason:
            change.result = PerformanceChange.Unknown
            change.rule = reason
        yield change


def _doubt(change: DegradationInfo, baseline: Profile, target: Profile) -> str:
    """Why a change says nothing; empty where it does."""
    is_exclusive = change.type == _EXCLUSIVE
    found = _PART.match(change.location)
    total = is_exclusive or (found is not None and found["part"] == _TOTAL)
    # An exclusive time may be told with the file of the function before it.
    names = (change.location, found["uid"] if found else "", change.location.partition(":")[2])
    for uid in filter(None, names):
        which = "exclusive" if is_exclusive else "inclusive"
        old, new = (of_function(one, uid, which, total=total) for one in (baseline, target))
        if old is not None and new is not None:
            difference = abs(new.time - old.time)
            if change.type == _RATIO:  # robust ratios are small where a few interruptions make means differ
                difference = min(difference, abs(change.rate_degradation - 1) * min(old.time, new.time))
            return _reason(old, new, difference, "altogether" if total else "in a call")
    return ""


def _reason(old: Uncertain, new: Uncertain, difference: float, where: str) -> str:
    if old.below and new.below:
        return "both times are within the uncertainty of what recording the calls costs"
    doubt = old.uncertainty + new.uncertainty
    if difference > doubt:
        return ""
    return (
        "the times differ by no more than what recording the calls costs may be wrong by: "
        f"{readable(doubt, 'ns')} {where}"
    )

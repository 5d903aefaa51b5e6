"""Functions that a profile of calls lacks because they were not traced, or has sampled.

The collectors of calls note in the region `trace` which functions the optimisations dropped. Their absence
says nothing of the program, and their time is in the exclusive time of their callers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.wording import counted

if TYPE_CHECKING:
    from perun.profile.factory import Profile

_PART: Final = re.compile(r"^(?P<uid>.*) \[(?P<part>[^\[\]]*)\]$", re.DOTALL)
_SUMS: Final = ("calls", "total")
_EXCLUSIVE: Final = "time"
"""The type of changes of exclusive times."""
_IN_ONE_ONLY: Final = (PerformanceChange.NotInBaseline, PerformanceChange.NotInTarget)


def untraced(profile: Mapping[str, Any]) -> dict[str, str]:
    """The functions that were not traced, by uid, with the optimisation that dropped each."""
    rows = _region(profile).get("not-traced")
    if not isinstance(rows, Mapping):
        return {}
    return {uid: str(row[0]) for uid, row in rows.items() if isinstance(row, (list, tuple)) and row}


def sampling_of(profile: Mapping[str, Any]) -> dict[str, int]:
    """The sampled functions, by uid: one in how many calls was recorded."""
    rows = _region(profile).get("sampling")
    if not isinstance(rows, Mapping):
        return {}
    return {uid: every for uid, every in rows.items() if isinstance(every, int) and every > 1}


def switched_off(profile: Mapping[str, Any]) -> frozenset[str]:
    """The functions that were not probed all the time, by uid."""
    rows = _region(profile).get("switched-off")
    return frozenset(rows) if isinstance(rows, (list, tuple, Mapping)) else frozenset()


def told(profile: Mapping[str, Any]) -> str:
    """What the profile lacks by the optimisations, in one line; empty where it lacks nothing."""
    missing, sampled, off = untraced(profile), sampling_of(profile), switched_off(profile)
    parts = []
    if missing:
        methods = ", ".join(f"{method} {count:,}" for method, count in Counter(missing.values()).items())
        verb = "was" if len(missing) == 1 else "were"
        parts.append(
            f"{counted(len(missing), 'function')} {verb} not traced ({methods}): their time counts as that "
            "of their callers"
        )
    if sampled:
        parts.append(f"of {counted(len(sampled), 'function')} a sample of the calls was recorded")
    if off:
        parts.append(f"of {counted(len(off), 'function')} calls were not recorded all the time")
    return "; ".join(parts)


def without_untraced(
    changes: Iterable[DegradationInfo], baseline: Profile, target: Profile
) -> Iterator[DegradationInfo]:
    """The changes; what only shows that the two profiles trace other functions becomes Unknown.

    That is a function that one of them did not trace; sums of one of which other parts of the calls were
    recorded; and the exclusive time of their callers. The rule of the change says so.
    """
    if not (_region(baseline) or _region(target)):
        yield from changes
        return
    missing = untraced(baseline), untraced(target)
    partial = _partial(baseline, target)
    mixed = _callers(baseline, {*missing[1], *partial}) | _callers(target, {*missing[0], *partial})
    for change in changes:
        reason = _reason(change, missing, partial, mixed)
        if reason:
            change.result = PerformanceChange.Unknown
            change.rule = reason
        yield change


def _reason(
    change: DegradationInfo,
    missing: tuple[Mapping[str, str], Mapping[str, str]],
    partial: Mapping[str, str],
    mixed: frozenset[str],
) -> str:
    """Why a change says nothing; empty where it does."""
    found = _PART.match(change.location)
    # An exclusive time may be told with the file of the function before it.
    names = (change.location, found["uid"] if found else "", change.location.partition(":")[2])
    if change.result in _IN_ONE_ONLY:
        own = missing[0] if change.result is PerformanceChange.NotInBaseline else missing[1]
        which = "baseline" if change.result is PerformanceChange.NotInBaseline else "target"
        return next((f"not traced in the {which} ({own[uid]})" for uid in names if uid in own), "")
    if change.result is PerformanceChange.NoChange:
        return ""
    is_sum = change.type == _EXCLUSIVE or (found is not None and found["part"] in _SUMS)
    if is_sum and (uid := next((uid for uid in names if uid in partial), "")):
        return partial[uid]
    if change.type == _EXCLUSIVE and any(uid in mixed for uid in names):
        return "its exclusive time has that of functions which only one of the profiles traces"
    return ""


def _partial(baseline: Profile, target: Profile) -> dict[str, str]:
    """The functions of whose calls the two profiles recorded other parts, with what tells that."""
    old, new = sampling_of(baseline), sampling_of(target)
    found = {
        uid: f"sampling: one in {old.get(uid, 1):,} calls was recorded in the baseline, one in "
        f"{new.get(uid, 1):,} in the target"
        for uid in {*old, *new}
        if old.get(uid, 1) != new.get(uid, 1)
    }
    off = switched_off(baseline) | switched_off(target)
    found.update(dict.fromkeys(off, "its calls were not recorded all the time"))
    return found


def _callers(profile: Profile, uids: set[str]) -> frozenset[str]:
    """The functions that call one of these in the profile."""
    if not uids:
        return frozenset()
    return frozenset(
        str(group.constants["caller"])
        for group in profile.groups()
        if "caller" in group.constants and str(group.constants.get("uid", "")) in uids
    )


def _region(profile: Mapping[str, Any]) -> Mapping[str, Any]:
    region = profile.get("trace")
    found = region.get("optimization") if isinstance(region, Mapping) else None
    return found if isinstance(found, Mapping) else {}

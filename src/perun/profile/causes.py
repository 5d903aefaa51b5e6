"""Which function is the cause, where that of the change was not traced in the baseline.

An optimisation never drops a function that changed, but it may have dropped it in the baseline, where nothing
had changed yet. There its time is part of the time of its callers. If these did not change themselves, by
their machine code, what became of their time is the doing of the functions that they call.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from perun.core.wording import listed
from perun.profile.changes import DegradationInfo, PerformanceChange

if TYPE_CHECKING:
    from perun.profile.factory import Profile


# The callers of functions in a profile of calls, by the constant `caller` of its groups.


def callers_by_uid(profile: Profile) -> dict[str, set[str]]:
    """The direct callers of each function that has any."""
    found: dict[str, set[str]] = {}
    for group in profile.groups():
        if caller := str(group.constants.get("caller", "")):
            found.setdefault(str(group.constants.get("uid", "")), set()).add(caller)
    return found


def callers_of(profile: Profile, uids: Collection[str]) -> frozenset[str]:
    """The functions that call one of these directly."""
    if not uids:
        return frozenset()
    callers = callers_by_uid(profile)
    return frozenset(one for uid in uids for one in callers.get(uid, ()))


def all_callers(profile: Profile, uids: Collection[str]) -> frozenset[str]:
    """The functions that call one of these, or a function that does, and so on."""
    callers = callers_by_uid(profile)
    found: set[str] = set()
    open_ = list(uids)
    while open_:
        new = callers.get(open_.pop(), set()) - found
        found |= new
        open_ += new
    return frozenset(found)


def nearest_callers(callers: dict[str, set[str]], uid: str, hidden: Collection[str]) -> frozenset[str]:
    """The functions that call one directly, or through hidden ones only.

    :param callers: of :func:`callers_by_uid`.
    """
    found: set[str] = set()
    seen = {uid}
    open_ = [uid]
    while open_:
        for caller in callers.get(open_.pop(), set()) - seen:
            seen.add(caller)
            if caller in hidden:
                open_.append(caller)
            else:
                found.add(caller)
    return frozenset(found)


_LOCATION: Final = re.compile(r"^(?P<uid>.*?)(?P<part> \[[^\[\]]*\])?$", re.DOTALL)
_OF_FILE: Final = re.compile(r"^[^:]+:(?!:)")
"""The source file before the name of a function of which there are several in the call graph."""
_CALLS: Final = " [calls]"
_SHARE_OF_TOTAL: Final = 0.8
"""Share of the change of a location from which on a function of it is what changed."""
_OF_TOTAL: Final = {
    PerformanceChange.TotalDegradation: PerformanceChange.Degradation,
    PerformanceChange.TotalOptimization: PerformanceChange.Optimization,
}
_NO_CAUSE: Final = (
    PerformanceChange.Unknown,
    PerformanceChange.NoChange,
    PerformanceChange.NotInBaseline,
    PerformanceChange.NotInTarget,
)


class Causes:
    """Tells changes of functions that did not change themselves of the ones that did.

    :param by_caller: for such a function, the changed ones that it calls, which the baseline did not trace.
    """

    def __init__(self, by_caller: Mapping[str, Collection[str]]) -> None:
        self._by_caller = by_caller

    @classmethod
    def of(cls, target: Profile, hidden: Collection[str]) -> Causes:
        """What the target says of the functions that are hidden in the baseline.

        Callers that changed themselves may be the cause as well, so nothing is told of these.
        """
        changed = changed_in(target)
        wanted = [uid for uid in hidden if uid in changed]
        if not wanted:
            return cls({})
        callers = callers_by_uid(target)
        found: dict[str, list[str]] = {}
        for uid in wanted:
            for caller in nearest_callers(callers, uid, hidden):
                if caller not in changed:
                    found.setdefault(caller, []).append(uid)
        return cls(found)

    def told(self, changes: Iterable[DegradationInfo]) -> Iterator[DegradationInfo]:
        """The changes; those of a caller are told of the changed function that it calls, if that is one only.

        Of several callers of one the largest change is told.

        Where hardly anything but the entry of the program is traced in both, a check has no other functions
        to compare its time with, and it is Unknown. Then the total says whether it changed.
        """
        if not self._by_caller:
            yield from changes
            return
        all_ = list(changes)
        totals = [one for one in all_ if one.result in _OF_TOTAL]
        moved: dict[tuple[str, str], DegradationInfo] = {}
        for change in all_:
            found = _LOCATION.match(change.location)
            uid, part = (found["uid"], found["part"] or "") if found else (change.location, "")
            causes = sorted(self._by_caller.get(uid, ()))
            if causes:
                change.result = _by_totals(change, totals)
            if not causes or change.result in _NO_CAUSE or part == _CALLS:
                yield change
            elif len(causes) > 1:
                names = listed(causes, 5)
                change.rule = f"it did not change itself, but functions that it calls did: {names}"
                yield change
            else:
                key = causes[0] + part, change.type
                change.location = key[0]
                change.rule = (
                    f"it changed, and the baseline did not trace it: this is the time of {uid}, which calls "
                    "it and did not change itself"
                )
                known = moved.get(key)
                if known is None or _size(change) > _size(known):
                    moved[key] = change
        yield from moved.values()


def changed_in(profile: Mapping[str, Any]) -> frozenset[str]:
    """The uids of the functions whose machine code is another one than in the version before."""
    region = profile.get("trace")
    found = region.get("optimization") if isinstance(region, Mapping) else None
    rows = found.get("changed") if isinstance(found, Mapping) else None
    names = [str(name) for name in rows] if isinstance(rows, Mapping) else []
    return frozenset([*names, *(_OF_FILE.sub("", name) for name in names)])


def _by_totals(change: DegradationInfo, totals: Iterable[DegradationInfo]) -> PerformanceChange:
    """What became of a function; of one that is Unknown for no reason that is told, what the total of its
    location says, if that is the change of this function."""
    if change.result is not PerformanceChange.Unknown or change.rule:
        return change.result
    for total in totals:
        share = change.rate_degradation / total.rate_degradation if total.rate_degradation else 0.0
        if change.type == total.type and share >= _SHARE_OF_TOTAL:
            return _OF_TOTAL[total.result]
    return change.result


def _size(change: DegradationInfo) -> tuple[int, float]:
    return abs(change.result.value), abs(change.rate_degradation)

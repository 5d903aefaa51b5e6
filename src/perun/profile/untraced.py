"""Functions that a profile of calls lacks because they were not traced, or has sampled.

The collectors of calls note in the region `trace` which functions the optimisations dropped. Their absence
says nothing of the program, and their time is in the exclusive time of their callers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.core.wording import counted, listed
from perun.profile.changes import DegradationInfo, PerformanceChange

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perun.profile.factory import Profile, ResourceGroup


# Which function is the cause, where that of the change was not traced in the baseline.
#
# An optimisation never drops a function that changed, but it may have dropped it in the baseline, where
# nothing had changed yet. There its time is part of the time of its callers. If these did not change
# themselves, by their machine code, what became of their time is the doing of the functions that they call.

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

    def reported(self, changes: Iterable[DegradationInfo]) -> Iterator[DegradationInfo]:
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


_PART: Final = re.compile(r"^(?P<uid>.*) \[(?P<part>[^\[\]]*)\]$", re.DOTALL)
_NUMBER: Final = "calls"
_SUMS: Final = (_NUMBER, "total")
_EXCLUSIVE: Final = "time"
"""The type of changes of exclusive times."""
_FEWEST: Final = 5
"""Functions from which on their differences tell what recording a call costs."""
_MOST_OF_CALL: Final = 20_000.0
"""Nanoseconds that recording one call costs at most: two breakpoints, on a machine that does other things."""
_SHARE: Final = 0.01
"""Share of a time below which a check reports nothing."""
_DEVIATIONS: Final = 3 * 1.4826
"""Median deviations that are three standard deviations of a normal variable."""
_SURE: Final = (
    PerformanceChange.Unknown,
    PerformanceChange.NoChange,
    PerformanceChange.NotInBaseline,
    PerformanceChange.NotInTarget,
)
_DEEPEST: Final = 200
"""Functions within each other that were not traced, up to which time is handed on to callers."""


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


def untraced_note(profile: Mapping[str, Any]) -> str:
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


def hidden_in(profile: Profile) -> dict[str, str]:
    """The functions of which the profile has no call because they were not traced, as :func:`untraced`.

    Of pooled profiles one may have traced what another did not.
    """
    missing = untraced(profile)
    if missing:
        for group in profile.groups():
            missing.pop(str(group.constants.get("uid", "")), None)
    return missing


class AlignedProfiles:
    """Two profiles as if both had traced the same functions.

    A function that one of them did not trace says nothing of a change. It is taken out of the other one too,
    where its exclusive time becomes that of its callers, as it is in the first.

    :ivar baseline: and :ivar target: the profiles to compare. :ivar notes: what is to be said of that.
    """

    def __init__(self, baseline: Profile, target: Profile) -> None:
        self.baseline, self.target = baseline, target
        self.notes: tuple[str, ...] = ()
        self._partial: dict[str, str] = {}
        self._callers_of_partial: frozenset[str] = frozenset()
        self._slowed = _NONE_SLOWED, _NONE_SLOWED
        self._causes = Causes({})
        if not (_region(baseline) or _region(target)):
            return
        self._partial = _partial(baseline, target)
        partial = set(self._partial)
        self._callers_of_partial = callers_of(baseline, partial) | callers_of(target, partial)
        missing = hidden_in(baseline), hidden_in(target)
        self.notes = tuple(_notes(missing, (target, baseline)))
        self._slowed = _slowed(baseline, set(missing[1])), _slowed(target, set(missing[0]))
        self._causes = Causes.of(target, missing[0])
        self.baseline = _without(baseline, set(missing[1]), target)
        self.target = _without(target, set(missing[0]), baseline)

    def judged(self, changes: Iterable[DegradationInfo]) -> Iterator[DegradationInfo]:
        """The changes; those that may only show how much was traced become Unknown, and their rule says so.

        - Sums of functions of whose calls the two profiles recorded other parts, and exclusive times of their
          callers.
        - Recording slows down: where only the baseline traced functions that another one calls, that was
          slower for this reason. It says nothing that it is faster in the target; and the other way round.

        What is left of functions that did not change themselves is told of the changed ones that they call
        and that the baseline did not trace, see :class:`~perun.profile.untraced.Causes`.
        """
        yield from self._causes.reported(self._certain(changes))

    def _certain(self, changes: Iterable[DegradationInfo]) -> Iterator[DegradationInfo]:
        for change in changes:
            reason = self._reason(change)
            if reason:
                change.result = PerformanceChange.Unknown
                change.rule = reason
            yield change

    def _reason(self, change: DegradationInfo) -> str:
        """Why a change says nothing; empty where it does."""
        if change.result in _SURE:
            return ""
        found = _PART.match(change.location)
        # An exclusive time may be told with the file of the function before it.
        names = (change.location, found["uid"] if found else "", change.location.partition(":")[2])
        is_sum = change.type == _EXCLUSIVE or (found is not None and found["part"] in _SUMS)
        if is_sum and (uid := next((uid for uid in names if uid in self._partial), "")):
            return self._partial[uid]
        if change.type == _EXCLUSIVE and any(uid in self._callers_of_partial for uid in names):
            return "its exclusive time has that of functions of whose calls only a part was recorded"
        if found is not None and found["part"] == _NUMBER:
            return ""
        slowed, which = self._slowed[0 if change.result.value > 0 else 1], change.result.value > 0
        is_total = change.type == _EXCLUSIVE and not self._knows(names)
        if (is_total and slowed.whole) or any(uid in slowed.functions for uid in names):
            one, other = ("baseline", "target") if which else ("target", "baseline")
            return f"the {one} was slowed down by tracing functions that the {other} does not trace"
        return ""

    @cached_property
    def _known(self) -> set[str]:
        return _uids(self.baseline) | _uids(self.target)

    def _knows(self, names: Iterable[str]) -> bool:
        return any(name in self._known for name in names)


def _notes(missing: Sequence[Mapping[str, str]], others: Sequence[Profile]) -> Iterator[str]:
    """What is not compared.

    :param missing: what the baseline and the target did not trace. :param others: the target and the
        baseline.
    """
    for name, own, other in zip(("baseline", "target"), missing, others, strict=True):
        present = _uids(other)
        names = sorted(uid for uid in own if uid in present)
        if names:
            methods = Counter(own[uid] for uid in names)
            told = ", ".join(f"{method} {count:,}" for method, count in methods.items())
            functions = counted(len(names), "function")
            yield f"not compared: {functions} not traced in the {name} ({told}): {listed(names, 5)}"


def _without(profile: Profile, hidden: set[str], other: Profile) -> Profile:
    """The profile without the calls of these functions, whose exclusive times become those of their callers.

    Each caller gets it in its calls by their shares of its time; but not what recording the hidden calls has
    cost. That is known so far only, and within this doubt the time is the one in the other profile.
    """
    if not hidden & _uids(profile):
        return profile
    moved = _moved(profile, hidden)
    own, others = _exclusive(profile), _exclusive(other)
    cost, spread = _cost_of_call(moved, own, others)
    totals = {uid: sum(_times(one, "amount").sum() for one in _of(profile, uid)) for uid in moved}
    groups = []
    for group in profile.groups():
        uid = _uid(group)
        if uid in hidden:
            continue
        if uid in moved and totals[uid] and "exclusive" in group.columns:
            likely = own[uid] + moved[uid].time - cost * moved[uid].calls
            doubt = _DEVIATIONS * spread * moved[uid].calls
            known = min(max(others.get(uid, likely), likely - doubt), likely + doubt)
            more = max(known - own[uid], 0.0)
            share = _times(group, "amount") * (more / totals[uid])
            columns = {**group.columns, "exclusive": (_times(group, "exclusive") + share).tolist()}
            group = group._replace(columns=columns)
        groups.append(group)
    kept = type(profile)()
    kept.add_groups(groups, {})
    for region, value in profile.regions().items():
        if region not in ("resources", "resource_type_map"):
            kept[region] = value
    return kept


def _cost_of_call(
    moved: Mapping[str, _Moved], own: Mapping[str, float], others: Mapping[str, float]
) -> tuple[float, float]:
    """What recording one hidden call has added to the time of its callers, and how far that differs; in ns.

    It is the median, over the functions that both profiles have, of how much more time the profile with the
    calls has, by the number of the calls, and the median deviation from it. Most functions are as fast in
    both, and those that are not do not move the median. Few functions tell nothing.
    """
    costs = [
        (own.get(uid, 0.0) + one.time - others[uid]) / one.calls
        for uid, one in moved.items()
        if uid in others and one.calls > 0
    ]
    if len(costs) < _FEWEST:
        return 0.0, 0.0
    cost = max(median(costs), 0.0)
    return cost, median(abs(one - cost) for one in costs)


class _Moved(NamedTuple):
    """What a function gets of hidden ones: exclusive time in nanoseconds, and the number of calls."""

    time: float
    calls: float


def _moved(profile: Profile, hidden: set[str]) -> dict[str, _Moved]:
    """What each other function gets of the hidden ones.

    That of one which is called by another of them goes on to the callers of that, by the time of the calls of
    each.
    """
    shares: dict[str, dict[str, float]] = {}
    left: dict[str, _Moved] = {}
    for group in profile.groups():
        uid = _uid(group)
        if uid in hidden:
            caller = str(group.constants.get("caller", ""))
            own = shares.setdefault(uid, {})
            own[caller] = own.get(caller, 0.0) + float(_times(group, "amount").sum())
            _add(left, uid, float(_times(group, "exclusive").sum()), group.size)
    found: dict[str, _Moved] = {}
    for _ in range(_DEEPEST):
        next_: dict[str, _Moved] = {}
        for uid, one in left.items():
            callers = {name: share for name, share in shares[uid].items() if name != uid}
            total = sum(callers.values())
            for caller, share in callers.items() if total else ():
                part = share / total
                place = next_ if caller in hidden and caller in shares else found
                _add(place, caller, one.time * part, one.calls * part)
        left = next_
        if not left:
            break
    return found


def _add(found: dict[str, _Moved], uid: str, time: float, calls: float) -> None:
    before = found.get(uid, _Moved(0.0, 0.0))
    found[uid] = _Moved(before.time + time, before.calls + calls)


def _exclusive(profile: Profile) -> dict[str, float]:
    """The exclusive time of each function in nanoseconds."""
    found: dict[str, float] = {}
    for group in profile.groups():
        found[_uid(group)] = found.get(_uid(group), 0.0) + float(_times(group, "exclusive").sum())
    return found


def _times(group: ResourceGroup, field: str) -> NDArray[np.float64]:
    import numpy as np

    return np.asarray(group.columns.get(field, [0.0] * group.size), np.float64)


def _of(profile: Profile, uid: str) -> Iterator[ResourceGroup]:
    return (group for group in profile.groups({uid}) if _uid(group) == uid)


def _uids(profile: Profile) -> set[str]:
    return {_uid(group) for group in profile.groups()}


def _uid(group: ResourceGroup) -> str:
    return str(group.constants.get("uid", ""))


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


class _Slowed(NamedTuple):
    """What recording calls may have made slower that only one of two profiles has.

    :ivar functions: uids of those that make such calls, also through others. :ivar whole: the program, too.
    """

    functions: frozenset[str]
    whole: bool


_NONE_SLOWED: Final = _Slowed(frozenset(), False)


def _slowed(profile: Profile, hidden: set[str]) -> _Slowed:
    """What recording the calls of the hidden functions slowed down by a share that a check may report.

    Each function is taken to make all of these calls, so that it may be said of one too many.
    """
    calls = sum(group.size for uid in hidden for group in _of(profile, uid))
    if not calls:
        return _NONE_SLOWED
    limit = calls * _MOST_OF_CALL / _SHARE
    times: dict[str, float] = {}
    whole = 0.0
    for group in profile.groups():
        uid = _uid(group)
        times[uid] = times.get(uid, 0.0) + float(_times(group, "amount").sum()) * 1000
        whole += float(_times(group, "exclusive").sum())
    above = all_callers(profile, hidden)
    return _Slowed(frozenset(uid for uid in above if times.get(uid, 0.0) < limit), whole < limit)


def _region(profile: Mapping[str, Any]) -> Mapping[str, Any]:
    region = profile.get("trace")
    found = region.get("optimization") if isinstance(region, Mapping) else None
    return found if isinstance(found, Mapping) else {}

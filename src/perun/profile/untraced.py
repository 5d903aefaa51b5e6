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
from perun.wording import counted, listed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perun.profile.factory import Group, Profile

_PART: Final = re.compile(r"^(?P<uid>.*) \[(?P<part>[^\[\]]*)\]$", re.DOTALL)
_SUMS: Final = ("calls", "total")
_EXCLUSIVE: Final = "time"
"""The type of changes of exclusive times."""
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


def hidden_in(profile: Profile) -> dict[str, str]:
    """The functions of which the profile has no call because they were not traced, as :func:`untraced`.

    Of pooled profiles one may have traced what another did not.
    """
    missing = untraced(profile)
    if missing:
        for group in profile.groups():
            missing.pop(str(group.constants.get("uid", "")), None)
    return missing


def alike(baseline: Profile, target: Profile) -> tuple[Profile, Profile, tuple[str, ...]]:
    """The two profiles as if both had traced the same functions, and what is to be said of that.

    A function that one of them did not trace says nothing of a change. It is taken out of the other one too,
    where its exclusive time becomes that of its callers, as it is in the first.
    """
    if not (_region(baseline) or _region(target)):
        return baseline, target, ()
    missing = hidden_in(baseline), hidden_in(target)
    notes = []
    for name, own, other in zip(("baseline", "target"), missing, (target, baseline), strict=True):
        present = _uids(other)
        names = sorted(uid for uid in own if uid in present)
        if names:
            methods = Counter(own[uid] for uid in names)
            told = ", ".join(f"{method} {count:,}" for method, count in methods.items())
            functions = counted(len(names), "function")
            notes.append(f"not compared: {functions} not traced in the {name} ({told}): {listed(names, 5)}")
    return _without(baseline, set(missing[1])), _without(target, set(missing[0])), tuple(notes)


def without_partial(
    changes: Iterable[DegradationInfo], baseline: Profile, target: Profile
) -> Iterator[DegradationInfo]:
    """The changes; sums of functions of whose calls the two profiles recorded other parts become Unknown.

    So does the exclusive time of their callers. The rule of the change says so.
    """
    partial = _partial(baseline, target) if _region(baseline) or _region(target) else {}
    callers = _callers(baseline, set(partial)) | _callers(target, set(partial))
    for change in changes:
        reason = _reason(change, partial, callers) if partial else ""
        if reason:
            change.result = PerformanceChange.Unknown
            change.rule = reason
        yield change


def _reason(change: DegradationInfo, partial: Mapping[str, str], callers: frozenset[str]) -> str:
    """Why a change says nothing; empty where it does."""
    found = _PART.match(change.location)
    # An exclusive time may be told with the file of the function before it.
    names = (change.location, found["uid"] if found else "", change.location.partition(":")[2])
    is_sum = change.type == _EXCLUSIVE or (found is not None and found["part"] in _SUMS)
    if change.result is PerformanceChange.NoChange or not is_sum:
        return ""
    if uid := next((uid for uid in names if uid in partial), ""):
        return partial[uid]
    if change.type == _EXCLUSIVE and any(uid in callers for uid in names):
        return "its exclusive time has that of functions of whose calls only a part was recorded"
    return ""


def _without(profile: Profile, hidden: set[str]) -> Profile:
    """The profile without the calls of these functions, whose exclusive times become those of their callers.

    Each caller gets it in its calls by their shares of its time.
    """
    if not hidden & _uids(profile):
        return profile
    more = _exclusive_of_callers(profile, hidden)
    totals = {uid: sum(_times(own, "amount").sum() for own in _of(profile, uid)) for uid in more}
    kept = type(profile)()
    groups = []
    for group in profile.groups():
        uid = _uid(group)
        if uid in hidden:
            continue
        if more.get(uid) and totals[uid] and "exclusive" in group.columns:
            share = _times(group, "amount") * (more[uid] / totals[uid])
            columns = {**group.columns, "exclusive": (_times(group, "exclusive") + share).tolist()}
            group = group._replace(columns=columns)
        groups.append(group)
    kept.add_groups(groups, {})
    for region, value in profile.regions().items():
        if region not in ("resources", "resource_type_map"):
            kept[region] = value
    return kept


def _exclusive_of_callers(profile: Profile, hidden: set[str]) -> dict[str, float]:
    """How much exclusive time each other function gets from these, in nanoseconds.

    That of one which is called by another of them goes on to the callers of that, by the time of the calls of
    each.
    """
    times: dict[str, dict[str, float]] = {}
    left: dict[str, float] = {}
    for group in profile.groups():
        uid = _uid(group)
        if uid in hidden:
            caller = str(group.constants.get("caller", ""))
            own = times.setdefault(uid, {})
            own[caller] = own.get(caller, 0.0) + float(_times(group, "amount").sum())
            left[uid] = left.get(uid, 0.0) + float(_times(group, "exclusive").sum())
    found: dict[str, float] = {}
    for _ in range(_DEEPEST):
        moved: dict[str, float] = {}
        for uid, time in left.items():
            callers = {one: share for one, share in times[uid].items() if one != uid}
            total = sum(callers.values())
            for caller, share in callers.items() if total else ():
                place = moved if caller in hidden and caller in times else found
                place[caller] = place.get(caller, 0.0) + time * share / total
        left = moved
        if not left:
            break
    return found


def _times(group: Group, field: str) -> NDArray[np.float64]:
    import numpy as np

    return np.asarray(group.columns.get(field, [0.0] * group.size), np.float64)


def _of(profile: Profile, uid: str) -> Iterator[Group]:
    return (group for group in profile.groups({uid}) if _uid(group) == uid)


def _uids(profile: Profile) -> set[str]:
    return {_uid(group) for group in profile.groups()}


def _uid(group: Group) -> str:
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

"""The series that stands for a profile: the time of a command, the peak of its memory, its instructions.

Lists of profiles show it, and histories lead with it; the other series are its parts and details. `perun
status` and `perun log` note it of each profile, so nothing heavy is imported here. The numbers are those
that :func:`perun.measurement.series.readings` reads of the same series.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.measurement.comparable import conditions
from perun.measurement.estimate import Headline, Kind, Round, median, sample_of
from perun.profile import session as sessions
from perun.profile.amounts import UnitOf, common_unit, is_size, larger_is_better, units
from perun.profile.changes import of_function
from perun.profile.format.grouping import ResourceGroup
from perun.profile.sampled import CPU, SAMPLED, WHOLE
from perun.profile.uid import flatten, location, shown_subtype

if TYPE_CHECKING:
    from perun.profile.factory import Profile

_CALLS: Final = "mixed"
_ENTRY: Final = "main"
_WORKLOAD: Final = "workload"
_INSTRUCTIONS: Final = "instructions"
_BOUND: Final = 0.9
"""The share of its real time that a command uses the processor, from which on that limits it."""
_WAITS: Final = 0.5
"""The same below which one of its workloads is taken to wait, and not to be disturbed."""
_SIDE_BY_SIDE: Final = 1.05
"""The same beyond which its threads run side by side."""


class _Choice(NamedTuple):
    """The rule for the profiles of one kind: which series stands for them, and what it is called."""

    type: str
    subtype: str
    metric: str
    kind: Kind


_CHOICES: Final = (
    _Choice("time", "real", "real time", Kind.TIMED),
    _Choice("memory", "peak", "peak memory", Kind.COUNTED),
    _Choice("instructions", "inclusive", "instructions", Kind.COUNTED),
)
"""Where several series of one program fit, the largest is that of the program: a function has no more."""


class _Chosen(NamedTuple):
    metric: str
    location: str
    kind: Kind
    groups: Sequence[ResourceGroup]
    summed: bool


def headline(profile: Profile) -> Headline | None:
    """The series that stands for the profile; None where no single one does.

    Of a command :func:`processor` tells whether its processor time stands for it instead.

    Of a command it is its real time, of memory the peak of the program, of instructions their number, and of
    samples the CPU time that they stand for. Where calls were recorded, it is the time of `main`, in all its
    calls, if that is above what recording them may have cost; with the optimisations of the trace, as
    recording fewer calls makes it shorter. The only series of any other profile stands for it.
    """
    groups = [group for group in profile.groups() if group.size]
    calls = [group for group in groups if _kind(group)[0] == _CALLS]
    entry = [group for group in calls if _uid(group).rpartition(":")[2] == _ENTRY]
    unit_of = units(profile)
    others = _by_calls(profile, entry) if entry else _only_series(groups, unit_of)
    chosen = _by_choice(groups, unit_of) or others or _total_of_samples(groups, unit_of)
    if chosen is None:
        return None
    session = sessions.session_of(profile)
    rounds = _rounds(_values(chosen.groups, unit_of), session, summed=chosen.summed)
    if not rounds:
        return None
    first = chosen.groups[0]
    kind, subtype = _kind(first)
    unit = unit_of(kind, subtype)
    better = bool(larger_is_better(profile) & {_uid(first), kind, subtype, unit})
    levels = session.levels if session else None
    noise = session.noise_of(chosen.location) if session else None
    whole = _whole(groups, unit_of) if kind == _INSTRUCTIONS else 0.0
    common = common_unit(unit)[1]
    return Headline(
        chosen.metric, chosen.location, common, better, chosen.kind, rounds, levels, whole, noise,
        conditions(profile),
    )  # fmt: skip


def processor(profile: Profile) -> Headline | None:
    """The processor time of a command, where that limits how long it takes: then it is the more precise
    clock, as it does not count what other programs take of the processor. None of any other profile."""
    found = processor_time(profile)
    return found if found is not None and found.limits else None


def processor_time(profile: Profile) -> Headline | None:
    """The processor time of a command, whether it limits how long it takes or not: on a busy machine a
    profile of few runs may not tell, and others of the version do. None of any other profile.

    What the command waited for would be in its real time alone, and what its threads do side by side is in
    its processor time several times: so the two have to be nearly the same in the least disturbed run, and
    no workload may wait for most of its time. That others had the processors is no waiting of the command,
    where the profile tells it.
    """
    if profile.type == SAMPLED:  # of many groups, none of which is a command's
        return None
    groups = [group for group in profile.groups() if group.size and _kind(group)[0] == "time"]
    if len({_uid(group) for group in groups}) != 1:
        return None
    unit_of = units(profile)
    clocks = [[group for group in groups if _kind(group)[1] == one] for one in ("real", "user", "sys")]
    real, user, system = (_values(own, unit_of) for own in clocks)
    runs = [sorted(one) for one in (real, user, system)]
    keys = [[(order, workload) for order, workload, _ in one] for one in runs]
    if not runs[0] or keys[0] != keys[1] or keys[0] != keys[2]:
        return None
    used = [
        (order, workload, one + other)
        for (order, workload, one), (*_, other) in zip(runs[1], runs[2], strict=True)
    ]
    shares: dict[str, list[float]] = {}
    waited = _waited(profile)
    for (order, workload, took), (*_, amount) in zip(runs[0], used, strict=True):
        took -= waited.get(order, 0.0)
        if not (took > 0 and amount > 0) or _is_coarse(amount):
            return None
        shares.setdefault(workload, []).append(amount / took)
    best = [max(own) for own in shares.values()]
    if max(map(median, shares.values())) > _SIDE_BY_SIDE:
        return None
    session = sessions.session_of(profile)
    where = location(_uid(groups[0]), "cpu")
    noise = session.noise_of(where) if session else None
    levels = session.levels if session else None
    unit = common_unit(unit_of("time", "cpu"))[1]
    return Headline(
        "cpu time", where, unit, False, Kind.PROCESSOR, _rounds(used, session), levels, 0.0, noise,
        conditions(profile), max(best) >= _BOUND and min(best) >= _WAITS,
    )  # fmt: skip


def _is_coarse(amount: float) -> bool:
    """Whether a time in seconds was read off a clock of hundredths, and is too short for that."""
    return amount < 1 and math.isclose(amount * 100, round(amount * 100), abs_tol=1e-6)


def _whole(groups: Sequence[ResourceGroup], unit_of: UnitOf) -> float:
    """All instructions of the program."""
    own = [group for group in groups if _kind(group) == (_INSTRUCTIONS, "exclusive")]
    return math.fsum(value for *_, value in _values(own, unit_of))


def _by_choice(groups: Sequence[ResourceGroup], unit_of: UnitOf) -> _Chosen | None:
    for choice in _CHOICES:
        by_uid: dict[str, list[ResourceGroup]] = {}
        for group in groups:
            if _kind(group) == (choice.type, choice.subtype):
                by_uid.setdefault(_uid(group), []).append(group)
        if not by_uid:
            continue
        uid = next(iter(by_uid))
        if choice.type != "time":
            uid = max(by_uid, key=lambda one: math.fsum(value for *_, value in _values(by_uid[one], unit_of)))
        where = location(uid, shown_subtype(uid, choice.type, choice.subtype))
        return _Chosen(choice.metric, where, choice.kind, by_uid[uid], choice.type == "instructions")
    return None


def _total_of_samples(groups: Sequence[ResourceGroup], unit_of: UnitOf) -> _Chosen | None:
    """What a recording of call stacks sampled in all."""
    for group in groups:
        kind, subtype = _kind(group)
        uid = group.constants.get("uid")
        if kind == SAMPLED and isinstance(uid, Mapping) and uid.get(SAMPLED) == WHOLE:
            timed = Kind.PRINTED if is_size(unit_of(kind, subtype)) else Kind.TIMED
            name = "CPU time" if subtype == CPU else subtype
            where = location(_uid(group), shown_subtype(_uid(group), kind, subtype))
            return _Chosen(name, where, timed, [group], False)
    return None


def _by_calls(profile: Profile, entry: Sequence[ResourceGroup]) -> _Chosen | None:
    if len({_uid(group) for group in entry}) > 1:
        return None
    uncertain = of_function(profile, _uid(entry[0]), "inclusive", total=True)
    if uncertain is not None and uncertain.below:
        return None
    metric = f"time of {_ENTRY}{_optimized(profile)}"
    return _Chosen(metric, location(_uid(entry[0]), "total"), Kind.TIMED, entry, True)


def _optimized(profile: Profile) -> str:
    """The optimisations that chose what was traced: ` (basic)`; empty where none did."""
    region = profile.get("trace")
    found = region.get("optimization") if isinstance(region, dict) else None
    if not isinstance(found, dict):
        return ""
    pipeline, methods = found.get("pipeline"), found.get("methods")
    named = isinstance(pipeline, str) and pipeline != "custom"
    name = pipeline if named else ", ".join(map(str, methods if isinstance(methods, list) else ()))
    return f" ({name})" if name else ""


def _only_series(groups: Sequence[ResourceGroup], unit_of: UnitOf) -> _Chosen | None:
    series: set[tuple[str, str, str]] = set()
    for group in groups:
        series.add((_uid(group), *_common_kind(group, unit_of)))
        if len(series) > 1 or "uid" in group.columns:
            return None
    if not series:
        return None
    ((uid, kind, subtype),) = series
    counted = {kind, subtype} & {"memory", "instructions"}
    timed = kind in ("time", _CALLS)
    of_kind = Kind.COUNTED if counted else Kind.TIMED if timed else Kind.PRINTED
    return _Chosen(
        uid or kind, location(uid, shown_subtype(uid, kind, subtype)), of_kind, groups, kind == "instructions"
    )


def _common_kind(group: ResourceGroup, unit_of: UnitOf) -> tuple[str, str]:
    """Type and subtype; where the subtype is the unit, that which is common to all of its kind."""
    kind, subtype = _kind(group)
    unit = unit_of(kind, subtype)
    return kind, common_unit(unit)[1] if subtype == unit else subtype


def _rounds(
    values: Iterable[tuple[float, str, float]],
    session: sessions.Session | None,
    *,
    summed: bool = False,
) -> tuple[Round, ...]:
    """What the rounds of the session measured, by workload; of a profile without one there is one round.

    :param values: order, workload and amount of each. :param summed: whether a round has their sum.
    """
    found: dict[tuple[str, int], dict[str, list[float]]] = {}
    each = session is not None and session.runs_are_rounds
    seen: dict[str, int] = {}
    values = sorted(values, key=lambda one: one[0])
    if len({workload for _, workload, _ in values}) < 2:
        values = [(order, "", value) for order, _, value in values]
    for _, workload, value in values:
        number = seen.get(workload, 0) if each and not summed else session.round if session else 0
        seen[workload] = number + 1
        key = (session.id if session else "", number)
        found.setdefault(key, {}).setdefault(workload, []).append(value)
    rounds = []
    for key, by_workload in found.items():
        of_each = {
            workload: sample_of([math.fsum(own)] if summed else own) for workload, own in by_workload.items()
        }
        kept = {workload: sample for workload, sample in of_each.items() if sample is not None}
        if kept:
            rounds.append(Round(*key, kept, session.measured if session else ""))
    return tuple(rounds)


def _waited(profile: Profile) -> dict[float, float]:
    """By order of the runs, for how many seconds others had the processors; empty where it is not told."""
    about = profile.get("collector_info")
    found = about.get("waited") if isinstance(about, Mapping) else None
    listed = found if isinstance(found, list) else []
    return {float(order): one for order, one in enumerate(listed, 1) if isinstance(one, float)}


def _values(groups: Iterable[ResourceGroup], unit_of: UnitOf) -> list[tuple[float, str, float]]:
    """Order, workload and amount of each measurement in the common unit; what is no number is left out."""
    found: list[tuple[float, str, float]] = []
    for group in groups:
        factor = common_unit(unit_of(*_kind(group)))[0]
        amounts, orders, workloads = (
            group.columns.get(name) or [group.constants.get(name)] * group.size
            for name in ("amount", "order", _WORKLOAD)
        )
        for amount, order, workload in zip(amounts, orders, workloads, strict=True):
            if isinstance(amount, (int, float)) and not isinstance(amount, bool) and abs(amount) < 1e150:
                rank = float(order) if isinstance(order, (int, float)) else float(len(found))
                found.append((rank, _label(workload), float(amount) * factor))
    return found


def _label(workload: object) -> str:
    if workload is None:
        return ""
    return f"{float(workload):g}" if isinstance(workload, (int, float)) else str(workload)


def _kind(group: ResourceGroup) -> tuple[str, str]:
    constants: Mapping[str, Any] = group.constants
    return str(constants.get("type", "")), str(constants.get("subtype", ""))


def _uid(group: ResourceGroup) -> str:
    return str(flatten(group.constants.get("uid", "")))

"""What the checks say of two profiles whose values scatter, or were measured over sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from perun.errors import PerunError
from perun.measurement.series import CALLS, TOTAL, Metric, measurements
from perun.models.growth.comparison import MIN_SIZES, SPAN
from perun.plugin.api import CheckContext
from perun.porcelain.check.rules import params_of
from perun.porcelain.explain.costs import IsOwn, Place, instructions
from perun.porcelain.explain.data import Cost, Growth
from perun.porcelain.explain.gathered import ProfilePair, SizedPair
from perun.porcelain.repository import Repository
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.factory import Profile
from perun.profile.uid import flatten

if TYPE_CHECKING:
    from perun.measurement.series import Series

_NUMBERED: Final = "call-order"
"""The `size-source` of calls whose size is the number of those before."""
_SURELY: Final = frozenset(
    {
        PerformanceChange.SevereDegradation, PerformanceChange.Degradation,
        PerformanceChange.SevereOptimization, PerformanceChange.Optimization,
    }
)  # fmt: skip


def growth(repo: Repository, sized: SizedPair, is_own: IsOwn) -> dict[Place, Growth]:
    """How the instructions of each function grow with the sizes of the input, by the check `growth`."""
    places: dict[str, Place] = {}
    base, head = (_over_sizes(side, is_own, places) for side in sized)
    found = {}
    for one in _changes(repo, "growth", ProfilePair(base, head)):
        if one.type in ("order", "factor", "level"):
            found[places[one.location]] = Growth(
                one.type == "order" and one.result in _SURELY,
                one.result.value < 0,
                one.from_baseline,
                one.to_target,
                one.rule,
            )
    return found


def _over_sizes(
    side: Sequence[tuple[float, Profile]], is_own: IsOwn, places: dict[str, Place]
) -> Profile:
    """A profile of the sums of each function, each with its size. :param places: gets these by their uid."""
    rows = []
    for size, profile in side:
        for place, spent in instructions(profile, is_own).items():
            uid = f"{place.source}:{place.name}"
            places[uid] = place
            rows.append({"uid": uid, "amount": spent.amount, "type": "instructions", "subtype": "exclusive",
                         "workload": size})  # fmt: skip
    made = Profile({key: side[0][1][key] for key in ("header", "collector_info", "machine")})
    made.update_resources(rows, columns=("workload",))
    return made


def growth_of_calls(repo: Repository, pair: ProfilePair) -> dict[str, Growth]:
    """How the times of the calls of each function grow with the sizes that it works on; by name, where the
    order is surely another one."""
    found = {}
    sized = ProfilePair(_with_sizes(pair.base), _with_sizes(pair.head))
    for one in _changes(repo, "growth", sized):
        if one.type == "order" and one.result in _SURELY:
            found[one.location] = Growth(
                True, one.result.value < 0, one.from_baseline, one.to_target, one.rule
            )
    return found


def sized_calls(profile: Profile) -> set[str]:
    """The functions whose calls are of enough sizes to tell an order of growth."""
    sizes: dict[str, set[float]] = {}
    for group in _with_sizes(profile).groups():
        own = sizes.setdefault(str(flatten(group.constants.get("uid", ""))), set())
        own.update(size for size in map(float, group.columns.get("structure-unit-size", ())) if size > 0)
    return {name for name, own in sizes.items() if len(own) >= MIN_SIZES and max(own) >= SPAN * min(own)}


def _with_sizes(profile: Profile) -> Profile:
    """The calls whose sizes are known, without those that are only numbered."""
    made = Profile({key: profile[key] for key in ("header", "collector_info", "machine") if key in profile})
    sized = (one for one in profile.groups() if one.constants.get("size-source", _NUMBERED) != _NUMBERED)
    made.add_groups(sized, {})
    return made


def timed(repo: Repository, pair: ProfilePair) -> Iterator[tuple[Place | None, Cost]]:
    """The costs that surely changed of a profile of times, by the check `hodges_lehmann_ratio`.

    The place is None of what is of the whole program. Where this is not known, costs of functions are parts
    of themselves.
    """
    sides = measurements(pair.base), measurements(pair.head)
    whole = max((_whole(one) for one in sides[0].values()), default=0.0)
    for one in _changes(repo, "hodges_lehmann_ratio", pair):
        before, after = (side.get(one.location) for side in sides)
        if before is None or after is None or one.interval is None or one.result not in _SURELY:
            continue
        metric = before.metric
        if metric.subtype == CALLS:
            continue
        low, high = one.interval
        old, new = one.values or (0.0, 0.0)
        cost = Cost(_name(metric), metric.unit, old, new, whole or old, low, high)
        source, name = _parted(metric.uid)
        yield None if metric.type == "time" else Place(name, source), cost


def _parted(uid: str) -> tuple[str, str]:
    """Source and name of a uid as `words.c:sort`; the two colons of C++ are a part of the name."""
    source, colon, name = uid.partition(":")
    return (source, name) if colon and not name.startswith(":") and "." in source else ("", uid)


def _whole(series: Series) -> float:
    """What the program takes: the time of its command, or of `main`."""
    metric = series.metric
    is_whole = metric.subtype == "real" or (metric.subtype == TOTAL and _parted(metric.uid)[1] == "main")
    return float(series.values.mean()) if is_whole else 0.0


def _name(metric: Metric) -> str:
    return " ".join(part for part in ("time" if not metric.exact else "", metric.shown_subtype) if part)


def _changes(repo: Repository, check: str, pair: ProfilePair) -> list[DegradationInfo]:
    """What a check tells of the pair; nothing where it cannot be applied."""
    plugin = repo.registry.get("check", check)
    try:
        return list(plugin.compare(pair.base, pair.head, params_of(repo, plugin), CheckContext()))
    except PerunError:
        return []

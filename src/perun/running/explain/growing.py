"""What the checks say of two profiles whose values scatter, or were measured over sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from perun.core.errors import PerunError
from perun.history.check.compare import CheckPair, CheckRule, Comparer, params_of
from perun.history.check.pairing import Pairing
from perun.history.check.report import DEFAULTS
from perun.measurement.headline import headline, processor
from perun.measurement.series import CALLS, INSTRUCTIONS, TOTAL, Metric, measurements
from perun.models.growth.comparison import MIN_SIZES, SPAN
from perun.plugin.api import CheckContext, MinorVersion, quiet, silent
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.factory import Profile
from perun.profile.head import Configuration
from perun.profile.uid import flatten
from perun.repository.repository import Repository
from perun.running.explain.costs import FunctionKey
from perun.running.explain.data import CostChange, GrowthChange
from perun.running.explain.plan import ProfilePair, SizedPair

if TYPE_CHECKING:
    from perun.measurement.series import Series
    from perun.running.explain.sources import Sources

_RATIO: Final = "hodges_lehmann_ratio"
_NUMBERED: Final = "call-order"
"""The `size-source` of calls whose size is the number of those before."""
_SURELY: Final = frozenset(
    {
        PerformanceChange.SevereDegradation, PerformanceChange.Degradation,
        PerformanceChange.SevereOptimization, PerformanceChange.Optimization,
    }
)  # fmt: skip


def growth(repo: Repository, sized: SizedPair, sources: Sources) -> dict[FunctionKey, GrowthChange]:
    """How the instructions of each function grow with the sizes of the input, by the check `growth`."""
    places: dict[str, FunctionKey] = {}
    base, head = (_over_sizes(profiles, sources, side, places) for side, profiles in enumerate(sized))
    found = {}
    for one in _changes(repo, "growth", ProfilePair(base, head)):
        if one.type in ("order", "factor", "level"):
            found[places[one.location]] = GrowthChange(
                one.type == "order" and one.result in _SURELY,
                one.result.value < 0,
                one.from_baseline,
                one.to_target,
                one.rule,
            )
    return found


def _over_sizes(
    profiles: Sequence[tuple[float, Profile]], sources: Sources, side: int, places: dict[str, FunctionKey]
) -> Profile:
    """A profile of the sums of each function, each with its size. :param places: gets these by their uid."""
    rows = []
    for size, profile in profiles:
        for place, spent in sources.costs(profile, side).functions.items():
            uid = f"{place.source}:{place.name}"
            places[uid] = place
            rows.append({"uid": uid, "amount": spent.amount, "type": "instructions", "subtype": "exclusive",
                         "workload": size})  # fmt: skip
    made = Profile({key: profiles[0][1][key] for key in ("header", "collector_info", "machine")})
    made.update_resources(rows, columns=("workload",))
    return made


def growth_of_calls(repo: Repository, pair: ProfilePair) -> dict[str, GrowthChange]:
    """How the times of the calls of each function grow with the sizes that it works on; by name, where the
    order is surely another one."""
    found = {}
    sized = ProfilePair(_with_sizes(pair.base), _with_sizes(pair.head))
    for one in _changes(repo, "growth", sized):
        if one.type == "order" and one.result in _SURELY:
            found[one.location] = GrowthChange(
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
    made = Profile({})
    sized = (one for one in profile.groups() if one.constants.get("size-source", _NUMBERED) != _NUMBERED)
    made.add_groups(sized, {})
    return made


class VersionsCheck:
    """What the check `hodges_lehmann_ratio` says of all profiles of two versions, with the noise that earlier
    versions show: the same as `perun check` of the two says."""

    def __init__(self, repo: Repository, base: MinorVersion, head: MinorVersion) -> None:
        pairing = Pairing(repo, DEFAULTS, silent, quiet)
        machine = pairing.baselines.machine

        def rank(one: CheckPair) -> tuple[bool, float]:
            return machine(one.target) == machine(one.baseline), one.target.time

        pairs = [one for one in pairing.between(base, head).steps if isinstance(one, CheckPair)]
        pairs.sort(key=rank)  # of several machines the one that has measured both
        self._pairs = {one.target.configuration: one for one in pairs}
        check = repo.registry.get("check", _RATIO)
        self._comparer = Comparer(repo, DEFAULTS)
        self._rule = CheckRule(check, params_of(repo, check), {})

    def changes(self, configuration: Configuration) -> list[DegradationInfo]:
        """What it says of the series of a configuration; nothing where the profiles do not compare."""
        pair = self._pairs.get(configuration)
        results = self._comparer.registered(pair, [self._rule]).results if pair is not None else ()
        return [change for result in results for change in result.changes if change.type == "ratio"]


def timed(
    pair: ProfilePair, changes: Sequence[DegradationInfo]
) -> Iterator[tuple[FunctionKey | None, CostChange]]:
    """The costs that surely changed of a profile of times, and what stands for the program in any case.

    The place is None of what is of the whole program. Where this is not known, costs of functions are parts
    of themselves.

    :param changes: what is said of its series.
    """
    series = measurements(pair.base)
    named = headlines(pair)
    whole = max((_whole(one) for one in series.values()), default=0.0)
    for one in changes:
        before = series.get(one.location)
        if before is None or before.metric.subtype == CALLS:
            continue
        metric, surely = before.metric, one.result in _SURELY
        if one.location in named or (metric.type == "time" and surely):
            yield None, cost_of(one, metric)
        if metric.type != "time" and surely and (metric.subtype == TOTAL or one.location not in named):
            source, name = _parted(metric.uid)
            yield FunctionKey(name, source), cost_of(one, metric, whole)


def headlines(pair: ProfilePair) -> set[str]:
    """The locations of the series that stand for the profiles."""
    found = (processor(one) or headline(one) for one in pair[:2])
    return {one.location for one in found if one is not None}


def cost_of(change: DegradationInfo, metric: Metric, whole: float = 0.0) -> CostChange:
    """The cost that a change of a series is of. :param whole: of the program; 0 where it is of that."""
    old, new = change.values or (0.0, 0.0)
    low, high = change.interval or (0.0, math.inf)
    exact = metric.exact and low == high
    return CostChange(
        _name(metric), metric.unit, old, new, whole or old, None if exact else low, None if exact else high,
        change.location, change.result, change.rate_degradation if change.interval is not None else None,
    )  # fmt: skip


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
    if metric.type == INSTRUCTIONS:
        return metric.type
    return (
        " ".join(part for part in ("time" if not metric.exact else "", metric.shown_subtype) if part)
        or metric.type
    )


def _changes(repo: Repository, check: str, pair: ProfilePair) -> list[DegradationInfo]:
    """What a check tells of the pair; nothing where it cannot be applied."""
    plugin = repo.registry.get("check", check)
    try:
        return list(plugin.compare(pair.base, pair.head, params_of(repo, plugin), CheckContext()))
    except PerunError:
        return []

"""What the checks say of two profiles whose values scatter, or were measured over sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from perun.errors import PerunError
from perun.plugin.api import CheckContext
from perun.porcelain.explain.collecting import ProfilePair, SizedPair
from perun.porcelain.explain.costs import IsOwn, Place, instructions
from perun.porcelain.explain.data import Cost, Growth
from perun.porcelain.repository import Repository
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.factory import Profile
from perun.profile.measurements import Metric, measurements

if TYPE_CHECKING:
    from perun.profile.measurements import Series

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


def timed(repo: Repository, pair: ProfilePair) -> Iterator[tuple[Place | None, Cost]]:
    """The costs that surely changed of a profile of times, by the check `hodges_lehmann_ratio`.

    The place is None of what is of the whole program.
    """
    sides = measurements(pair.base), measurements(pair.head)
    whole = max((_whole(one) for one in sides[0].values()), default=0.0)
    for one in _changes(repo, "hodges_lehmann_ratio", pair):
        before, after = (side.get(one.location) for side in sides)
        if before is None or after is None or one.interval is None or one.result not in _SURELY:
            continue
        metric = before.metric
        low, high = one.interval
        old, new = (float(side.values.mean()) for side in (before, after))
        cost = Cost(_name(metric), metric.unit, old, new, whole, low, high)
        source, _, name = metric.uid.rpartition(":")
        yield None if metric.type == "time" else Place(name, source), cost


def _whole(series: Series) -> float:
    return float(series.values.mean()) if series.metric.subtype in ("total", "real") else 0.0


def _name(metric: Metric) -> str:
    return " ".join(part for part in ("time" if not metric.exact else "", metric.shown_subtype) if part)


def _changes(repo: Repository, check: str, pair: ProfilePair) -> list[DegradationInfo]:
    """What a check tells of the pair; nothing where it cannot be applied."""
    plugin = repo.registry.get("check", check)
    try:
        return list(plugin.compare(pair.base, pair.head, plugin.Params(), CheckContext()))
    except PerunError:
        return []

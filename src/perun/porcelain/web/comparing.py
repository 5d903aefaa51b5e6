"""Two versions beside each other: what `perun check` says of their profiles, and how these differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from perun.errors import PerunError, ProfileNotFound, UsageError
from perun.measurement.comparison import Measurements
from perun.measurement.estimate import estimate
from perun.measurement.series import Series
from perun.plugin.api import MinorVersion, quiet, silent
from perun.porcelain.check.compare import Comparer, Pair
from perun.porcelain.check.pairing import Pairing
from perun.porcelain.check.report import DEFAULTS, Comparison
from perun.porcelain.explain import flames
from perun.porcelain.explain.gathered import ProfilePair
from perun.porcelain.ranges import ends_of
from perun.porcelain.repository import Repository
from perun.porcelain.trend import text_of
from perun.porcelain.web import data
from perun.porcelain.web.numbers import short, shorts
from perun.porcelain.web.state import State
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.head import Configuration
from perun.profile.uid import flatten

if TYPE_CHECKING:
    from perun.profile.factory import Profile

SAMPLES: Final = 12
"""Series of a configuration whose single values are given."""
VALUES: Final = 500
ROWS: Final = 500
_STACKS: Final = frozenset({"trace", "timestamp"})
"""Fields of the resources of a profile that has call stacks, one of them."""


def versions_of(repo: Repository, name: str) -> tuple[MinorVersion, MinorVersion]:
    """The versions that `A..B` names.

    :raises UsageError: if it does not name two. :raises VersionControlError: if there is no such version.
    """
    ends = ends_of(name)
    if ends is None or not all(ends) or any(end.startswith("-") for end in ends):
        raise UsageError(f"{name!r} does not name two versions", "write A..B")
    old, new = (repo.vcs.get_minor_version_info(repo.version(end)) for end in ends)
    return old, new


def compare(state: State, name: str) -> data.Comparison:
    """The piece `compare/A..B`; nothing is measured.

    :raises UsageError: if it does not name two versions. :raises VersionControlError: if one is unknown.
    """
    old, new = versions_of(state.repo, name)
    notes: list[str] = []
    cases = []
    pair = f"{old.checksum}..{new.checksum}"
    for number, (comparison, base, head) in enumerate(_pairs(state.repo, old, new, notes)):
        cases.append(_case(state, comparison, base, head, pair, number))
    if not cases and not notes:
        notes.append("no configuration has profiles of both versions")
    return data.Comparison(_ref(state, old), _ref(state, new), notes, cases)


def _ref(state: State, version: MinorVersion) -> data.Ref:
    place = state.place_of(version.checksum)
    if place >= 0:
        return state.ref(place)
    return data.Ref(-1, version.checksum, 0, version.author, version.subject)


def _pairs(
    repo: Repository, old: MinorVersion, new: MinorVersion, notes: list[str]
) -> Iterator[tuple[Comparison, Profile, Profile]]:
    """What compares. :param notes: gets what does not, and why."""
    plan = Pairing(repo, DEFAULTS, silent, quiet).between(old, new)
    notes += [problem.message for problem in plan.errors]
    comparer = Comparer(repo, DEFAULTS)
    for step in plan.steps:
        if not isinstance(step, Pair):
            continue
        outcome = comparer.registered(step).of(step)
        try:
            base, head = (repo.store.objects.get(one.checksum) for one in (step.baseline, step.target))
        except PerunError as problem:
            notes.append(problem.message)
            continue
        notes += [f"{_title(step.target.configuration)}: {note}" for note in _doubts(outcome)]
        yield outcome, base, head


def _doubts(comparison: Comparison) -> list[str]:
    texts = (comparison.not_compared, comparison.incomplete, comparison.environment, *comparison.notes)
    return [one for one in texts if one]


def _title(configuration: Configuration) -> str:
    return f"{text_of(configuration)} ({configuration.collector})"


def _case(
    state: State, comparison: Comparison, base: Profile, head: Profile, pair: str, number: int
) -> data.Case:
    configuration = comparison.target.configuration
    measured = Measurements(base), Measurements(head)
    before, after = (one.series for one in measured)
    told = {change.location: change for result in comparison.results for change in result.changes}
    ids = _ids(state, configuration)
    rows = [
        _row(location, *measured, told.get(location), ids)
        for location in dict.fromkeys([*after, *before])
    ]
    rows.sort(key=_rank)
    both = [row.location for row in rows if row.a and row.b and (row.a.n > 1 or row.b.n > 1)]
    samples = [
        data.Sample(one, after[one].metric.unit, _values(before[one]), _values(after[one]))
        for one in both[:SAMPLES]
    ]
    draws = configuration.collector in flames.TITLES and _has_stacks(base) and _has_stacks(head)
    address = f"flame/{pair}/{number}.html" if draws else None
    return data.Case(
        _title(configuration), rows[:ROWS], samples, list(_models(base, head)), address
    )


def _has_stacks(profile: Profile) -> bool:
    return any(not _STACKS.isdisjoint({*group.constants, *group.columns}) for group in profile.groups())


def _ids(state: State, configuration: Configuration) -> dict[str, str]:
    """The ids of the series of a configuration by their locations."""
    ids = state.of_configuration.get(configuration, ())
    return {state.groups[one].key.location: one for one in ids}


def _row(
    location: str, base: Measurements, head: Measurements, told: DegradationInfo | None,
    ids: Mapping[str, str],
) -> data.Compared:  # fmt: skip
    before, after = (side.series.get(location) for side in (base, head))
    series = after or before
    assert series is not None
    metric = series.metric
    # Where the check pooled profiles, the values are those of all of them.
    values = told.values if told is not None and told.values is not None else (None, None)
    old, new = (
        _side(side, location, value) if location in side.series else None
        for side, value in zip((base, head), values, strict=True)
    )
    ratio, interval = _ratio(old, new, told)
    result = told.result if told is not None else _unjudged(before, after)
    return data.Compared(
        location, metric.shown_subtype or metric.type, metric.unit, metric.exact, metric.larger_is_better,
        ids.get(location), old, new, ratio, interval, result.name, told.rule if told is not None else "",
    )  # fmt: skip


def _unjudged(before: Series | None, after: Series | None) -> PerformanceChange:
    """What to call a series that no method judged."""
    if before is None:
        return PerformanceChange.NotInBaseline
    return PerformanceChange.Unknown if after is not None else PerformanceChange.NotInTarget


def _side(side: Measurements, location: str, value: float | None) -> data.Side:
    """:param value: of all profiles of the version; None where it is that of this one."""
    own = estimate(side.point(location))
    interval = None if own.low is None or own.high is None else shorts((own.low, own.high))
    return data.Side(short(own.value if value is None else value), interval, own.size)


def _ratio(
    old: data.Side | None, new: data.Side | None, told: DegradationInfo | None
) -> tuple[data.Number, list[data.Number] | None]:
    """New by old and its interval, as the method tells it, else of the means alone."""
    if told is not None and told.type == "ratio" and told.rate_degradation > 0:
        return short(told.rate_degradation), shorts(told.interval) if told.interval else None
    before, after = (one.value if one is not None else None for one in (old, new))
    return (short(after / before), None) if before and after is not None and before > 0 else (None, None)


def _rank(row: data.Compared) -> tuple[int, float]:
    """What got worse first, then what got better, then the rest; the largest first."""
    worse = row.result.endswith("Degradation")
    size = abs(math.log(row.ratio)) if row.ratio else 0.0
    return (0 if worse else 1 if row.result.endswith("Optimization") else 2), -size


def _values(series: Series) -> data.Numbers:
    """The values in their order, or so many of them at even distances."""
    values = series.values
    places = np.linspace(0, len(values) - 1, min(VALUES, len(values))).astype(int)
    return shorts(values[places])


def _models(base: Profile, head: Profile) -> Iterator[data.Model]:
    """The best model of each function that both profiles have models of."""
    sides = [_best(one) for one in (base, head)]
    for name in sorted(sides[0].keys() & sides[1].keys()):
        yield data.Model(name, sides[0][name], sides[1][name])


def _best(profile: Profile) -> dict[str, str]:
    """The formula of the best model by uid."""
    found: dict[str, tuple[float, str]] = {}
    for _, model in profile.all_models():
        square, kind = model.get("r_square"), model.get("model")
        if isinstance(square, (int, float)) and isinstance(kind, str):
            uid = str(flatten(model.get("uid", "")))
            found[uid] = max(found.get(uid, (-math.inf, "")), (float(square), _formula(model, kind)))
    return {uid: text for uid, (_, text) in found.items()}


def _formula(model: Mapping[str, Any], kind: str) -> str:
    """`linear: b0 = 1.2, b1 = 3.4`."""
    values = [
        f"{one.get('name')} = {one['value']:.4g}"
        for one in model.get("coeffs", ())
        if isinstance(one, Mapping) and isinstance(one.get("value"), (int, float))
    ]
    return f"{kind}: {', '.join(values)}" if values else kind


def flame(repo: Repository, name: str, number: int) -> str:
    """The page with the differential flame graph of the configuration of that number of `compare/A..B`.

    :raises ProfileNotFound: if there is none.
    """
    old, new = versions_of(repo, name)
    for place, (comparison, base, head) in enumerate(_pairs(repo, old, new, [])):
        if place == number:
            collector = comparison.target.configuration.collector
            unseen: list[str] = []
            for _, page in flames.graphs(repo, {collector: ProfilePair(base, head)}, unseen):
                return page
            raise ProfileNotFound("; ".join(unseen) or f"profiles of {collector} have no call stacks")
    raise ProfileNotFound(f"{name} has no configuration {number} that is of both versions")

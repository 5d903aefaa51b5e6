"""Two versions beside each other: what `perun check` says of their profiles, and how these differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from perun.core.errors import PerunError, ProfileNotFound, UsageError
from perun.history.check.compare import CheckPair, Comparer
from perun.history.check.pairing import Pairing
from perun.history.check.report import DEFAULTS, Comparison
from perun.history.trend import text_of
from perun.measurement import present
from perun.measurement.comparison import Measurements
from perun.measurement.estimate import Estimate, estimate
from perun.measurement.series import Series
from perun.plugin.api import MinorVersion, quiet, silent
from perun.profile.amounts import readable, readable_pair
from perun.profile.changes import DegradationInfo
from perun.profile.head import Configuration
from perun.profile.uid import flatten
from perun.repository.lookup import ends_of
from perun.repository.repository import Repository
from perun.running.explain import explaining
from perun.running.explain.plan import ProfilePair
from perun.web.data import form
from perun.web.data.naming import short, shorts
from perun.web.data.state import WebState

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


def compare(state: WebState, name: str) -> form.Comparison:
    """The piece `compare/A..B`; nothing is measured.

    :raises UsageError: if it does not name two versions. :raises VersionControlError: if one is unknown.
    """
    repo = state.repo
    old, new = versions_of(repo, name)
    notes: list[str] = []
    cases = []
    pair = f"{old.checksum}..{new.checksum}"
    comparer = Comparer(repo, DEFAULTS)
    for number, step in enumerate(_pairs(repo, old, new, notes)):
        outcome = comparer.registered(step).of(step)
        try:
            base, head = comparer.sides(step)
        except PerunError as problem:
            notes.append(problem.message)
            continue
        notes += [f"{_title(step.target.configuration)}: {note}" for note in _doubts(outcome)]
        cases.append(_case(state, outcome, base, head, f"flame/{pair}/{number}.html"))
    if not cases and not notes:
        notes.append("no configuration has profiles of both versions")
    return form.Comparison(_ref(state, old), _ref(state, new), notes, cases)


def _ref(state: WebState, version: MinorVersion) -> form.Ref:
    place = state.place_of(version.checksum)
    if place >= 0:
        return state.ref(place)
    return form.Ref(-1, version.checksum, 0, version.author, version.subject)


def _pairs(repo: Repository, old: MinorVersion, new: MinorVersion, notes: list[str]) -> list[CheckPair]:
    """What compares. :param notes: gets what does not, and why."""
    plan = Pairing(repo, DEFAULTS, silent, quiet).between(old, new)
    notes += [problem.message for problem in plan.errors]
    return [step for step in plan.steps if isinstance(step, CheckPair)]


def _doubts(comparison: Comparison) -> list[str]:
    texts = (comparison.not_compared, comparison.incomplete, comparison.environment, *comparison.notes)
    return [one for one in texts if one]


def _title(configuration: Configuration) -> str:
    return f"{text_of(configuration)} ({configuration.collector})"


def _case(state: WebState, comparison: Comparison, base: Profile, head: Profile, flame: str) -> form.Case:
    configuration = comparison.target.configuration
    sides = Measurements(base), Measurements(head)
    before, after = (one.series for one in sides)
    told: dict[str, DegradationInfo] = {}
    for change in (change for result in comparison.results for change in result.changes):
        if change.type == "ratio" or change.location not in told:
            told[change.location] = change
    groups = (state.groups[one] for one in state.of_configuration.get(configuration, ()))
    ids = {one.key.location: one.id for one in groups}
    rows = [
        _row(location, *sides, told.get(location), ids.get(location))
        for location in dict.fromkeys([*after, *before])
    ]
    rows.sort(key=_rank)
    both = [row.location for row in rows if row.a and row.b and (row.a.n > 1 or row.b.n > 1)]
    samples = [
        form.Sample(one, after[one].metric.unit, _values(before[one]), _values(after[one]))
        for one in both[:SAMPLES]
    ]
    draws = configuration.collector in explaining.TITLES and _has_stacks(base) and _has_stacks(head)
    return form.Case(
        _title(configuration), rows[:ROWS], samples, list(_models(base, head)), flame if draws else None
    )


def _has_stacks(profile: Profile) -> bool:
    return any(not _STACKS.isdisjoint({*group.constants, *group.columns}) for group in profile.groups())


def _row(
    location: str, base: Measurements, head: Measurements, told: DegradationInfo | None, series: str | None
) -> form.Compared:
    """What both measured of a series, and how check tells of it."""
    both = base, head
    metric = next(one.series[location].metric for one in reversed(both) if location in one.series)
    known = [estimate(one.point(location)) if location in one.series else None for one in both]
    values = [None if one is None else one.value for one in known]
    if told is not None and told.values is not None and told.unit == metric.unit:
        values = list(told.values)  # of a family of the workloads that both have
    before, after = values
    texts = ["" if one is None else readable(one, metric.unit) for one in values]
    if before is not None and after is not None:
        texts = list(readable_pair(before, after, metric.unit))
    old, new = (
        None if one is None else _side(one, value, text, metric.unit)
        for one, value, text in zip(known, values, texts, strict=True)
    )
    ratio = told.rate_degradation or math.nan if told is not None and told.type == "ratio" else math.nan
    low, high = (told and told.interval) or (ratio, ratio)
    word, reason, text = "", "", ""
    if told is not None:
        word, reason = present.name(told.result, limit=told.limit), told.rule
        if before is not None and after is not None:
            text = present.step((before, after), ratio, low, high, metric.unit)
    return form.Compared(
        location, metric.shown_subtype or metric.type, metric.unit, metric.exact, metric.larger_is_better,
        series, old, new, short(ratio), shorts((low, high)) if low < high else None,
        told.result.name if told else "", reason, word, text,
    )  # fmt: skip


def _side(one: Estimate, value: float | None, text: str, unit: str) -> form.Side:
    interval = None if one.low is None or one.high is None else shorts((one.low, one.high))
    found = one.value if value is None else value
    return form.Side(short(found), interval, one.size, text, present.value(one, unit))


def _rank(row: form.Compared) -> tuple[int, float]:
    """What got worse first, then what got better, then the rest; the largest first."""
    worse = row.result.endswith("Degradation")
    size = abs(math.log(row.ratio)) if row.ratio else 0.0
    return (0 if worse else 1 if row.result.endswith("Optimization") else 2), -size


def _values(series: Series) -> form.Numbers:
    """The values in their order, or so many of them at even distances."""
    values = series.values
    places = np.linspace(0, len(values) - 1, min(VALUES, len(values))).astype(int)
    return shorts(values[places])


def _models(base: Profile, head: Profile) -> Iterator[form.Model]:
    """The best model of each function that both profiles have models of."""
    sides = [_best(one) for one in (base, head)]
    for name in sorted(sides[0].keys() & sides[1].keys()):
        yield form.Model(name, sides[0][name], sides[1][name])


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

    :raises ProfileNotFound: if there is none. :raises PerunError: if a profile cannot be read.
    """
    pairs = _pairs(repo, *versions_of(repo, name), [])
    if number >= len(pairs):
        raise ProfileNotFound(f"{name} has no configuration {number} that is of both versions")
    ends = pairs[number].baseline, pairs[number].target
    collector = ends[1].configuration.collector
    base, head = (repo.store.objects.get(one.checksum) for one in ends)
    unseen: list[str] = []
    for _, page in explaining.graphs(repo, {collector: ProfilePair(base, head)}, unseen):
        return page
    raise ProfileNotFound("; ".join(unseen) or f"profiles of {collector} have no call stacks")

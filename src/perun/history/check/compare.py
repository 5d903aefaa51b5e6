"""Comparing pairs of registered profiles, each of which is read about once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.core.errors import PerunError, PluginError, ProfileError
from perun.history.baseline import KnownSummaries, headline_series_of
from perun.history.check.pools import Pools, Profiles
from perun.history.check.report import Comparison, ComparisonOptions, MethodResult
from perun.history.log import ChangeConfirmation
from perun.measurement.comparable import Conditions, ProfileMismatch, differences, refused
from perun.measurement.comparison import Measurements
from perun.measurement.estimate import Point, Readings, point
from perun.measurement.many import MOVED
from perun.measurement.series import SeriesName, read_of, readings
from perun.measurement.verdict import mirror
from perun.plugin.api import CheckContext, MinorVersion
from perun.plugin.loading import errors_of
from perun.plugin.params import from_mapping
from perun.profile import incomplete
from perun.profile.amounts import larger_is_better, locations_of_larger
from perun.profile.changes import DegradationInfo, PerformanceChange, without_doubtful, without_negligible
from perun.profile.helpers import ProfileInfo
from perun.profile.sampled import SAMPLED
from perun.profile.session import are_pairs
from perun.profile.uid import uid_in
from perun.profile.untraced import AlignedProfiles
from perun.repository import jobs, postprocessing
from perun.repository.repository import Repository
from perun.store import Store
from perun.store.series import ProfileSeries, known_profiles

if TYPE_CHECKING:
    from perun.profile.factory import Profile


# Which checks are applied to a pair of profiles: the rules of `degradation.strategies` (manual 8.3).

CONDITIONS = ("type", "cmd", "args", "workload", "collector", "postprocessor")
"""Keys of a rule that a profile has to match; besides these a rule has `method` and :data:`INSTEAD_OF`."""
OF_TYPES: Final[Mapping[str, str]] = {"bound": "bound_classes", "island": "island_usage"}
"""The method for profiles of a type that those for measured amounts can say nothing of."""
INSTEAD_OF = "instead_of"
"""Key of a rule: another method, in whose place this one is applied where that can say nothing."""


@dataclass(frozen=True)
class CheckRule:
    """A check with its parameters, and the conditions under which it is applied.

    `instead_of` names the check in whose place it is applied, or is empty: then it is applied in any case.
    """

    check: Any
    params: Any
    conditions: Mapping[str, str]
    instead_of: str = ""

    def applies_to(self, info: ProfileInfo) -> bool:
        """Whether the profile meets all conditions; a dash and an underscore are the same."""
        return all(_meets(info, key, value) for key, value in self.conditions.items())


def rules(repo: Repository) -> list[CheckRule]:
    """The rules gathered through the configuration hierarchy, the most local first.

    :raises ConfigError: for a wrong setting of a method. :raises PluginError: for an unknown method.
    """
    return [_rule(repo, entry) for entry in repo.config.gather("degradation.strategies")]


def applicable(repo: Repository, all_rules: list[CheckRule], info: ProfileInfo) -> list[CheckRule]:
    """The rules for one profile: all that apply, or with `degradation.apply: first` the first of them, and
    what is applied in its place.

    A method that several rules name is applied once, as the most local of them says. A type that needs a
    method of its own (:data:`OF_TYPES`) gets that, and besides only those of rules that are for the type or
    its collector.
    """
    chosen: dict[str, CheckRule] = {}
    only_first = repo.config.get("degradation.apply") == "first"
    if info.head.type in OF_TYPES:
        all_rules = [rule for rule in all_rules if {"type", "collector"} & rule.conditions.keys()]
        all_rules.append(_rule(repo, {"method": OF_TYPES[info.head.type]}))
    for rule in all_rules:
        if rule.applies_to(info) and not (only_first and chosen and rule.instead_of not in chosen):
            chosen.setdefault(rule.check.name, rule)
    return list(chosen.values())


def params_of(repo: Repository, check: Any) -> Any:
    """The parameters that the configuration sets for a check.

    :raises ConfigError: for a wrong setting.
    """
    name = f"degradation.{check.name}"
    return from_mapping(check.Params, repo.config.section(name), name)


def _rule(repo: Repository, entry: Mapping[str, Any]) -> CheckRule:
    """The rule that the entry is; the configuration has checked its keys, and that it names a method."""
    check = repo.registry.get("check", str(entry["method"]))
    params = params_of(repo, check)
    conditions = {key: str(value) for key, value in entry.items() if key in CONDITIONS}
    other = entry.get(INSTEAD_OF)
    return CheckRule(check, params, conditions, repo.registry.get("check", str(other)).name if other else "")


def _meets(info: ProfileInfo, key: str, value: str) -> bool:
    if key == "postprocessor":
        return _plain(value) in [_plain(name) for name in info.head.postprocessors]
    actual = str(getattr(info, key))
    return _plain(actual) == _plain(value) if key in ("collector", "type") else actual == value


def _plain(name: str) -> str:
    return name.replace("-", "_")


KEPT_READINGS: Final = 1024
"""Profiles of versions before whose series stay in memory."""
KEPT_POINTS: Final = 4096
"""Points of series of versions that stay in memory."""
MOST_BYTES: Final = 8 << 20
"""Bytes of the JSON of a profile that is read for the noise that it shows."""


class CheckPair(NamedTuple):
    """Two registered profiles to compare, and the version that the baseline is of.

    :param more_targets: older profiles of the same version and configuration as the target, the newest first,
        which are pooled with it. :param more_baselines: the same of the baseline.
    :param line: by version the checksums of the profiles that show the noise, the oldest first: those of the
        baseline, then those of the versions before it, the nearest first.
    :param version: that of the target. :param turned: whether the baseline is the newer one.
    """

    target: ProfileInfo
    baseline: ProfileInfo
    baseline_version: MinorVersion | None = None
    more_targets: tuple[ProfileInfo, ...] = ()
    more_baselines: tuple[ProfileInfo, ...] = ()
    line: tuple[tuple[str, ...], ...] = ()
    version: str = ""
    turned: bool = False


class PairOutcome(NamedTuple):
    """What became of a pair: see the fields of :class:`~perun.history.check.report.Comparison`."""

    results: tuple[MethodResult, ...] = ()
    reason: str = ""
    error: PerunError | None = None
    incomplete: str = ""
    environment: str = ""
    notes: tuple[str, ...] = ()

    def of(self, pair: CheckPair) -> Comparison:
        """The comparison of the pair that this is the outcome of."""
        return Comparison(pair.target, pair.baseline, pair.baseline_version, **self._asdict())


class BaselinePoints:
    """The points of series at the versions before, by what the cache has of profiles; of what it lacks, those
    are read that are not too large for that."""

    def __init__(self, store: Store, profiles: Profiles) -> None:
        self._store = store
        self._profiles = profiles
        self._pair: CheckPair | None = None
        self._known: OrderedDict[str, tuple[Mapping[SeriesName, Readings], Conditions]] = OrderedDict()
        # A version is on the lines of several pairs.
        self._point = lru_cache(KEPT_POINTS)(self._point_of)

    def of(self, pair: CheckPair, name: SeriesName) -> list[Point]:
        """The points of a series along the line of the pair."""
        if pair is not self._pair:  # all of a pair at once
            self._pair = pair
            self._know(checksum for own in pair.line for checksum in own)
        return [found for own in pair.line if (found := self._point(own, name, own[-1])) is not None]

    def both(self, pair: CheckPair, name: SeriesName) -> tuple[Point, Point] | None:
        """The points of both versions of the pair; None where one of them is not known.

        The conditions are those of the two profiles, also where a version was measured again after these.
        """
        old, new = (
            self._point(
                tuple(info.checksum for info in sorted((*reversed(more), own), key=lambda info: info.time)),
                name,
                own.checksum,
            )
            for own, more in ((pair.baseline, pair.more_baselines), (pair.target, pair.more_targets))
        )
        return None if old is None or new is None else (old, new)

    def _point_of(self, version: Sequence[str], name: SeriesName, like: str) -> Point | None:
        """What these profiles measured, under the conditions of one of them. Whether these matter has been
        decided."""
        if any(checksum not in self._known for checksum in version):
            self._know(version)
        read = [(checksum, *self._known[checksum]) for checksum in version]
        known = [
            (own, (found, under)) for own, one, under in read if (found := read_of(one, name)) is not None
        ]
        there, ruling = [one for _, one in known], dict(known).get(like)
        return point(there, name.kind, ruling)._replace(conditions=()) if there else None

    def _know(self, checksums: Iterable[str]) -> None:
        """Take what these profiles measured into memory."""
        wanted = dict.fromkeys(checksums)
        missing = [checksum for checksum in wanted if checksum not in self._known]
        for checksum in wanted:
            if checksum in self._known:
                self._known.move_to_end(checksum)
        found = known_profiles(
            self._store,
            missing,
            lambda problem: None,  # whoever compares it says so
            lambda checksum: self._profiles.get(checksum, MOST_BYTES),
            lambda profile: readings(profile, self._profiles.cached(profile, Measurements).series),
        )
        for checksum in missing:
            one = found.get(checksum)
            own = ProfileSeries((), (), ()) if one is None or one.summary.incomplete else one.series
            self._known[checksum] = dict(zip(own.names, own.readings, strict=True)), own.conditions
        while len(self._known) > max(KEPT_READINGS, len(wanted)):
            self._known.popitem(last=False)


class Comparer:
    """Applies the configured checks to pairs of profiles.

    :raises ConfigError: where a rule is wrong. :raises PluginError: for an unknown method.
    """

    def __init__(self, repo: Repository, options: ComparisonOptions) -> None:
        self._repo = repo
        self._rules = rules(repo)
        self._profiles = Profiles(repo)
        self._force = options.force
        self._lines = BaselinePoints(repo.store, self._profiles)
        self._facts = KnownSummaries(repo)
        self._newer = ChangeConfirmation(repo)
        settings = repo.config.section("degradation")
        self._context = CheckContext(settings, options.models_type, self._postprocess, self._profiles.cached)

    def registered(self, pair: CheckPair, only: Sequence[CheckRule] = ()) -> PairOutcome:
        """What the checks find of two registered profiles; where one cannot be read, that is the outcome.

        :param only: the checks that are applied, whatever the configuration says.
        """
        chosen = list(only) or applicable(self._repo, self._rules, pair.target)
        if not chosen:
            return _NO_RULE
        profiles: dict[str, Profile] = {}
        # In this order, as the baseline is the next target and has to be in memory then.
        for what, info in (("target", pair.target), ("baseline", pair.baseline)):
            try:
                profiles[what] = self._profiles.get(info.checksum)
            except ProfileError as problem:
                return PairOutcome(
                    reason=f"the {what} {info.source} cannot be read: {problem.message}", error=problem
                )
        try:
            baseline, target, notes = self._pooled(pair, **profiles)
        except ProfileError as problem:
            return PairOutcome(reason=f"a profile to pool cannot be read: {problem.message}", error=problem)
        outcome = self._outcome(chosen, baseline, target, pair)
        return outcome._replace(notes=(*notes, *outcome.notes))

    def sides(self, pair: CheckPair) -> tuple[Profile, Profile]:
        """Baseline and target as they are compared, with all profiles of their versions.

        :raises ProfileError: where one cannot be read.
        """
        baseline, target = (self._profiles.get(info.checksum) for info in (pair.baseline, pair.target))
        return self._pooled(pair, baseline, target)[:2]

    def _pooled(
        self, pair: CheckPair, baseline: Profile, target: Profile
    ) -> tuple[Profile, Profile, tuple[str, ...]]:
        # Who measured two versions side by side wants these two measurements compared.
        pairs = are_pairs(baseline, target)
        if (pairs and target.type != SAMPLED) or not (pair.more_targets or pair.more_baselines):
            return baseline, target, ()
        pools = Pools(self._profiles, self._postprocess)
        target = pools.pooled(pair.target, pair.more_targets)  # each has the functions that it had samples of
        baseline = pools.pooled(pair.baseline, pair.more_baselines)
        return baseline, target, () if pairs else pools.notes(baseline, target)

    def loaded(self, target: ProfileInfo, baseline: Profile, profile: Profile) -> PairOutcome:
        """What the checks find of two profiles that are in memory."""
        chosen = applicable(self._repo, self._rules, target)
        return self._outcome(chosen, baseline, profile) if chosen else _NO_RULE

    def by(self, chosen: Sequence[CheckRule], baseline: Profile, profile: Profile) -> PairOutcome:
        """What these checks find of two profiles that are in memory, whatever the configuration says."""
        return self._outcome(list(chosen), baseline, profile)

    def _outcome(
        self,
        chosen: list[CheckRule],
        baseline: Profile,
        target: Profile,
        pair: CheckPair | None = None,
    ) -> PairOutcome:
        lacks = {"baseline": incomplete.text_of(baseline), "target": incomplete.text_of(target)}
        reasons = "; ".join(f"the {which} is incomplete ({why})" for which, why in lacks.items() if why)
        found = differences(baseline, target)
        environment = "; ".join(f"{one.name}: {one.baseline} and {one.target}" for one in found)
        if reasons and not self._force:
            unknown = _unknown(target, lacks["baseline"], lacks["target"])
            return PairOutcome(_of_all(chosen, unknown), incomplete=reasons, environment=environment)
        if found and not self._force:
            unknown = _incomparable(target, found)
            return PairOutcome(_of_all(chosen, unknown), environment=environment)
        both = AlignedProfiles(baseline, target)
        context = self._context
        if pair is not None:
            again = partial(self._seen_again, pair)
            context = context._replace(line=partial(self._lines.of, pair), again=again, turned=pair.turned)
            if both.baseline is baseline and both.target is target:
                context = context._replace(both=partial(self._lines.both, pair))
        results = [self._apply(rule, both, context) for rule in chosen]
        kept = _without_replaced(chosen, results, all_told=target.type == SAMPLED)
        applied = {result.method for result in kept if not result.reason}
        of_checks = (note for rule in chosen if rule.check.name in applied for note in _notes_of(rule.check))
        moved = (one.rule for result in kept for one in result.changes if one.type == MOVED)
        notes = (*both.notes, *of_checks, *moved)
        return PairOutcome(kept, incomplete=reasons, environment=environment, notes=notes)

    def _seen_again(self, pair: CheckPair) -> bool:
        """Whether a version after both has seen the same as the newer one."""
        version, info = pair.version, pair.target
        if pair.turned:
            version = pair.baseline_version.checksum if pair.baseline_version else ""
            info = pair.baseline
        fact = self._facts.of([info]).get(info)
        wanted = None if fact is None else headline_series_of(info.configuration, fact)
        return wanted is not None and bool(version) and self._newer(version, wanted)

    def _apply(self, rule: CheckRule, both: AlignedProfiles, context: CheckContext) -> MethodResult:
        name, baseline, target = rule.check.name, both.baseline, both.target
        try:
            with errors_of(rule.check, f"the check {name!r}", PluginError):
                found = tuple(rule.check.compare(baseline, target, rule.params, context))
            certain = without_doubtful(both.judged(found), baseline, target)
            changes = tuple(without_negligible(certain, baseline, target))
            knows = getattr(rule.check, "knows_larger_is_better", False)
            if larger_is_better(target) and not knows:
                larger = locations_of_larger(target)
                changes = tuple(mirror(one) if one.location in larger else one for one in changes)
            return MethodResult(name, changes)
        except ProfileError as problem:
            return MethodResult(name, reason="; ".join(filter(None, (problem.message, problem.hint))))

    def _postprocess(self, profile: Profile, name: str, params: Mapping[str, Any]) -> Profile:
        unit = jobs.make_unit(self._repo, "postprocess", name, params, "a check")
        return postprocessing.process(self._repo, profile, unit.name, unit.params)


def _notes_of(check: Any) -> tuple[str, ...]:
    """What holds for all that the check says."""
    return tuple(getattr(check, "notes", ()))


def _unknown(target: Profile, baseline_lacks: str, target_lacks: str) -> DegradationInfo:
    """That the change of the whole program is unknown, as a profile is incomplete."""
    return DegradationInfo(
        PerformanceChange.Unknown,
        str(target.get("header", {}).get("cmd", "")),
        baseline_lacks or "complete",
        target_lacks or "complete",
        "incomplete",
    )


def _incomparable(target: Profile, found: Sequence[ProfileMismatch]) -> DegradationInfo:
    """That the change of the whole program is unknown, as both were measured under different conditions."""
    return DegradationInfo(
        PerformanceChange.Unknown,
        str(target.get("header", {}).get("cmd", "")),
        "; ".join(one.baseline for one in found),
        "; ".join(one.target for one in found),
        "environment",
        rule=refused(found),
    )


def _of_all(chosen: list[CheckRule], change: DegradationInfo) -> tuple[MethodResult, ...]:
    """The same answer of each method that is applied in any case."""
    return tuple(MethodResult(rule.check.name, (change,)) for rule in chosen if not rule.instead_of)


def _without_replaced(
    chosen: list[CheckRule], results: list[MethodResult], *, all_told: bool
) -> tuple[MethodResult, ...]:
    """The results, each place once: what a method says in place of another only where that says nothing.

    :param all_told: whether the other method tells of all places that matter, where it says something.

    Places are the same where one location names the uid and the other, in brackets, a metric of it.
    """
    by_name = {result.method: result for result in results}
    kept = []
    for rule, result in zip(chosen, results, strict=True):
        other = by_name.get(rule.instead_of)
        if other is not None and all_told and other.changes:
            continue
        if other is not None:
            told = {change.location for change in other.changes}
            told |= {uid_in(location) for location in told if not location.endswith(_CALLS)}
            # Where nothing can be said of the two parts of it, it speaks for them.
            cpu = [location.removesuffix(_CPU) for location in told if location.endswith(_CPU)]
            told |= {f"{uid} [{part}]" for uid in cpu for part in ("user", "sys")}
            left = tuple(change for change in result.changes if change.location not in told)
            result = replace(result, changes=left)
            if not left and (other.changes or result.reason):
                continue
        kept.append(result)
    taken = {rule.instead_of for rule, result in zip(chosen, results, strict=True) if not result.reason}
    return tuple(result for result in kept if not (result.reason and result.method in taken))


_CPU: Final = " [cpu]"
"""End of a location that says how long processors worked for a command."""
_CALLS: Final = " [calls]"
"""End of a location that says how often a function was called, but not how long that took."""
_NO_RULE: Final = PairOutcome(reason="no rule of degradation.strategies applies to this profile")

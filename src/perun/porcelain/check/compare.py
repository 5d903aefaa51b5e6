"""Comparing pairs of registered profiles, each of which is read about once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.errors import PerunError, ProfileError
from perun.plugin.api import CheckContext, MinorVersion
from perun.porcelain import postprocessby
from perun.porcelain.check.comparable import Difference, differences
from perun.porcelain.check.report import Comparison, MethodResult, Options
from perun.porcelain.check.rules import Rule, applicable, rules
from perun.porcelain.repository import Repository
from perun.porcelain.run import jobs
from perun.profile import incomplete
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.helpers import ProfileInfo
from perun.store import tree

if TYPE_CHECKING:
    from perun.profile.factory import Profile

KEPT_PROFILES: Final = 64
KEPT_BYTES: Final = 16 << 20
"""Profiles that stay in memory at most, and bytes of their JSON, of which memory takes about three times as
many: in a history each profile is the target once and the baseline about once, soon afterwards."""


class Pair(NamedTuple):
    """Two registered profiles to compare, and the version that the baseline is of."""

    target: ProfileInfo
    baseline: ProfileInfo
    baseline_version: MinorVersion | None = None


class Outcome(NamedTuple):
    """What became of a pair: see the fields of :class:`~perun.porcelain.check.report.Comparison`."""

    results: tuple[MethodResult, ...] = ()
    reason: str = ""
    error: PerunError | None = None
    incomplete: str = ""
    environment: str = ""

    def of(self, pair: Pair) -> Comparison:
        """The comparison of the pair that this is the outcome of."""
        return Comparison(pair.target, pair.baseline, pair.baseline_version, **self._asdict())


class Comparer:
    """Applies the configured checks to pairs of profiles.

    :raises ConfigError: where a rule is wrong. :raises PluginError: for an unknown method.
    """

    def __init__(self, repo: Repository, options: Options) -> None:
        self._repo = repo
        self._rules = rules(repo)
        self._profiles = _Profiles(repo)
        self._force = options.force
        settings = repo.config.section("degradation")
        self._context = CheckContext(settings, options.models_type, self._postprocess, self._profiles.cached)

    def registered(self, pair: Pair) -> Outcome:
        """What the checks find of two registered profiles; where one cannot be read, that is the outcome."""
        chosen = applicable(self._repo, self._rules, pair.target)
        if not chosen:
            return _NO_RULE
        profiles = {}
        # In this order, as the baseline is the next target and has to be in memory then.
        for what, info in (("target", pair.target), ("baseline", pair.baseline)):
            try:
                profiles[what] = self._profiles.get(info.checksum)
            except ProfileError as problem:
                return Outcome(
                    reason=f"the {what} {info.source} cannot be read: {problem.message}", error=problem
                )
        return self._outcome(chosen, profiles["baseline"], profiles["target"])

    def loaded(self, target: ProfileInfo, baseline: Profile, profile: Profile) -> Outcome:
        """What the checks find of two profiles that are in memory."""
        chosen = applicable(self._repo, self._rules, target)
        return self._outcome(chosen, baseline, profile) if chosen else _NO_RULE

    def _outcome(self, chosen: list[Rule], baseline: Profile, target: Profile) -> Outcome:
        lacks = {"baseline": incomplete.text_of(baseline), "target": incomplete.text_of(target)}
        reasons = "; ".join(f"the {which} is incomplete ({why})" for which, why in lacks.items() if why)
        found = differences(baseline, target)
        environment = "; ".join(f"{one.name}: {one.baseline} and {one.target}" for one in found)
        if reasons and not self._force:
            unknown = _unknown(target, lacks["baseline"], lacks["target"])
            return Outcome(_of_all(chosen, unknown), incomplete=reasons, environment=environment)
        if found and not self._force:
            unknown = _incomparable(target, found)
            return Outcome(_of_all(chosen, unknown), environment=environment)
        results = (self._apply(rule, baseline, target) for rule in chosen)
        return Outcome(_without_replaced(chosen, list(results)), incomplete=reasons, environment=environment)

    def _apply(self, rule: Rule, baseline: Profile, target: Profile) -> MethodResult:
        name = rule.check.name
        try:
            return MethodResult(name, tuple(rule.check.compare(baseline, target, rule.params, self._context)))
        except ProfileError as problem:
            return MethodResult(name, reason="; ".join(filter(None, (problem.message, problem.hint))))

    def _postprocess(self, profile: Profile, name: str, params: Mapping[str, Any]) -> Profile:
        unit = jobs.make_unit(self._repo, "postprocess", name, params, "a check")
        return postprocessby.process(self._repo, profile, unit.name, unit.params)


def _unknown(target: Profile, baseline_lacks: str, target_lacks: str) -> DegradationInfo:
    """That the change of the whole program is unknown, as a profile is incomplete."""
    return DegradationInfo(
        PerformanceChange.Unknown,
        str(target.get("header", {}).get("cmd", "")),
        baseline_lacks or "complete",
        target_lacks or "complete",
        "incomplete",
    )


def _incomparable(target: Profile, found: Sequence[Difference]) -> DegradationInfo:
    """That the change of the whole program is unknown, as both were measured under different conditions."""
    names = ", ".join(one.name for one in found)
    return DegradationInfo(
        PerformanceChange.Unknown,
        str(target.get("header", {}).get("cmd", "")),
        "; ".join(one.baseline for one in found),
        "; ".join(one.target for one in found),
        "environment",
        rule=f"not comparable, as these differ: {names}; compare nevertheless with --force",
    )


def _of_all(chosen: list[Rule], change: DegradationInfo) -> tuple[MethodResult, ...]:
    """The same answer of each method that is applied in any case."""
    return tuple(MethodResult(rule.check.name, (change,)) for rule in chosen if not rule.instead_of)


def _without_replaced(chosen: list[Rule], results: list[MethodResult]) -> tuple[MethodResult, ...]:
    """The results, each place once: what a method says in place of another only where that says nothing.

    Places are the same where one location names the uid and the other, in brackets, a metric of it.
    """
    by_name = {result.method: result for result in results}
    kept = []
    for rule, result in zip(chosen, results, strict=True):
        other = by_name.get(rule.instead_of)
        if other is not None:
            told = {change.location for change in other.changes}
            told |= {location.rpartition(" [")[0] for location in told if not location.endswith(_CALLS)}
            left = tuple(change for change in result.changes if change.location not in told)
            result = replace(result, changes=left)
            if not left and (other.changes or result.reason):
                continue
        kept.append(result)
    taken = {rule.instead_of for rule, result in zip(chosen, results, strict=True) if not result.reason}
    return tuple(result for result in kept if not (result.reason and result.method in taken))


_CALLS: Final = " [calls]"
"""End of a location that says how often a function was called, but not how long that took."""
_NO_RULE: Final = Outcome(reason="no rule of degradation.strategies applies to this profile")


class _Profiles:
    """Registered profiles, of which those used last stay in memory."""

    def __init__(self, repo: Repository) -> None:
        self._objects = repo.store.objects
        self._kept: OrderedDict[str, tuple[int, Profile]] = OrderedDict()
        self._made: dict[int, dict[Callable[[Profile], Any], Any]] = {}
        self._bytes = 0

    def get(self, checksum: str) -> Profile:
        from perun.profile.format.json import loads

        known = self._kept.get(checksum)
        if known is not None:
            self._kept.move_to_end(checksum)
            return known[1]
        body = self._objects.get_body(checksum)
        # One stays, however large it is: that which the new one is compared with.
        while len(self._kept) > 1 and self._is_full(len(body)):
            _, (size, oldest) = self._kept.popitem(last=False)
            self._made.pop(id(oldest), None)
            self._bytes -= size
        source = str(tree.object_path(self._objects.root, checksum))
        profile = loads(body, source, limit=self._objects.limit)
        self._kept[checksum] = len(body), profile
        self._made[id(profile)] = {}
        self._bytes += len(body)
        return profile

    def cached(self, profile: Profile, make: Callable[[Profile], Any]) -> Any:
        """What `make` makes of the profile, kept as long as the profile stays in memory."""
        made = self._made.get(id(profile))
        if made is None:
            return make(profile)
        if make not in made:
            made[make] = make(profile)
        return made[make]

    def _is_full(self, size: int) -> bool:
        """Whether there is no room for a profile with so many bytes of JSON."""
        return len(self._kept) >= KEPT_PROFILES or self._bytes + size > KEPT_BYTES

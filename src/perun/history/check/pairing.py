"""The first step of a check: which pairs of profiles of a version are compared."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from typing import Final, NamedTuple, TypeVar

from perun.core.config.schema import is_true
from perun.core.errors import DamagedStore, PerunError, ProfileError
from perun.history.check.compare import CheckPair
from perun.history.check.report import Comparison, ComparisonOptions
from perun.measurement.comparable import COUNTED, WITHOUT_RUNS
from perun.measurement.noise import REACH, WINDOW
from perun.plugin.api import MinorVersion, Report
from perun.profile.factory import Configuration
from perun.profile.helpers import ProfileInfo
from perun.profile.session import are_pairs
from perun.repository import lookup
from perun.repository.repository import Repository
from perun.repository.walking import before_both

# The baselines of the profiles of a version: those of the same configuration in the nearest ancestor.
#
# All profiles of a version are looked for in one walk, as history may be long and a version may have
# thousands.

Candidates = Callable[[], Iterable[MinorVersion]]
"""The versions that may hold the baseline, the nearest first."""
COUNT_CONFIGURATIONS_AFTER: Final = 500
"""Versions with profiles that a walk looks at before it pays to find out what all the others have."""
KEPT_LISTS: Final = 4096
"""Versions whose lists of profiles stay in memory."""

K = TypeVar("K")


class Baselines:
    """Looks for baselines among the registered profiles of a repository.

    :param force: whether a profile of the same collector does where a version has none of the configuration.
    """

    def __init__(self, repo: Repository, *, force: bool) -> None:
        self._repo = repo
        self._force = force
        self.refresh()

    @cached_property
    def with_profiles(self) -> frozenset[str]:
        """The versions that have profiles, by their checksums."""
        return frozenset(self._repo.store.indexes.minors())

    def only(self, versions: Iterable[str]) -> None:
        """Look at no other versions than these, so that nobody has to ask which ones have profiles."""
        self.with_profiles = frozenset(filter(self._repo.store.indexes.has, versions))

    def refresh(self) -> None:
        """Read again which versions have profiles, after some were registered."""
        self.__dict__.pop("with_profiles", None)
        self._listed: OrderedDict[str, _Listed] = OrderedDict()
        self._gone: set[str] = set()
        self._machines: dict[str, str] = {}
        self._others: _ConfigurationCounts | None = None

    def profiles(self, checksum: str) -> list[ProfileInfo]:
        """The profiles of the version.

        :raises DamagedStore: where its index cannot be read.
        """
        return self._list(checksum).profiles if checksum in self.with_profiles else []

    def _list(self, checksum: str) -> _Listed:
        known = self._listed.get(checksum)
        if known is None:
            profiles = self._without_superseded(checksum)
            by_configuration = newest_first((info.configuration, info) for info in profiles)
            known = self._listed[checksum] = _Listed(profiles, by_configuration)
            if len(self._listed) > KEPT_LISTS:
                self._listed.popitem(last=False)
        return known

    def _without_superseded(self, checksum: str) -> list[ProfileInfo]:
        """The profiles of the version without incomplete ones that were measured again."""
        infos = lookup.registered(self._repo, checksum)
        if len(infos) < 2:
            return infos
        facts = self._repo.store.profile_summaries.of(info.checksum for info in infos)
        self._machines.update((key, one.machine) for key, one in facts.items())
        lacking = {info for info in infos if info.checksum in facts and facts[info.checksum].incomplete}
        whole = {info.configuration for info in infos if info not in lacking} if lacking else ()
        return [info for info in infos if info not in lacking or info.configuration not in whole]

    def exclude(self, checksum: str) -> None:
        """The version is no candidate from now on."""
        if checksum in self.with_profiles and checksum not in self._gone:
            self._gone.add(checksum)
            if self._others is not None:
                self._others.remove(checksum)
            self._listed.pop(checksum, None)

    def find(
        self,
        version: str,
        targets: Sequence[ProfileInfo],
        candidates: Candidates,
        beyond: Candidates = tuple,
        more: int = 0,
    ) -> list[CheckPair | DamagedStore | None]:
        """For each target of the version its pair, what is damaged before one was found, or None where
        there is none.

        Of several profiles of the configuration in one version that is the baseline that was measured side
        by side with the target; else the newest is, and the others are pooled with it. Versions beyond are
        noted, as they show the noise.

        :param beyond: versions before the last candidate, which are no candidates. :param more: how many
            versions more than usual are noted.
        """
        found: list[CheckPair | DamagedStore | None] = [None] * len(targets)
        machines = list(map(self.machine, targets))
        waiting = _OpenTargets(targets, machines, self.machine, force=self._force)
        left = len(self.with_profiles) - len(self._gone)
        looked_at = 0
        lines: dict[int, list[tuple[str, ...]]] = {}

        def walked() -> Iterator[MinorVersion]:
            yield from candidates()
            waiting.close([number for number in waiting.numbers() if number not in lines])
            yield from beyond() if waiting else ()

        for candidate in walked() if waiting and left else ():
            if candidate.checksum not in self.with_profiles:
                continue
            looked_at += 1
            if looked_at == COUNT_CONFIGURATIONS_AFTER:
                self._drop_without_baseline(waiting)
            if looked_at > REACH + more:
                waiting.close(lines)
            if not waiting:
                break
            try:
                listed = self._list(candidate.checksum)
            except DamagedStore as problem:
                # What is beyond may not be the nearest: nothing is better than a wrong answer.
                for number in waiting.numbers():
                    found[number] = found[number] or problem
                break
            for number, profiles in list(waiting.take(listed, candidate)):
                if number not in lines:
                    found[number] = self._pair(targets[number], profiles, listed, candidate)
                line = lines.setdefault(number, [])
                line.append(tuple(info.checksum for info in reversed(profiles)))
                if len(line) == WINDOW + more or self._force:
                    waiting.close([number])
            left -= 1
            if not waiting or not left:  # of a long history most may have no profile
                break
        for number, profiles, candidate in waiting.of_other_machines():
            if found[number] is None:
                found[number] = self._pair(targets[number], profiles, None, candidate)
        return [
            pair._replace(line=tuple(lines[number]))
            if isinstance(pair, CheckPair) and number in lines
            else pair
            for number, pair in enumerate(found)
        ]

    def _pair(
        self,
        target: ProfileInfo,
        baselines: Sequence[ProfileInfo],
        listed: _Listed | None,
        version: MinorVersion,
    ) -> CheckPair:
        newest, *others = baselines
        beside = None if listed is None else self._side_by_side(target, listed.profiles)
        chosen = beside or newest
        more = tuple(one for one in (newest, *others) if one is not chosen)
        return CheckPair(target, chosen, version, more_baselines=more)

    def machine(self, info: ProfileInfo) -> str:
        """The class of machines that a profile is of, as times of others are other series; empty where that
        is not known, or makes no difference."""
        if info.head.type in COUNTED | WITHOUT_RUNS:
            return ""
        if info.checksum not in self._machines:
            known = self._repo.store.profile_summaries.of([info.checksum]).get(info.checksum)
            self._machines[info.checksum] = known.machine if known is not None else ""
        return self._machines[info.checksum]

    def _side_by_side(self, target: ProfileInfo, profiles: Sequence[ProfileInfo]) -> ProfileInfo | None:
        """The one of several profiles of the configuration that is of the same session as the target."""
        alike = [info for info in profiles if info.configuration == target.configuration]
        if len(alike) < 2:
            return None
        try:
            head = lookup.head(self._repo, target)
            return next((one for one in alike if are_pairs(lookup.head(self._repo, one), head)), None)
        except ProfileError:
            return None  # the comparison says what cannot be read

    def _drop_without_baseline(self, waiting: _OpenTargets) -> None:
        """Drop the targets that no version has a baseline for."""
        if self._force:
            return
        if self._others is None:
            self._others = _ConfigurationCounts(self.with_profiles - self._gone, self.profiles)
        waiting.drop(self._others.lack)


class _Listed(NamedTuple):
    """The profiles of a version, and those of each configuration, the newest first."""

    profiles: list[ProfileInfo]
    by_configuration: dict[Configuration, list[ProfileInfo]]


class _OpenTargets:
    """Targets of which more points are looked for, by their configurations.

    :param machines: the class of machines of each target. :param machine_of: that of a profile.
    """

    def __init__(
        self,
        targets: Sequence[ProfileInfo],
        machines: Sequence[str],
        machine_of: Callable[[ProfileInfo], str],
        *,
        force: bool,
    ) -> None:
        self._all = targets
        self._machines = machines
        self._machine_of = machine_of
        self._force = force
        self._others: dict[int, tuple[list[ProfileInfo], MinorVersion]] = {}
        self._targets: dict[Configuration, list[int]] = {}
        for number, target in enumerate(targets):
            self._targets.setdefault(target.configuration, []).append(number)

    def __len__(self) -> int:
        return len(self._targets)

    def numbers(self) -> list[int]:
        """The positions of the targets that are open."""
        return list(chain.from_iterable(self._targets.values()))

    def drop(self, condition: Callable[[Configuration], bool]) -> None:
        """Forget the targets whose configuration fulfils the condition."""
        self._targets = {key: numbers for key, numbers in self._targets.items() if not condition(key)}

    def close(self, numbers: Iterable[int]) -> None:
        """Enough is known of these targets."""
        closed = set(numbers)
        kept = {key: [one for one in own if one not in closed] for key, own in self._targets.items()}
        self._targets = {key: own for key, own in kept.items() if own}

    def take(self, listed: _Listed, version: MinorVersion) -> Iterator[tuple[int, list[ProfileInfo]]]:
        """The targets that find profiles of their configuration and class of machines, the newest first."""
        for configuration, profiles in listed.by_configuration.items():
            for number in self._targets.get(configuration, ()):
                alike = [one for one in profiles if self._is_alike(number, one)]
                if alike:
                    yield number, alike
                else:
                    self._others.setdefault(number, (profiles, version))
        if self._force and self._targets:
            by_collector = newest_first((info.head.collector, info) for info in listed.profiles)
            for number in self.numbers():
                target = self._all[number]
                if (
                    target.head.collector in by_collector
                    and target.configuration not in listed.by_configuration
                ):
                    yield number, by_collector[target.head.collector][:1]

    def of_other_machines(self) -> Iterator[tuple[int, list[ProfileInfo], MinorVersion]]:
        """The nearest profiles of the configuration of each target that are of another class of machines: the
        comparison says that nothing can be said."""
        for number, (profiles, version) in self._others.items():
            yield number, profiles, version

    def _is_alike(self, number: int, profile: ProfileInfo) -> bool:
        own = self._machines[number]
        return not own or self._machine_of(profile) in ("", own)


class _ConfigurationCounts:
    """How many of the versions that may still be candidates have a profile of each configuration.

    :ivar _unreadable: versions of them whose profiles are not known, as their index is damaged.
    """

    def __init__(self, versions: Iterable[str], profiles: Callable[[str], list[ProfileInfo]]) -> None:
        self._profiles = profiles
        self._counts: Counter[Configuration] = Counter()
        self._unreadable = 0
        for checksum in versions:
            self._change(checksum, 1)

    def remove(self, checksum: str) -> None:
        """The version is a candidate no more."""
        self._change(checksum, -1)

    def lack(self, configuration: Configuration) -> bool:
        """Whether none of them can have such a profile."""
        return not self._unreadable and not self._counts[configuration]

    def _change(self, checksum: str, by: int) -> None:
        try:
            profiles = self._profiles(checksum)
        except DamagedStore:
            self._unreadable += by
            return
        for configuration in {info.configuration for info in profiles}:
            self._counts[configuration] += by


def newest_first(profiles: Iterable[tuple[K, ProfileInfo]]) -> dict[K, list[ProfileInfo]]:
    """The profiles with each key, those keys first that come first.

    Of the same second the one that was listed last is the newest.
    """
    found: dict[K, list[ProfileInfo]] = {}
    for key, info in profiles:
        found.setdefault(key, []).append(info)
    for several in found.values():
        several.reverse()
        several.sort(key=lambda info: info.time, reverse=True)
    return found


NO_PROFILE = "no profile is registered"
NO_BASELINE = "no ancestor has a profile of the same configuration"


@dataclass
class VersionPlan:
    """A version with its pairs to compare; `steps` also has the comparisons that cannot be made."""

    version: MinorVersion
    steps: list[CheckPair | Comparison] = field(default_factory=list)
    reason: str = ""
    failure: str = ""
    errors: list[PerunError] = field(default_factory=list)
    unpaired: tuple[ProfileInfo, ...] = ()


class Pairing:
    """Pairs the profiles of versions with their baselines.

    :param note: told before something is collected.
    """

    def __init__(
        self,
        repo: Repository,
        options: ComparisonOptions,
        report: Report,
        note: Callable[[str], None],
    ) -> None:
        self.repo = repo
        self.collects = options.compute_missing or is_true(
            repo.config.get("degradation.collect_before_check")
        )
        self.baselines = Baselines(repo, force=options.force)
        self._collect = options.collector
        self._report = report
        self._note = note
        self._why = (
            "--compute-missing" if options.compute_missing else "degradation.collect_before_check is true"
        )
        self._failures: dict[str, PerunError] = {}
        self._planned = 0

    def collect_missing(self, versions: Sequence[MinorVersion]) -> None:
        """Run the jobs of the matrix that the versions have no profile of, where the user wants that."""
        collect = self._collect
        if not self.collects or collect is None:
            return

        def note(text: str) -> None:
            self._note(f"{text} ({self._why})")

        self._failures = collect(self.repo, versions, self._report, note)
        self.baselines.refresh()

    def plan(
        self,
        version: MinorVersion,
        candidates: Candidates,
        *,
        others: Iterable[str] = (),
        beyond: Candidates = tuple,
        more: int = 0,
        without_baseline: str = "",
        leave: bool = False,
    ) -> VersionPlan:
        """The pairs of all configurations of the version; their profiles are pooled.

        :param beyond: as of :meth:`Baselines.find`. :param more: as there.
        :param others: versions whose failures count too, as their profiles are the baselines.
        :param without_baseline: why there is no pair where no candidate has the configuration.
        :param leave: the version is no candidate of this plan, nor of later ones.
        """
        self._report(version.checksum[:10], self._planned, 0)
        self._planned += 1
        plan = VersionPlan(version)
        self._add_failures(plan, others)
        try:
            targets = self.baselines.profiles(version.checksum)
        except DamagedStore as problem:
            plan.reason = problem.message
            if version.checksum not in self._failures:
                plan.errors.append(problem)
            return plan
        plan.reason = "" if targets else NO_PROFILE
        if leave:
            self.baselines.exclude(version.checksum)
        own = version.checksum
        pools = newest_first(((info.configuration, self.baselines.machine(info)), info) for info in targets)
        newest = [profiles[0] for profiles in pools.values()]
        pairs = self.baselines.find(own, newest, candidates, beyond, more)
        for (target, *older), found in zip(pools.values(), pairs, strict=True):
            if isinstance(found, CheckPair):
                plan.steps.append(found._replace(more_targets=tuple(older), version=own))
            elif found is None:
                plan.steps.append(Comparison(target, reason=without_baseline or self._without_baseline))
            else:
                plan.steps.append(Comparison(target, reason=found.message, error=found))
        return plan

    def between(self, old: MinorVersion, new: MinorVersion) -> VersionPlan:
        """The pairs of any two versions. Whichever way round, the same versions show the noise."""
        older, walk = before_both(self.repo, old, new)
        has = self.repo.store.indexes.has
        before = tuple(islice((one for one in walk if has(one.checksum)), REACH))
        self.baselines.only(one.checksum for one in (old, new, *before))
        turned = older.checksum != old.checksum
        plan = self.plan(
            new, lambda: (old,), others=(old.checksum,),
            beyond=lambda: chain((older,) if turned else (), before), more=int(turned),
            without_baseline=f"{old.checksum[:10]} has no profile of the same configuration",
        )  # fmt: skip
        if turned:
            plan.steps = [
                one._replace(line=one.line[1:], turned=True) if isinstance(one, CheckPair) else one
                for one in plan.steps
            ]
        return plan

    def _add_failures(self, plan: VersionPlan, others: Iterable[str]) -> None:
        own = plan.version.checksum
        for checksum in (own, *others):
            problem = self._failures.get(checksum)
            if problem is not None:
                where = "" if checksum == own else f"{checksum[:6]}: "
                plan.failure = plan.failure or where + problem.message
                plan.errors.append(problem)

    @cached_property
    def _without_baseline(self) -> str:
        missing = self.repo.vcs.missing_history()
        return f"{NO_BASELINE} ({missing})" if missing else NO_BASELINE

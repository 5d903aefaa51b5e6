"""The first step of a check: which pairs of profiles of a version are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice

from perun.core.config.schema import is_true
from perun.core.errors import DamagedStore, PerunError
from perun.history.check.baselines import Baselines, Candidates, newest_first
from perun.history.check.compare import Pair
from perun.history.check.report import Comparison, Options
from perun.measurement.noise import REACH
from perun.plugin.api import MinorVersion, Report
from perun.profile.helpers import ProfileInfo
from perun.repository.repository import Repository
from perun.repository.walking import before_both

NO_PROFILE = "no profile is registered"
NO_BASELINE = "no ancestor has a profile of the same configuration"


@dataclass
class VersionPlan:
    """A version with its pairs to compare; `steps` also has the comparisons that cannot be made."""

    version: MinorVersion
    steps: list[Pair | Comparison] = field(default_factory=list)
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
        options: Options,
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
            if isinstance(found, Pair):
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
                one._replace(line=one.line[1:], turned=True) if isinstance(one, Pair) else one
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
